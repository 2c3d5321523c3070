/* SPDX-License-Identifier: MIT */
#ifndef PERSON_H
#define PERSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/sandbox.h"

struct buf;
struct db;
struct err;

/*
 * All rows of a person as JSON, to be carried to another database: the sandbox,
 * what it keeps in memory and the names in it, the views, and what the operator
 * has said (sql/person.sql).  Jobs stay where they ran.  Whose they are is not
 * in them: who takes them says it.
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
/* How many jobs of theirs are not over; -1: err says why. */
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
