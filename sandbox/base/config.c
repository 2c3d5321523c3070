/* SPDX-License-Identifier: MIT */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utf8.h"

#define ENV_FILE_MAX 65536
#define TOKEN_FILE_MAX 4096
#define TEXT_MAX 1024 /* bytes of a text */

#define KiB (INT64_C(1) << 10)
#define MiB (INT64_C(1) << 20)
#define GiB (INT64_C(1) << 30)
#define TiB (INT64_C(1) << 40)
#define DAY INT64_C(86400)

/* Form of a value: how it is written, checked and stored. */
enum config_type {
	CONFIG_SOURCE,	/* read before the others, stored nowhere */
	CONFIG_INT,	/* int64_t */
	CONFIG_SIZE,	/* int64_t bytes, written "256m" */
	CONFIG_SECONDS, /* int64_t milliseconds, written "30" or "0.5" */
	CONFIG_CPUS,	/* int64_t thousandths, written likewise */
	CONFIG_BOOL,	/* bool, written 0 or 1 */
	CONFIG_ID,	/* int64_t, a Discord id; 0 when empty */
	/* the others: char *, checked so that they can become a path, a word of
	 * an argv or a line of a generated file as they are */
	CONFIG_SECRET,	/* printable ASCII without blanks */
	CONFIG_HEX_KEY, /* 64 hex digits */
	CONFIG_URL,	/* http:// or https://, no blanks, '/' at the end cut */
	CONFIG_PATH,	/* made absolute, '/' at the end cut */
	CONFIG_PROGRAM, /* a name to look up in PATH, or a path */
	CONFIG_NAME,	/* [A-Za-z0-9._-] */
	CONFIG_NETWORK, /* the same, and not the host's own */
	CONFIG_ADDRESS, /* 172.17.0.1, or empty */
	CONFIG_TRUST,	/* 10.0.0.0/8,172.17.0.1,… or none */
	CONFIG_IMAGE,	/* [A-Za-z0-9._/:@-] */
	CONFIG_IMAGES,	/* NAME=IMAGE,…: config.h */
	CONFIG_NODE,	/* [a-z0-9.-] */
	CONFIG_ISOLATION, /* auto, run or cell */
	CONFIG_CONTRACTS, /* all, or names of some: A_CONTRACT,… */
	CONFIG_MODULES,	  /* of Python, MODULE,PACKAGE.MODULE,… */
};

#define A_BYTE "(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])"
#define AN_ADDRESS "(" A_BYTE "\\.){3}" A_BYTE
#define A_NETWORK AN_ADDRESS "(/(3[0-2]|[12]?[0-9]))?"
/* Of IL_API_CONTRACTS: as fcgi/api/routes.def names them. */
#define A_CONTRACT "(snekbox|code-interpreter|librechat|piston|mcp)"

/* A row of config.def. */
static const struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;	      /* in struct config */
	const char *fallback; /* the default, written as a value is */
	int64_t min;	      /* of the stored value */
	int64_t max;
	const char *help; /* one line, Markdown */
} config_keys[] = {
#define ROW(type, field, key, fallback, least, most, help) \
	{ key, CONFIG_##type, offsetof(struct config, field), fallback, least, \
		most, help },
#define NUMBER(...) ROW(__VA_ARGS__)
#define FLAG(field, key, fallback, help) \
	ROW(BOOL, field, key, fallback, 0, 0, help)
#define ID(field, key, fallback, help) ROW(ID, field, key, fallback, 0, 0, help)
#define TEXT(type, field, key, fallback, help) \
	ROW(type, field, key, fallback, 0, 0, help)
#define SOURCE(key, help) { key, CONFIG_SOURCE, 0, "", 0, 0, help },
#include "base/config.def"
};

#define KEYS (sizeof(config_keys) / sizeof(config_keys[0]))

/* ---- defaults that depend on the host ---- */

/* Default of IL_TUNE_LIB_DIR: <folder of the program>/../lib, where a build
 * tree has the programs' own files, or else ../lib/inline, where they are
 * installed below any prefix.  Heap. */
