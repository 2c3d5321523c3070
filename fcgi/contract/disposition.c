/* SPDX-License-Identifier: MIT */
#include "disposition.h"

#include <string.h>

#include "../pytext/pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"

/* ---- reading ---- */

struct cursor {
	const char *s;
	size_t len;
	size_t at;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void
skip_blanks(struct cursor *c)
{
	while (c->at < c->len && is_blank(c->s[c->at]))
		c->at++;
}

/* Up to one of the stops, blanks at the end cut. */
static size_t
take_token(struct cursor *c, const char *stops, const char **token)
{
	size_t n;

	*token = c->s + c->at;
	while (c->at < c->len && strchr(stops, c->s[c->at]) == NULL)
		c->at++;
	n = (size_t)(c->s + c->at - *token);
	while (n > 0 && is_blank((*token)[n - 1]))
		n--;
	return n;
}

/* A quoted string, the cursor on its first quote.  A backslash escapes quote
 * and backslash; before anything else it stands for itself, as in the paths
 * that some send.  out NULL: skip it. */
static bool
take_quoted(struct cursor *c, struct buf *out)
{
	for (c->at++; c->at < c->len; c->at++) {
		char ch = c->s[c->at];

		if (ch == '"') {
			c->at++;
			return true;
		}
		if (ch == '\\' && c->at + 1 < c->len &&
		    (c->s[c->at + 1] == '"' || c->s[c->at + 1] == '\\'))
			ch = c->s[++c->at];
		if (out != NULL)
			buf_addc(out, ch);
	}
	return false;
}

/* "; name=value": false at the end, or where it is malformed.  The value is
 * appended when the name is the one wanted. */
static bool
take_parameter(struct cursor *c, const char *want, struct buf *out, bool *found)
{
	const char *name;
	const char *value;
	size_t len;

	if (c->at == c->len || c->s[c->at] != ';')
		return false;
	c->at++;
	skip_blanks(c);
	len = take_token(c, "=;", &name);
	*found = c->at < c->len && c->s[c->at] == '=' &&
	    text_is(name, len, want);
	if (c->at == c->len || c->s[c->at] != '=')
		return true;
	c->at++;
	skip_blanks(c);
	if (c->at < c->len && c->s[c->at] == '"') {
		if (!take_quoted(c, *found ? out : NULL))
			return *found = false;
		(void)take_token(c, ";", &value);
		return true;
	}
	len = take_token(c, ";", &value);
	if (*found)
		buf_add(out, value, len);
	return true;
}

bool
disposition_get(struct buf *out, const char *field, size_t len,
    const char *name)
{
	struct cursor c = { .s = field, .len = len };
	const char *type;
	bool found = false;

	(void)take_token(&c, ";", &type);
	while (!found && take_parameter(&c, name, out, &found))
		;
	return found;
}

/* Bytes as text: UTF-8, or else every byte a character. */
static void
add_decoded(struct buf *out, const char *s, size_t len, bool latin)
{
	char bytes[4];

	if (!latin && utf8_valid(s, len)) {
		buf_add(out, s, len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		buf_add(out, bytes, pyutf8_encode((unsigned char)s[i], bytes));
}

/* UTF-8''a%20b */
static bool
add_extended(struct buf *out, const char *s, size_t len)
{
	auto_buf struct buf bytes = BUF_INIT(len);
	const char *end = s + len;
	const char *charset = memchr(s, '\'', len);
	const char *language = charset == NULL ?
	    NULL :
	    memchr(charset + 1, '\'', (size_t)(end - charset) - 1);
	bool latin;

	if (language == NULL)
		return false;
	latin = text_is(s, (size_t)(charset - s), "iso-8859-1");
	if (!latin && !text_is(s, (size_t)(charset - s), "utf-8"))
		return false;
	for (const char *p = language + 1; p < end; p++) {
		unsigned char byte = (unsigned char)*p;

		if (*p == '%') {
			if (end - p < 3 ||
			    !text_parse_hex(p + 1, 2, &byte, 1) || byte == 0)
				return false;
			p += 2;
		}
		buf_addc(&bytes, (char)byte);
	}
	if (!latin && !utf8_valid(buf_str(&bytes), bytes.len))
		return false;
	add_decoded(out, buf_str(&bytes), bytes.len, latin);
	return true;
}

bool
disposition_get_filename(struct buf *out, const char *field, size_t len)
{
	auto_buf struct buf value = BUF_INIT(len);
	const char *s;
	const char *last;

	if (!disposition_get(&value, field, len, "filename"))
		return disposition_get(&value, field, len, "filename*") &&
		    add_extended(out, buf_str(&value), value.len);
	s = buf_str(&value);
	last = strrchr(s, '\\');
	if (last != NULL &&
	    (strncmp(s, "\\\\", 2) == 0 ||
		(s[0] != '\0' && strncmp(s + 1, ":\\", 2) == 0)))
		s = last + 1;
	add_decoded(out, s, strlen(s), false);
	return true;
}

/* ---- writing ---- */

/* How much of the name is told: whole characters. */
static size_t
told_length(const char *name)
{
	size_t len = 0;

	while (name[len] != '\0') {
		size_t step = utf8_step(name + len, strnlen(name + len, 4));

		step = step > 0 ? step : 1;
		if (len + step > DISPOSITION_NAME_MAX)
			break;
		len += step;
	}
	return len;
}

void
disposition_add(struct buf *out, const char *name)
{
	size_t len = told_length(name);
	bool same = true;

	buf_adds(out, "attachment; filename=\"");
	for (size_t i = 0; i < len;) {
		size_t step = utf8_step(name + i, len - i);
		bool plain = step == 1 && name[i] >= 0x20 && name[i] < 0x7f &&
		    name[i] != '"' && name[i] != '\\';

		buf_addc(out, plain ? name[i] : '_');
		same = same && plain;
		i += step > 0 ? step : 1;
	}
	buf_addc(out, '"');
	if (same)
		return;
	buf_adds(out, "; filename*=UTF-8''");
	/* attr-char of RFC 8187 */
	text_add_escaped(out, name, len, "!#$&+-.^_`|~");
}
