/* SPDX-License-Identifier: MIT */
/* What goes to the server and what comes back, always with a deadline. */
#include "pg.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/clock.h"

#define BOOLEAN_OID 16

/* ---- errors ---- */

/* By the first two, or all five characters of an SQLSTATE. */
static const struct {
	const char *state;
	enum err_code code;
} codes[] = {
	{ "23505", ERR_CONFLICT }, { "23", ERR_INPUT }, /* a CHECK */
	{ "22", ERR_INPUT }, { "54", ERR_INPUT }, /* too long, too complex */
	{ "53300", ERR_BUSY },			  /* too many connections */
	{ "53", ERR_LIMIT },			  /* no space, no memory */
	{ "55P03", ERR_BUSY },			  /* lock_timeout */
	{ "57014", ERR_BUSY },			  /* statement_timeout */
	{ "40", ERR_BUSY },			  /* a deadlock */
	{ "57", ERR_SYSTEM },			  /* it shuts down, or starts */
	{ "08", ERR_SYSTEM },			  /* the connection */
	{ "25006", ERR_UNAVAILABLE },		  /* read only */
	{ "28", ERR_CONFIG },			  /* password, pg_hba.conf */
	{ "3D", ERR_CONFIG },			  /* no such database */
	{ "3F", ERR_CONFIG },
	{ "42", ERR_CONFIG }, /* no right, no such table or role */
};

enum err_code
pg_code(const char *state)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strncmp(state, codes[i].state, strlen(codes[i].state)) == 0)
			return codes[i].code;
	return ERR_SYSTEM;
}

int
pg_error(const struct pg *pg, const PGresult *result, struct err *err)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	/* Never the detail: it quotes what is stored. */
	if (state != NULL && text != NULL)
		return err_set(err, pg_code(state), "database: %s (%.5s)", text,
		    state);
	text = pg->conn != NULL ? PQerrorMessage(pg->conn) : "no connection";
	return err_set(err, ERR_SYSTEM, "database: %.*s",
	    (int)strcspn(text, "\n"), text);
}

/* The connection cannot be used any more, whoever is to blame. */
static int
lose(struct pg *pg, const char *why, struct err *err)
{
	if (why == NULL)
		(void)pg_error(pg, NULL, err);
	else
		(void)err_set(err, ERR_UNKNOWN, "database: %s", why);
	err->code = ERR_UNKNOWN;
	pg_drop(pg);
	return -1;
}

/* ---- waiting ---- */

int64_t
pg_until(const struct pg *pg, int most_ms)
{
	int64_t until_ms = clock_monotonic_ms() + most_ms;

	return pg->until_ms != 0 && pg->until_ms < until_ms ? pg->until_ms :
							      until_ms;
}

/* Until the socket is ready, or the deadline has passed. */
static int
wait_for(struct pg *pg, short events, int64_t until_ms, struct err *err)
{
	struct pollfd at = { .fd = PQsocket(pg->conn), .events = events };
	int left_ms = clock_poll_timeout(until_ms);
	/* also of a server that never stops saying something else */
	int ready = left_ms == 0 ?
	    0 :
	    (int)TEMP_FAILURE_RETRY(poll(&at, 1, left_ms));

	if (ready == 0)
		return lose(pg, "no answer in time", err);
	if (ready < 0 ||
	    ((at.revents & (POLLIN | POLLERR | POLLHUP)) != 0 &&
		PQconsumeInput(pg->conn) == 0))
		return lose(pg, NULL, err);
	return 0;
}

static int
send_all(struct pg *pg, int64_t until_ms, struct err *err)
{
	int left;

	while ((left = PQflush(pg->conn)) > 0)
		if (wait_for(pg, POLLIN | POLLOUT, until_ms, err) != 0)
			return -1;
	return left == 0 ? 0 : lose(pg, NULL, err);
}

/* The next answer; NULL ends those to one call. */
static int
receive(struct pg *pg, int64_t until_ms, PGresult **result, struct err *err)
{
	while (PQisBusy(pg->conn) != 0)
		if (wait_for(pg, POLLIN, until_ms, err) != 0)
			return -1;
	*result = PQgetResult(pg->conn);
	return 0;
}

