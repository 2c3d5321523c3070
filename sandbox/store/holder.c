/* SPDX-License-Identifier: MIT */
#include "holder.h"

#include <stddef.h>

#include "driver.h"

bool
holder_is_shared(const struct db *db)
{
	return db->driver->hold != NULL;
}

int
holder_take(struct db *db, const char *node, int64_t slot, int64_t *holder,
    struct err *err)
{
	if (holder_is_shared(db))
		return db->driver->hold(db, node, slot, holder, err);
	*holder = slot;
	return 0;
}

int
holder_take_over(struct db *db, const char *node, int64_t slot, int64_t holder,
    struct err *err)
{
	return holder_is_shared(db) ?
	    db->driver->take_over(db, node, slot, holder, err) :
	    1;
}

void
holder_notify(struct db *db, int64_t home)
{
	if (holder_is_shared(db))
		db->driver->notify(db, home, 0);
}

int
holder_listen(struct db *db, struct err *err)
{
	return holder_is_shared(db) ? db->driver->listen(db, err) : 0;
}

bool
holder_heard(struct db *db, int *fd)
{
	*fd = -1;
	return holder_is_shared(db) && db->driver->heard(db, fd);
}

void
holder_cancel(struct db *db, int64_t home, int64_t job_id)
{
	if (holder_is_shared(db))
		db->driver->notify(db, home, job_id);
}

int
holder_await(struct db *db, const char *token, struct err *err)
{
	return holder_is_shared(db) ? db->driver->await(db, token, err) : 1;
}

int
holder_respond(struct db *db, int64_t job, const char *json, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_RESPOND);
	int row;

	db_bind_int(s, ":id", job);
	db_bind_text(s, ":json", json);
	db_lasting(db, false); /* nobody waits for a disk */
	row = db_step(db, s, err);
	db_lasting(db, true);
	return row < 0 ? -1 : 0;
}

void
holder_await_none(struct db *db)
{
	if (holder_is_shared(db))
		db->driver->await_none(db);
}

int64_t
holder_response(struct db *db, int *fd, const char **json)
{
	*fd = -1;
	return holder_is_shared(db) ? db->driver->response(db, fd, json) : 0;
}

int64_t
holder_heard_cancel(struct db *db)
{
	return holder_is_shared(db) ? db->driver->heard_cancel(db) : 0;
}
