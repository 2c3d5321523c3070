/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config_images.h"
#include "config_value.h"
#include "envfile.h"
#include "err.h"

#ifndef INLINE_LIB_DIR
#define INLINE_LIB_DIR "/usr/local/lib/inline"
#endif

#define ENV_FILE_MAX 65536
#define TOKEN_FILE_MAX 4096

#define KiB (INT64_C(1) << 10)
#define MiB (INT64_C(1) << 20)
#define GiB (INT64_C(1) << 30)
#define TiB (INT64_C(1) << 40)
#define DAY INT64_C(86400)

#define LIB_MARK "/cell/cell.py" /* by which a library folder is known */

static const struct config_key config_keys[] = {
#define ROW(type, field, key, fallback, least, most, help) \
	{ key, CONFIG_##type, offsetof(struct config, field), fallback, least, \
		most, help },
#define NUMBER(...) ROW(__VA_ARGS__)
#define CPUS(...) ROW(CPUS, __VA_ARGS__)
#define FLAG(field, key, fallback, help) \
	ROW(BOOL, field, key, fallback, 0, 0, help)
#define ID(field, key, fallback, help) ROW(ID, field, key, fallback, 0, 0, help)
#define TEXT(type, field, key, fallback, help) \
	ROW(type, field, key, fallback, 0, 0, help)
#define SOURCE(key, help) { key, CONFIG_SOURCE, 0, "", 0, 0, help },
#include "config.def"
};

#define KEYS (sizeof(config_keys) / sizeof(config_keys[0]))

/* What was said for each key, before anything is checked; NULL: nothing. */
struct config_values {
	char *text[KEYS];
};

static void
config_values_release(struct config_values *values)
{
	for (size_t i = 0; i < KEYS; i++)
		free(values->text[i]);
}

/* The index of a key, KEYS when there is no such key. */
static size_t
config_find(const char *name, size_t len)
{
	size_t i = 0;

	while (i < KEYS &&
	    (strncmp(config_keys[i].name, name, len) != 0 ||
		config_keys[i].name[len] != '\0'))
		i++;
	return i;
}

/* "": nothing was said. */
static const char *
config_said(const struct config_values *values, const char *name)
{
	const char *text = values->text[config_find(name, strlen(name))];

	return text != NULL ? text : "";
}

/* A line of the env file. */
static int
config_from_file(void *arg, const char *key, const char *value, struct err *err)
{
	struct config_values *values = arg;
	size_t i = config_find(key, strlen(key));

	if (i == KEYS)
		return err_set(err, ERR_CONFIG, "%s: unknown key", key);
	if (strcmp(key, "IL_ENV_FILE") == 0)
		return err_set(err, ERR_CONFIG,
		    "%s: only the environment may set it", key);
	if (values->text[i] != NULL)
		return err_set(err, ERR_CONFIG, "%s: set twice", key);
	values->text[i] = xstrdup(value);
	return 0;
}

static int
config_read_file(struct config_values *values, const char *path,
    struct err *err)
{
	size_t len = 0;
	auto_free char *text = envfile_read(path, ENV_FILE_MAX, &len, err);

	return text == NULL ?
	    -1 :
	    envfile_parse(text, len, path, config_from_file, values, err);
}

/* Ours by its prefix: a misspelt key must not be passed over. */
static bool
config_is_ours(const char *name)
{
	return strncmp(name, "IL_", 3) == 0 ||
	    strncmp(name, "SANDBOX_", 8) == 0 ||
	    strncmp(name, "DISCORD_", 8) == 0;
}

/* It wins over what is there. */
static int
config_read_environment(struct config_values *values, struct err *err)
{
	for (char **at = environ; at != NULL && *at != NULL; at++) {
		size_t len = strcspn(*at, "=");
		size_t i = config_find(*at, len);

		if (i == KEYS && config_is_ours(*at))
			return err_set(err, ERR_CONFIG, "%.*s: unknown key",
			    (int)(len < 100 ? len : 100), *at);
		if (i == KEYS || (*at)[len] == '\0')
			continue;
		free(values->text[i]);
		values->text[i] = xstrdup(*at + len + 1);
	}
	return 0;
}

