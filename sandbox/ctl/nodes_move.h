/* SPDX-License-Identifier: MIT */
#ifndef NODES_MOVE_H
#define NODES_MOVE_H

#include "../base/buf.h"
#include "../protocol/node_table.h"

struct ctl;
struct config;
struct db;
struct err;
struct parcel;

/* The state of the sub-commands of `ilctl nodes`; all is the caller's. */
struct nodes {
	const struct config *config;
	struct node_table *table;
	const struct node_entry *own;
	struct db *db;
};

/* nodes_plan.c: `ilctl nodes plan …` or `move …`; an exit code. */
int nodes_change(struct ctl *ctl);
/* nodes_move.c: slot ... --to name */
int nodes_move(struct nodes *n, struct ctl *ctl, struct err *err);

/* PUT /nodes/<what>/<id> to a node, by our own nginx: "people", with all that a
 * person has; "slots" (parcel NULL), whose people are about to come.  0: it has
 * taken them.  ERR_UNKNOWN: nobody knows whether; all other errors: it has
 * not. */
int nodes_put(const struct config *config, const struct node_entry *to,
    const char *what, int64_t id, const struct parcel *parcel, struct err *err);

#endif
