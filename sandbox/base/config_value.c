#include "config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cleanup.h"
#include "config_images.h"
#include "err.h"
#include "text.h"
#include "utf8.h"

#define ALNUM "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define TEXT_MAX 1024 /* bytes of a text */
#define KEY_BYTES 32  /* of an Ed25519 public key */
#define THOUSAND 1000

bool
config_value_is_text(enum config_type type)
{
	switch (type) {
	case CONFIG_INT:
	case CONFIG_SIZE:
	case CONFIG_SECONDS:
	case CONFIG_CPUS:
	case CONFIG_BOOL:
	case CONFIG_ID:
	case CONFIG_SOURCE:
		return false;
	case CONFIG_SECRET:
	case CONFIG_HEX_KEY:
	case CONFIG_URL:
	case CONFIG_PATH:
	case CONFIG_PROGRAM:
	case CONFIG_NAME:
	case CONFIG_NETWORK:
	case CONFIG_IMAGE:
	case CONFIG_IMAGES:
	case CONFIG_ISOLATION:
	case CONFIG_MODULES:
		return true;
	}
	return false;
}

/* A decimal with at most three places, as thousandths. */
static bool
config_parse_thousandths(const char *s, int64_t *value)
{
	const char *dot = strchr(s, '.');
	size_t whole_len = dot != NULL ? (size_t)(dot - s) : strlen(s);
	auto_free char *whole = xstrndup(s, whole_len);
	int64_t v;
	int64_t place = 100;

	if (!text_parse_int(whole, 0, INT64_MAX / THOUSAND - 1, &v))
		return false;
	v *= THOUSAND;
	if (dot != NULL && dot[1] == '\0')
		return false;
	for (const char *at = dot; at != NULL && at[1] != '\0'; at++) {
		if (at[1] < '0' || at[1] > '9' || place == 0)
			return false;
		v += place * (at[1] - '0');
		place /= 10;
	}
	*value = v;
	return true;
}

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
		good = config_parse_thousandths(value, &v);
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

static const char *
config_check_chars(const char *s, const char *allowed)
{
	if (*s == '-')
		return "must not start with '-'";
	if (s[strspn(s, allowed)] != '\0')
		return "a character that is not allowed";
	return NULL;
}

/* In the host's own network, pip would reach what listens on loopback: nginx,
 * and whatever else trusts this machine. */
static const char *
config_check_network(const char *s)
{
	if (strcmp(s, "host") == 0)
		return "must not be the host's own; `docker network create` "
		       "makes one";
	return config_check_chars(s, ALNUM "._-");
}

static const char *
config_check_isolation(const char *s)
{
	return strcmp(s, "auto") == 0 || strcmp(s, "run") == 0 ||
		strcmp(s, "cell") == 0 ?
	    NULL :
	    "must be auto, run or cell";
}

/* The reason why a text is wrong, or NULL. */
static const char *
config_check_text(enum config_type type, const char *s)
{
	unsigned char bytes[KEY_BYTES];

	switch (type) {
	case CONFIG_SECRET:
		return config_is_word(s) ? NULL :
					   "blanks, control characters or "
					   "non-ASCII in it";
	case CONFIG_HEX_KEY:
		return text_parse_hex(s, strlen(s), bytes, sizeof(bytes)) ?
		    NULL :
		    "must be 64 hex digits";
	case CONFIG_URL:
		return config_check_url(s);
	case CONFIG_PATH:
		return config_check_path(s);
	case CONFIG_PROGRAM:
		return *s == '-' ? "must not start with '-'" :
				   config_check_path(s);
	case CONFIG_NAME:
		return config_check_chars(s, ALNUM "._-");
	case CONFIG_NETWORK:
		return config_check_network(s);
	case CONFIG_IMAGE:
		return config_check_chars(s, ALNUM "._/:@-");
	case CONFIG_IMAGES:
		return images_check(s);
	case CONFIG_ISOLATION:
		return config_check_isolation(s);
	case CONFIG_MODULES:
		return config_check_chars(s, ALNUM "_.,");
	case CONFIG_INT:
	case CONFIG_SIZE:
	case CONFIG_SECONDS:
	case CONFIG_CPUS:
	case CONFIG_BOOL:
	case CONFIG_ID:
	case CONFIG_SOURCE:
		break;
	}
	return NULL;
}

static int
config_store_text(const struct config_key *key, const char *value, char **text,
    struct err *err)
{
	bool is_path = key->type == CONFIG_PATH ||
	    (key->type == CONFIG_PROGRAM && strchr(value, '/') != NULL);
	auto_free char *stored = NULL;
	const char *why = NULL;
	size_t len;

	if (*value != '\0' && is_path)
		stored = config_absolute(value);
	else
		stored = xstrdup(value);
	len = strlen(stored);
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

static int
config_store_bool(const struct config_key *key, const char *value, bool *field,
    struct err *err)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return err_set(err, ERR_CONFIG, "%s: must be 0 or 1",
		    key->name);
	*field = *value == '1';
	return 0;
}

static int
config_store_id(const struct config_key *key, const char *value, int64_t *field,
    struct err *err)
{
	*field = 0;
	if (*value != '\0' &&
	    !text_parse_snowflake(value, strlen(value), field))
		return err_set(err, ERR_CONFIG, "%s: must be a Discord id",
		    key->name);
	return 0;
}

int
config_value_store(const struct config_key *key, const char *value, void *field,
    struct err *err)
{
	int64_t thousandths = 0;

	switch (key->type) {
	case CONFIG_INT:
	case CONFIG_SIZE:
	case CONFIG_SECONDS:
		return config_store_number(key, value, field, err);
	case CONFIG_CPUS:
		if (config_store_number(key, value, &thousandths, err) != 0)
			return -1;
		*(double *)field = (double)thousandths / THOUSAND;
		return 0;
	case CONFIG_BOOL:
		return config_store_bool(key, value, field, err);
	case CONFIG_ID:
		return config_store_id(key, value, field, err);
	case CONFIG_SECRET:
	case CONFIG_HEX_KEY:
	case CONFIG_URL:
	case CONFIG_PATH:
	case CONFIG_PROGRAM:
	case CONFIG_NAME:
	case CONFIG_NETWORK:
	case CONFIG_IMAGE:
	case CONFIG_IMAGES:
	case CONFIG_ISOLATION:
	case CONFIG_MODULES:
		return config_store_text(key, value, field, err);
	case CONFIG_SOURCE:
		break;
	}
	return 0;
}
