#ifndef JOB_ROW_H
#define JOB_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "commands.h"

struct sqlite3_stmt;

/* What a job is, in the database and in memory; its life is in job.h. */
enum job_state {
	JOB_QUEUED,
	JOB_CLAIMED,
	JOB_STARTED,
	JOB_FINISHED,
	JOB_DELIVERED,
	JOB_LOST, /* as an outcome that is still to be told */
	JOB_UNDELIVERABLE,
};

/* How Discord was (or is to be) answered first. */
enum job_answer {
	ANSWER_DEFERRED,	/* type 5 was sent: PATCH @original */
	ANSWER_DEFERRED_UPDATE, /* type 6 was sent: PATCH @original edits the
				   * message that holds the button */
	ANSWER_CALLBACK,	/* 202 was sent: POST the callback */
};

/* Everything of a job.  Strings are heap; in a job that was read they are never
 * NULL ("" when absent) except where it says NULL.  job_init() leaves them
 * NULL, which job_insert() stores as "".  job_release() frees them; il-fcgi
 * lends its jobs the strings of the interaction, and releases none. */
struct job {
	int64_t id;
	int64_t interaction_id;
	int64_t application_id;
	int64_t user_id;
	enum job_kind kind;
	enum job_state state;
	enum job_answer answer;
	char *token; /* "" once delivered */
	char *locale;
	int64_t received_ms;	  /* wall clock, when it was verified */
	int64_t attachment_limit; /* bytes per file, from the interaction */
	bool may_attach;	  /* app_permissions has ATTACH_FILES */

	/* what was asked for; which of these count depends on the kind */
	char *path;
	char *text;   /* code, content, packages */
	char *input;  /* stdin */
	int64_t page; /* from 1 */
	bool share;
	bool recursive;
	bool has_text; /* text was given, even if empty */
	char *attachment_url;
	char *attachment_name;
	int64_t attachment_size;
	int64_t view_id; /* the view a button came from, 0: none */

	/* what came of it */
	int64_t claimed_by; /* worker slot, -1: nobody */
	char *body;	    /* finished: the message, JSON; NULL before */
	char *outcome;	    /* short word for statistics: "exit 0", … */
};

/* Zero, but claimed_by -1 and page 1. */
void job_init(struct job *job);
void job_release(struct job *job);
const char *job_state_name(enum job_state state);

/* ---- for job.c ---- */

/* Bind all that job_insert() stores. */
void job_row_bind(struct sqlite3_stmt *s, const struct job *job);
/* Fill an initialised job from a row in the columns' order of job.sql. */
void job_row_read(struct sqlite3_stmt *s, struct job *job);

#endif
