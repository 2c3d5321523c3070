/* SPDX-License-Identifier: MIT */
/* From an address to a connection on which every statement is prepared. */
#include "pg.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/clock.h"
#include "pg_migrations.h"

/* A server that is away is not asked in each request. */
#define RETRY_MS 1000
#define SERVER_OLDEST 150000
#define ADDRESS_WORDS 24

/* What each role does first; how long it waits for a connection, and for an
 * answer: a little longer than the server lets a statement take.  The front has
 * three seconds for its whole answer. */
static const struct {
	const char *name;
	enum pg_statement recipe;
	int connect_ms;
	int wait_ms;
} roles[] = {
	[DB_FRONT] = { "il-fcgi", PG_CONNECT_FRONT, 1500, 2000 },
	[DB_READER] = { "il-reader", PG_CONNECT_READER, 4000, 6000 },
	[DB_WORKER] = { "il-worker", PG_CONNECT_WORKER, 4000, 6000 },
	[DB_ADMIN] = { "ilctl", PG_CONNECT_ADMIN, 10000, 600000 },
};

/* What libpq is told unless the address says otherwise.  A peer that is gone
 * is noticed after 5 + 3 * 2 seconds; to another host the certificate has to
 * fit. */
static const struct {
	const char *word;
	const char *value;
} defaults[] = {
	{ "sslmode", "verify-full" },
	{ "gssencmode", "disable" },
	{ "keepalives", "1" },
	{ "keepalives_idle", "5" },
	{ "keepalives_interval", "2" },
	{ "keepalives_count", "3" },
	{ "tcp_user_timeout", "11000" },
	{ "target_session_attrs", "read-write" },
};

/* ---- one connection ---- */

static bool
is_said(const PQconninfoOption *options, const char *word)
{
	for (; options->keyword != NULL; options++)
		if (strcmp(options->keyword, word) == 0)
			return options->val != NULL;
	return false;
}

/* The address itself comes last of ours, so that what it says counts. */
static PGconn *
start(const struct pg *pg, struct err *err)
{
	const char *words[ADDRESS_WORDS];
	const char *values[ADDRESS_WORDS];
	char *why = NULL;
	PQconninfoOption *options = PQconninfoParse(pg->address, &why);
	int count = 0;
	PGconn *conn;

	/* its reason may quote a password */
	PQfreemem(why);
	if (options == NULL) {
		(void)err_set(err, ERR_CONFIG,
		    "IL_DATABASE: libpq cannot read the address");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		words[count] = defaults[i].word;
		values[count] = defaults[i].value;
		count += !is_said(options, defaults[i].word);
	}
	PQconninfoFree(options);
	words[count] = "dbname";
	values[count++] = pg->address;
	words[count] = "client_encoding";
	values[count++] = "UTF8";
	words[count] = "application_name";
	values[count++] = roles[pg->db.role].name;
	words[count] = NULL;
	values[count] = NULL;
	conn = PQconnectStartParams(words, values, 1);
	if (conn == NULL)
		(void)err_set(err, ERR_SYSTEM, "database: no connection");
	return conn;
}

/* Step it until it stands.  False: it fails, or *late: it takes too long. */
static bool
await(PGconn *conn, int64_t until_ms, bool *late)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (PQstatus(conn) == CONNECTION_BAD)
		return false;
	while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
		struct pollfd at = { .fd = PQsocket(conn),
			.events = next == PGRES_POLLING_READING ? POLLIN :
								  POLLOUT };

		*late = TEMP_FAILURE_RETRY(poll(&at, 1,
			    clock_poll_timeout(until_ms))) == 0;
		if (*late)
			return false;
		next = PQconnectPoll(conn);
	}
	return next == PGRES_POLLING_OK;
}

/* Wrong settings, which trying again does not mend, from a server that is away
 * or starts: libpq tells the states of SQL in words only. */
static enum err_code
connect_code(PGconn *conn)
{
	static const char *const wrong[] = { "certificate", "SSL",
		"does not exist", "authentication", "pg_hba.conf", "password",
		"no pg_hba", "permission", "read-only", NULL };
	const char *text = PQerrorMessage(conn);

	for (int i = 0; wrong[i] != NULL; i++)
		if (strstr(text, wrong[i]) != NULL)
			return ERR_CONFIG;
	return ERR_SYSTEM;
}

static void
ignore_notice(void *arg, const PGresult *result)
{
	(void)arg;
	(void)result;
}

static int
dial(struct pg *pg, struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + roles[pg->db.role].connect_ms;
	bool late = false;
	const char *text;

	pg->conn = start(pg, err);
	if (pg->conn == NULL)
		return -1;
	(void)PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
	if (await(pg->conn, until_ms, &late))
		return 0;
	text = PQerrorMessage(pg->conn);
	if (late)
		(void)err_set(err, ERR_SYSTEM,
		    "database: no connection in time");
	else
		(void)err_set(err, connect_code(pg->conn), "database: %.*s",
		    (int)strcspn(text, "\n"), text);
	pg_drop(pg);
	return -1;
}

void
pg_drop(struct pg *pg)
{
	PQfinish(pg->conn);
	pg->conn = NULL;
	pg->begun = pg->sent = false;
	pg->unread = false;
	pg->quick_now = false;
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
		return err_set(err, ERR_CONFIG,
		    "the server is a standby: it takes no change");
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

static int
set_up(struct pg *pg, struct err *err)
{
	int version = 0;

	pg->wait_ms = roles[pg->db.role].wait_ms;
	if (PQsetnonblocking(pg->conn, 1) != 0 ||
	    PQenterPipelineMode(pg->conn) == 0)
		return pg_error(pg, NULL, err);
	/* a program without the schema has no role either */
	if (check_version(pg, &version, err) != 0 ||
	    pg_script(pg, pg_statement_texts[roles[pg->db.role].recipe].sql,
		err) != 0)
		return -1;
	if (version == migration_count && pg_prepare(pg, err) != 0)
		return -1;
	return pg->holder != 0 ? pg_hold_again(pg, err) : 0;
}

/* Whether the server has closed it by now, without asking it: its last words
 * come first. */
static bool
is_closed(struct pg *pg)
{
	struct pollfd at = { .fd = PQsocket(pg->conn), .events = POLLIN };

	while (poll(&at, 1, 0) > 0)
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
	if (dial(pg, err) == 0) {
		if (set_up(pg, err) == 0)
			return pg->listening ? pg_listen(&pg->db, err) : 0;
		pg_drop(pg);
	}
	pg->retry_ms = clock_monotonic_ms() + RETRY_MS;
	return -1;
}
