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

/* Defaults that another key or the installation decides: config_store. */
#define DATABASE_FALLBACK "<IL_STATE_DIR>/inline.db"
#define LIB_FALLBACK "<found beside the program>"
#define IMAGES_FALLBACK "<SANDBOX_IMAGE>"
#define LIB_MARK "/cell/cell.py" /* by which a library folder is known */

#define AT(field) offsetof(struct config, field)

/* In the order of the documentation. */
static const struct config_key config_keys[] = {
	{ "IL_ENV_FILE", CONFIG_SOURCE, 0, "", 0, 0,
	    "a file of these keys; what the environment says wins over it" },
	{ "DISCORD_PUBLIC_KEY", CONFIG_HEX_KEY, AT(discord_public_key), "", 0,
	    0, "the application's public key, 64 hex digits" },
	{ "DISCORD_APPLICATION_ID", CONFIG_ID, AT(discord_application_id), "",
	    0, 0, "the application's id" },
	{ "DISCORD_TOKEN", CONFIG_SECRET, AT(discord_token), "", 0, 0,
	    "the bot's token" },
	{ "DISCORD_TOKEN_FILE", CONFIG_SOURCE, 0, "", 0, 0,
	    "a file that holds the token, instead of `DISCORD_TOKEN`" },
	{ "DISCORD_API_BASE", CONFIG_URL, AT(discord_api_base),
	    "https://discord.com/api/v10", 0, 0,
	    "where Discord's REST API is" },
	{ "IL_MAX_SKEW_SECONDS", CONFIG_INT, AT(max_skew_seconds), "300", 0,
	    DAY, "oldest and newest signature that is taken; 0 takes any age" },

	{ "IL_STATE_DIR", CONFIG_PATH, AT(state_dir), "./il_state", 0, 0,
	    "sockets, the database, generated files" },
	{ "IL_BASE_DIR", CONFIG_PATH, AT(base_dir), "./il_sandboxes", 0, 0,
	    "the sandboxes, one folder each" },
	{ "IL_DATABASE", CONFIG_PATH, AT(database), DATABASE_FALLBACK, 0, 0,
	    "the database file" },
	{ "IL_LIB_DIR", CONFIG_PATH, AT(lib_dir), LIB_FALLBACK, 0, 0,
	    "`cell/`, `seccomp.json`, `sql/`" },
	{ "IL_HTTP_PORT", CONFIG_INT, AT(http_port), "8080", 1, 65535,
	    "nginx listens here, on loopback" },

	{ "DOCKER_BINARY", CONFIG_PROGRAM, AT(docker_binary), "docker", 0, 0,
	    "the Docker CLI" },
	{ "SANDBOX_IMAGE", CONFIG_IMAGE, AT(sandbox_image),
	    "python:3.11-alpine", 0, 0,
	    "the image that code runs in, with a Python 3.8 or later" },
	{ "SANDBOX_IMAGES", CONFIG_IMAGES, AT(sandbox_images), IMAGES_FALLBACK,
	    0, 0,
	    "the interpreters of the HTTP APIs, `3.11=IMAGE,3.13=IMAGE`, the "
	    "first one for who names none; `make run` offers these two" },
	{ "SANDBOX_PULL_ON_STARTUP", CONFIG_BOOL, AT(pull_on_startup), "1", 0,
	    0, "1 pulls the images at start that are missing" },
	{ "IL_START_SECONDS", CONFIG_SECONDS, AT(start_ms), "20", 1000,
	    100 * 1000,
	    "how long a container may take to start; more for a slow host" },
	{ "SANDBOX_DERIVE", CONFIG_BOOL, AT(derive), "1", 0, 0,
	    "1 derives from an image without byte code one that has it, once, "
	    "and starts cells from that" },
	{ "SANDBOX_RUNTIME", CONFIG_NAME, AT(sandbox_runtime), "", 0, 0,
	    "passed to docker's `--runtime`; empty: the engine's default" },

	{ "IL_TIMEOUT_SECONDS", CONFIG_SECONDS, AT(timeout_ms), "30.0", 100,
	    600 * 1000, "wall clock limit of a run" },
	{ "IL_MEMORY", CONFIG_SIZE, AT(memory), "256m", 32 * MiB, TiB,
	    "memory of a cell, no swap" },
	{ "IL_CPUS", CONFIG_CPUS, AT(cpus), "1.0", 50, 256 * 1000,
	    "processors of a cell" },
	{ "IL_PIDS", CONFIG_INT, AT(pids), "64", 8, 32768,
	    "processes and threads of a cell" },
	{ "IL_QUOTA", CONFIG_SIZE, AT(quota), "256m", 4 * MiB, TiB,
	    "disk space of a sandbox" },
	{ "IL_FILES", CONFIG_INT, AT(files), "10000", 64, 10000000,
	    "files and folders of a sandbox" },
	{ "IL_DISK_RATE", CONFIG_SIZE, AT(disk_rate), "128m", 0, TiB,
	    "bytes a second that a cell may read from its disk, and as many "
	    "that it may write; 0: no limit" },
	{ "IL_DISK_OPS", CONFIG_INT, AT(disk_ops), "4000", 0, 100000000,
	    "likewise: requests to its disk a second" },
	{ "IL_OUTPUT_LIMIT", CONFIG_SIZE, AT(output_limit), "1m", KiB, 64 * MiB,
	    "bytes that a run may print; beyond them it is stopped" },
	{ "IL_TMP", CONFIG_SIZE, AT(tmp_size), "64m", MiB, 64 * GiB,
	    "size of a cell's `/tmp`, which counts as memory" },
	{ "ECHO_LAST_EXPR", CONFIG_BOOL, AT(echo_last_expr), "1", 0, 0,
	    "1 shows the value of a last bare expression" },

	{ "IL_RETENTION_SECONDS", CONFIG_INT, AT(retention_seconds), "604800",
	    1, 3650 * DAY, "a sandbox unused for so long is removed" },
	{ "IL_SANDBOXES", CONFIG_INT, AT(sandboxes), "1000", 1, 1000000,
	    "sandboxes at most; beyond them `/il create` is refused" },
	{ "IL_WORKERS", CONFIG_INT, AT(workers), "4", 1, 64,
	    "worker processes, which is how many jobs run at one time" },
	{ "IL_STOP_SECONDS", CONFIG_SECONDS, AT(stop_ms), "20", 0, 900 * 1000,
	    "when the service is to end, a run that has begun may go on for "
	    "so long" },
	{ "IL_QUEUE_MAX", CONFIG_INT, AT(queue_max), "10000", 1, 1000000,
	    "unfinished jobs at most; beyond them commands are refused" },
	{ "IL_USER_RATE", CONFIG_INT, AT(user_rate), "30", 1, 1000000,
	    "commands that one user may send in 60 seconds" },

	{ "IL_CELLS", CONFIG_INT, AT(cells), "8", 1, 1000,
	    "containers at most at one time" },
	{ "IL_WARM_SECONDS", CONFIG_INT, AT(warm_seconds), "300", 0, DAY,
	    "an idle cell is kept for so long" },
	{ "IL_WARM_CELLS", CONFIG_INT, AT(warm_cells), "4", 0, 1000,
	    "idle cells at most" },

	{ "IL_API_CELLS", CONFIG_INT, AT(api_cells), "4", 1, 1000,
	    "runs of the HTTP APIs at one time; each has a container, beside "
	    "those of `IL_CELLS`" },
	{ "IL_API_QUEUE", CONFIG_INT, AT(api_queue), "64", 1, 4096,
	    "runs of the HTTP APIs that may wait for their turn; the next one "
	    "is answered 503" },
	{ "IL_API_MEMORY", CONFIG_SIZE, AT(api_memory), "256m", 64 * MiB, TiB,
	    "memory of such a container, its files included, no swap" },
	{ "IL_API_WARM", CONFIG_INT, AT(api_warm), "2", 0, 1000,
	    "containers that are ready before they are asked for" },
	{ "IL_API_RUNS", CONFIG_INT, AT(api_runs), "2000", 1, 1000000,
	    "runs in one container, one after another, before it is replaced" },
	{ "IL_PRELOAD", CONFIG_MODULES, AT(preload), "", 0, 0,
	    "modules that the runs of the HTTP APIs find imported already, "
	    "`numpy,matplotlib`" },
	{ "IL_API_SESSIONS", CONFIG_INT, AT(api_sessions), "8", 1, 1000,
	    "sessions at one time, each in a container of its own" },
	{ "IL_API_FILES", CONFIG_PATH, AT(api_files), "", 0, 0,
	    "where the files of `/v1/files` are kept; empty: "
	    "`IL_STATE_DIR/files`" },
	{ "IL_API_FILES_QUOTA", CONFIG_SIZE, AT(api_files_quota), "4g", MiB,
	    1024 * TiB,
	    "what they may take together; with tokens, each may have a "
	    "quarter of it" },
	{ "IL_API_FILES_SECONDS", CONFIG_SECONDS, AT(api_files_ms), "3600",
	    1000, DAY * 1000, "how long each is kept after its last use" },
	{ "IL_API_TOKENS_FILE", CONFIG_PATH, AT(api_tokens_file), "", 0, 0,
	    "the bearer tokens that the HTTP APIs ask for (`ilctl token`); "
	    "empty: none" },
	{ "IL_API_ISOLATION", CONFIG_ISOLATION, AT(api_isolation), "auto", 0, 0,
	    "`run`: fresh namespaces for each run in a warm container; `cell`: "
	    "a container for each run; `auto`: the first where it works" },
	{ "IL_API_APPARMOR", CONFIG_NAME, AT(api_apparmor), "", 0, 0,
	    "the AppArmor profile of the APIs' containers; empty: "
	    "`inline-api`, which comes with Inline, where it is loaded, else "
	    "the engine's own" },

	{ "IL_PIP_TIMEOUT_SECONDS", CONFIG_SECONDS, AT(pip_timeout_ms), "300",
	    1000, 800 * 1000, "wall clock limit of an installation" },
	{ "IL_PIP_INDEX_URL", CONFIG_URL, AT(pip_index_url), "", 0, 0,
	    "the package index; empty: pip's default" },
	{ "IL_PIP_CA_BUNDLE", CONFIG_PATH, AT(pip_ca_bundle), "", 0, 0,
	    "certificates that pip trusts, a PEM file" },
	{ "IL_PIP_NETWORK", CONFIG_NETWORK, AT(pip_network), "bridge", 0, 0,
	    "the Docker network of an installation; never `host`" },
	{ "IL_PIP_ALLOW_SDIST", CONFIG_BOOL, AT(pip_allow_sdist), "0", 0, 0,
	    "1 lets pip build from source, which runs code with network" },
	{ "IL_PIP_QUOTA", CONFIG_SIZE, AT(pip_quota), "512m", 16 * MiB, TiB,
	    "disk space of a sandbox's packages" },
	{ "IL_PIP_MEMORY", CONFIG_SIZE, AT(pip_memory), "512m", 64 * MiB, TiB,
	    "memory of an installation, no swap" },
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

static const char *
config_said(const struct config_values *values, const char *name)
{
	const char *text = values->text[config_find(name, strlen(name))];

	return text != NULL ? text : "";
}

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
	auto_free char *text = NULL;
	size_t len = 0;

	text = envfile_read(path, ENV_FILE_MAX, &len, err);
	if (text == NULL)
		return -1;
	return envfile_parse(text, len, path, config_from_file, values, err);
}

