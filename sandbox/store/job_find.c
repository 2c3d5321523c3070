/* SPDX-License-Identifier: MIT */
/* Which job it is. */
#include "job.h"

#include "../base/err.h"
#include "db.h"
#include "driver.h"

int
job_owner(struct db *db, int64_t id, int64_t *user_id, int64_t *home,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_OWNER);
	int row;

	db_bind_int(s, ":id", id);
	row = db_step(db, s, err);
	if (row == 1) {
		*user_id = db_column_int(s, 0);
		*home = db_column_int(s, 1);
	}
	return row < 0 ? -1 : row == 0;
}

int
job_is_inserted(struct db *db, int64_t interaction_id, int64_t wait_ms,
    struct err *err)
{
	return db->driver->is_inserted != NULL ?
	    db->driver->is_inserted(db, interaction_id, wait_ms, err) :
	    1;
}

int
job_alone(struct db *db, int64_t user_id, struct job *job, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_ALONE);
	int row;

	db_bind_int(s, ":user_id", user_id);
	row = db_step(db, s, err);
	if (row == 1) {
		job->id = db_column_int(s, 0);
		job->home = db_column_int(s, 1);
		job->received_ms = db_column_int(s, 2);
	}
	return row < 0 ? -1 : row == 0;
}
