/* SPDX-License-Identifier: MIT */
/*
 * `ilctl restore --user`: the same stream as of who moves, out of a backup.
 * The database in there is written into a folder of its own, brought up to
 * date, and asked for the rows.
 */
#include "restore_person.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../move/arrival.h"
#include "../move/parcel.h"
#include "../protocol/node_table.h"
#include "../store/db.h"
#include "../store/sandbox.h"
#include "nodes.h"

static int
write_database(int folder, const struct manifest *m, const char *path,
    struct err *err)
{
	auto_close int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_free unsigned char *data = xmalloc(MANIFEST_BLOCK);
	const struct saved *file = manifest_find(m, MANIFEST_DATABASE);

	if (file == NULL)
		return err_set(err, ERR_INPUT,
		    "the backup is damaged: it has no database");
	if (fd < 0 || ftruncate(fd, file->size) != 0)
		return err_system(err, "%s", path);
	for (size_t i = 0; i < file->count; i++) {
		const struct block *block = &m->blocks[file->first + i];

		if (block_read(folder, block, data, err) != 0)
			return -1;
		if (pwrite(fd, data, block->len, block->offset) !=
		    (ssize_t)block->len)
			return err_system(err, "write %s", path);
	}
	return 0;
}

/* It would expire in the moment in which it is there. */
static int
renew(struct db *db, const struct config *config, int64_t user_id,
    struct err *err)
{
	struct sandbox sandbox;

	if (sandbox_find(db, user_id, &sandbox, err) < 0)
		return -1;
	return sandbox_touch(db, sandbox.id, config->retention_seconds, err) <
		0 ?
	    -1 :
	    0;
}

static int
take(void *arg, const void *data, size_t len, struct err *err)
{
	return arrival_take(arg, data, len, err);
}

static int
let_in(const struct config *config, const struct parcel *p, int64_t user_id,
    struct err *err)
{
	auto_db struct db *db = db_open(config->database, DB_NODE, err);
	auto_close int base = open(config->base_dir,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct arrival *a;
	int result;

	if (db == NULL)
		return -1;
	if (base < 0)
		return err_system(err, "%s", config->base_dir);
	a = arrival_new(db, base, "", user_id);
	result = parcel_send(p, take, a, err);
	if (result == 0)
		result = arrival_end(a, err);
	arrival_free(a);
	return result;
}

static int
send_to(const struct config *config, const struct parcel *p, int64_t user_id,
    const char *to, struct err *err)
{
	struct node_table *table = NULL;
	const struct node_entry *node;
	int result = -1;

	if (node_table_open(&table, config, err) != 0)
		return -1;
	node = node_table_named(table, to);
	if (node != NULL)
		result = nodes_put(config, node, "people", user_id, p, err);
	else
		(void)err_set(err, ERR_CONFIG, "%s is no node of IL_NODES", to);
	node_table_free(table);
	return result;
}

static int
carry(const struct config *config, int folder, const struct manifest *m,
    const char *path, int64_t user_id, const char *to, struct err *err)
{
	auto_db struct db *db = NULL;
	struct parcel p;
	int result = -1;

	if (write_database(folder, m, path, err) != 0)
		return -1;
	db = db_open(path, DB_ADMIN, err);
	if (db == NULL || db_migrate(db, err) < 0 ||
	    renew(db, config, user_id, err) != 0)
		return -1;
	parcel_init(&p);
	if (parcel_pack_saved(&p, folder, m, db, user_id, to != NULL ? to : "",
		err) == 0)
		result = to != NULL ? send_to(config, &p, user_id, to, err) :
				      let_in(config, &p, user_id, err);
	parcel_release(&p);
	return result;
}

int
restore_person(const struct config *config, int folder,
    const struct manifest *m, int64_t user_id, const char *to, struct err *err)
{
	static const char *const left[] = { "", "-wal", "-shm", "-turn" };
	auto_free char *draft = config_state_path(config, "restore-XXXXXX");
	auto_free char *path = NULL;
	int result;

	if (mkdtemp(draft) == NULL)
		return err_system(err, "%s", draft);
	path = xprintf("%s/database", draft);
	result = carry(config, folder, m, path, user_id, to, err);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		auto_free char *name = xprintf("%s%s", path, left[i]);

		(void)unlink(name);
	}
	(void)rmdir(draft);
	return result;
}
