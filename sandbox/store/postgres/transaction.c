/* SPDX-License-Identifier: MIT */
/* Transactions, and which commits are waited for. */
#include "driver_pg.h"

#include "../../base/clock.h"

/* Nothing is sent yet: BEGIN goes with the first statement. */
int
pg_begin(struct db *db, struct err *err)
{
	struct pg *pg = pg_of(db);

	if (pg->begun)
		return err_set(err, ERR_SYSTEM,
		    "database: a transaction in a transaction");
	if (pg_ready(pg, err) != 0) {
		driver_group_error(db, err);
		return -1;
	}
	pg->begun = true;
	return 0;
}

/* The server says ROLLBACK to a COMMIT when something had failed. */
int
pg_commit(struct db *db, struct err *err)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *s = pg_own(pg, PG_COMMIT);
	int result;

	if (!pg->begun)
		return err_set(err, ERR_SYSTEM,
		    "database: no transaction to commit");
	if (!pg->sent) {
		pg->begun = false;
		return 0;
	}
	result = pg_round(pg, &s, 1, -1, err);
	if (result != 0)
		pg_rollback(db);
	pg->begun = pg->sent = false;
	if (result == 0 && s->undone)
		return err_set(err, ERR_SYSTEM, "database: it was rolled back");
	return result;
}

void
pg_rollback(struct db *db)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *s = pg_own(pg, PG_ROLLBACK);
	struct err ignored;

	/* A connection that does not roll back is given up, which does. */
	if (pg->conn != NULL && pg->sent &&
	    pg_round(pg, &s, 1, -1, &ignored) != 0 && pg->conn != NULL)
		pg_drop(pg);
	pg->begun = pg->sent = false;
}

int
pg_flush(struct db *db, struct err *err)
{
	struct pg *pg = pg_of(db);

	pg->quick = false;
	(void)pg_own(pg, PG_FLUSH);
	return pg_run_own(pg, PG_FLUSH, err) < 0 ? -1 : 0;
}

/* A second insertion of it waits for the first: no state of a transaction that
 * is asked for could change right after that. */
int
pg_is_inserted(struct db *db, int64_t interaction_id, int64_t wait_ms,
    struct err *err)
{
	struct pg *pg = pg_of(db);
	struct pg_stmt *s = pg_own(pg, PG_IS_INSERTED);
	int result;

	pg->until_ms = clock_monotonic_ms() + wait_ms;
	pg_bind_int(s, ":interaction_id", interaction_id);
	result = pg_begin(db, err);
	if (result == 0)
		result = pg_run_own(pg, PG_IS_INSERTED, err);
	pg_rollback(db);
	pg->until_ms = 0;
	return result < 0 ? -1 : s->changes > 0;
}
