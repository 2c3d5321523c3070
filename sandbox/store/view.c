/* SPDX-License-Identifier: MIT */
#include "store/view.h"

#include "base/basics.h"
#include "store/db.h"
#include "store/row.h"

/* A second press within this time is the same share. */
#define SHARE_AGAIN_MS 10000

static const struct row_field view_fields[] = {
#define VIEW(type, name, ...) ROW_FIELD(struct view, name),
#include "store/columns.def"
	ROW_END
};
static const struct row_field view_text_fields[] = {
#define VIEW_TEXT(type, name) ROW_FIELD(struct view_texts, name),
#include "store/columns.def"
	ROW_END
};

void
view_texts_release(struct view_texts *texts)
{
	row_release(view_text_fields, texts);
	*texts = (struct view_texts){ 0 };
}

static void
bind_view(struct stmt *s, const struct view *view)
{
	static const struct view_texts none = { 0 };

	row_bind(s, view_fields, view);
	row_bind(s, view_text_fields,
	    view->texts != NULL ? view->texts : &none);
}

/* Run the insertion of a row of this user: how many there are, or -1.  A power
 * cut may undo it: a button does nothing then, at worst. */
static int
view_insert_row(struct db *db, struct stmt *s, int64_t user_id, int64_t *id,
    struct err *err)
{
	int changes = -1;

	db_lasting(db, false);
	if (db_begin(db, err) == 0) {
		if (row_id_make(db, "views", user_id, id, err) == 0) {
			db_bind_int(s, ":id", *id);
			changes = db_run(db, s, err);
		}
		if (db_end(db, changes < 0 ? -1 : 0, err) != 0)
			changes = -1;
	}
	db_lasting(db, true);
	return changes;
}

int
view_insert(struct db *db, struct view *view, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_VIEW_INSERT,
	    DB_VALUES(BIND(":kind", commands[view->kind].name),
		BIND(":created_ms", clock_wall_ms())));

	bind_view(s, view);
	return view_insert_row(db, s, view->user_id, &view->id, err) < 0 ? -1 :
									   0;
}

/* texts: NULL, or of a statement that has them. */
static int
view_read(struct db *db, enum statement which, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err)
{
	auto_stmt struct stmt *s = db_bound(db, which,
	    DB_VALUES(BIND(":id", id)));
	int result = db_first(db, s, err);

	if (result != 0)
		return result;
	*view = (struct view){
		.kind = job_kind_find(db_column_text(s, row_column(s, "kind")))
	};
	row_read(s, view_fields, view);
	if (texts != NULL)
		row_read(s, view_text_fields, texts);
	return 0;
}

int
view_find(struct db *db, int64_t id, struct view *view, struct err *err)
{
	return view_read(db, STATEMENT_VIEW_FIND, id, view, NULL, err);
}

int
view_load(struct db *db, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err)
{
	return view_read(db, STATEMENT_VIEW_LOAD, id, view, texts, err);
}

int64_t
view_count(struct db *db, int64_t user_id, int64_t since_ms, int64_t most,
    struct err *err)
{
	return db_number(db, STATEMENT_VIEW_COUNT,
	    DB_VALUES(BIND(":user_id", user_id), BIND(":most", most),
		BIND(":since_ms", since_ms)),
	    err);
}

int
view_set_page(struct db *db, int64_t id, int64_t page, struct err *err)
{
	return db_change_quick(db, STATEMENT_VIEW_SET_PAGE,
	    DB_VALUES(BIND(":id", id), BIND(":page", page)), err);
}

static int
view_change(struct db *db, enum statement which, const struct view *view,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);

	bind_view(s, view);
	return db_one(db_run_quick(db, s, err));
}

int
view_set_run(struct db *db, const struct view *view, struct err *err)
{
	return view_change(db, STATEMENT_VIEW_SET_RUN, view, err);
}

int
view_set_program(struct db *db, const struct view *view, struct err *err)
{
	return view_change(db, STATEMENT_VIEW_SET_PROGRAM, view, err);
}

int
view_share(struct db *db, const struct view *view, int64_t *copy,
    struct err *err)
{
	int64_t now_ms = clock_wall_ms();
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_VIEW_SHARE,
	    DB_VALUES(BIND(":of", view->id), BIND(":created_ms", now_ms),
		BIND(":since_ms", now_ms - SHARE_AGAIN_MS)));

	return db_one(view_insert_row(db, s, view->user_id, copy, err));
}

int
view_remove(struct db *db, int64_t id, int64_t user_id, struct err *err)
{
	return db_change_quick(db, STATEMENT_VIEW_REMOVE,
	    DB_VALUES(BIND(":id", id), BIND(":user_id", user_id)), err);
}

int
view_forget(struct db *db, int64_t user_id, struct err *err)
{
	return db_change(db, STATEMENT_VIEW_FORGET,
	    DB_VALUES(BIND(":user_id", user_id)), err);
}
