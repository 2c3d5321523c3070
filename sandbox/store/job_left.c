/* SPDX-License-Identifier: MIT */
/* What the dead left: slots that have a worker no more. */
#include "job.h"

#include <inttypes.h>

#include "../base/err.h"
#include "db.h"

int
job_recover(struct db *db, int64_t slot, struct err *err)
{
	static const enum statement halves[] = { STATEMENT_JOB_REQUEUE,
		STATEMENT_JOB_LOSE };
	int changes = db_begin(db, err);
	int count = 0;

	for (int i = 0; i < 2 && changes >= 0; i++) {
		auto_stmt struct stmt *s = db_statement(db, halves[i]);

		db_bind_int(s, ":slot", slot);
		changes = db_run(db, s, err);
		count += changes;
	}
	if (changes >= 0 && db_commit(db, err) == 0)
		return count;
	db_rollback(db);
	return err_wrap(err, "recover slot %" PRId64, slot);
}

int
job_slots(struct db *db, int64_t *slots, int cap, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_JOB_SLOTS);
	int count = 0;
	int result = 1;

	while (count < cap && (result = db_step(db, s, err)) == 1)
		slots[count++] = db_column_int(s, 0);
	return result < 0 ? -1 : count;
}
