/* SPDX-License-Identifier: MIT */
#ifndef NODE_H
#define NODE_H

#include <stdbool.h>
#include <stdint.h>

struct db;
struct err;

/*
 * Hosts ("nodes") that share one database.  Each has a number, from 1, for its
 * name (IL_NODE) and the id of its folder of sandboxes (IL_STATE_DIR/node,
 * which il-sandboxd writes).  It lives as long as a session of one of its
 * workers is there; when another one has seen for a minute that it is not, it
 * is lost, and that one moves its sandboxes and jobs.  What moves gets
 * a new id, so that a host that comes back overwrites nothing, and is
 * overwritten by nothing.
 *
 * With SQLite there is one host.  Nothing here does anything, and its number
 * is 0.
 */

/* il-worker, once: this connection belongs to a living node from now on, and
 * joins again by itself after it was away.  ERR_CONFIG: another host of this
 * name lives; ERR_BUSY: one was there less than a minute ago. */
int node_join(struct db *db, const char *name, const char *instance,
    struct err *err);
/* Others: which one we are.  1: none of its workers has joined yet. */
int node_find(struct db *db, const char *name, const char *instance,
    struct err *err);
/* What the two have found; 0: nothing. */
int64_t node_number(const struct db *db);

struct node_counts {
	int64_t living;
	int64_t away; /* not long enough to be lost */
	int64_t lost; /* for ever, or until it is back */
};

/* How many there are; anybody may ask. */
int node_count(struct db *db, struct node_counts *counts, struct err *err);

/* Whether a worker of that one is there at this moment.  1: none is. */
int node_lives(struct db *db, int64_t number, struct err *err);

/* What came of a host that was lost. */
struct node_loss {
	char name[33];
	int64_t number;
	int sandboxes; /* that have moved */
	int jobs;      /* of its workers, that are ours now */
};

/* il-worker: move what belongs to one lost node, and jobs that are not where
 * their sandbox is.  0: one was; 1: none was. */
int node_sweep(struct db *db, struct node_loss *loss, struct err *err);

/*
 * Folders of sandboxes that were moved away from us, or dropped, while we were
 * lost: no row names them, and their files may be wanted still.
 */

#define LEFTOVER_SIZE 33
/* One that has been left for so long; sandbox has LEFTOVER_SIZE bytes.  1: none
 * has. */
int node_leftover(struct db *db, int64_t seconds, char *sandbox,
    struct err *err);
/* It is not there any more. */
int node_leftover_gone(struct db *db, const char *sandbox, struct err *err);
/* What this person had must not be kept any longer. */
int node_leftovers_unwanted(struct db *db, int64_t user_id, struct err *err);
/* How many there are. */
int64_t node_leftovers(struct db *db, struct err *err);

#endif
