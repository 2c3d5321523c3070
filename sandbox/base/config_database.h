/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_DATABASE_H
#define CONFIG_DATABASE_H

#include <stdbool.h>

/* IL_DATABASE: the path of a file (SQLite), or the address of a server. */

/* Does it begin with postgresql:// or postgres://? */
bool config_database_is_server(const char *address);
/* Why an address is not taken, or NULL.  Not with a password: what stands in an
 * environment is shown to many; IL_DATABASE_FILE is for that. */
const char *config_database_check(const char *address);
/* What may be shown of it: no user, no password, no options.  Heap. */
char *config_database_shown(const char *address);

#endif
