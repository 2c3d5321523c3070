/* SPDX-License-Identifier: MIT */
/* Ids of jobs and views: time, slot, order, and that none comes twice. */
#include "store/job.h"

#include <sys/wait.h>
#include <unistd.h>

#include "protocol/node_table.h"
#include "store.h"

#define NOW_MS (DISCORD_EPOCH + INT64_C(375000000000))
#define MS (INT64_C(1) << 22)

static void
test_form(void)
{
	int64_t id = row_id_next(0, NOW_MS, 1023);

	is_int(id, INT64_C(375000000000) << 22 | 1023 << 12,
	    "milliseconds since 2015, slot, counter");
	is_int(row_id_slot(id), 1023, "the slot is read from it");
	is_int(row_id_slot(row_id_next(0, NOW_MS, 0)), 0, "the first slot");
	is_int(row_id_slot(id + 4095), 1023, "whatever the counter is");
	is_int(row_id_slot(1), -1, "an old id says no slot");
	is_int(row_id_slot(ROW_ID_FIRST - 1), -1, "up to the last of them");
	is_int(row_id_slot(ROW_ID_FIRST), 0, "and the first new one does");
	is_int(row_id_next(0, 0, 7), ROW_ID_FIRST | 7 << 12,
	    "a clock before 2015 gives none of them");
	is_int(row_id_next(0, INT64_MAX, 7), ROW_ID_FIRST | 7 << 12,
	    "nor one after 2084");
	ok(row_id_next(0, DISCORD_EPOCH + (INT64_C(1) << 41) - (MS << 11), 5) >
		0,
	    "the last time of all has its ids");
}

static void
test_next(void)
{
	int64_t base = row_id_next(0, NOW_MS, 500);

	is_int(row_id_next(base, NOW_MS, 500), base + 1,
	    "the same user in the same millisecond");
	is_int(row_id_next(base + 4094, NOW_MS, 500), base + 4095,
	    "up to the end of the counter");
	is_int(row_id_next(base + 4095, NOW_MS, 500), base + MS,
	    "then in the next millisecond");
	is_int(row_id_next(base, NOW_MS, 501), base + 4096,
	    "a higher slot in the same millisecond");
	is_int(row_id_next(base, NOW_MS, 499), base - 4096 + MS,
	    "a lower one comes after it, too");
	is_int(row_id_next(base, NOW_MS - 60000, 500), base + 1,
	    "a clock that was set back");
	is_int(row_id_next(base, NOW_MS + 60000, 500), base + 60000 * MS,
	    "and one that goes on");
	is_int(row_id_next(7, NOW_MS, 500), base, "after an old id");
}

/* Many users, a clock that jumps: ids grow, with each one's slot. */
static void
test_order(void)
{
	int64_t newest = 0;
	bool grows = true;
	bool says = true;

	for (int64_t i = 0; i < 100000; i++) {
		int slot = (int)(i * 389 % 1024);
		int64_t id = row_id_next(newest, NOW_MS + i * i % 97 - 48,
		    slot);

		grows = grows && id > newest;
		says = says && row_id_slot(id) == slot;
		newest = id;
	}
	ok(grows, "ids grow");
	ok(says, "and say their slots");
}

static int64_t
new_view(struct db *db, int64_t user)
{
	struct view view = { .user_id = user, .kind = JOB_LOOK };
	struct err err = { 0 };

	if (view_insert(db, &view, &err) == 0)
		return view.id;
	note("not inserted: %s", err.text);
	return 0;
}

/* In the database: of both tables, after rows of an older version, and when the
 * newest row is gone. */
static void
test_rows(struct db *db)
{
	int64_t view;
	int64_t job;

	(void)store_sql("INSERT INTO views (id, user_id, kind, created_ms) "
			"VALUES (41, 9, 'look', 1)");
	view = new_view(db, 9);
	is_int(row_id_slot(view), slot_of(9), "a view says its user's slot");
	is_int(store_sql("SELECT count(*) FROM views WHERE id = 41"), 1,
	    "an old view stays");
	job = store_insert(db, 9, JOB_PY);
	is_int(row_id_slot(job), slot_of(9), "a job, too");
	is_int(store_insert(db, 10, JOB_PY) > job, 1, "jobs are in order");
	(void)store_sql("UPDATE sqlite_sequence SET seq = seq + (1 << 40) "
			"WHERE name = 'views'");
	(void)store_sql("DELETE FROM views");
	ok(new_view(db, 11) > view + (INT64_C(1) << 40),
	    "no id is used again, though its row is gone");
	ok(store_sql("SELECT count(*) FROM views WHERE id > 0") == 1,
	    "ids are numbers of SQLite's");
}

/* Several programs insert for one user at the same time: each gets an id. */
#define PROGRAMS 3
#define EACH 100

static void
insert_many(void)
{
	struct db *db = store_open(DB_WORKER);
	bool good = true;

	for (int i = 0; i < EACH; i++)
		good = new_view(db, 12) > 0 && good;
	db_close(db);
	_exit(good ? 0 : 1);
}

static void
test_race(void)
{
	int failed = 0;

	for (int i = 0; i < PROGRAMS; i++)
		if (fork() == 0)
			insert_many();
	for (int i = 0; i < PROGRAMS; i++) {
		int status = 1;

		(void)wait(&status);
		failed += status != 0;
	}
	is_int(failed, 0, "several programs insert");
	is_int(store_sql("SELECT count(*) FROM views WHERE user_id = 12"),
	    PROGRAMS * EACH, "all that each has");
}

int
main(void)
{
	struct db *db;

	test_form();
	test_next();
	test_order();
	(void)store_make();
	db = store_open(DB_WORKER);
	test_rows(db);
	db_close(db);
	test_race();
	return tap_done();
}
