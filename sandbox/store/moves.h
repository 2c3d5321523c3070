/* SPDX-License-Identifier: MIT */
#ifndef MOVES_H
#define MOVES_H

#include <stdint.h>

struct db;
struct err;

/*
 * People on the way to another node, or gone there, and slots that have come
 * from another one, although the table of nodes does not say so yet.  The
 * caller gives a person's slot (protocol/node_table.h).
 *
 *	none → leaving (nothing of theirs begins here) → gone (all is there)
 *	leaving → none (they stay)
 *
 * A slot is gone when nobody is left in it: a row for all stands in the place
 * of those of its people, until the slot is about to come back.  A node whose
 * table is old may ask for them as long as it likes.  A slot has come when all
 * of its people are here: another node may have the new table sooner than we.
 * The row names our table, which does not say so yet, and holds for no other
 * one: an old disk that comes back claims nothing.  On one host nobody asks.
 */
#define MOVES_NODE_MAX 63
#define MOVES_ALL 0 /* in place of a user's id: of the whole slot */

enum move_state {
	MOVE_NONE,
	MOVE_LEAVING,
	MOVE_GONE,
	MOVE_COME, /* of a slot alone */
	MOVE_UNKNOWN
};

/* The state of a person, or of the slot; to: the node's name, or for MOVE_COME
 * the version of the table.  MOVE_UNKNOWN: err says why. */
enum move_state moves_find(struct db *db, int slot, int64_t user_id,
    char to[MOVES_NODE_MAX + 1], struct err *err);

/* None → leaving, which may be said again.  1: they have gone, or leave for
 * another node. */
int moves_begin(struct db *db, int slot, int64_t user_id, const char *to,
    struct err *err);
/* Leaving → none. */
int moves_stay(struct db *db, int slot, int64_t user_id, struct err *err);
/* Leaving → gone, and no row of theirs is left but that of a sandbox that a
 * sweeper removes.  1: they are not leaving. */
int moves_end(struct db *db, int slot, int64_t user_id, struct err *err);
/* The slot has gone.  1: somebody is in it, or has come meanwhile. */
int moves_end_slot(struct db *db, int slot, const char *to, struct err *err);

/* Forget all rows of a slot, whose people are about to come. */
int moves_forget(struct db *db, int slot, struct err *err);
/* The slot has come, and the table of this version does not say so. */
int moves_come_slot(struct db *db, int slot, const char *version,
    struct err *err);

/* Call fn for each person who has anything here, until it returns something
 * else than 0, which is returned. */
typedef int (*moves_fn)(void *arg, int64_t user_id);
int moves_each_person(struct db *db, moves_fn fn, void *arg, struct err *err);

#endif