static char *
config_lib_dir(void)
{
	char self[PATH_MAX] = "";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *top = len > 0 ? dirname(dirname(self)) : "/usr";
	auto_free char *mark = xprintf("%s/lib/cell/cell.py", top);

	return xprintf("%s/lib%s", top,
	    access(mark, R_OK) == 0 ? "" : "/inline");
}

char *
config_state_path(const struct config *config, const char *name)
{
	return xprintf("%s/%s", config->state_dir, name);
}

/* An absolute path without "./" before and '/' after; heap. */
static char *
config_absolute(const char *path)
{
	auto_free char *here = *path != '/' ? getcwd(NULL, 0) : NULL;
	char *out;

	while (path[0] == '.' && (path[1] == '/' || path[1] == '\0'))
		path += 1 + strspn(path + 1, "/");
	if (here == NULL || strcmp(here, "/") == 0)
		out = xprintf("%s%s", *path == '/' ? "" : "/", path);
	else
		out = xprintf("%s/%s", here, path);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/';)
		out[--len] = '\0';
	return out;
}

/* This host's name as far as its first dot, in characters that IL_NODE takes.
 * Returns name.  The kernel's names have 64 bytes, IL_NODE has 63. */
#define CONFIG_NODE_SIZE 65
static const char *
config_node(char name[CONFIG_NODE_SIZE])
{
	size_t len = 0;

	if (gethostname(name, CONFIG_NODE_SIZE) != 0)
		*name = '\0';
	for (; name[len] != '\0' && name[len] != '.'; len++)
		name[len] = isalnum((unsigned char)name[len]) ?
		    (char)tolower((unsigned char)name[len]) :
		    '-';
	name[len] = '\0';
	return isalnum((unsigned char)*name) != 0 ? name : "node";
}

/* Where distributions keep the authorities that a host trusts.  Heap; "": there
 * is none. */
static char *
config_find_ca_bundle(void)
{
	static const char *const paths[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
		"/etc/ssl/ca-bundle.pem",	      /* openSUSE */
		"",
	};
	size_t i = 0;

	while (*paths[i] != '\0' && access(paths[i], R_OK) != 0)
		i++;
	return xstrdup(paths[i]);
}

/* ---- numbers ---- */

/* Within the bounds of its key, which are told as people write them. */
static int
config_store_number(const struct config_key *key, const char *value,
    int64_t *number, struct err *err)
{
	auto_free char *range = NULL;
	const char *what = "a number such as 30 or 0.5";
	int64_t v = 0;
	bool good;

	if (key->type == CONFIG_SIZE) {
		what = "a size such as 256m";
		good = text_parse_size(value, &v);
		range = xprintf("%s to %s", text_size(key->min).text,
		    text_size(key->max).text);
	} else if (key->type == CONFIG_INT) {
		what = "a whole number";
		good = text_parse_int(value, INT64_MIN, INT64_MAX, &v);
		range = xprintf("%" PRId64 " to %" PRId64, key->min, key->max);
	} else {
		good = text_parse_thousandths(value, &v);
		range = xprintf("%.10g to %.10g", (double)key->min / 1000,
		    (double)key->max / 1000);
	}
	if (!good || v < key->min || v > key->max)
		return err_set(err, ERR_CONFIG, "%s: must be %s, from %s",
		    key->name, what, range);
	*number = v;
	return 0;
}

/* ---- texts ---- */

#define BIT(type) (1U << (type))
#define PATHS (BIT(CONFIG_PATH) | BIT(CONFIG_PROGRAM))
#define NAMES (BIT(CONFIG_NAME) | BIT(CONFIG_NETWORK))
static const char bad_path[] = "control characters or bad UTF-8 in the path";
static const char bad_character[] = "a character that is not allowed";

/* Rules for texts of a type: a pattern that must, or must not, match.  The
 * first rule that a text breaks is the reason why it is wrong. */
