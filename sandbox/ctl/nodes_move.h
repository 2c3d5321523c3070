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
	struct buf text; /* of the table */
	struct db *db;
};

/* nodes_plan.c: `ilctl nodes plan …` or `move …`; an exit code. */
int nodes_change(struct ctl *ctl);
/* nodes_move.c: slot ... --to name */
int nodes_move(struct nodes *n, struct ctl *ctl, struct err *err);

/*
 * nodes_send.c: give a person to a node, by our own nginx.  0: they are there.
 * ERR_UNKNOWN: nobody knows whether they are; all other errors: they are not.
 */
int nodes_send(const struct config *config, const struct node_entry *to,
    int64_t user_id, const struct parcel *parcel, struct err *err);
/* Tell a node that the people of a slot are about to come, and hear whether it
 * is there and takes them. */
int nodes_announce(const struct config *config, const struct node_entry *to,
    int slot, struct err *err);

#endif
