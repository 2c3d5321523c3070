/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../store/db.h"
#include "ctl.h"
#include "migrations.h"

/* The folder of the database may be missing on a fresh machine. */
static int
make_folder(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *folder = NULL;

	if (slash == NULL || slash == path)
		return 0;
	folder = xstrndup(path, (size_t)(slash - path));
	return fd_make_dirs(folder, 0770, err);
}

int
ctl_migrate_database(const struct config *config, struct err *err)
{
	struct db *db;
	int applied;

	if (make_folder(config->database, err) != 0)
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
