#include "connection.h"

#include "../base/err.h"
#include "migrations.h"

/* One migration in one transaction.  The version is read again inside it:
 * another process may have been faster.  1: it was. */
static int
migrate_one(struct db *db, const struct migration *m, struct err *err)
{
	int version = 0;

	if (connection_script(db, "BEGIN IMMEDIATE", err) != 0)
		return -1;
	if (connection_version(db, &version, err) != 0)
		goto out;
	if (version >= m->version) {
		db_rollback(db);
		return 1;
	}
	if (connection_script(db, m->sql, err) != 0)
		goto out;
	if (connection_version(db, &version, err) != 0)
		goto out;
	if (version != m->version) {
		(void)err_set(err, ERR_CONFIG, "it leaves user_version at %d",
		    version);
		goto out;
	}
	if (connection_script(db, "COMMIT", err) == 0)
		return 0;
out:
	db_rollback(db);
	return -1;
}

int
db_migrate(struct db *db, struct err *err)
{
	int applied = 0;
	int version = 0;

	if (connection_version(db, &version, err) != 0)
		return -1;
	if (version > migration_count)
		return err_set(err, ERR_CONFIG,
		    "the database has version %d, this program knows %d",
		    version, migration_count);
	for (int i = version; i < migration_count; i++) {
		int result = migrate_one(db, &migrations[i], err);

		if (result < 0)
			return err_wrap(err, "migration %d (%s)",
			    migrations[i].version, migrations[i].name);
		if (result == 0)
			applied++;
	}
	if (connection_prepare(db, err) != 0)
		return -1;
	return applied;
}
