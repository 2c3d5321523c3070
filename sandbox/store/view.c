#include "view.h"

#include <inttypes.h>
#include <stdio.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "db.h"

int
view_insert(struct db *db, struct view *view, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_INSERT);
	int result;

	view->created_ms = clock_wall_ms();
	db_bind_int(s, ":user_id", view->user_id);
	db_bind_text(s, ":kind", job_kind_name(view->kind));
	db_bind_text(s, ":path", view->path);
	db_bind_int(s, ":page", view->page);
	db_bind_int(s, ":share", view->share);
	db_bind_int(s, ":created_ms", view->created_ms);
	db_lasting(db, false); /* a button that does nothing at worst */
	result = db_run(db, s, NULL, err);
	db_lasting(db, true);
	if (result != 0)
		return err_wrap(err, "insert a view");
	view->id = db_last_id(db);
	return 0;
}

int
view_find(struct db *db, int64_t id, struct view *view, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_FIND);
	const char *kind;
	const char *path;
	int result;

	db_bind_int(s, ":id", id);
	result = db_step(db, s, err);
	if (result != 1)
		return result < 0 ? -1 : 1;
	kind = (const char *)sqlite3_column_text(s, 2);
	*view = (struct view){
		.id = db_column_int(s, 0),
		.user_id = db_column_int(s, 1),
		.kind = job_kind_find(kind != NULL ? kind : ""),
		.page = db_column_int(s, 4),
		.share = db_column_int(s, 5),
		.created_ms = db_column_int(s, 6),
	};
	path = (const char *)sqlite3_column_text(s, 3);
	(void)snprintf(view->path, sizeof(view->path), "%s",
	    path != NULL ? path : "");
	return 0;
}

int
view_set_page(struct db *db, int64_t id, int64_t page, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_SET_PAGE);
	int changes = 0;
	int result;

	db_bind_int(s, ":id", id);
	db_bind_int(s, ":page", page);
	db_lasting(db, false);
	result = db_run(db, s, &changes, err);
	db_lasting(db, true);
	if (result != 0)
		return err_wrap(err, "view %" PRId64, id);
	return changes == 1 ? 0 : 1;
}

int
view_prune(struct db *db, int64_t older_than_ms, int most, struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_VIEW_PRUNE);
	int changes = 0;

	db_bind_int(s, ":before_ms", clock_wall_ms() - older_than_ms);
	db_bind_int(s, ":most", most);
	if (db_run(db, s, &changes, err) != 0)
		return err_wrap(err, "prune views");
	return changes;
}