static const struct {
	unsigned int types;
	bool must;
	const char *pattern; /* extended */
	const char *why;
} config_rules[] = {
	{ BIT(CONFIG_HEX_KEY), true, "^[0-9A-Fa-f]{64}$",
	    "must be 64 hex digits" },
	{ BIT(CONFIG_URL), true, "^https?://[^/]",
	    "must start with https:// or http:// and name a host" },
	{ BIT(CONFIG_URL) | BIT(CONFIG_SECRET), false, "[^!-~]",
	    "blanks, control characters or non-ASCII in it" },
	/* Otherwise part of a password passes for the host, and is shown. */
	{ BIT(CONFIG_URL), false, "//[^/]*/.*@",
	    "a '/' in its user name or password is written %2F, an '@' %40" },
	{ PATHS, false, "[[:cntrl:]]", bad_path },
	/* These mean something in docker's --mount or in nginx.conf. */
	{ PATHS, false, "[,\"'\\$;{}]",
	    "none of , \" ' \\ $ ; { } may be in the path" },
	/* In the host's own network, pip would reach what listens on loopback:
	 * nginx, and whatever else trusts this machine. */
	{ BIT(CONFIG_NETWORK), false, "^host$",
	    "must not be the host's own; `docker network create` makes one" },
	{ NAMES | BIT(CONFIG_IMAGE) | BIT(CONFIG_MODULES) | BIT(CONFIG_PROGRAM),
	    false, "^-", "must not start with '-'" },
	{ NAMES, false, "[^A-Za-z0-9._-]", bad_character },
	{ BIT(CONFIG_ADDRESS), true, "^" AN_ADDRESS "$",
	    "must be an address as 172.17.0.1" },
	{ BIT(CONFIG_TRUST), true, "^(none|" A_NETWORK "(," A_NETWORK ")*)$",
	    "must be networks as 10.1.0.0/16, with commas between them, or "
	    "none" },
	{ BIT(CONFIG_IMAGE), false, "[^A-Za-z0-9._/:@-]", bad_character },
	{ BIT(CONFIG_MODULES), false, "[^A-Za-z0-9_.,]", bad_character },
	{ BIT(CONFIG_NODE), true, "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
	    "must be small letters, digits, '-' and '.', 63 at most" },
	{ BIT(CONFIG_ISOLATION), true, "^(auto|run|cell)$",
	    "must be auto, run or cell" },
	{ BIT(CONFIG_CONTRACTS), true,
	    "^(all|" A_CONTRACT "(," A_CONTRACT ")*)$",
	    "must be all, or some of " A_CONTRACT " with commas between them" },
};

static bool
config_matches(const char *pattern, const char *text)
{
	regex_t regex;
	bool found;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		log_fatal(1, "out of memory");
	found = regexec(&regex, text, 0, NULL, 0) == 0;
	regfree(&regex);
	return found;
}

/* The reason why a text is wrong, or NULL. */
static const char *
config_check_text(enum config_type type, const char *text)
{
	if (strlen(text) > TEXT_MAX)
		return "is too long";
	if (type == CONFIG_IMAGES)
		return images_check(text);
	if ((PATHS & BIT(type)) != 0 && !utf8_valid(text, strlen(text)))
		return bad_path;
	for (size_t i = 0; i < sizeof(config_rules) / sizeof(*config_rules);
	     i++) {
		if ((config_rules[i].types & BIT(type)) == 0)
			continue;
		if (config_matches(config_rules[i].pattern, text) !=
		    config_rules[i].must)
			return config_rules[i].why;
	}
	return NULL;
}

/* Paths become absolute, addresses lose the slash at their end; "" stays. */
static int
config_store_text(const struct config_key *key, const char *value, char **text,
    struct err *err)
{
	bool is_path = key->type == CONFIG_PATH ||
	    (key->type == CONFIG_PROGRAM && strchr(value, '/') != NULL);
	char *stored = *value != '\0' && is_path ? config_absolute(value) :
						   xstrdup(value);
	const char *why = *stored != '\0' ?
	    config_check_text(key->type, stored) :
	    NULL;
	size_t len = strlen(stored);

