/* SPDX-License-Identifier: MIT */
/*
 * `ilctl migrate`, and the same for `ilctl run`.
 */
#include <libgen.h>
#include <stdio.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../store/db.h"
#include "ctl.h"
#include "migrations.h"

int
ctl_migrate_database(const struct config *config, struct err *err)
{
	auto_free char *copy = xstrdup(config->database);
	struct db *db;
	int applied;

	/* On a fresh machine its folder may be missing, too. */
	if (fd_make_dirs(dirname(copy), 0770, err) != 0)
		return -1;
	db = db_open(config->database, DB_ADMIN, err);
	applied = db != NULL ? db_migrate(db, err) : -1;
	db_close(db);
	return applied;
}

int
ctl_migrate(struct ctl *ctl, int argc, char **argv)
{
	struct err err = { 0 };
	int applied;

	(void)argc;
	applied = ctl_migrate_database(&ctl->config, &err);
	if (applied < 0)
		return ctl_fail(argv[0], &err);
	printf("%s: version %d, %d migration%s applied\n", ctl->config.database,
	    migration_count, applied, applied == 1 ? "" : "s");
	return CTL_OK;
}
