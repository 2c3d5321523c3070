/* SPDX-License-Identifier: MIT */
#include "list.h"

#include "../base/err.h"
#include "db.h"

int
list_sandboxes(struct db *db, void (*each)(const struct sandbox *sandbox),
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_LIST_SANDBOXES);
	int result;

	while ((result = db_step(db, s, err)) == 1) {
		struct sandbox sandbox;

		sandbox_row_read(s, &sandbox);
		each(&sandbox);
	}
	return result < 0 ? err_wrap(err, "list sandboxes") : 0;
}

int
list_jobs(struct db *db, bool unfinished, int64_t most,
    void (*each)(const struct list_job *job), struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    unfinished ? STATEMENT_LIST_JOBS_UNFINISHED : STATEMENT_LIST_JOBS);
	int result;

	db_bind_int(s, ":most", most);
	while ((result = db_step(db, s, err)) == 1) {
		struct list_job job = {
			.id = sqlite3_column_int64(s, 0),
			.user_id = sqlite3_column_int64(s, 1),
			.kind = db_column_text(s, 2),
			.state = db_column_text(s, 3),
			.outcome = db_column_text(s, 4),
			.received_ms = sqlite3_column_int64(s, 5),
			.took_ms = sqlite3_column_int64(s, 6),
		};

		each(&job);
	}
	return result < 0 ? err_wrap(err, "list jobs") : 0;
}
