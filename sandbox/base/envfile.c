/* SPDX-License-Identifier: MIT */
#include "base/envfile.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define BLANKS " \t\r"
#define KEY_CHARS \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* Cut blanks off both ends, in place. */
static char *
envfile_trim(char *s)
{
	size_t len;

	s += strspn(s, BLANKS);
	len = strlen(s);
	while (len > 0 && strchr(BLANKS, s[len - 1]) != NULL)
		len--;
	s[len] = '\0';
	return s;
}

/* Take the quotes off; NULL when the closing one is missing or not last. */
static char *
envfile_unquote(char *value)
{
	char quote = *value;
	char *end;

	if (quote != '"' && quote != '\'')
		return value;
	end = strchr(value + 1, quote);
	if (end == NULL || end[1] != '\0')
		return NULL;
	*end = '\0';
	return value + 1;
}

/* The reason is without the line's text: it may be a secret. */
static int
envfile_line(char *line, envfile_fn fn, void *arg, struct err *err)
{
	char *key = envfile_trim(line);
	char *value;

	if (*key == '\0' || *key == '#')
		return 0;
	value = strchr(key, '=');
	if (value == NULL)
		return err_set(err, ERR_CONFIG, "no '=' in it");
	*value = '\0';
	value = envfile_unquote(envfile_trim(value + 1));
	key = envfile_trim(key);
	/* A name as a shell takes it. */
	if (*key == '\0' || (*key >= '0' && *key <= '9') ||
	    key[strspn(key, KEY_CHARS)] != '\0')
		return err_set(err, ERR_CONFIG,
		    "what stands before '=' is not a key");
	if (value == NULL)
		return err_set(err, ERR_CONFIG, "%s: unbalanced quotes", key);
	return fn(arg, key, value, err);
}

int
envfile_parse(struct buf *text, const char *name, envfile_fn fn, void *arg,
    struct err *err)
{
	char *line = text->data;
	unsigned int number = 1;

	for (size_t left = text->len; left > 0; number++) {
		char *eol = memchr(line, '\n', left);
		size_t len = eol != NULL ? (size_t)(eol - line) : left;
		int rc;

		line[len] = '\0';
		if (strlen(line) != len)
			rc = err_set(err, ERR_CONFIG, "a NUL byte");
		else
			rc = envfile_line(line, fn, arg, err);
		if (rc != 0)
			return err_wrap(err, "%s line %u", name, number);
		len += eol != NULL;
		line += len;
		left -= len;
	}
	return 0;
}
