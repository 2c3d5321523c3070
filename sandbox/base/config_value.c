/* SPDX-License-Identifier: MIT */
#include "config_value.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config_images.h"
#include "err.h"
#include "text.h"
#include "utf8.h"

#define TEXT_MAX 1024 /* bytes of a text */
#define KEY_BYTES 32  /* of an Ed25519 public key */
#define THOUSAND 1000

/* As people write it: 0.5, not 0.500. */
static void
config_add_thousandths(struct buf *out, int64_t v)
{
	buf_addf(out, "%" PRId64, v / THOUSAND);
	if (v % THOUSAND == 0)
		return;
	buf_addf(out, ".%03" PRId64, v % THOUSAND);
	while (out->data[out->len - 1] == '0')
		buf_cut(out, out->len - 1);
}

/* A bound as people write it. */
static void
config_add_bound(struct buf *out, enum config_type type, int64_t bound)
{
	if (type == CONFIG_SIZE)
		text_add_size(out, bound);
	else if (type == CONFIG_SECONDS || type == CONFIG_CPUS)
		config_add_thousandths(out, bound);
	else
		buf_addf(out, "%" PRId64, bound);
}

/* Always -1. */
static int
config_number_refused(const struct config_key *key, const char *what,
    struct err *err)
{
	auto_buf struct buf range = BUF_INIT(128);

	config_add_bound(&range, key->type, key->min);
	buf_adds(&range, " to ");
	config_add_bound(&range, key->type, key->max);
	return err_set(err, ERR_CONFIG, "%s: must be %s, from %s", key->name,
	    what, buf_str(&range));
}

/* Within the bounds of its key. */
static int
config_store_number(const struct config_key *key, const char *value,
    int64_t *number, struct err *err)
{
	const char *what;
	int64_t v = 0;
	bool good;

	if (key->type == CONFIG_SIZE) {
		what = "a size such as 256m";
		good = text_parse_size(value, &v);
	} else if (key->type == CONFIG_INT) {
		what = "a whole number";
		good = text_parse_int(value, INT64_MIN, INT64_MAX, &v);
	} else {
		what = "a number such as 30 or 0.5";
		good = text_parse_thousandths(value, &v);
	}
	if (!good || v < key->min || v > key->max)
		return config_number_refused(key, what, err);
	*number = v;
	return 0;
}

/* An absolute path without "./" before and '/' after; heap. */
static char *
config_absolute(const char *path)
{
	auto_buf struct buf out = BUF_INIT(16384);
	auto_free char *here = NULL;

	if (*path != '/') {
		here = getcwd(NULL, 0);
		buf_adds(&out, here != NULL ? here : "");
		if (out.len == 0 || out.data[out.len - 1] != '/')
			buf_addc(&out, '/');
		while (path[0] == '.' && path[1] == '/')
			path += 1 + strspn(path + 1, "/");
		if (strcmp(path, ".") == 0)
			path++;
	}
	buf_adds(&out, path);
	while (out.len > 1 && out.data[out.len - 1] == '/')
		buf_cut(&out, out.len - 1);
	return buf_steal(&out, NULL);
}

static bool
config_has_control(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

/* Printable ASCII, no blank. */
static bool
config_is_word(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s <= 0x20 || *s >= 0x7f)
			return false;
	return true;
}

static const char *
config_check_path(const char *s)
{
	if (config_has_control(s) || !utf8_valid(s, strlen(s)))
		return "control characters or bad UTF-8 in the path";
	/* These mean something in docker's --mount or in nginx.conf. */
	if (strpbrk(s, ",\"'\\$;{}") != NULL)
		return "none of , \" ' \\ $ ; { } may be in the path";
	return NULL;
}

static const char *
config_check_url(const char *s)
{
	size_t scheme = strncmp(s, "https://", 8) == 0 ? 8 :
	    strncmp(s, "http://", 7) == 0	       ? 7 :
							 0;

	if (scheme == 0 || s[scheme] == '\0' || s[scheme] == '/')
		return "must start with https:// or http:// and name a host";
	if (!config_is_word(s))
		return "blanks, control characters or non-ASCII in it";
	/* Otherwise part of a password passes for the host, and is shown. */
	if (strchr(s + scheme + strcspn(s + scheme, "/"), '@') != NULL)
		return "a '/' in its user name or password is written %2F, "
		       "an '@' %40";
	return NULL;
}

/* In the host's own network, pip would reach what listens on loopback: nginx,
 * and whatever else trusts this machine. */