/* DISCORD_TOKEN_FILE: a line of its own, checked as the token itself is. */
static int
config_read_token(struct config *config, const char *path, struct err *err)
{
	const struct config_key
	    *key = &config_keys[config_find("DISCORD_TOKEN", 13)];
	auto_free char *token = NULL;
	size_t len = 0;

	if (*path == '\0')
		return 0;
	if (*config->discord_token != '\0')
		return err_set(err, ERR_CONFIG,
		    "DISCORD_TOKEN_FILE: DISCORD_TOKEN is set, too");
	token = envfile_read(path, TOKEN_FILE_MAX, &len, err);
	if (token == NULL)
		return err_wrap(err, "DISCORD_TOKEN_FILE");
	while (len > 0 && (token[len - 1] == '\n' || token[len - 1] == '\r'))
		token[--len] = '\0';
	if (len == 0 || strlen(token) != len)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_TOKEN_FILE: no token in it");
	if (config_value_store(key, token, &config->discord_token, err) != 0)
		return err_wrap(err, "DISCORD_TOKEN_FILE");
	return 0;
}

/*
 * <folder of the program>/../lib, where a build tree has its copies, or else
 * where `make install` puts them.
 */
static char *
config_find_lib(void)
{
	auto_buf struct buf path = BUF_INIT(PATH_MAX + 16);
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self));

	for (int up = 0; up < 2 && len > 0; up++) {
		const char *slash = memrchr(self, '/', (size_t)len);

		len = slash != NULL ? slash - self : 0;
	}
	if (len > 0) {
		buf_add(&path, self, (size_t)len);
		buf_adds(&path, "/lib" LIB_MARK);
		if (access(buf_str(&path), R_OK) == 0) {
			buf_cut(&path, path.len - strlen(LIB_MARK));
			return buf_steal(&path, NULL);
		}
	}
	return xstrdup(INLINE_LIB_DIR);
}

/* A default for a text that nobody has set: found owns the heap. */
static void
config_default(char **text, char *found)
{
	char *unused = **text == '\0' ? *text : found;

	*text = **text == '\0' ? found : *text;
	free(unused);
}

/* Check and store every value, then the defaults that depend on others. */
static int
config_store(struct config *config, const struct config_values *values,
    struct err *err)
{
	for (size_t i = 0; i < KEYS; i++) {
		const struct config_key *key = &config_keys[i];
		const char *text = values->text[i];

		if (text == NULL || *text == '\0')
			text = *key->fallback == '<' ? "" : key->fallback;
		if (config_value_store(key, text, (char *)config + key->offset,
			err) != 0)
			return -1;
	}
	config_default(&config->database,
	    config_state_path(config, "inline.db"));
	config_default(&config->lib_dir, config_find_lib());
	config_default(&config->sandbox_images,
	    images_from(config->sandbox_image));
	return config_read_token(config,
	    config_said(values, "DISCORD_TOKEN_FILE"), err);
}

/* The environment is read twice: it names the file, and it wins over it. */
int
config_load(struct config *config, const char *env_file, struct err *err)
{
	struct config_values values = { 0 };
	struct config_values from_environment = { 0 };
	int rc;

	*config = (struct config){ 0 };
	rc = config_read_environment(&from_environment, err);
	if (env_file == NULL &&
	    *config_said(&from_environment, "IL_ENV_FILE") != '\0')
		env_file = config_said(&from_environment, "IL_ENV_FILE");
	if (rc == 0 && env_file != NULL)
		rc = config_read_file(&values, env_file, err);
	if (rc == 0)
		rc = config_read_environment(&values, err);
	if (rc == 0)
		rc = config_store(config, &values, err);
	if (rc != 0)
		config_release(config);
	config_values_release(&values);
	config_values_release(&from_environment);
	return rc;
}

void
config_release(struct config *config)
{
	if (config == NULL)
		return;
	for (size_t i = 0; i < KEYS; i++) {
		void *field = (char *)config + config_keys[i].offset;

		if (config_value_is_text(config_keys[i].type))
			free(*(char **)field);
	}
	*config = (struct config){ 0 };
}

void
config_print_table(FILE *out)
{
	for (size_t i = 0; i < KEYS; i++) {
		const struct config_key *key = &config_keys[i];
		const char *quote = *key->fallback != '\0' ? "`" : "";

		(void)fprintf(out, "| `%s` | %s%s%s | %s |\n", key->name, quote,
		    key->fallback, quote, key->help);
	}
}

int
config_lease_wait_ms(const struct config *config)
{
	return (int)(config->stop_ms + 2 * config->start_ms + 5000);
}

char *
config_state_path(const struct config *config, const char *name)
{
	auto_buf struct buf path = BUF_INIT(2 * PATH_MAX);

	buf_addf(&path, "%s/%s", config->state_dir, name);
	return buf_steal(&path, NULL);
}
