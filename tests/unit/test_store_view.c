/* SPDX-License-Identifier: MIT */
/* Rows that buttons and modals refer to. */
#include "store/job.h"

#include <string.h>

#include "store.h"

static char code[] = "print(1)";
static char input[] = "5";
static char output[] = "1\n";
static char files[] = "a//b c//";
static char package[] = "numpy";
static const struct view_texts given = { code, input, output, files, package };

/* The view of a run, and of the run after it. */
static void
test_run(struct db *db)
{
	struct err err = { 0 };
	struct view_texts texts = { 0 };
	struct view view = { .user_id = 7,
		.kind = JOB_PY,
		.version = "3.13",
		.timeit = true,
		.keep = true,
		.texts = &given };
	struct view found;

	is_int(view_insert(db, &view, &err), 0, "a run is kept");
	is_int(store_sql("SELECT bytes FROM views WHERE user_id = 7"),
	    8 + 1 + 2 + 8, "its bytes are counted");
	is_int(view_find(db, view.id, &found, &texts, &err), 0, "and found");
	ok(found.timeit && found.keep && found.user_id == 7, "as it was run");
	is_str(found.version, "3.13", "its version");
	is_str(texts.text, code, "its code");
	is_str(texts.files, files, "its files");
	is_str(texts.package, package, "what it was missing");
	view_texts_release(&texts);
	view.texts = NULL;
	memcpy(view.version, "3.11", 5);
	is_int(view_set(db, STATEMENT_VIEW_SET_RUN, &view, &err), 0,
	    "it was run again");
	(void)view_find(db, view.id, &found, &texts, &err);
	is_str(texts.text, code, "its code stays");
	is_str(texts.output, "", "its output is the new one");
	is_str(found.version, "3.11", "its version, too");
	view_texts_release(&texts);
	is_int(view_count(db, 7, 0, 10, &err), 1, "one is counted");
	is_int(view_count(db, 7, INT64_MAX - 1, 10, &err), 0, "none since");
	is_int(view_remove(db, view.id, 8, &err), 1, "of no one else");
	is_int(view_remove(db, view.id, 7, &err), 0, "it is removed");
	is_int(view_set(db, STATEMENT_VIEW_SET_RUN, &view, &err), 1,
	    "and does not come back");
	is_int(view_find(db, view.id, &found, &texts, &err), 1, "at all");
}

/* A copy for everybody. */
static void
test_share(struct db *db)
{
	struct err err = { 0 };
	struct view_texts texts = { 0 };
	struct view view = { .user_id = 9, .kind = JOB_PY, .texts = &given };
	struct view found;
	int64_t copy = 0;

	(void)view_insert(db, &view, &err);
	is_int(view_share(db, &view, &copy, &err), 0, "it is shared");
	(void)view_find(db, copy, &found, &texts, &err);
	ok(found.user_id == 9 && found.share == 1, "by its owner");
	is_str(texts.text, code, "its code");
	is_str(texts.input, given.input, "and its input");
	ok(texts.output[0] == '\0', "and nothing else");
	view_texts_release(&texts);
	is_int(view_share(db, &view, &copy, &err), 1, "once");
	(void)store_sql("UPDATE views SET created_ms = created_ms - 11000 "
			"WHERE source <> 0");
	is_int(view_share(db, &view, &copy, &err), 0, "and later again");
	is_int(view_forget(db, 9, &err), 3, "all of it is forgotten");
	is_int(view_share(db, &view, &copy, &err), 1,
	    "what is forgotten meanwhile leaves no copy");
	is_int(store_sql("SELECT count(*) FROM views WHERE user_id = 9"), 0,
	    "none at all");
}

/* The front may insert, and what is too much goes all the same; it may delete
 * nothing itself. */
static void
test_front(void)
{
	struct err err = { 0 };
	struct db *db = store_open(DB_FRONT);
	struct view view = { .user_id = 11, .kind = JOB_PY };
	int64_t first = 0;

	for (int i = 0; i < 501; i++) {
		(void)view_insert(db, &view, &err);
		if (i == 0)
			first = view.id;
	}
	is_int(store_sql("SELECT count(*) FROM views WHERE user_id = 11"), 500,
	    "the newest 500 are kept");
	is_int(view_find(db, first, &view, NULL, &err), 1,
	    "the first one is gone");
	db_close(db);
}

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
	is_int(view_find(db, first, &found, NULL, &err), 0, "and finds it");
	ok(found.id == first && found.user_id == 5 && found.page == 2 &&
		found.share == 1 && found.kind == JOB_LOOK,
	    "with all that it had");
	is_str(found.path, "a/b", "its path too");
	is_int(view_find(db, first + 1, &found, NULL, &err), 1, "no other");
	db_close(db);

	db = store_open(DB_WORKER);
	is_int(view_set_page(db, first, 3, &err), 0, "the page is turned");
	is_int(view_set_page(db, first + 1, 3, &err), 1, "of no other");
	(void)view_find(db, first, &found, NULL, &err);
	is_int(found.page, 3, "it is kept");
	view.kind = JOB_DELETE;
	(void)view_insert(db, &view, &err);
	(void)view_find(db, view.id, &found, NULL, &err);
	is_int(found.kind, JOB_DELETE, "a view of another kind");
	is_int(store_prune(db, STATEMENT_VIEW_PRUNE, 60000, 10, &err), 0,
	    "none is old");
	(void)store_sql("UPDATE views SET created_ms = created_ms - 5000");
	is_int(store_prune(db, STATEMENT_VIEW_PRUNE, 1000, 1, &err), 1,
	    "one at most is pruned");
	is_int(view_find(db, first, &found, NULL, &err), 1, "the older one");
	is_int(store_prune(db, STATEMENT_VIEW_PRUNE, 1000, 10, &err), 1,
	    "then the rest");
	(void)view_insert(db, &view, &err);
	ok(view.id > first + 1, "a pruned view's id is never used again");
	test_run(db);
	test_share(db);
	db_close(db);
	test_front();
	return tap_done();
}
