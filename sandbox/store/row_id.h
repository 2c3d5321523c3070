/* SPDX-License-Identifier: MIT */
#ifndef ROW_ID_H
#define ROW_ID_H

#include <stdint.h>

struct db;
struct err;

/*
 * Ids of jobs and views.  An id says when its row was made and in which slot
 * its user is, so that any node knows whose an id is, and it is unique over all
 * nodes:
 *
 *	milliseconds since 2015 << 22 | slot << 12 | counter
 *
 * In each table ids grow, whatever the clock does, and none is used again.  Ids
 * below ROW_ID_FIRST are of an older version and say nothing.
 */
#define ROW_ID_FIRST (INT64_C(1) << 40)
/* The last one that a clock gives, with 50 days of ids behind it.  A row that
 * comes from elsewhere has none above it, or none would be left for others. */
#define ROW_ID_LAST ((((INT64_C(1) << 41) - (INT64_C(1) << 32) + 1) << 22) - 1)

/* The slot of a row's user; -1: the id does not say it. */
int row_id_slot(int64_t id);

/* The next id of a table whose newest id is given (0: none), by the wall
 * clock, for a user in this slot. */
int64_t row_id_next(int64_t newest, int64_t now_ms, int slot);

/* The same for a row that a transaction inserts into this table. */
int row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err);

#endif
