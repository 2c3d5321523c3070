/* SPDX-License-Identifier: MIT */
/* The schema, brought up to date by one at a time. */
#include "driver_pg.h"

#include "pg_migrations.h"

/* All steps that are missing, and the rights, in one transaction; who comes
 * meanwhile waits for the lock and finds it done.  Returns how many. */
static int
migrate_all(struct pg *pg, struct err *err)
{
	int version = 0;
	int applied = 0;

	(void)pg_own(pg, PG_MIGRATE_LOCK);
	if (pg_run_own(pg, PG_MIGRATE_LOCK, err) < 0 ||
	    pg_read_version(pg, &version, err) != 0)
		return -1;
	if (version > migration_count)
		return err_set(err, ERR_CONFIG,
		    "the database has version %d, this program knows %d",
		    version, migration_count);
	for (const struct migration *m = migrations; m->sql != NULL; m++) {
		if (m->version <= version)
			continue;
		if (pg_script(pg, m->sql, err) != 0)
			return err_wrap(err, "migration %d (%s)", m->version,
			    m->name);
		applied++;
	}
	if (applied == 0)
		return 0;
	pg_bind_int(pg_own(pg, PG_MIGRATED), ":version", migration_count);
	if (pg_run_own(pg, PG_MIGRATED, err) < 0)
		return -1;
	if (pg_script(pg, pg_statement_texts[PG_RIGHTS].sql, err) != 0)
		return err_wrap(err, "rights");
	return applied;
}

int
pg_migrate(struct db *db, struct err *err)
{
	struct pg *pg = pg_of(db);
	int applied;

	if (pg_begin(db, err) != 0)
		return -1;
	applied = migrate_all(pg, err);
	if (applied < 0 || pg_commit(db, err) != 0) {
		pg_rollback(db);
		return -1;
	}
	/* those that it could not have been prepared for before */
	pg_drop(pg);
	return pg_ready(pg, err) == 0 ? applied : -1;
}
