/* SPDX-License-Identifier: MIT */
#include "node.h"

#include <stdio.h>

#include "db.h"
#include "driver.h"
#include "holder.h"

int64_t
node_number(const struct db *db)
{
	return db->home;
}

int
node_join(struct db *db, const char *name, const char *instance,
    struct err *err)
{
	return holder_is_shared(db) ?
	    db->driver->join(db, name, instance, err) :
	    0;
}

int
node_find(struct db *db, const char *name, const char *instance,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NODE_FIND);
	int row;

	if (!holder_is_shared(db))
		return 0;
	db_bind_text(s, ":name", name);
	db_bind_text(s, ":instance", instance);
	row = db_step(db, s, err);
	if (row == 1)
		db->home = db_column_int(s, 0);
	return row < 0 ? -1 : row == 0;
}

int
node_count(struct db *db, struct node_counts *counts, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NODE_COUNT);

	if (db_step(db, s, err) != 1)
		return -1;
	counts->living = db_column_int(s, 0);
	counts->away = db_column_int(s, 1);
	counts->lost = db_column_int(s, 2);
	return 0;
}

int
node_lives(struct db *db, int64_t number, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_NODE_LIVES);

	if (!holder_is_shared(db))
		return 0;
	db_bind_int(s, ":number", number);
	return db_step(db, s, err) == 1 ? db_column_int(s, 0) == 0 : -1;
}

int
node_sweep(struct db *db, struct node_loss *loss, struct err *err)
{
	return holder_is_shared(db) ? db->driver->lose_node(db, loss, err) : 1;
}

int
node_leftover(struct db *db, int64_t seconds, char *sandbox, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LEFTOVER_DUE);
	int row;

	if (!holder_is_shared(db))
		return 1;
	db_bind_int(s, ":home", node_number(db));
	db_bind_int(s, ":seconds", seconds);
	row = db_step(db, s, err);
	if (row == 1)
		(void)snprintf(sandbox, LEFTOVER_SIZE, "%s",
		    db_column_text(s, 0));
	return row < 0 ? -1 : row == 0;
}

int
node_leftover_gone(struct db *db, const char *sandbox, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LEFTOVER_GONE);

	db_bind_text(s, ":sandbox", sandbox);
	return db_run(db, s, err) < 0 ? -1 : 0;
}

int
node_leftovers_unwanted(struct db *db, int64_t user_id, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db,
	    STATEMENT_LEFTOVER_UNWANTED);

	if (!holder_is_shared(db))
		return 0;
	db_bind_int(s, ":user_id", user_id);
	return db_run(db, s, err) < 0 ? -1 : 0;
}

int64_t
node_leftovers(struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LEFTOVER_COUNT);

	if (!holder_is_shared(db))
		return 0;
	db_bind_int(s, ":home", node_number(db));
	return db_step(db, s, err) == 1 ? db_column_int(s, 0) : -1;
}
