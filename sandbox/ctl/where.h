/* SPDX-License-Identifier: MIT */
#ifndef WHERE_H
#define WHERE_H

#include <stdbool.h>
#include <stdint.h>

struct config;

/* Which Inline is meant where nobody says so. */

/* The env file: that of -e; else what IL_ENV_FILE names, by NULL; else .env
 * beside an il_state in the current folder, if both and the folder are root's
 * or ours, for nobody else to write (or a line says that it is passed over);
 * else that of an installation.
 * NULL: none, the environment alone. */
const char *where_env_file(const char *named);
/* `ilctl run` holds the lock of its folder for as long as it lives. */
bool where_is_run(const struct config *config);
/* Where nginx listens: as `ilctl run` has it that runs here, or as the settings
 * say. */
int64_t where_port(const struct config *config);

#endif
