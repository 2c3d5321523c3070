/* SPDX-License-Identifier: MIT */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"

#include "../base/err.h"

/*
 * What a database has to be able to do for db.h.  SQLite's table is in
 * connection.c.  What needs no database in particular is in database.c.  Only
 * the files of this folder include this.
 */

/* A statement of sql/ on one connection. */
struct node_loss;
struct stmt {
	struct db *db;
	void *handle; /* the driver's; NULL: not for this role, or not prepared
		       * yet (DB_ADMIN before db_migrate) */
};

/* The head of a connection; each driver has its own behind it. */
struct db {
	const struct db_driver *driver;
	enum db_role role;
	struct stmt statements[STATEMENT_COUNT];
	bool grouped;
	bool unflushed;	      /* what db_flush() is for */
	int64_t note;	      /* db_note() */
	int64_t home;	      /* node_number() */
	struct err group_err; /* why the group is lost; ERR_NONE: it is not */
};

/* All contracts are those of the db_ function of the same name, but: step does
 * not know of groups; run is a step that gave no row; begin, commit and
 * rollback are those of a transaction whether there is a group or not. */
struct db_driver {
	/* both sides of the table are of one build */
	const char *version;
	int statement_count;
	/* A group's commit has survived a power cut when it returns: nothing
	 * is left for db_flush(). */
	bool groups_last;

	struct db *(*open)(const char *address, enum db_role role,
	    struct err *err);
	void (*close)(struct db *db);
	int (*migrate)(struct db *db, struct err *err);

	int (*begin)(struct db *db, struct err *err);
	int (*commit)(struct db *db, struct err *err);
	void (*rollback)(struct db *db);
	bool (*is_begun)(const struct db *db);
	void (*lasting)(struct db *db, bool lasting);
	int (*flush)(struct db *db, struct err *err);
	void (*checkpoint)(struct db *db);
	/* NULL: tools of its own do that */
	int (*copy)(struct db *db, const char *path, struct err *err);

	void (*reset)(struct stmt *s);
	void (*bind_int)(struct stmt *s, const char *name, int64_t value);
	void (*bind_text)(struct stmt *s, const char *name, const char *text);
	int (*step)(struct stmt *s, struct err *err);
	int (*changes)(const struct stmt *s);
	int64_t (*last_id)(const struct db *db);
	int64_t (*column_int)(const struct stmt *s, int column);
	const char *(*column_text)(const struct stmt *s, int column);
	bool (*column_is_null)(const struct stmt *s, int column);

	/* job.h; NULL: how a commit ended is always known */
	int (*is_inserted)(struct db *db, int64_t interaction_id,
	    int64_t wait_ms, struct err *err);
	/* holder.h; all NULL: there is one host */
	int (*hold)(struct db *db, const char *node, int64_t slot,
	    int64_t *holder, struct err *err);
	int (*take_over)(struct db *db, const char *node, int64_t slot,
	    int64_t holder, struct err *err);
	/* job: that it is to be cancelled; 0: there are new ones */
	void (*notify)(struct db *db, int64_t home, int64_t job);
	int (*listen)(struct db *db, struct err *err);
	bool (*heard)(struct db *db, int *fd);
	int64_t (*heard_cancel)(struct db *db);
	int (*await)(struct db *db, const char *token, struct err *err);
	void (*await_none)(struct db *db);
	int64_t (*response)(struct db *db, int *fd, const char **json);
	/* node.h */
	int (*join)(struct db *db, const char *name, const char *instance,
	    struct err *err);
	int (*lose_node)(struct db *db, struct node_loss *loss,
	    struct err *err);
};

extern const struct db_driver sqlite_driver; /* connection.c */

/* The driver for an address.  NULL: it cannot be loaded, ERR_CONFIG. */
const struct db_driver *driver_find(const char *address, struct err *err);

/* Every error of a database comes by here: a group whose transaction did not
 * begin, or that the database has rolled back, is lost. */
static inline void
driver_group_error(struct db *db, const struct err *err)
{
	if (db->grouped && db->group_err.code == ERR_NONE &&
	    !db->driver->is_begun(db))
		db->group_err = *err;
}

#endif