	while (key->type == CONFIG_URL && len > 0 && stored[len - 1] == '/')
		stored[--len] = '\0';
	free(*text);
	*text = stored;
	return why == NULL ? 0 :
			     err_set(err, ERR_CONFIG, "%s: %s", key->name, why);
}

/* Check a value and store it in *field.  ERR_CONFIG "KEY: reason", which never
 * repeats the value. */
static int
config_store_value(const struct config_key *key, const char *value, void *field,
    struct err *err)
{
	if (key->type >= CONFIG_SECRET)
		return config_store_text(key, value, field, err);
	if (key->type == CONFIG_BOOL) {
		*(bool *)field = *value == '1';
		if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
			return err_set(err, ERR_CONFIG, "%s: must be 0 or 1",
			    key->name);
	} else if (key->type == CONFIG_ID) {
		if (*value != '\0' && !text_parse_snowflake(value, field))
			return err_set(err, ERR_CONFIG,
			    "%s: must be a Discord id", key->name);
	} else if (key->type != CONFIG_SOURCE) {
		return config_store_number(key, value, field, err);
	}
	return 0;
}

/* ---- where values come from ---- */

/* The reason against IL_DATABASE_FILE, and against a server's address. */
static const char no_server[] =
    "the database is a file of this host and no server's any more: the "
    "changelog says what to do";

/* Keys of earlier versions that have no successor. */
static const struct {
	const char *name;
	const char *why;
} config_gone[] = {
	{ "ECHO_LAST_EXPR",
	    "is gone: a last bare expression always shows its value" },
	{ "IL_DATABASE_FILE", no_server },
	{ "IL_LIBRECHAT_AUDIENCE", "is gone: it is always codeapi" },
	{ "IL_LIBRECHAT_ISSUER", "is gone: it is always librechat" },
};

/* Values of all keys before anything is checked. */
struct config_values {
	const char *said[KEYS]; /* NULL: nothing */
	bool in_file[KEYS];
};

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

/* "": nothing was said, or that it stands for the default. */
static const char *
config_said(const struct config_values *values, size_t key)
{
	return values->said[key] != NULL ? values->said[key] : "";
}

/* Refuse a key that is gone, or never was.  IL_TUNE_<rest> was IL_<rest>,
 * SANDBOX_<rest> or <rest>. */
static int
config_unknown(const char *key, size_t len, struct err *err)
{
	auto_free char *name = xprintf("%.*s", (int)(len < 100 ? len : 100),
	    key);
	size_t prefix = strncmp(name, "IL_", 3) == 0 ? 3 :
	    strncmp(name, "SANDBOX_", 8) == 0	     ? 8 :
						       0;
	auto_free char *now = xprintf("IL_TUNE_%s", name + prefix);

	if (config_find(now, strlen(now)) < KEYS)
		return err_set(err, ERR_CONFIG, "%s: its name is %s now", name,
		    now);
	for (size_t i = 0; i < sizeof(config_gone) / sizeof(*config_gone); i++)
		if (strcmp(name, config_gone[i].name) == 0)
			return err_set(err, ERR_CONFIG, "%s: %s", name,
			    config_gone[i].why);
	return err_set(err, ERR_CONFIG, "%s: unknown key", name);
}

/* Does KEY=VALUE begin as the keys of Inline do, or did? */
static bool
config_is_ours(const char *pair)
{
	return strncmp(pair, "IL_", 3) == 0 ||
	    strncmp(pair, "SANDBOX_", 8) == 0 ||
	    strncmp(pair, "DISCORD_", 8) == 0 ||
	    strncmp(pair, "ECHO_LAST_EXPR=", 15) == 0;
}

/* Does it name a service that runs beside us?  Kubernetes and `docker run
 * --link` put such into each environment: SANDBOX_SERVICE_HOST=10.0.0.1, say,
 * and IL_HTTP_PORT=tcp://10.0.0.1:80. */
static bool
config_is_link(const char *pair)
{
	static const char pattern[] =
	    "^[A-Z0-9_]+_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=|"
	    "PORT(_[0-9]+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://|"
	    "PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=)";

	return config_is_ours(pair) && config_matches(pattern, pair);
}

