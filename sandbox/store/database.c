/* SPDX-License-Identifier: MIT */
/* What is the same on every database: the rest is behind driver.h. */
#include "db.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "driver.h"

struct db *
db_open(const char *address, enum db_role role, struct err *err)
{
	const struct db_driver *driver;

	if (*address == '\0') {
		(void)err_set(err, ERR_CONFIG,
		    "IL_DATABASE_FILE: this program may not read it");
		return NULL;
	}
	driver = driver_find(address, err);
	return driver != NULL ? driver->open(address, role, err) : NULL;
}

/* ERR_CONFIG has other causes than the version: then it does not open as
 * DB_ADMIN either, or there is nothing to migrate, and err says why. */
struct db *
db_start(const char *address, enum db_role role, struct err *err)
{
	auto_db struct db *admin = NULL;
	struct db *db = db_open(address, role, err);
	struct err why;
	int applied;

	if (db != NULL || err->code != ERR_CONFIG)
		return db;
	admin = db_open(address, DB_ADMIN, &why);
	if (admin == NULL)
		return NULL;
	applied = db_migrate(admin, &why);
	if (applied < 0) {
		log_err("database: it cannot be migrated: %s", why.text);
		return NULL;
	}
	log_info("database: %d migrations applied", applied);
	return db_open(address, role, err);
}

void
db_close(struct db *db)
{
	if (db != NULL)
		db->driver->close(db);
}

int
db_migrate(struct db *db, struct err *err)
{
	return db->driver->migrate(db, err);
}

void
db_checkpoint(struct db *db)
{
	db->driver->checkpoint(db);
}

int
db_copy(struct db *db, const char *path, struct err *err)
{
	if (db->driver->copy == NULL)
		return err_set(err, ERR_CONFIG,
		    "the database is a server's: its own tools copy it");
	return db->driver->copy(db, path, err);
}

/* ---- transactions and groups ---- */

int
db_begin(struct db *db, struct err *err)
{
	/* Nothing of a lost group can be committed any more. */
	if (db->grouped && db->group_err.code != ERR_NONE) {
		*err = db->group_err;
		return -1;
	}
	if (db->grouped && db->driver->is_begun(db))
		return 0;
	db->note = -1;
	return db->driver->begin(db, err);
}

int
db_commit(struct db *db, struct err *err)
{
	return db->grouped ? 0 : db->driver->commit(db, err);
}

void
db_rollback(struct db *db)
{
	if (!db->grouped)
		db->driver->rollback(db);
}

void
db_group_begin(struct db *db)
{
	if (!db->driver->groups_last)
		db_lasting(db, false);
	db->grouped = true;
	db->group_err = (struct err){ 0 };
}

static int
end_group(struct db *db, struct err *err)
{
	db->grouped = false;
	if (db->group_err.code != ERR_NONE) {
		db->driver->rollback(db);
		*err = db->group_err;
		return -1;
	}
	if (!db->driver->is_begun(db))
		return 0;
	db->unflushed |= !db->driver->groups_last;
	return db->driver->commit(db, err);
}

int
db_group_commit(struct db *db, struct err *err)
{
	int result = end_group(db, err);

	if (!db->driver->groups_last)
		db_lasting(db, true);
	return result;
}

int64_t *
db_note(struct db *db)
{
	return &db->note;
}

void
db_lasting(struct db *db, bool lasting)
{
	db->driver->lasting(db, lasting);
}

int
db_flush(struct db *db, struct err *err)
{
	if (db->unflushed && db->driver->flush(db, err) != 0)
		return -1;
	db->unflushed = false;
	return 0;
}

/* ---- statements ---- */

struct stmt *
db_statement(struct db *db, enum statement which)
{
	struct stmt *s = &db->statements[which];

	if (s->handle == NULL) {
		log_err("statement %s is not for this program",
		    statement_texts[which].name);
		abort();
	}
	db->driver->reset(s);
	return s;
}

void
db_statement_done(struct stmt **stmt)
{
	(*stmt)->db->driver->reset(*stmt);
}

void
db_bind_int(struct stmt *s, const char *name, int64_t value)
{
	s->db->driver->bind_int(s, name, value);
}

void
db_bind_text(struct stmt *s, const char *name, const char *text)
{
	s->db->driver->bind_text(s, name, text != NULL ? text : "");
}

int
db_step(struct db *db, struct stmt *s, struct err *err)
{
	return db->driver->step(s, err);
}

/* Which statement it is, for a text about it. */
static const char *
name_of(const struct stmt *s)
{
	return statement_texts[s - s->db->statements].name;
}

int
db_run(struct db *db, struct stmt *s, struct err *err)
{
	int result = db_step(db, s, err);

	if (result == 1) {
		log_err("a row that nobody asked for: %s", name_of(s));
		abort();
	}
	return result < 0 ? -1 : db->driver->changes(s);
}

int
db_run_quick(struct db *db, struct stmt *s, struct err *err)
{
	int changes;

	db_lasting(db, false);
	changes = db_run(db, s, err);
	db_lasting(db, true);
	db->unflushed |= changes > 0;
	return changes;
}

int
db_prune(struct db *db, enum statement which, int64_t older_than_ms, int most,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, which);
	int changes;

	db_bind_int(s, ":before_ms", clock_wall_ms() - older_than_ms);
	db_bind_int(s, ":most", most);
	changes = db_run(db, s, err);
	return changes < 0 ? err_wrap(err, "prune") : changes;
}

int64_t
db_last_id(struct db *db)
{
	return db->driver->last_id(db);
}

int64_t
db_column_int(const struct stmt *s, int column)
{
	return s->db->driver->column_int(s, column);
}

bool
db_column_is_null(const struct stmt *s, int column)
{
	return s->db->driver->column_is_null(s, column);
}

const char *
db_column_text(const struct stmt *s, int column)
{
	const char *text = s->db->driver->column_text(s, column);

	return text != NULL ? text : "";
}

int
db_column_word(const struct stmt *s, int column, const char *const *words)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], db_column_text(s, column)) == 0)
			return i;
	log_err("column %d of %s holds an unknown word", column, name_of(s));
	abort();
}