static const char *
config_check_network(const char *s)
{
	return strcmp(s, "host") != 0 ? NULL :
					"must not be the host's own; "
					"`docker network create` makes one";
}

static const char *
config_check_isolation(const char *s)
{
	bool good = strcmp(s, "auto") == 0 || strcmp(s, "run") == 0 ||
	    strcmp(s, "cell") == 0;

	return good ? NULL : "must be auto, run or cell";
}

static const char *
config_check_secret(const char *s)
{
	return config_is_word(s) ?
	    NULL :
	    "blanks, control characters or non-ASCII in it";
}

static const char *
config_check_hex_key(const char *s)
{
	unsigned char bytes[KEY_BYTES];

	return text_parse_hex(s, strlen(s), bytes, sizeof(bytes)) ?
	    NULL :
	    "must be 64 hex digits";
}

/* The types that are texts: what their characters are, beside letters and
 * digits (NULL: any), and what else is asked of them. */
static const struct {
	const char *chars;
	const char *(*check)(const char *s); /* why it is wrong, or NULL */
} config_texts[] = {
	[CONFIG_SECRET] = { NULL, config_check_secret },
	[CONFIG_HEX_KEY] = { NULL, config_check_hex_key },
	[CONFIG_URL] = { NULL, config_check_url },
	[CONFIG_PATH] = { NULL, config_check_path },
	[CONFIG_PROGRAM] = { NULL, config_check_path },
	[CONFIG_NAME] = { "._-", NULL },
	[CONFIG_NETWORK] = { "._-", config_check_network },
	[CONFIG_IMAGE] = { "._/:@-", NULL },
	[CONFIG_IMAGES] = { NULL, images_check },
	[CONFIG_ISOLATION] = { NULL, config_check_isolation },
	[CONFIG_MODULES] = { "_.,", NULL },
	[CONFIG_SOURCE] = { NULL, NULL },
};

bool
config_value_is_text(enum config_type type)
{
	return config_texts[type].chars != NULL ||
	    config_texts[type].check != NULL;
}

/* The reason why a text is wrong, or NULL. */
static const char *
config_check_text(enum config_type type, const char *s)
{
	const char *chars = config_texts[type].chars;
	const char *why = config_texts[type].check == NULL ?
	    NULL :
	    config_texts[type].check(s);

	if (why != NULL)
		return why;
	if (*s == '-' && (chars != NULL || type == CONFIG_PROGRAM))
		return "must not start with '-'";
	for (; chars != NULL && *s != '\0'; s++)
		if (isalnum((unsigned char)*s) == 0 &&
		    strchr(chars, *s) == NULL)
			return "a character that is not allowed";
	return NULL;
}

/* Paths become absolute, addresses lose the slash at their end. */
static int
config_store_text(const struct config_key *key, const char *value, char **text,
    struct err *err)
{
	bool is_path = key->type == CONFIG_PATH ||
	    (key->type == CONFIG_PROGRAM && strchr(value, '/') != NULL);
	auto_free char *stored = *value != '\0' && is_path ?
	    config_absolute(value) :
	    xstrdup(value);
	const char *why = NULL;
	size_t len = strlen(stored);

	if (len > TEXT_MAX)
		why = "is too long";
	else if (len > 0)
		why = config_check_text(key->type, stored);
	if (why != NULL)
		return err_set(err, ERR_CONFIG, "%s: %s", key->name, why);
	while (key->type == CONFIG_URL && len > 0 && stored[len - 1] == '/')
		stored[--len] = '\0';
	free(*text);
	*text = stored;
	stored = NULL;
	return 0;
}

int
config_value_store(const struct config_key *key, const char *value, void *field,
    struct err *err)
{
	int64_t thousandths = 0;
	const char *why = NULL;

	if (config_value_is_text(key->type))
		return config_store_text(key, value, field, err);
	if (key->type == CONFIG_SOURCE)
		return 0;
	if (key->type == CONFIG_CPUS) {
		if (config_store_number(key, value, &thousandths, err) != 0)
			return -1;
		*(double *)field = (double)thousandths / THOUSAND;
	} else if (key->type == CONFIG_BOOL) {
		*(bool *)field = *value == '1';
		if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
			why = "must be 0 or 1";
	} else if (key->type == CONFIG_ID) {
		*(int64_t *)field = 0;
		if (*value != '\0' &&
		    !text_parse_snowflake(value, strlen(value), field))
			why = "must be a Discord id";
	} else {
		return config_store_number(key, value, field, err);
	}
	return why == NULL ? 0 :
			     err_set(err, ERR_CONFIG, "%s: %s", key->name, why);
}
