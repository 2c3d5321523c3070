/* SPDX-License-Identifier: MIT */
/*
 * The configuration becomes environment variables with absolute paths.
 */
#include "settings.h"

#include <assert.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/envfile.h"
#include "../base/err.h"

#define FILE_MAX (1 << 20)

/* Of a file's path only the folder is resolved: the file may not be there, and
 * a link in its place is its reader's to judge. */
static int
resolve(char **path, bool is_file, struct err *err)
{
	auto_free char *copy = xstrdup(*path);
	const char *folder = is_file ? dirname(copy) : copy;
	const char *name = is_file ? strrchr(*path, '/') : "";
	auto_buf struct buf text = BUF_INIT(2 * PATH_MAX);
	char real[PATH_MAX];

	if (**path == '\0')
		return 0;
	if (realpath(folder, real) == NULL)
		return err_system(err, "%s", folder);
	assert(name != NULL); /* config.c makes them absolute */
	buf_addf(&text, "%s%s", real, name);
	free(*path);
	*path = buf_steal(&text, NULL);
	return 0;
}

int
settings_resolve(struct config *config, struct err *err)
{
	if (resolve(&config->state_dir, false, err) != 0 ||
	    resolve(&config->base_dir, false, err) != 0 ||
	    resolve(&config->lib_dir, false, err) != 0 ||
	    resolve(&config->database, true, err) != 0 ||
	    resolve(&config->api_files, false, err) != 0)
		return -1;
	return resolve(&config->api_tokens_file, true, err);
}

/* What the environment says wins, also when it says nothing. */
static int
take_line(void *arg, const char *key, const char *value, struct err *err)
{
	(void)arg;
	if (setenv(key, value, 0) != 0)
		return err_system(err, "setenv");
	return 0;
}

static int
take_file(const char *env_file, struct err *err)
{
	auto_free char *text = NULL;
	size_t len;

	if (env_file == NULL)
		env_file = getenv("IL_ENV_FILE");
	if (env_file == NULL || *env_file == '\0')
		return 0;
	text = envfile_read(env_file, FILE_MAX, &len, err);
	if (text == NULL)
		return -1;
	return envfile_parse(text, len, env_file, take_line, NULL, err);
}

/* The environment's own values first, then those of the file, then the
 * resolved paths. */
int
settings_export(const struct config *config, const char *env_file,
    struct err *err)
{
	const struct {
		const char *key;
		const char *value;
	} paths[] = {
		{ "IL_STATE_DIR", config->state_dir },
		{ "IL_BASE_DIR", config->base_dir },
		{ "IL_LIB_DIR", config->lib_dir },
		{ "IL_DATABASE", config->database },
		{ "IL_API_FILES", config->api_files },
		{ "IL_API_TOKENS_FILE", config->api_tokens_file },
		{ "IL_PIP_CA_BUNDLE", config->pip_ca_bundle },
		/* Empty ones win over what a file said. */
		{ "IL_ENV_FILE", "" },
		{ "DISCORD_TOKEN", "" },
		{ "DISCORD_TOKEN_FILE", "" },
	};

	if (take_file(env_file, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (setenv(paths[i].key, paths[i].value, 1) != 0)
			return err_system(err, "setenv");
	return 0;
}
