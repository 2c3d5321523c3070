/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

/* Packages are small files: a space for them takes one for so many bytes. */
#define CONFIG_PACKAGE_FILE_BYTES 8192

/*
 * The configuration of all programs: environment variables, and one env file of
 * the same keys (the environment wins).  Key, type, default, bounds, help and
 * the field here are one row of config.def; inline.conf(5) and the README's few
 * keys are compared with `ilctl config` by a test.  Strings are never NULL (""
 * when unset), owned by the struct.  Sizes are bytes, times as the name says.
 */
struct config {
#define NUMBER(type, field, ...) int64_t field;
#define FLAG(field, ...) bool field;
#define ID(field, ...) int64_t field;
#define TEXT(type, field, ...) char *field;
#define SOURCE(...)
#include "base/config.def"
};

/*
 * Fill with defaults, then env_file (NULL: none; lines KEY=VALUE, '#' comments,
 * optional single or double quotes around the value, nothing expanded), then
 * the environment.  Unknown keys that start with IL_, SANDBOX_ or DISCORD_ and
 * wrong values are ERR_CONFIG "KEY: reason"; unknown other keys in the env file
 * too, in the environment they are ignored.  IL_ENV_FILE in the environment
 * names the file when env_file is NULL; it must exist then.  An empty value
 * stands for the default.  Relative paths are made absolute against the current
 * directory.  After -1 there is nothing to release.
 */
int config_load(struct config *config, const char *env_file, struct err *err);
void config_release(struct config *config);
#define auto_config __attribute__((cleanup(config_release)))
/* A row of the table of settings, by its number. */
struct config_row {
	const char *name;
	const char *fallback; /* "": it has none */
	const char *help;     /* Markdown */
};
/* False: there is none of this number. */
bool config_find_row(size_t number, struct config_row *row);
/* How long to wait for a cell: for a broker that lets the leases of its last
 * moments end, and for two starts, as the first one may fail.  Milliseconds. */
int config_lease_wait_ms(const struct config *config);
/* "<state_dir>/<name>", heap, caller frees. */
char *config_state_path(const struct config *config, const char *name);

#endif
