/* SPDX-License-Identifier: MIT */
/* What libinline-store-pg.so is loaded for: a table, and what it needs to know
 * of struct stmt. */
#include "driver_pg.h"

#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))

extern const struct db_driver inline_store_driver;

static struct pg_stmt *
stmt_of(const struct stmt *s)
{
	return s->handle;
}

static void
close_pg(struct db *db)
{
	struct pg *pg = pg_of(db);

	pg_drop(pg);
	pg_statement_release(pg);
	buf_release(&pg->response);
	free(pg->address);
	free(pg->node);
	free(pg->instance);
	free(pg);
}

static struct db *
open_pg(const char *address, enum db_role role, struct err *err)
{
	struct pg *pg = xcalloc(1, sizeof(*pg));

	pg->db.driver = &inline_store_driver;
	pg->db.role = role;
	pg->address = xstrdup(address);
	pg_statement_init(pg);
	buf_init(&pg->response, PG_RESPONSE_MAX);
	for (int i = 0; i < STATEMENT_COUNT; i++)
		pg->db.statements[i] = (struct stmt){ &pg->db,
			pg->statements[i].text->sql != NULL ?
			    &pg->statements[i] :
			    NULL };
	if (pg_ready(pg, err) == 0)
		return &pg->db;
	close_pg(&pg->db);
	return NULL;
}

static bool
is_begun(const struct db *db)
{
	return pg_of(db)->begun;
}

static void
set_lasting(struct db *db, bool lasting)
{
	pg_of(db)->quick = !lasting;
}

static void
checkpoint(struct db *db)
{
	(void)db; /* the server does it */
}

static void
reset(struct stmt *s)
{
	pg_reset(stmt_of(s));
}

static void
bind_int(struct stmt *s, const char *name, int64_t value)
{
	pg_bind_int(stmt_of(s), name, value);
}

static void
bind_text(struct stmt *s, const char *name, const char *text)
{
	pg_bind_text(stmt_of(s), name, text);
}

static int
step(struct stmt *s, struct err *err)
{
	struct pg_stmt *own = stmt_of(s);

	if (!own->done && pg_execute(pg_of(s->db), own, err) != 0)
		return -1;
	return pg_next_row(own) ? 1 : 0;
}

static int
changes(const struct stmt *s)
{
	return stmt_of(s)->changes;
}

static int64_t
last_id(const struct db *db)
{
	return pg_of(db)->last_id;
}

static const char *
column_text(const struct stmt *s, int column)
{
	const struct pg_stmt *own = stmt_of(s);

	return column < own->columns ? own->row[column] : NULL;
}

static int64_t
column_int(const struct stmt *s, int column)
{
	return pg_int(stmt_of(s), column);
}

static bool
column_is_null(const struct stmt *s, int column)
{
	return column_text(s, column) == NULL;
}

PUBLIC const struct db_driver inline_store_driver = {
	.version = INLINE_VERSION,
	.statement_count = STATEMENT_COUNT,
	.groups_last = true,
	.open = open_pg,
	.close = close_pg,
	.migrate = pg_migrate,
	.begin = pg_begin,
	.commit = pg_commit,
	.rollback = pg_rollback,
	.is_begun = is_begun,
	.lasting = set_lasting,
	.flush = pg_flush,
	.checkpoint = checkpoint,
	.reset = reset,
	.bind_int = bind_int,
	.bind_text = bind_text,
	.step = step,
	.changes = changes,
	.last_id = last_id,
	.column_int = column_int,
	.column_text = column_text,
	.column_is_null = column_is_null,
	.is_inserted = pg_is_inserted,
	.hold = pg_hold,
	.take_over = pg_take_over,
	.notify = pg_notify,
	.listen = pg_listen,
	.heard = pg_heard,
	.heard_cancel = pg_heard_cancel,
	.await = pg_await,
	.await_none = pg_await_none,
	.response = pg_response,
	.join = pg_join,
	.lose_node = pg_lose_node,
};
