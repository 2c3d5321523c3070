/* SPDX-License-Identifier: MIT */
#ifndef AUTHORIZE_H
#define AUTHORIZE_H

#include <stdbool.h>

/*
 * Roles, whose rights the database itself holds: DB_FRONT (il-fcgi) inserts
 * jobs and views and reads; DB_READER (counting, and an operator's lists)
 * reads; DB_WORKER changes all but the operator's rules; DB_NODE, which carries
 * people to other nodes, changes these, too; DB_ADMIN does all.
 */
enum db_role { DB_FRONT, DB_READER, DB_WORKER, DB_NODE, DB_ADMIN };

/* An sqlite3_set_authorizer() callback, which holds the rights of an enum
 * db_role. */
int authorize(void *role, int action, const char *a, const char *b,
    const char *database, const char *trigger);
/* Does a role keep this statement prepared? */
bool authorize_has(enum db_role role, const char *statement);

#endif
