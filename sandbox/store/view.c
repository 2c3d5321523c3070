/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <inttypes.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "db.h"

int
view_insert(struct db *db, struct view *view, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_INSERT);

	db_bind_int(s, ":user_id", view->user_id);
	db_bind_text(s, ":kind", commands[view->kind].name);
	db_bind_text(s, ":path", view->path);
	db_bind_int(s, ":page", view->page);
	db_bind_int(s, ":share", view->share);
	db_bind_text(s, ":text", view->text);
	db_bind_text(s, ":input", view->input);
	db_bind_text(s, ":version", view->version);
	db_bind_int(s, ":created_ms", clock_wall_ms());
	/* Lost in a power cut: a button that does nothing at worst. */
	if (db_run_quick(db, s, err) < 0)
		return err_wrap(err, "insert a view");
	view->id = db_last_id(db);
	return 0;
}

int
view_find(struct db *db, int64_t id, struct view *view, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_FIND);
	int result;

	db_bind_int(s, ":id", id);
	result = db_step(db, s, err);
	if (result != 1)
		return result < 0 ? -1 : 1;
	*view = (struct view){
		.id = id,
		.user_id = sqlite3_column_int64(s, 0),
		.kind = job_kind_find(db_column_text(s, 1)),
		.page = sqlite3_column_int64(s, 3),
		.share = sqlite3_column_int64(s, 4),
	};
	(void)snprintf(view->path, sizeof(view->path), "%s",
	    db_column_text(s, 2));
	(void)snprintf(view->version, sizeof(view->version), "%s",
	    db_column_text(s, 5));
	return 0;
}

int
view_set_page(struct db *db, int64_t id, int64_t page, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_SET_PAGE);
	int changes;

	db_bind_int(s, ":id", id);
	db_bind_int(s, ":page", page);
	changes = db_run_quick(db, s, err);
	if (changes < 0)
		return err_wrap(err, "view %" PRId64, id);
	return changes == 1 ? 0 : 1;
}

int
view_text(struct db *db, int64_t id, char **text, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_TEXT);
	int row;

	db_bind_int(s, ":id", id);
	row = db_step(db, s, err);
	if (row == 1)
		*text = xstrdup(db_column_text(s, 0));
	return row < 0 ? err_wrap(err, "view %" PRId64, id) : row == 0;
}

int
view_set_text(struct db *db, int64_t id, const char *text, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_SET_TEXT);
	int changes;

	db_bind_int(s, ":id", id);
	db_bind_text(s, ":text", text);
	changes = db_run_quick(db, s, err);
	if (changes < 0)
		return err_wrap(err, "view %" PRId64, id);
	return changes == 1 ? 0 : 1;
}