static int
config_from_file(void *arg, const char *key, const char *value, struct err *err)
{
	struct config_values *values = arg;
	size_t i = config_find(key, strlen(key));

	if (i == KEYS)
		return config_unknown(key, strlen(key), err);
	if (strcmp(key, "IL_ENV_FILE") == 0)
		return err_set(err, ERR_CONFIG,
		    "%s: only the environment may set it", key);
	if (values->in_file[i])
		return err_set(err, ERR_CONFIG, "%s: set twice", key);
	values->in_file[i] = true;
	if (values->said[i] == NULL) /* the environment wins */
		values->said[i] = value;
	return 0;
}

/* A key that is ours by its prefix and is not known was misspelt, unless it is
 * the name of a service that runs beside us: that is forgotten. */
static int
config_read_environment(struct config_values *values, struct err *err)
{
	for (char **at = environ; at != NULL && *at != NULL;) {
		size_t len = strcspn(*at, "=");
		size_t i = config_find(*at, len);

		if (config_is_link(*at)) {
			auto_free char *name = xprintf("%.*s", (int)len, *at);

			log_info("%s: a link to a service, passed over", name);
			(void)unsetenv(name); /* the next one is here now */
			continue;
		}
		if (i < KEYS && (*at)[len] == '=')
			values->said[i] = *at + len + 1;
		else if (i == KEYS && config_is_ours(*at))
			return config_unknown(*at, len, err);
		at++;
	}
	return 0;
}

/* KEY_FILE: a line of its own, checked as a secret is. */
static int
config_read_secret(const char *name, const char *path, char **text,
    struct err *err)
{
	const struct config_key key = { .name = name, .type = CONFIG_SECRET };
	auto_buf struct buf line = BUF_INIT(TOKEN_FILE_MAX);

	if (*path == '\0')
		return 0;
	if (**text != '\0')
		return err_set(err, ERR_CONFIG, "%s_FILE: %s is set, too", name,
		    name);
	if (file_read(path, &line, err) != 0)
		return err_wrap(err, "%s_FILE", name);
	while (line.len > 0 &&
	    (line.data[line.len - 1] == '\n' ||
		line.data[line.len - 1] == '\r'))
		buf_cut(&line, line.len - 1);
	if (line.len == 0 || strlen(buf_str(&line)) != line.len)
		return err_set(err, ERR_CONFIG,
		    "%s_FILE: holds nothing, or a NUL", name);
	if (config_store_text(&key, buf_str(&line), text, err) != 0)
		return err_wrap(err, "%s_FILE", name);
	return 0;
}

/* A default for a text that nobody has set: found owns the heap. */
static void
config_default(char **text, char *found)
{
	if (**text == '\0') {
		free(*text);
		*text = found;
	} else {
		free(found);
	}
}

/* Check and store every value, then the defaults that depend on others. */
static int
config_store(struct config *config, const struct config_values *values,
    struct err *err)
{
	char name[CONFIG_NODE_SIZE];
	size_t database = config_find("IL_DATABASE", 11);
	size_t bundle = config_find("IL_PIP_CA_BUNDLE", 16);

	if (strstr(config_said(values, database), "://") != NULL)
		return err_set(err, ERR_CONFIG, "IL_DATABASE: %s", no_server);
	for (size_t i = 0; i < KEYS; i++) {
		const struct config_key *key = &config_keys[i];
		const char *text = config_said(values, i);

		if (*text == '\0' && *key->fallback != '<')
			text = key->fallback;
		if (config_store_value(key, text, (char *)config + key->offset,
			err) != 0)
			return -1;
	}
	config_default(&config->database,
	    config_state_path(config, "inline.db"));
	config_default(&config->api_files, config_state_path(config, "files"));
	if (*config->node == '\0' &&
	    config_store_value(&config_keys[config_find("IL_NODE", 7)],
		config_node(name), &config->node, err) != 0)
		return -1;
	config_default(&config->lib_dir, config_lib_dir());
	config_default(&config->sandbox_images,
	    images_from(config->sandbox_image));
	config_default(&config->chat_images,
	    images_led_by(config->sandbox_image, config->sandbox_images));
	/* an empty one says that there is none */
	if (values->said[bundle] == NULL)
		config_default(&config->pip_ca_bundle, config_find_ca_bundle());
	return config_read_secret("DISCORD_TOKEN",
	    config_said(values, config_find("DISCORD_TOKEN_FILE", 18)),
	    &config->discord_token, err);
}

