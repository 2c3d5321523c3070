/* SPDX-License-Identifier: MIT */
/*
 * The configuration becomes environment variables with absolute paths.
 */
#include <assert.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/envfile.h"
#include "../base/err.h"
#include "../base/file.h"
#include "prepare.h"

#define FILE_MAX (1 << 20)

static const struct {
	const char *key;
	size_t field;
	bool is_file;
} paths[] = {
	{ "IL_STATE_DIR", offsetof(struct config, state_dir), false },
	{ "IL_BASE_DIR", offsetof(struct config, base_dir), false },
	{ "IL_LIB_DIR", offsetof(struct config, lib_dir), false },
	{ "IL_DATABASE", offsetof(struct config, database), true },
	{ "IL_NODES", offsetof(struct config, nodes), true },
	{ "IL_NODES_KEY_FILE", offsetof(struct config, nodes_key_file), true },
	{ "IL_API_FILES", offsetof(struct config, api_files), false },
	{ "IL_API_TOKENS_FILE", offsetof(struct config, api_tokens_file),
	    true },
	{ "IL_LIBRECHAT_KEYS_FILE",
	    offsetof(struct config, librechat_keys_file), true },
};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

static char **
field(struct config *config, size_t i)
{
	return (char **)(void *)((char *)config + paths[i].field);
}

/* Of a file's path only the folder is resolved: the file may not be there, and
 * a link in its place is its reader's to judge. */
int
settings_resolve(struct config *config, struct err *err)
{
	for (size_t i = 0; i < PATHS; i++) {
		char **path = field(config, i);
		auto_free char *copy = xstrdup(*path);
		const char *folder = copy;
		const char *name = "";
		char real[PATH_MAX];
		char *resolved;

		if (**path == '\0')
			continue;
		if (paths[i].is_file) {
			folder = dirname(copy);
			name = strrchr(*path, '/');
			assert(name != NULL); /* config.c makes them absolute */
		}
		if (realpath(folder, real) == NULL)
			return err_system(err, "%s", folder);
		resolved = xprintf("%s%s", real, name);
		free(*path);
		*path = resolved;
	}
	return 0;
}

/* What the environment says wins, also when it says nothing. */
int
settings_take_line(void *arg, const char *key, const char *value,
    struct err *err)
{
	(void)arg;
	return setenv(key, value, 0) == 0 ? 0 : err_system(err, "setenv");
}

/* The environment's own values first, then those of the file, then the
 * resolved paths. */
int
settings_export(struct config *config, const char *env_file, struct err *err)
{
	/* Empty ones win over what a file said. */
	const char *const others[][2] = {
		{ "IL_PIP_CA_BUNDLE", config->pip_ca_bundle },
		{ "IL_ENV_FILE", "" },
		{ "DISCORD_TOKEN", "" },
		{ "DISCORD_TOKEN_FILE", "" },
	};
	auto_buf struct buf text = BUF_INIT(FILE_MAX);

	if (env_file == NULL)
		env_file = getenv("IL_ENV_FILE");
	if (env_file != NULL && *env_file != '\0' &&
	    (file_read(env_file, &text, err) != 0 ||
		envfile_parse(&text, env_file, settings_take_line, NULL, err) !=
		    0))
		return -1;
	for (size_t i = 0; i < PATHS; i++)
		if (setenv(paths[i].key, *field(config, i), 1) != 0)
			return err_system(err, "setenv");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (setenv(others[i][0], others[i][1], 1) != 0)
			return err_system(err, "setenv");
	return 0;
}
