/* SPDX-License-Identifier: MIT */
/*
 * Who holds which jobs, and what workers hear of each other.  A worker's number
 * is a row of `holders` and the advisory lock of that number, which its session
 * has for as long as it lives.  A number is never given out twice.
 */
#include "driver_pg.h"

#include <stdlib.h>

/* Names in the list of a session's channels. */
#define AWAITED_MAX 1000

/* Take a new number, and drop those that this slot had before and that left
 * nothing. */
static int
take_number(struct pg *pg, const char *node, int64_t slot, struct err *err)
{
	struct pg_stmt *s = pg_own(pg, PG_HOLD);
	struct pg_stmt *drop;

	pg_bind_text(s, ":node", node);
	pg_bind_int(s, ":slot", slot);
	pg_bind_int(s, ":home", pg->db.home);
	if (pg_run_own(pg, PG_HOLD, err) != 1)
		return -1;
	pg->holder = pg_int(s, 0);
	drop = pg_own(pg, PG_HOLDERS_DROP);
	pg_bind_int(drop, ":holder", pg->holder);
	pg_bind_text(drop, ":node", node);
	pg_bind_int(drop, ":slot", slot);
	return pg_run_own(pg, PG_HOLDERS_DROP, err) < 0 ? -1 : 0;
}

int
pg_hold(struct db *db, const char *node, int64_t slot, int64_t *holder,
    struct err *err)
{
	struct pg *pg = pg_of(db);

	/* A new connection may find that its number is gone. */
	if (pg_ready(pg, err) != 0 ||
	    (pg->holder == 0 && take_number(pg, node, slot, err) != 0))
		return -1;
	*holder = pg->holder;
	return 0;
}

/* It needs the login's rights.  Where it fails the lock tells. */
void
pg_end_before(struct pg *pg)
{
	struct pg_stmt *s = pg_own(pg, PG_END_BEFORE);
	struct err ignored;

	pg_bind_int(s, ":holder", pg->holder);
	(void)pg_round(pg, &s, 1, 0, &ignored);
}

/* On a new connection.  While the server still has the session before, nobody
 * else can have what it held: that is waited for. */
int
pg_hold_again(struct pg *pg, struct err *err)
{
	struct pg_stmt *s = pg_own(pg, PG_HOLD_AGAIN);

	pg_bind_int(s, ":holder", pg->holder);
	if (pg_round(pg, &s, 1, 0, err) != 0)
		return -1;
	if (!pg_next_row(s)) {
		pg->holder = 0; /* somebody has taken over what it had */
		return 0;
	}
	return pg_int(s, 0) != 0 ?
	    0 :
	    err_set(err, ERR_BUSY,
		"database: the server still has the session before");
}

/* In the transaction that holds its lock. */
static int
take_over(struct pg *pg, const char *node, int64_t slot, int64_t holder,
    struct err *err)
{
	struct pg_stmt *left = pg_own(pg, PG_LEFT);
	struct pg_stmt *drop = pg_own(pg, PG_HOLDER_DROP);
	enum pg_statement which = PG_TAKE_OVER;
	struct pg_stmt *jobs;
	int row;

	pg_bind_int(left, ":holder", holder);
	pg_bind_text(left, ":node", node);
	pg_bind_int(left, ":slot", slot);
	row = pg_run_own(pg, PG_LEFT, err);
	if (row < 0)
		return -1;
	/* a new connection, and we have been taken over ourselves */
	if ((row == 1 && pg_int(left, 0) == 0) || pg->holder == 0)
		return 1;
	if (row == 0)
		which = PG_TAKE_STRAYS;
	jobs = pg_own(pg, which);
	pg_bind_int(jobs, ":mine", pg->holder);
	pg_bind_int(jobs, ":holder", holder);
	if (pg_run_own(pg, which, err) < 0)
		return -1;
	if (row == 0)
		return jobs->changes > 0 ? 0 : 1;
	pg_bind_int(drop, ":holder", holder);
	return pg_run_own(pg, PG_HOLDER_DROP, err) < 0 ? -1 : 0;
}

int
pg_take_over(struct db *db, const char *node, int64_t slot, int64_t holder,
    struct err *err)
{
	struct pg *pg = pg_of(db);
	int result = pg_begin(db, err);

	if (result == 0)
		result = take_over(pg, node, slot, holder, err);
	/* since when it has been left is noted in either case */
	if (result >= 0 && pg_commit(db, err) == 0)
		return result;
	pg_rollback(db);
	return -1;
}

