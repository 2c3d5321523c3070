/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "db.h"
#include "row_id.h"

/* Who presses twice means once. */
#define SHARE_AGAIN_MS 10000

void
view_texts_release(struct view_texts *texts)
{
	free(texts->text);
	free(texts->input);
	free(texts->output);
	free(texts->files);
	free(texts->package);
	*texts = (struct view_texts){ 0 };
}

static int64_t
length(const char *text)
{
	return text == NULL ? 0 : (int64_t)strlen(text);
}

/* What changes with each run. */
static void
bind_run(struct stmt *s, const struct view *view)
{
	static const struct view_texts none = { 0 };
	const struct view_texts *texts = view->texts != NULL ? view->texts :
							       &none;

	db_bind_text(s, ":version", view->version);
	db_bind_text(s, ":input", texts->input);
	db_bind_text(s, ":output", texts->output);
	db_bind_text(s, ":files", texts->files);
	db_bind_text(s, ":package", texts->package);
	db_bind_int(s, ":bytes",
	    length(texts->text) + length(texts->input) + length(texts->output) +
		length(texts->files));
}

/* Run the insertion of a row of this user: how many there are, or -1.  Lost in
 * a power cut: a button that does nothing at worst. */
static int
insert(struct db *db, struct stmt *s, int64_t user_id, int64_t *id,
    struct err *err)
{
	int changes = -1;

	db_lasting(db, false);
	if (db_begin(db, err) == 0) {
		if (row_id_make(db, "views", user_id, id, err) == 0) {
			db_bind_int(s, ":id", *id);
			changes = db_run(db, s, err);
		}
		if (changes < 0 || db_commit(db, err) != 0) {
			changes = -1;
			db_rollback(db);
		}
	}
	db_lasting(db, true);
	return changes;
}

int
view_insert(struct db *db, struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_INSERT);

	db_bind_int(s, ":user_id", view->user_id);
	db_bind_text(s, ":kind", commands[view->kind].name);
	db_bind_text(s, ":path", view->path);
	db_bind_int(s, ":page", view->page);
	db_bind_int(s, ":share", view->share);
	db_bind_int(s, ":timeit", view->timeit);
	db_bind_int(s, ":keep", view->keep);
	db_bind_text(s, ":text",
	    view->texts != NULL ? view->texts->text : NULL);
	bind_run(s, view);
	db_bind_int(s, ":created_ms", clock_wall_ms());
	if (insert(db, s, view->user_id, &view->id, err) < 0)
		return err_wrap(err, "insert a view");
	return 0;
}

/* Take the row of either statement. */
static void
read_row(struct stmt *s, int64_t id, struct view *view)
{
	*view = (struct view){
		.id = id,
		.user_id = db_column_int(s, 0),
		.kind = job_kind_find(db_column_text(s, 1)),
		.page = db_column_int(s, 3),
		.share = db_column_int(s, 4),
		.timeit = db_column_int(s, 6) != 0,
		.keep = db_column_int(s, 7) != 0,
	};
	(void)snprintf(view->path, sizeof(view->path), "%s",
	    db_column_text(s, 2));
	(void)snprintf(view->version, sizeof(view->version), "%s",
	    db_column_text(s, 5));
}

int
view_find(struct db *db, int64_t id, struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_FIND);
	int result;

	db_bind_int(s, ":id", id);
	result = db_step(db, s, err);
	if (result != 1)
		return result < 0 ? -1 : 1;
	read_row(s, id, view);
	return 0;
}

int
view_load(struct db *db, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_LOAD);
	int result;

	db_bind_int(s, ":id", id);
	result = db_step(db, s, err);
	if (result != 1)
		return result < 0 ? -1 : 1;
	read_row(s, id, view);
	*texts = (struct view_texts){
		.text = xstrdup(db_column_text(s, 8)),
		.input = xstrdup(db_column_text(s, 9)),
		.output = xstrdup(db_column_text(s, 10)),
		.files = xstrdup(db_column_text(s, 11)),
		.package = xstrdup(db_column_text(s, 12)),
	};
	return 0;
}

int64_t
view_count(struct db *db, int64_t user_id, int64_t since_ms, int64_t most,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_COUNT);

	db_bind_int(s, ":user_id", user_id);
	db_bind_int(s, ":most", most);
	db_bind_int(s, ":since_ms", since_ms);
	if (db_step(db, s, err) < 0)
		return err_wrap(err, "count views");
	return db_column_int(s, 0);
}

/* Run a change of one view.  1: there is none. */
static int
change(struct db *db, struct stmt *s, int64_t id, struct err *err)
{
	int changes;

	db_bind_int(s, ":id", id);
	changes = db_run_quick(db, s, err);
	if (changes < 0)
		return err_wrap(err, "view %" PRId64, id);
	return changes == 1 ? 0 : 1;
}

int
view_set_page(struct db *db, int64_t id, int64_t page, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_SET_PAGE);

	db_bind_int(s, ":page", page);
	return change(db, s, id, err);
}

int
view_set_run(struct db *db, const struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_SET_RUN);

	bind_run(s, view);
	return change(db, s, view->id, err);
}

int
view_share(struct db *db, const struct view *view, int64_t *copy,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_SHARE);
	int64_t now_ms = clock_wall_ms();
	int changes;

	db_bind_int(s, ":of", view->id);
	db_bind_int(s, ":created_ms", now_ms);
	db_bind_int(s, ":since_ms", now_ms - SHARE_AGAIN_MS);
	changes = insert(db, s, view->user_id, copy, err);
	if (changes < 0)
		return err_wrap(err, "share view %" PRId64, view->id);
	return changes == 1 ? 0 : 1;
}

int
view_remove(struct db *db, int64_t id, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_REMOVE);

	db_bind_int(s, ":user_id", user_id);
	return change(db, s, id, err);
}

int
view_forget(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_FORGET);

	db_bind_int(s, ":user_id", user_id);
	return db_run(db, s, err);
}

int
view_set_program(struct db *db, const struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_VIEW_SET_PROGRAM);

	db_bind_text(s, ":text", view->texts->text);
	db_bind_text(s, ":input", view->texts->input);
	db_bind_text(s, ":version", view->version);
	db_bind_int(s, ":timeit", view->timeit);
	db_bind_int(s, ":bytes",
	    length(view->texts->text) + length(view->texts->input));
	return change(db, s, view->id, err);
}
