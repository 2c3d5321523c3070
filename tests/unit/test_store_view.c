/* SPDX-License-Identifier: MIT */
/* What buttons and modals refer to. */
#include "sandbox/store/view.h"

#include "store.h"

int
main(void)
{
	struct err err = { 0 };
	struct view view = { .user_id = 5,
		.kind = JOB_LOOK,
		.path = "a/b",
		.page = 2,
		.share = 1 };
	struct view found;
	int64_t first;
	struct db *db;

	(void)store_make();
	db = store_open(DB_FRONT);
	is_int(view_insert(db, &view, &err), 0, "the front inserts a view");
	first = view.id;
	ok(first > 0 && store_sql("SELECT created_ms FROM views") > 0,
	    "id and time are set");
	is_int(view_find(db, first, &found, &err), 0, "and finds it");
	ok(found.id == first && found.user_id == 5 && found.page == 2 &&
		found.share == 1 && found.kind == JOB_LOOK,
	    "with all that it had");
	is_str(found.path, "a/b", "its path too");
	is_int(view_find(db, first + 1, &found, &err), 1, "no other");
	db_close(db);

	db = store_open(DB_WORKER);
	is_int(view_set_page(db, first, 3, &err), 0, "the page is turned");
	is_int(view_set_page(db, first + 1, 3, &err), 1, "of no other");
	(void)view_find(db, first, &found, &err);
	is_int(found.page, 3, "it is kept");
	view.kind = JOB_DELETE;
	(void)view_insert(db, &view, &err);
	(void)view_find(db, view.id, &found, &err);
	is_int(found.kind, JOB_DELETE, "a view of another kind");
	is_int(db_prune(db, STATEMENT_VIEW_PRUNE, 60000, 10, &err), 0,
	    "none is old");
	(void)store_sql("UPDATE views SET created_ms = created_ms - 5000");
	is_int(db_prune(db, STATEMENT_VIEW_PRUNE, 1000, 1, &err), 1,
	    "one at most is pruned");
	is_int(view_find(db, first, &found, &err), 1, "the older one");
	is_int(db_prune(db, STATEMENT_VIEW_PRUNE, 1000, 10, &err), 1,
	    "then the rest");
	(void)view_insert(db, &view, &err);
	ok(view.id > first + 1, "a pruned view's id is never used again");
	db_close(db);
	return tap_done();
}
