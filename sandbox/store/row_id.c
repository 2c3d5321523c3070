/* SPDX-License-Identifier: MIT */
#include "store/row_id.h"

#include "base/clock.h"
#include "base/err.h"
#include "protocol/node_table.h"
#include "store/db.h"

#define EPOCH_MS INT64_C(1420070400000) /* 2015, as of Discord's ids */
#define TIME_SHIFT 22
#define SLOT_SHIFT 12
#define COUNTER_MAX ((INT64_C(1) << SLOT_SHIFT) - 1)
#define REST_MASK ((INT64_C(1) << TIME_SHIFT) - 1)
/* A clock that is outside of these, in milliseconds since 2015, is no clock. */
#define TIME_FIRST (ROW_ID_FIRST >> TIME_SHIFT)
#define TIME_LAST (ROW_ID_LAST >> TIME_SHIFT)

_Static_assert(SLOTS == 1 << (TIME_SHIFT - SLOT_SHIFT), "a slot has its bits");

int
row_id_slot(int64_t id)
{
	return id < ROW_ID_FIRST ? -1 : (int)((id & REST_MASK) >> SLOT_SHIFT);
}

int64_t
row_id_next(int64_t newest, int64_t now_ms, int slot)
{
	int64_t ms = now_ms - EPOCH_MS;
	int64_t own = (int64_t)slot << SLOT_SHIFT;
	int64_t id;

	if (ms < TIME_FIRST || ms > TIME_LAST)
		ms = TIME_FIRST;
	id = ms << TIME_SHIFT | own;
	if (id > newest)
		return id;
	/* The clock stands or was set back: the first one above the newest. */
	id = (newest & ~REST_MASK) | own;
	if (id > newest)
		return id;
	return newest - id < COUNTER_MAX ? newest + 1 : id + REST_MASK + 1;
}

int
row_id_make(struct db *db, const char *table, int64_t user_id, int64_t *id,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_ROW_NEWEST);

	db_bind_text(s, ":name", table);
	if (db_step(db, s, err) < 0)
		return -1;
	*id = row_id_next(db_column_int(s, 0), clock_wall_ms(),
	    slot_of(user_id));
	return 0;
}
