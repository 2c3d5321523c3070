/* SPDX-License-Identifier: MIT */
#include "disposition.h"

#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"

/* ---- reading ---- */

#define BLANKS " \t"

/* A quoted string, after its first quote.  A backslash escapes quote and
 * backslash; before anything else it stands for itself, as in the paths that
 * some send.  What follows the last quote; NULL: there is none. */
static const char *
take_quoted(const char *s, struct buf *out)
{
	for (; *s != '\0'; s++) {
		if (*s == '"')
			return s + 1;
		if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
			s++;
		buf_addc(out, *s);
	}
	return NULL;
}

/* Without the blanks at its end. */
static size_t
trimmed(const char *s, size_t len)
{
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	return len;
}

/* From one "; name=value" to the next: the value of each is taken, and dropped
 * when it was not the one wanted. */
bool
disposition_get(struct buf *out, const char *field, size_t len,
    const char *name)
{
	auto_free char *copy = xstrndup(field, len);
	const char *s = copy + strcspn(copy, ";");
	bool found = false;

	while (!found && s != NULL && *s == ';') {
		const char *token = s + 1 + strspn(s + 1, BLANKS);

		buf_reset(out);
		s = token + strcspn(token, "=;");
		if (*s != '=')
			continue;
		len = (size_t)(s - token);
		found = text_is(token, trimmed(token, len), name);
		s += 1 + strspn(s + 1, BLANKS);
		if (*s == '"') {
			s = take_quoted(s + 1, out);
			found = found && s != NULL;
		} else {
			buf_add(out, s, trimmed(s, strcspn(s, ";")));
		}
		if (s != NULL)
			s += strcspn(s, ";");
	}
	if (!found)
		buf_reset(out);
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
		buf_add(out, bytes, utf8_encode((unsigned char)s[i], bytes));
}

/* UTF-8''a%20b */
static bool
add_extended(struct buf *out, const char *s)
{
	auto_buf struct buf bytes = BUF_INIT(strlen(s));
	size_t charset = strcspn(s, "'");
	bool latin = text_is(s, charset, "iso-8859-1");
	const char *p = strchr(s, '\'');

	p = p == NULL ? NULL : strchr(p + 1, '\'');
	if (p == NULL || (!latin && !text_is(s, charset, "utf-8")))
		return false;
	while (*++p != '\0') {
		unsigned char byte = (unsigned char)*p;

		if (*p == '%') {
			if (strnlen(p, 3) < 3 ||
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
disposition_get_filename(struct buf *out, const char *field, size_t len,
    bool whole)
{
	auto_buf struct buf value = BUF_INIT(len);
	const char *s;
	const char *last;

	if (!disposition_get(&value, field, len, "filename"))
		return disposition_get(&value, field, len, "filename*") &&
		    add_extended(out, buf_str(&value));
	s = buf_str(&value);
	last = strrchr(s, '\\');
	if (!whole && last != NULL &&
	    (strncmp(s, "\\\\", 2) == 0 ||
		(s[0] != '\0' && strncmp(s + 1, ":\\", 2) == 0)))
		s = last + 1;
	add_decoded(out, s, strlen(s), false);
	return true;
}

/* ---- writing ---- */

void
disposition_add(struct buf *out, const char *name)
{
	size_t len = strnlen(name, DISPOSITION_NAME_MAX);
	bool same = true;

	/* Whole characters. */
	while (len > 0 && utf8_is_tail(name[len]))
		len--;
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