/* ---- what they hear ---- */

void
pg_notify(struct db *db, int64_t home, int64_t job)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *s = pg_own(pg, PG_NOTIFY);

	pg_bind_int(s, ":home", home);
	pg_bind_text(s, ":text", "");
	if (job != 0)
		pg_bind_int(s, ":text", job);
	if (pg->conn != NULL && !pg->begun)
		pg_send_only(pg, s);
}

/* Again after each new connection, before anything else is asked. */
int
pg_listen(struct db *db, struct err *err)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *calls[] = { pg_own(pg, PG_LISTEN_HOME),
		pg_own(pg, PG_LISTEN) };

	if (!pg->listening) {
		pg->listening = true;
		if (pg_ready(pg, err) != 0)
			return -1;
	}
	pg_bind_int(calls[0], ":home", pg->db.home);
	return pg_round(pg, calls, 2, -1, err);
}

/* Is it of a job that is to be cancelled?  Of very many some are lost: who
 * asked may ask again. */
static bool
keep_cancel(struct pg *pg, const char *text)
{
	int64_t job = strtoll(text, NULL, 10);

	if (job > 0 && pg->cancel_count < PG_CANCELS_MAX)
		pg->cancels[pg->cancel_count++] = job;
	return job > 0;
}

int64_t
pg_heard_cancel(struct db *db)
{
	struct pg *pg = pg_of(db);

	return pg->cancel_count > 0 ? pg->cancels[--pg->cancel_count] : 0;
}

bool
pg_heard(struct db *db, int *fd)
{
	struct pg *pg = pg_of(db);
	PGnotify *notify;
	bool heard = false;

	*fd = -1;
	if (pg->conn == NULL)
		return false;
	/* A closed one is readable for ever: the next statement opens anew. */
	if (PQconsumeInput(pg->conn) == 0) {
		pg_drop(pg);
		return false;
	}
	while ((notify = PQnotifies(pg->conn)) != NULL) {
		heard |= !keep_cancel(pg, notify->extra);
		PQfreemem(notify);
	}
	*fd = PQsocket(pg->conn);
	return heard;
}

/* ---- what a front hears ---- */

/* Others of its group lose nothing if it fails. */
int
pg_await(struct db *db, const char *token, struct err *err)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *s = pg_own(pg, PG_LISTEN_TOKEN);

	if (pg->awaited == AWAITED_MAX)
		return 1;
	pg_bind_text(s, ":token", token);
	if (pg_run_own(pg, PG_LISTEN_TOKEN, err) < 0)
		return -1;
	(void)pg_own(pg, PG_LISTEN);
	if (pg_run_own(pg, PG_LISTEN, err) < 0)
		return -1;
	pg->awaited++;
	return 0;
}

/* A name in the list costs nothing; but as long as there is one, each NOTIFY of
 * anybody wakes our session. */
void
pg_await_none(struct db *db)
{
	struct pg *pg = pg_of(db);

	if (pg->awaited == 0 || pg->conn == NULL || pg->begun)
		return;
	pg->awaited = 0;
	pg_send_only(pg, pg_own(pg, PG_UNLISTEN));
}

/* Those of one response come in their order, with none of another between them.
 * The job's id, when this was the last one. */
static int64_t
keep_piece(struct pg *pg, const char *text)
{
	char *at = NULL;
	int64_t job = strtoll(text, &at, 10);
	int64_t piece = strtoll(at, &at, 10);
	int64_t last = strtoll(at, &at, 10);

	if (piece == 0) {
		buf_reset(&pg->response);
		pg->pieces = 0;
	}
	if (*at != ' ' || piece != pg->pieces++)
		return 0;
	buf_adds(&pg->response, at + 1);
	return piece == last && !pg->response.overflow ? job : 0;
}

int64_t
pg_response(struct db *db, int *fd, const char **json)
{
	struct pg *pg = pg_of(db);
	PGnotify *notify;
	int64_t job = 0;

	if (pg->conn != NULL && PQconsumeInput(pg->conn) == 0)
		pg_drop(pg);
	if (pg->conn != NULL)
		pg_take_unread(pg);
	if (pg->conn == NULL)
		return 0;
	while (job == 0 && (notify = PQnotifies(pg->conn)) != NULL) {
		job = keep_piece(pg, notify->extra);
		PQfreemem(notify);
	}
	*fd = PQsocket(pg->conn);
	*json = buf_str(&pg->response);
	return job;
}
