/* SPDX-License-Identifier: MIT */
#ifndef AUTHORIZE_H
#define AUTHORIZE_H

/*
 * Roles, whose rights the database itself holds: DB_FRONT (il-fcgi) inserts
 * jobs and views and reads; DB_READER (counting, and an operator's lists)
 * reads; DB_WORKER changes all but what the operator has said; DB_NODE (who
 * carries people to other nodes) that, too; DB_ADMIN does all.
 */
enum db_role { DB_FRONT, DB_READER, DB_WORKER, DB_NODE, DB_ADMIN };

/* An sqlite3_set_authorizer() callback, which holds the rights of an enum
 * db_role. */
int authorize(void *role, int action, const char *a, const char *b,
    const char *database, const char *trigger);

#endif
