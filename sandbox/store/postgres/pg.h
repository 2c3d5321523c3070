/* SPDX-License-Identifier: MIT */
#ifndef PG_H
#define PG_H

#include <libpq-fe.h>

#include "../driver.h"
#include "pg_statements.h" /* generated from sql/: enum pg_statement */

#include "../../base/buf.h"

/*
 * What the files of PostgreSQL share; nobody else includes it.
 *
 * A connection is in libpq's pipeline mode: what belongs together goes out at
 * once and is waited for once (pg_round).  One that is lost is made again
 * before the next statement outside of a transaction; what was on its way when
 * it was lost is an error, of which nobody knows whether it was done.
 */
#define PG_COLUMNS_MAX 32
#define PG_PARAMETERS_MAX 32
#define PG_CALLS_MAX 5
#define PG_CANCELS_MAX 16
#define PG_RESPONSE_MAX 65536
#define PG_AWAY_MAX 16
/* Of one answer: far over all that a statement gives. */
#define PG_ANSWER_MAX (64 << 20)

/* One statement on one connection; struct stmt's handle. */
struct pg_stmt {
	const struct pg_statement_text *text;
	int count; /* of parameters */
	char *values[PG_PARAMETERS_MAX];
	bool done;   /* it was executed; the rest is what came of it */
	bool undone; /* a commit that was a rollback */
	int changes, columns;
	struct buf rows; /* each column: its text and a NUL behind PG_TEXT; or
			  * PG_NULL */
	size_t next;	 /* the row after this one */
	const char *row[PG_COLUMNS_MAX]; /* NULL: NULL */
};

#define PG_TEXT 't'
#define PG_NULL 'n'

struct pg {
	struct db db; /* first: see pg_of() */
	PGconn *conn; /* NULL: there is none at present */
	char *address;
	int host;	  /* which of the address's is tried next */
	int64_t retry_ms; /* monotonic: no new connection before */
	int wait_ms;	  /* for one answer: then it is given up */
	int64_t until_ms; /* monotonic: then all is; 0: there is no such time */
	bool begun; /* there is a transaction, as our caller sees it … */
	bool sent;  /* … and as the server does */
	bool listening, unread; /* the answer to a NOTIFY */
	bool quick;		/* commits need not last from here on … */
	bool quick_now;		/* … and for the server */
	int64_t holder;		/* 0: none (holder.c) */
	char *node, *instance;	/* to join again (node.c); NULL: not joined */
	/* whom this session has seen away, and since when (monotonic) */
	struct pg_away {
		int64_t number, left_ms, since_ms;
	} away[PG_AWAY_MAX];
	int64_t cancels[PG_CANCELS_MAX]; /* heard, and not told yet */
	int cancel_count, away_next;
	int awaited;	     /* responses that we listen for */
	struct buf response; /* what has come of one, so many pieces */
	int64_t pieces, last_id;
	struct pg_stmt statements[PG_STATEMENT_COUNT];
};

static inline struct pg *
pg_of(const struct db *db)
{
	return (struct pg *)(uintptr_t)db;
}

/* ---- dial.c ---- */

/* Connect to one of the hosts of the address; nothing is set up yet. */
int pg_dial(struct pg *pg, struct err *err);

/* ---- connect.c ---- */

/* A connection that can be used, a new one if need be.  -1: it is away. */
int pg_ready(struct pg *pg, struct err *err);
/* Give it up; what the server held for us is free. */
void pg_drop(struct pg *pg);
int pg_read_version(struct pg *pg, int *version, struct err *err); /* or 0 */

/* ---- round.c ---- */

/* Until when what may take so long is waited for; monotonic. */
int64_t pg_until(const struct pg *pg, int most_ms);
/* Send calls, and wait for all of their answers; what call `rows` gives goes
 * into its statement.  -1: the error of the first that failed, none after it
 * was executed.  ERR_UNKNOWN: the connection went, any of it may be done. */
int pg_round(struct pg *pg, struct pg_stmt *const *calls, int count, int rows,
    struct err *err);
/* Begin to send a text whose answer nobody waits for. */
void pg_send_only(struct pg *pg, struct pg_stmt *s);
void pg_take_unread(struct pg *pg); /* that answer, if it is here */
/* Prepare all of sql/, in one round. */
int pg_prepare(struct pg *pg, struct err *err);
/* Run a text of several statements as it stands. */
int pg_script(struct pg *pg, const char *sql, struct err *err);
/* What an SQLSTATE says; ERR_SYSTEM: none that we know. */
enum err_code pg_code(const char *state);
/* Fill err from an answer, or from the connection (NULL).  Always -1. */
int pg_error(const struct pg *pg, const PGresult *result, struct err *err);

/* ---- statement.c ---- */

void pg_statement_init(struct pg *pg);
void pg_statement_release(struct pg *pg);
void pg_bind_int(struct pg_stmt *s, const char *name, int64_t value);
void pg_bind_text(struct pg_stmt *s, const char *name, const char *text);
/* Execute it once, in the transaction that there is or in its own. */
int pg_execute(struct pg *pg, struct pg_stmt *s, struct err *err);
/* Step to the next row.  False: there is none. */
bool pg_next_row(struct pg_stmt *s);
/* One of our own: reset, without bindings; executed, its first row is there. */
struct pg_stmt *pg_own(struct pg *pg, enum pg_statement which);
/* 1: a row; 0: none; -1: error. */
int pg_run_own(struct pg *pg, enum pg_statement which, struct err *err);
int64_t pg_int(const struct pg_stmt *s, int column);
void pg_reset(struct pg_stmt *s);

#endif
