/* SPDX-License-Identifier: MIT */
#ifndef NODES_CTL_H
#define NODES_CTL_H

#include <stdint.h>

#include <jansson.h>

struct config;
struct ctl;
struct db;
struct err;
struct node_entry;
struct node_table;
struct parcel;

/* Where a person is, by the table of nodes: "slot", and "node", which is null
 * on one host and where the table cannot be read.  *line says the same to
 * people; heap. */
json_t *nodes_find_person(const struct config *config, int64_t user_id,
    char **line);

/* The state of the sub-commands of `ilctl nodes`; all is the caller's. */
struct nodes {
	const struct config *config;
	struct node_table *table;
	const struct node_entry *own;
	struct db *db;
};

/* nodes_move.c: slot ... --to name */
int nodes_move(struct nodes *n, struct ctl *ctl, struct err *err);

/* PUT /nodes/<what>/<id> to a node, by our own nginx: "people", with all that a
 * person has; "slots" (parcel NULL), whose people are about to come; "come"
 * (NULL), a slot all of whose people have.  0: it has taken them.  ERR_UNKNOWN:
 * nobody knows whether; all other errors: it has not. */
int nodes_put(const struct config *config, const struct node_entry *to,
    const char *what, int64_t id, const struct parcel *parcel, struct err *err);

#endif
