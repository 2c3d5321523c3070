/* SPDX-License-Identifier: MIT */
/* How many jobs there are: for `ilctl status` and the metrics. */
#include "job.h"

#include <string.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "db.h"

int
job_count(struct db *db, struct job_counts *counts, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_COUNT);

	db_bind_int(s, ":now_ms", clock_wall_ms());
	if (db_step(db, s, err) < 0)
		return err_wrap(err, "count jobs");
	*counts = (struct job_counts){
		.queued = db_column_int(s, 0),
		.running = db_column_int(s, 1),
		.untold = db_column_int(s, 2),
		.oldest_ms = db_column_int(s, 3),
	};
	return 0;
}

const char *const job_states[JOB_STATES + 1] = { "queued", "claimed", "started",
	"finished", "lost", NULL };

int
job_count_kinds(struct db *db, int64_t counts[JOB_UNKNOWN + 1][JOB_STATES],
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_COUNT_KINDS);
	int result;

	memset(counts, 0, (JOB_UNKNOWN + 1) * sizeof(counts[0]));
	while ((result = db_step(db, s, err)) == 1)
		counts[job_kind_find(db_column_text(s, 0))]
		      [db_column_word(s, 1, job_states)] += db_column_int(s, 2);
	return result < 0 ? err_wrap(err, "count kinds of jobs") : 0;
}