/* Ours by its prefix: a misspelt key must not be passed over. */
static bool
config_is_ours(const char *name)
{
	return strncmp(name, "IL_", 3) == 0 ||
	    strncmp(name, "SANDBOX_", 8) == 0 ||
	    strncmp(name, "DISCORD_", 8) == 0;
}

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

static void
config_replace(char **text, char *with)
{
	free(*text);
	*text = with;
}

/* Check and store every value, then the defaults that depend on others. */
static int
config_store(struct config *config, const struct config_values *values,
    struct err *err)
{
	for (size_t i = 0; i < KEYS; i++) {
		const struct config_key *key = &config_keys[i];
		const char *text = values->text[i];
		bool said = text != NULL && *text != '\0';

		if (!said && *key->fallback == '<')
			text = "";
		else if (!said)
			text = key->fallback;
		if (config_value_store(key, text, (char *)config + key->offset,
			err) != 0)
			return -1;
	}
	if (*config->database == '\0')
		config_replace(&config->database,
		    config_state_path(config, "inline.db"));
	if (*config->lib_dir == '\0')
		config_replace(&config->lib_dir, config_find_lib());
	if (*config->sandbox_images == '\0')
		config_replace(&config->sandbox_images,
		    images_from(config->sandbox_image));
	return config_read_token(config,
	    config_said(values, "DISCORD_TOKEN_FILE"), err);
}

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
