/* SPDX-License-Identifier: MIT */
#include "envfile.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "buf.h"
#include "cleanup.h"
#include "err.h"
#include "file.h"

#define BLANKS " \t\r"

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

/* A name as a shell takes it. */
static bool
envfile_key_good(const char *key)
{
	if (*key == '\0' || (*key >= '0' && *key <= '9'))
		return false;
	while (isalnum((unsigned char)*key) != 0 || *key == '_')
		key++;
	return *key == '\0';
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
	if (!envfile_key_good(key))
		return err_set(err, ERR_CONFIG,
		    "what stands before '=' is not a key");
	if (value == NULL)
		return err_set(err, ERR_CONFIG, "%s: unbalanced quotes", key);
	return fn(arg, key, value, err);
}

int
envfile_parse(const char *text, size_t len, const char *name, envfile_fn fn,
    void *arg, struct err *err)
{
	const char *end = text + len;
	unsigned int number = 1;

	for (; text < end; number++) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((eol != NULL ? eol : end) - text);
		auto_free char *line = xstrndup(text, n);
		int rc;

		if (strlen(line) != n)
			rc = err_set(err, ERR_CONFIG, "a NUL byte");
		else
			rc = envfile_line(line, fn, arg, err);
		if (rc != 0)
			return err_wrap(err, "%s line %u", name, number);
		text += n + (eol != NULL);
	}
	return 0;
}

char *
envfile_read(const char *path, size_t max, size_t *len, struct err *err)
{
	auto_buf struct buf b = BUF_INIT(max + 8192);

	int result = file_read(path, &b, err);

	if (b.overflow || b.len > max) {
		(void)err_set(err, ERR_CONFIG, "%s is over %zu bytes", path,
		    max);
		return NULL;
	}
	return result == 0 ? buf_steal(&b, len) : NULL;
}
