/* SPDX-License-Identifier: MIT */
/* From an address to a connection, in the time that its program has. */
#include "pg.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/clock.h"

#define OPTIONS_MAX 96

/* How long each role waits for one host.  The front has three seconds for its
 * whole answer. */
static const struct {
	const char *name;
	int connect_ms;
} roles[] = {
	[DB_FRONT] = { "il-fcgi", 1000 },
	[DB_READER] = { "il-reader", 1500 },
	[DB_WORKER] = { "il-worker", 4000 },
	[DB_ADMIN] = { "ilctl", 10000 },
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

/* ---- what libpq is told ---- */

/* What a connection is made of: pairs, and the texts that are ours. */
struct options {
	const char *words[OPTIONS_MAX];
	const char *values[OPTIONS_MAX];
	int count;
	char *own[OPTIONS_MAX];
	int own_count;
};

static void
add(struct options *o, const char *word, const char *value)
{
	if (o->count == OPTIONS_MAX - 1)
		return;
	o->words[o->count] = word;
	o->values[o->count++] = value;
}

static const char *
said(const PQconninfoOption *all, const char *word)
{
	for (; all->keyword != NULL; all++)
		if (strcmp(all->keyword, word) == 0)
			return all->val;
	return NULL;
}

/* How many hosts an address names. */
static int
count_hosts(const PQconninfoOption *all)
{
	const char *list = said(all, "hostaddr");
	int count = 1;

	if (list == NULL)
		list = said(all, "host");
	while (list != NULL && (list = strchr(list, ',')) != NULL) {
		count++;
		list++;
	}
	return count;
}

/* The i-th of a list, the only one if there is no other. */
static char *
nth(const char *list, int i)
{
	const char *at = list;

	while (i-- > 0 && strchr(at, ',') != NULL)
		at = strchr(at, ',') + 1;
	return xstrndup(at, strcspn(at, ","));
}

/* Of several hosts libpq would wait for the first as long as for all. */
static void
add_address(struct options *o, const PQconninfoOption *all, int host)
{
	for (; all->keyword != NULL; all++) {
		bool list = strcmp(all->keyword, "host") == 0 ||
		    strcmp(all->keyword, "hostaddr") == 0 ||
		    strcmp(all->keyword, "port") == 0;

		if (all->val == NULL)
			continue;
		if (list && o->own_count < OPTIONS_MAX) {
			o->own[o->own_count] = nth(all->val, host);
			add(o, all->keyword, o->own[o->own_count++]);
		} else {
			add(o, all->keyword, all->val);
		}
	}
}

static PGconn *
start(const struct pg *pg, const PQconninfoOption *all)
{
	struct options o = { .count = 0 };
	PGconn *conn;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (said(all, defaults[i].word) == NULL)
			add(&o, defaults[i].word, defaults[i].value);
	add_address(&o, all, pg->host);
	add(&o, "client_encoding", "UTF8");
	add(&o, "application_name", roles[pg->db.role].name);
	o.words[o.count] = NULL;
	conn = PQconnectStartParams(o.words, o.values, 0);
	while (o.own_count > 0)
		free(o.own[--o.own_count]);
	return conn;
}

/* ---- waiting for it ---- */

/* Step it until it stands.  False: it fails, or *late: it takes too long. */
static bool
await(PGconn *conn, int64_t until_ms, bool *late)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (PQstatus(conn) == CONNECTION_BAD)
		return false;
	while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
		int left_ms = clock_poll_timeout(until_ms);
		struct pollfd at = { .fd = PQsocket(conn),
			.events = next == PGRES_POLLING_READING ? POLLIN :
								  POLLOUT };

		*late = left_ms == 0 ||
		    TEMP_FAILURE_RETRY(poll(&at, 1, left_ms)) == 0;
		if (*late)
			return false;
		next = PQconnectPoll(conn);
	}
	return next == PGRES_POLLING_OK;
}

/* Wrong settings, which trying again does not mend, from a server that is away
 * or starts.  What the server says has an SQLSTATE ("FATAL:  28P01: …"), what
 * libpq says words only. */
static enum err_code
connect_code(const char *text)
{
	static const char *const wrong[] = { "certificate", "support SSL",
		"no password supplied", "authentication method", "invalid ",
		NULL };

	for (const char *at = text; (at = strstr(at, ":  ")) != NULL;) {
		at += strlen(":  ");
		if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
		    at[5] == ':')
			return pg_code(at);
	}
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

/* Try one host. */
static int
dial_host(struct pg *pg, const PQconninfoOption *all, struct err *err)
{
	int64_t until_ms = pg_until(pg, roles[pg->db.role].connect_ms);
	bool late = false;
	const char *text;

	pg->conn = start(pg, all);
	if (pg->conn == NULL)
		return err_set(err, ERR_SYSTEM, "database: no connection");
	(void)PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
	(void)PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE);
	if (await(pg->conn, until_ms, &late))
		return 0;
	text = PQerrorMessage(pg->conn);
	if (late)
		(void)err_set(err, ERR_SYSTEM,
		    "database: no connection in time");
	else
		(void)err_set(err, connect_code(text), "database: %.*s",
		    (int)strcspn(text, "\n"), text);
	pg_drop(pg);
	return -1;
}

/* The address says all; a variable of libpq's that somebody left there would
 * have us elsewhere, or under other settings. */
static void
forget_environment(const PQconninfoOption *all)
{
	for (; all->keyword != NULL; all++)
		if (all->envvar != NULL)
			(void)unsetenv(all->envvar);
}

/* Each host in turn, from the one that was good the last time on. */
int
pg_dial(struct pg *pg, struct err *err)
{
	char *why = NULL;
	PQconninfoOption *all = PQconninfoParse(pg->address, &why);
	int hosts;
	int result = -1;

	/* its reason may quote a password */
	PQfreemem(why);
	if (all == NULL)
		return err_set(err, ERR_CONFIG,
		    "IL_DATABASE: libpq cannot read the address");
	forget_environment(all);
	hosts = count_hosts(all);
	for (int i = 0; i < hosts && result != 0; i++) {
		result = dial_host(pg, all, err);
		if (result != 0)
			pg->host = (pg->host + 1) % hosts;
	}
	PQconninfoFree(all);
	/* one of several may be good again soon */
	if (result != 0 && hosts > 1)
		err->code = ERR_SYSTEM;
	return result;
}
