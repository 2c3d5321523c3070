/* SPDX-License-Identifier: MIT */
#ifndef DRIVER_PG_H
#define DRIVER_PG_H

#include "pg.h"

/* What struct db_driver has of each file (../driver.h is the contract), and
 * what of it is done again for a new connection. */

/* ---- transaction.c, migrate.c ---- */

int pg_begin(struct db *db, struct err *err);
int pg_commit(struct db *db, struct err *err);
void pg_rollback(struct db *db);
int pg_flush(struct db *db, struct err *err);
int pg_is_inserted(struct db *db, int64_t interaction_id, int64_t wait_ms,
    struct err *err);
int pg_migrate(struct db *db, struct err *err);

/* ---- holder.c ---- */

int pg_hold(struct db *db, const char *node, int64_t slot, int64_t *holder,
    struct err *err);
void pg_end_before(struct pg *pg);
int pg_hold_again(struct pg *pg, struct err *err);
int pg_take_over(struct db *db, const char *node, int64_t slot, int64_t holder,
    struct err *err);
void pg_notify(struct db *db, int64_t home, int64_t job);
int pg_listen(struct db *db, struct err *err);
bool pg_heard(struct db *db, int *fd);
int64_t pg_heard_cancel(struct db *db);
int pg_await(struct db *db, const char *token, struct err *err);
void pg_await_none(struct db *db);
int64_t pg_response(struct db *db, int *fd, const char **json);

/* ---- node.c ---- */

int pg_join(struct db *db, const char *name, const char *instance,
    struct err *err);
int pg_join_again(struct pg *pg, struct err *err);
int pg_lose_node(struct db *db, struct node_loss *loss, struct err *err);

#endif
