#include "job_row.h"

#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/log.h"
#include "db.h"

static const char *const state_names[] = {
	[JOB_QUEUED] = "queued",
	[JOB_CLAIMED] = "claimed",
	[JOB_STARTED] = "started",
	[JOB_FINISHED] = "finished",
	[JOB_DELIVERED] = "delivered",
	[JOB_LOST] = "lost",
	[JOB_UNDELIVERABLE] = "undeliverable",
	NULL,
};

static const char *const answer_names[] = {
	[ANSWER_DEFERRED] = "deferred",
	[ANSWER_DEFERRED_UPDATE] = "deferred-update",
	[ANSWER_CALLBACK] = "callback",
	NULL,
};

const char *
job_state_name(enum job_state state)
{
	return state_names[state];
}

void
job_init(struct job *job)
{
	*job = (struct job){ .claimed_by = -1, .page = 1 };
}

void
job_release(struct job *job)
{
	if (job == NULL)
		return;
	free(job->token);
	free(job->locale);
	free(job->path);
	free(job->text);
	free(job->input);
	free(job->attachment_url);
	free(job->attachment_name);
	free(job->body);
	free(job->outcome);
	job_init(job);
}

/* A string that was never set is the empty one. */
static void
bind(sqlite3_stmt *s, const char *name, const char *text)
{
	db_bind_text(s, name, text != NULL ? text : "");
}

void
job_row_bind(sqlite3_stmt *s, const struct job *job)
{
	db_bind_int(s, ":interaction_id", job->interaction_id);
	db_bind_int(s, ":application_id", job->application_id);
	db_bind_int(s, ":user_id", job->user_id);
	bind(s, ":kind", job_kind_name(job->kind));
	db_bind_int(s, ":alone",
	    commands[job->kind].needs != COMMAND_NEEDS_NOTHING);
	bind(s, ":answer", answer_names[job->answer]);
	bind(s, ":token", job->token);
	bind(s, ":locale", job->locale);
	db_bind_int(s, ":received_ms", job->received_ms);
	db_bind_int(s, ":attachment_limit", job->attachment_limit);
	db_bind_int(s, ":may_attach", job->may_attach);
	bind(s, ":path", job->path);
	bind(s, ":text", job->text);
	bind(s, ":input", job->input);
	db_bind_int(s, ":page", job->page);
	db_bind_int(s, ":share", job->share);
	db_bind_int(s, ":recursive", job->recursive);
	db_bind_int(s, ":has_text", job->has_text);
	bind(s, ":attachment_url", job->attachment_url);
	bind(s, ":attachment_name", job->attachment_name);
	db_bind_int(s, ":attachment_size", job->attachment_size);
	db_bind_int(s, ":view_id", job->view_id);
}

/* Valid until the next step. */
static const char *
text_of(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text != NULL ? text : "";
}

/* The index of a name that a CHECK of the schema allows: anything else means
 * that the schema and these tables are not the same any more. */
static int
named(sqlite3_stmt *s, int column, const char *const *names)
{
	for (int i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], text_of(s, column)) == 0)
			return i;
	log_err("column %s holds an unknown word",
	    sqlite3_column_name(s, column));
	abort();
}

void
job_row_read(sqlite3_stmt *s, struct job *job)
{
	int c = 0;

	job->id = db_column_int(s, c++);
	job->interaction_id = db_column_int(s, c++);
	job->application_id = db_column_int(s, c++);
	job->user_id = db_column_int(s, c++);
	job->kind = job_kind_find(text_of(s, c++));
	job->state = (enum job_state)named(s, c++, state_names);
	job->answer = (enum job_answer)named(s, c++, answer_names);
	job->token = db_column_text(s, c++);
	job->locale = db_column_text(s, c++);
	job->received_ms = db_column_int(s, c++);
	job->attachment_limit = db_column_int(s, c++);
	job->may_attach = db_column_int(s, c++) != 0;
	job->path = db_column_text(s, c++);
	job->text = db_column_text(s, c++);
	job->input = db_column_text(s, c++);
	job->page = db_column_int(s, c++);
	job->share = db_column_int(s, c++) != 0;
	job->recursive = db_column_int(s, c++) != 0;
	job->has_text = db_column_int(s, c++) != 0;
	job->attachment_url = db_column_text(s, c++);
	job->attachment_name = db_column_text(s, c++);
	job->attachment_size = db_column_int(s, c++);
	job->view_id = db_column_int(s, c++);
	job->claimed_by = sqlite3_column_type(s, c) == SQLITE_NULL ?
	    -1 :
	    db_column_int(s, c);
	c++;
	job->body = db_column_text_or_null(s, c++);
	job->outcome = db_column_text(s, c);
}
