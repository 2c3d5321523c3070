/* SPDX-License-Identifier: MIT */
/* A connection with every statement prepared, made again when it goes. */
#include "driver_pg.h"

#include <poll.h>
#include <string.h>

#include "../../base/clock.h"
#include "pg_migrations.h"

/* A server that is away is not asked in each request. */
#define RETRY_MS 1000
#define SERVER_OLDEST 150000
/* Of what has come by itself, in pieces of 16 KiB. */
#define WORDS_MAX 64

/* What each role does first, and how long it waits for an answer: a little
 * longer than the server lets a statement take. */
static const struct {
	enum pg_statement recipe;
	int wait_ms;
} roles[] = {
	[DB_FRONT] = { PG_CONNECT_FRONT, 2000 },
	[DB_READER] = { PG_CONNECT_READER, 3000 },
	[DB_WORKER] = { PG_CONNECT_WORKER, 6000 },
	[DB_ADMIN] = { PG_CONNECT_ADMIN, 600000 },
};

void
pg_drop(struct pg *pg)
{
	PQfinish(pg->conn);
	pg->conn = NULL;
	pg->begun = pg->sent = false;
	pg->unread = false;
	pg->awaited = 0;
	pg->quick_now = false;
	memset(pg->away, 0, sizeof(pg->away));
	for (int i = 0; i < STATEMENT_COUNT; i++)
		pg->statements[i].done = false;
}

/* ---- what it needs before it is used ---- */

int
pg_read_version(struct pg *pg, int *version, struct err *err)
{
	int row;

	(void)pg_own(pg, PG_HAS_SCHEMA);
	row = pg_run_own(pg, PG_HAS_SCHEMA, err);
	*version = 0;
	if (row < 0)
		return -1;
	if (pg_int(&pg->statements[PG_HAS_SCHEMA], 0) == 0)
		return 0;
	(void)pg_own(pg, PG_SCHEMA_VERSION);
	row = pg_run_own(pg, PG_SCHEMA_VERSION, err);
	if (row == 1)
		*version = (int)pg_int(&pg->statements[PG_SCHEMA_VERSION], 0);
	return row < 0 ? -1 : 0;
}

/* A program works with exactly the version that it was made for. */
static int
check_version(struct pg *pg, int *version, struct err *err)
{
	struct pg_stmt *s = pg_own(pg, PG_SERVER);

	if (pg_run_own(pg, PG_SERVER, err) != 1)
		return -1;
	if (pg_int(s, 0) < SERVER_OLDEST)
		return err_set(err, ERR_CONFIG,
		    "the server is PostgreSQL %d, this needs 15 or newer",
		    (int)(pg_int(s, 0) / 10000));
	if (pg_int(s, 1) != 0)
		return err_set(err, ERR_UNAVAILABLE,
		    "the server is a standby: it takes no change");
	if (pg_int(s, 2) == 0)
		return err_set(err, ERR_CONFIG,
		    "the database's encoding is not UTF8: make it anew");
	/* a pooler's sessions are not those that hold our locks */
	if (pg->db.role == DB_WORKER && pg_int(s, 3) != PQbackendPID(pg->conn))
		return err_set(err, ERR_CONFIG,
		    "a pooler is in between: it does not keep our locks");
	if (pg_read_version(pg, version, err) != 0)
		return -1;
	if (pg->db.role != DB_ADMIN && *version != migration_count)
		return err_set(err, ERR_CONFIG,
		    "the database has version %d, this program needs %d: %s",
		    *version, migration_count,
		    *version < migration_count ? "run ilctl migrate" :
						 "install the newer programs");
	return 0;
}

/* A role that is not there is said to be a wrong value. */
static int
take_role(struct pg *pg, struct err *err)
{
	enum pg_statement recipe = roles[pg->db.role].recipe;
	int result = pg_script(pg, pg_statement_texts[recipe].sql, err);

	if (result != 0 && err->code == ERR_INPUT)
		err->code = ERR_CONFIG;
	return result;
}

static int
set_up(struct pg *pg, struct err *err)
{
	int version = 0;

	pg->wait_ms = roles[pg->db.role].wait_ms;
	if (PQsetnonblocking(pg->conn, 1) != 0 ||
	    PQenterPipelineMode(pg->conn) == 0)
		return pg_error(pg, NULL, err);
	/* a program without the schema has no role either */
	if (check_version(pg, &version, err) != 0)
		return -1;
	if (pg->holder != 0)
		pg_end_before(pg);
	if (pg->conn == NULL)
		return err_set(err, ERR_SYSTEM, "database: it went again");
	if (take_role(pg, err) != 0)
		return err_wrap(err, "its role (ilctl migrate makes it)");
	if (version == migration_count && pg_prepare(pg, err) != 0)
		return -1;
	if (pg->node != NULL && pg_join_again(pg, err) != 0)
		return -1;
	return pg->holder != 0 ? pg_hold_again(pg, err) : 0;
}

/* Whether the server has closed it by now, without asking it: its last words
 * come first.  One that has very much to say is asked. */
static bool
is_closed(struct pg *pg)
{
	struct pollfd at = { .fd = PQsocket(pg->conn), .events = POLLIN };

	for (int i = 0; i < WORDS_MAX && poll(&at, 1, 0) > 0; i++)
		if (PQconsumeInput(pg->conn) == 0)
			return true;
	return PQstatus(pg->conn) != CONNECTION_OK;
}

int
pg_ready(struct pg *pg, struct err *err)
{
	if (pg->conn != NULL && !is_closed(pg))
		return 0;
	if (pg->conn != NULL)
		pg_drop(pg);
	if (clock_monotonic_ms() < pg->retry_ms)
		return err_set(err, ERR_SYSTEM,
		    "database: it was away just now");
	if (pg_dial(pg, err) == 0) {
		if (set_up(pg, err) == 0 &&
		    (!pg->listening || pg_listen(&pg->db, err) == 0))
			return 0;
		pg_drop(pg);
	}
	pg->retry_ms = clock_monotonic_ms() + RETRY_MS;
	return -1;
}