/* ---- answers ---- */

static void
keep_row(struct pg_stmt *s, const PGresult *result, int row)
{
	for (int i = 0; i < s->columns; i++) {
		const char *value = PQgetvalue(result, row, i);

		if (PQgetisnull(result, row, i) != 0) {
			buf_addc(&s->rows, PG_NULL);
			continue;
		}
		buf_addc(&s->rows, PG_TEXT);
		if (PQftype(result, i) == BOOLEAN_OID)
			value = *value == 't' ? "1" : "0";
		buf_add(&s->rows, value, strlen(value) + 1);
	}
}

/* Copy rows: of one that is streamed, or all. */
static int
keep_rows(struct pg_stmt *s, const PGresult *result)
{
	s->columns = PQnfields(result);
	if (s->columns > PG_COLUMNS_MAX)
		return -1;
	for (int i = 0; i < PQntuples(result); i++)
		keep_row(s, result, i);
	return 0;
}

/* What a call gave.  -1: it failed. */
static int
take(struct pg *pg, struct pg_stmt *s, PGresult *result, struct err *err)
{
	switch ((int)PQresultStatus(result)) {
	case PGRES_SINGLE_TUPLE:
	case PGRES_TUPLES_OK:
		if (keep_rows(s, result) != 0)
			return err_set(err, ERR_PROTOCOL,
			    "database: too many columns");
		s->changes = (int)strtol(PQcmdTuples(result), NULL, 10);
		return 0;
	case PGRES_COMMAND_OK:
		s->changes = (int)strtol(PQcmdTuples(result), NULL, 10);
		s->undone = strcmp(PQcmdStatus(result), "ROLLBACK") == 0;
		return 0;
	case PGRES_PIPELINE_ABORTED:
		return -1;
	default:
		return pg_error(pg, result, err);
	}
}

/* All answers to one call.  -1: it failed; -2: the connection is lost. */
static int
take_call(struct pg *pg, struct pg_stmt *s, bool rows, int64_t until_ms,
    struct err *err)
{
	PGresult *result = NULL;
	int taken = 0;

	/* row by row, so that what is too much is noticed before it is here */
	if (rows)
		(void)PQsetSingleRowMode(pg->conn);
	for (;;) {
		if (receive(pg, until_ms, &result, err) != 0)
			return -2;
		if (result == NULL)
			return taken;
		if (taken == 0)
			taken = take(pg, s, result, err);
		PQclear(result);
		if (!s->rows.overflow)
			continue;
		(void)lose(pg, "an answer that is too large", err);
		return -2;
	}
}

/* The end of a round.  Anything else means that we have lost count. */
static int
take_sync(struct pg *pg, int64_t until_ms, struct err *err)
{
	PGresult *result = NULL;
	bool good;

	if (receive(pg, until_ms, &result, err) != 0)
		return -1;
	good = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
	PQclear(result);
	return good ? 0 : lose(pg, NULL, err);
}

/* ---- rounds ---- */

static int
send_call(struct pg *pg, struct pg_stmt *s)
{
	const char *const *values = (const char *const *)s->values;

	/* Our own are few words each: not prepared. */
	if (s->text >= &pg_statement_texts[STATEMENT_COUNT])
		return PQsendQueryParams(pg->conn, s->text->sql, s->count, NULL,
		    values, NULL, NULL, 0);
	return PQsendQueryPrepared(pg->conn, s->text->name, s->count, values,
	    NULL, NULL, 0);
}

/* The answer to what was only sent. */
static int
take_unread(struct pg *pg, int64_t until_ms, struct err *err)
{
	/* not reset: the next one may be bound already */
	struct pg_stmt *s = &pg->statements[PG_NOTIFY];
	struct err ignored;

	if (!pg->unread)
		return 0;
	pg->unread = false;
	if (take_call(pg, s, false, until_ms, &ignored) == -2) {
		*err = ignored;
		return -1;
	}
	return take_sync(pg, until_ms, err);
}