int
config_load(struct config *config, const char *env_file, struct err *err)
{
	struct config_values values = { 0 };
	auto_buf struct buf file = BUF_INIT(ENV_FILE_MAX);
	const char *named;

	*config = (struct config){ 0 };
	if (config_read_environment(&values, err) != 0)
		return -1;
	named = config_said(&values, config_find("IL_ENV_FILE", 11));
	if (env_file == NULL && *named != '\0')
		env_file = named;
	if (env_file != NULL &&
	    (file_read(env_file, &file, err) != 0 ||
		envfile_parse(&file, env_file, config_from_file, &values,
		    err) != 0))
		return -1;
	if (config_store(config, &values, err) == 0)
		return 0;
	config_release(config);
	return -1;
}

void
config_begin(struct config *config, const char *name, const char *options,
    const char *usage, int argc, char **argv, const char **given)
{
	struct err err;
	int c;

	while ((c = getopt(argc, argv, options)) != -1 && c != '?')
		given[c] = optarg != NULL ? optarg : "";
	if (c == '?' || optind != argc) {
		(void)fputs(usage, stderr);
		exit(64);
	}
	if (given['V'] != NULL) {
		(void)printf("%s %s\n", name, INLINE_VERSION);
		exit(0);
	}
	log_init(name, given['v'] != NULL ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	if (config_load(config, given['e'], &err) < 0)
		log_fatal(78, "%s", err.text);
}

void
config_release(struct config *config)
{
	for (size_t i = 0; config != NULL && i < KEYS; i++) {
		void *field = (char *)config + config_keys[i].offset;

		if (config_keys[i].type >= CONFIG_SECRET) {
			free(*(char **)field);
			*(char **)field = NULL;
		}
	}
}

bool
config_find_row(size_t number, struct config_row *row)
{
	if (number >= KEYS)
		return false;
	*row = (struct config_row){ config_keys[number].name,
		config_keys[number].fallback, config_keys[number].help };
	return true;
}

int
config_lease_wait_ms(const struct config *config)
{
	return (int)(config->stop_ms + 2 * config->start_ms + 5000);
}

/* ---- the interpreters on offer ---- */

#define IMAGE_CHARS \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-/:@"
#define ENTRIES_MAX 32

bool
images_next(const char *text, size_t *pos, struct image_entry *entry)
{
	int len = 0;

	if (sscanf(text + *pos, "%32[^=]=%1024[^,]%n", entry->name,
		entry->image, &len) != 2)
		return false;
	*pos += (size_t)len;
	*pos += text[*pos] == ',';
	return true;
}

const char *
images_check(const char *text)
{
	struct image_entry entry;
	struct image_entry other;
	size_t pos = 0;
	size_t begin = 0;

	for (size_t i = 0; images_next(text, &pos, &entry); i++) {
		if (i == ENTRIES_MAX)
			return "too many entries";
		if (!text_is_name(entry.name, IMAGES_NAME_MAX) ||
		    entry.image[strspn(entry.image, IMAGE_CHARS)] != '\0')
			return "a character that is not allowed";
		if (entry.image[0] == '-')
			return "an image must not start with '-'";
		if (text[pos] != '\0' && text[pos - 1] != ',')
			return "a name or an image is too long";
		for (size_t at = 0;
		     at < begin && images_next(text, &at, &other);)
			if (strcmp(entry.name, other.name) == 0)
				return "a name twice";
		begin = pos;
	}
	return begin == 0 || text[begin] != '\0' || text[begin - 1] == ',' ?
	    "must be NAME=IMAGE,NAME=IMAGE,…" :
	    NULL;
}

bool
images_find(const char *text, const char *name, struct image_entry *entry)
{
	size_t pos = 0;

	while (images_next(text, &pos, entry))
		if (*name == '\0' || strcmp(entry->name, name) == 0)
			return true;
	return false;
}

bool
images_have(const char *text, const char *image)
{
	struct image_entry entry;

	for (size_t pos = 0; images_next(text, &pos, &entry);)
		if (strcmp(entry.image, image) == 0)
			return true;
	return false;
}

char *
images_from(const char *image)
{
	const char *slash = strrchr(image, '/');
	const char *tag = strpbrk(slash != NULL ? slash : image, ":@");
	size_t len = tag != NULL && *tag == ':' ?
	    strspn(tag + 1, "0123456789.") :
	    0;

	while (len > 0 && tag[len] == '.')
		len--;
	if (len == 0 || len > IMAGES_NAME_MAX)
		return xprintf("default=%s", image);
	return xprintf("%.*s=%s", (int)len, tag + 1, image);
}

void
images_minor(const char *name, char minor[IMAGES_NAME_MAX + 1])
{
	int len = 0;

	(void)sscanf(name, "%*[0-9].%*[0-9]%n", &len);
	(void)snprintf(minor, IMAGES_NAME_MAX + 1, "%.*s",
	    len > 0 ? len : IMAGES_NAME_MAX, name);
}

char *
images_led_by(const char *image, const char *list)
{
	auto_free char *lone = images_from(image);
	auto_buf struct buf all = BUF_INIT(8192);
	struct image_entry first = { .name = "" };
	bool found = false;
	struct image_entry entry;
	size_t pos = 0;

	(void)images_next(lone, &pos, &first);
	for (pos = 0; !found && images_next(list, &pos, &entry);)
		found = strcmp(entry.image, image) == 0;
	if (found)
		first = entry;
	buf_addf(&all, "%s=%s", first.name, first.image);
	for (pos = 0; images_next(list, &pos, &entry);)
		if (strcmp(entry.name, first.name) != 0)
			buf_addf(&all, ",%s=%s", entry.name, entry.image);
	return buf_steal(&all, NULL);
}

/* ---- modules to import ahead ---- */

static const char auto_list[PRELOAD_NAMES_MAX] =
    "numpy,pandas,matplotlib.pyplot,PIL.Image,scipy.stats,sympy,sklearn,"
    "seaborn,networkx,requests";

bool
preload_is_auto(const char *setting)
{
	return strcmp(setting, "auto") == 0;
}

const char *
preload_list(const char *setting)
{
	if (strcmp(setting, "none") == 0)
		return "";
	return preload_is_auto(setting) ? auto_list : setting;
}

const char *
preload_next(const char **list, size_t *len)
{
	const char *name = *list + strspn(*list, ",");

	*len = strcspn(name, ",");
	*list = name + *len;
	return *len > 0 ? name : NULL;
}

uint32_t
preload_bit(size_t index)
{
	return UINT32_C(1) << (index < PRELOAD_BITS ? index : PRELOAD_BITS - 1);
}

uint32_t
preload_without(uint32_t mask, uint32_t imported)
{
	uint32_t left = mask;

	for (; mask != 0; mask &= mask - 1, imported >>= 1)
		if ((imported & 1) != 0)
			left &= ~(mask & -mask);
	return left;
}

void
preload_auto_names(uint32_t mask, char names[PRELOAD_NAMES_MAX])
{
	const char *list = auto_list;
	const char *name;
	size_t at = 0;
	size_t len;

	*names = '\0';
	for (size_t i = 0; (name = preload_next(&list, &len)) != NULL; i++)
		if ((mask & preload_bit(i)) != 0)
			at += (size_t)snprintf(names + at,
			    PRELOAD_NAMES_MAX - at, "%s%.*s", at > 0 ? "," : "",
			    (int)len, name);
}
