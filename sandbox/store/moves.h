/* SPDX-License-Identifier: MIT */
#ifndef MOVES_H
#define MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/sandbox.h"

struct buf;
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

/* ---- rows of a person ---- */

/*
 * All rows of a person as JSON, to be carried to another database: the sandbox,
 * what it keeps in memory and the names in it, the views, and what the operator
 * has said (sql/person.sql).  Jobs stay where they ran.  The rows do not name
 * the person: person_put() is told whose they are.
 */
#define PERSON_ROWS_MAX ((size_t)32 << 20)

/* The sandbox, as the rows have it. */
struct person_sandbox {
	char id[SANDBOX_ID_LEN + 1]; /* "": there is none */
	bool active;		     /* only such a one has files */
	int64_t used_at;
};

/* Append a person's rows.  1: they have none. */
int person_rows(struct db *db, int64_t user_id, struct buf *rows,
    struct err *err);
/* Look at rows of unknown origin: what they have for a sandbox.  ERR_INPUT:
 * they are no rows, or hold what no database is to have. */
int person_look(struct db *db, const char *rows, struct person_sandbox *sandbox,
    struct err *err);
/* Number of a person's unfinished jobs; -1: err says why. */
int64_t person_open(struct db *db, int64_t user_id, struct err *err);

/* Are they here, with this sandbox?  1: yes; ERR_CONFLICT: they have another
 * one here, or this one as it was before. */
int person_is_here(struct db *db, int64_t user_id,
    const struct person_sandbox *sandbox, struct err *err);
/* Insert rows that person_look() has taken, in one transaction: the person is
 * this node's from then on.  A view or a rule that is there already stays.
 * keep: false only finds out whether they can be inserted. */
int person_put(struct db *db, int64_t user_id, const char *rows, bool keep,
    struct err *err);

#endif
