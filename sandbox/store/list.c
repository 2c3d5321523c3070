#include "list.h"

#include "../base/err.h"
#include "db.h"

int
list_sandboxes(struct db *db,
    void (*each)(void *arg, const struct sandbox *sandbox), void *arg,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db, STATEMENT_LIST_SANDBOXES);
	int result;

	while ((result = db_step(db, s, err)) == 1) {
		struct sandbox sandbox;

		sandbox_row_read(s, &sandbox);
		each(arg, &sandbox);
	}
	return result < 0 ? err_wrap(err, "list sandboxes") : 0;
}

/* Valid until the next step. */
static const char *
word(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text != NULL ? text : "";
}

int
list_jobs(struct db *db, bool unfinished, int64_t most,
    void (*each)(void *arg, const struct list_job *job), void *arg,
    struct err *err)
{
	auto_stmt sqlite3_stmt *s = db_statement(db,
	    unfinished ? STATEMENT_LIST_JOBS_UNFINISHED : STATEMENT_LIST_JOBS);
	int result;

	db_bind_int(s, ":most", most);
	while ((result = db_step(db, s, err)) == 1) {
		bool told = sqlite3_column_type(s, 6) != SQLITE_NULL;
		struct list_job job = {
			.id = db_column_int(s, 0),
			.user_id = db_column_int(s, 1),
			.kind = word(s, 2),
			.state = word(s, 3),
			.outcome = word(s, 4),
			.received_ms = db_column_int(s, 5),
			.took_ms = told ? db_column_int(s, 6) : -1,
		};

		each(arg, &job);
	}
	return result < 0 ? err_wrap(err, "list jobs") : 0;
}