/* What comes after an answer that nobody has taken is not seen. */
void
pg_take_unread(struct pg *pg)
{
	struct err ignored;

	if (pg->unread && PQisBusy(pg->conn) == 0)
		(void)take_unread(pg, clock_monotonic_ms() + pg->wait_ms,
		    &ignored);
}

int
pg_round(struct pg *pg, struct pg_stmt *const *calls, int count, int rows,
    struct err *err)
{
	int64_t until_ms = pg_until(pg, pg->wait_ms);
	int result = 0;

	for (int i = 0; i < count; i++)
		if (send_call(pg, calls[i]) == 0)
			return lose(pg, NULL, err);
	if (PQpipelineSync(pg->conn) == 0)
		return lose(pg, NULL, err);
	if (send_all(pg, until_ms, err) != 0 ||
	    take_unread(pg, until_ms, err) != 0)
		return -1;
	for (int i = 0; i < count; i++) {
		struct err later;
		int taken = take_call(pg, calls[i], i == rows, until_ms,
		    result == 0 ? err : &later);

		if (taken == -2 && result != 0)
			*err = later;
		if (taken == -2)
			return -1;
		result = result == 0 ? taken : result;
	}
	if (take_sync(pg, until_ms, err) != 0)
		return -1;
	if (result != 0)
		driver_group_error(&pg->db, err);
	return result;
}

void
pg_send_only(struct pg *pg, struct pg_stmt *s)
{
	struct err ignored;

	if (pg->unread &&
	    take_unread(pg, pg_until(pg, pg->wait_ms), &ignored) != 0)
		return;
	if (send_call(pg, s) == 0 || PQpipelineSync(pg->conn) == 0) {
		pg_drop(pg);
		return;
	}
	/* what does not go now goes with the next round */
	pg->unread = true;
	(void)PQflush(pg->conn);
}

/* All of them in one round. */
int
pg_prepare(struct pg *pg, struct err *err)
{
	int64_t until_ms = pg_until(pg, pg->wait_ms);
	struct err later;
	int result = 0;

	for (int i = 0; i < STATEMENT_COUNT; i++) {
		const struct pg_statement_text *text = &pg_statement_texts[i];

		if (text->sql != NULL &&
		    PQsendPrepare(pg->conn, text->name, text->sql, 0, NULL) ==
			0)
			return lose(pg, NULL, err);
	}
	if (PQpipelineSync(pg->conn) == 0)
		return lose(pg, NULL, err);
	if (send_all(pg, until_ms, err) != 0)
		return -1;
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		int taken;

		if (pg_statement_texts[i].sql == NULL)
			continue;
		taken = take_call(pg, &pg->statements[i], false, until_ms,
		    result == 0 ? err : &later);
		if (taken == -2)
			return -1;
		if (taken != 0 && result == 0)
			result = err_wrap(err, "statement %s",
			    pg_statement_texts[i].name);
	}
	if (take_sync(pg, until_ms, result == 0 ? err : &later) != 0)
		return -1;
	return result;
}

/* Outside of pipeline mode. */
int
pg_script(struct pg *pg, const char *sql, struct err *err)
{
	int64_t until_ms = pg_until(pg, pg->wait_ms);
	struct pg_stmt nothing = { 0 };
	int result;

	if (PQexitPipelineMode(pg->conn) == 0 ||
	    PQsendQuery(pg->conn, sql) == 0)
		return lose(pg, NULL, err);
	if (send_all(pg, until_ms, err) != 0)
		return -1;
	buf_init(&nothing.rows, PG_ANSWER_MAX);
	result = take_call(pg, &nothing, false, until_ms, err);
	buf_release(&nothing.rows);
	if (result == 0 && PQenterPipelineMode(pg->conn) == 0)
		return lose(pg, NULL, err);
	/* the rest of a text that failed is not run */
	if (result == -1)
		(void)PQenterPipelineMode(pg->conn);
	return result == 0 ? 0 : -1;
}
