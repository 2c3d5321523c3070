/* SPDX-License-Identifier: MIT */
#include "contract/multipart.h"

#include <assert.h>
#include <string.h>
#include <sys/types.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"

#define NO_NAME \
	"The Content-Disposition header field \"name\" must be provided."
/* Texts that state MULTIPART_PARTS_MAX and MULTIPART_FIELD_MAX. */
#define TOO_MANY_FILES "Too many files. Maximum number of files is 1000."
#define TOO_MANY_FIELDS "Too many fields. Maximum number of fields is 1000."
#define TOO_LONG "Part exceeded maximum size of 1024KB."
#define BLANKS_MAX 62 /* between a delimiter and the end of its line */

/* ---- the parameters of a header field ---- */

#define BLANKS " \t"

/* Read a quoted string, after its first quote.  A backslash escapes quote and
 * backslash; before anything else it stands for itself, as in paths that some
 * clients send.  Returns the rest after the last quote; NULL: there is none. */
static const char *
disposition_read_quoted(const char *s, struct buf *out)
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

/* The length without the blanks at the end. */
static size_t
trimmed(const char *s, size_t len)
{
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	return len;
}

/* Go from one "; name=value" to the next.  Each value is read, and dropped when
 * it is not the wanted one. */
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
			s = disposition_read_quoted(s + 1, out);
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

/* Append bytes as text: UTF-8, or else every byte a character. */
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

/* Append an extended value: UTF-8''a%20b */
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

/* ---- the header of a download ---- */

void
disposition_add(struct buf *out, const char *name)
{
	size_t len = strnlen(name, DISPOSITION_NAME_MAX);
	bool same = true;

	/* The name ends with a whole character. */
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

/* ---- heads ---- */

/* Walk the lines of the head: all must be fields.  The value of
 * Content-Disposition, "" when there is none. */
static bool
find_disposition(const char *s, size_t head_len, const char **value,
    size_t *value_len)
{
	static const char token[] = /* RFC 7230 */
	    "!#$%&'*+-.^_`|~0123456789"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *end = s + head_len;

	*value = "";
	*value_len = 0;
	while (s < end) {
		size_t name = strspn(s, token);
		size_t len = strcspn(s, "\r\n");

		if (name == 0 || s[name] != ':' || s[len] != '\r' ||
		    s[len + 1] != '\n')
			return false;
		if (text_is(s, name, "content-disposition")) {
			*value = s + name + 1;
			*value_len = len - name - 1;
		}
		s += len + 2;
	}
	return true;
}

/* Begin a part by its head, each line with its end.  Files and other fields are
 * counted apart. */
static void
begin_part(struct multipart *m, const char *head, size_t head_len)
{
	const char *field;
	size_t len;

	buf_reset(&m->name);
	buf_reset(&m->filename);
	if (!find_disposition(head, head_len, &field, &len)) {
		m->error = MULTIPART_INVALID;
		return;
	}
	if (!disposition_get(&m->name, field, len, "name")) {
		m->error = NO_NAME;
		return;
	}
	if (!utf8_valid(buf_str(&m->name), m->name.len))
		buf_reset(&m->name);
	m->is_file = disposition_get_filename(&m->filename, field, len,
	    m->whole_names);
	m->field_len = 0;
	m->state = MULTIPART_DATA;
	m->event = MULTIPART_PART;
	if (++m->parts[m->is_file] > MULTIPART_PARTS_MAX)
		m->error = m->is_file ? TOO_MANY_FILES : TOO_MANY_FIELDS;
}

/* Read a whole head, up to and with its empty line.  Its bytes; 0: there is
 * more to come. */
static size_t
multipart_read_head(struct multipart *m, const char *s, size_t len)
{
	const char *end = memmem(s, len, "\r\n\r\n", 4);
	size_t lines = end == NULL ? len : (size_t)(end - s) + 2;

	if (len >= 2 && memcmp(s, "\r\n", 2) == 0)
		lines = 0;
	else if (end == NULL && len <= MULTIPART_HEAD_MAX)
		return 0;
	if (lines + 2 > MULTIPART_HEAD_MAX)
		m->error = MULTIPART_INVALID;
	else
		begin_part(m, s, lines);
	return lines + 2;
}

/* ---- data and delimiters ---- */

/* Data of a part; of the preamble only whether there is any. */
static size_t
multipart_put(struct multipart *m, const char *s, size_t len)
{
	if (m->state == MULTIPART_PREAMBLE) {
		for (size_t i = 0; i < len; i++)
			if (s[i] != '\r' && s[i] != '\n')
				m->preamble = true;
		return len;
	}
	m->event = MULTIPART_SLICE;
	m->data = s;
	m->data_len = len;
	m->field_len += len;
	if (!m->is_file && m->field_len > MULTIPART_FIELD_MAX)
		m->error = TOO_LONG;
	return len;
}

/* After a delimiter come "--", or blanks and the end of the line.  The length
 * of that, 0 when there is more to come, -1 when it was no delimiter. */
static ssize_t
tail_length(const char *s, size_t len)
{
	size_t n = 0;

	if (len > 0 && s[0] == '-')
		return len == 1 ? 0 : s[1] == '-' ? 2 : -1;
	while (n < len && n <= BLANKS_MAX && (s[n] == ' ' || s[n] == '\t'))
		n++;
	if (n < len && (n > BLANKS_MAX || s[n] != '\r'))
		return -1;
	if (n + 1 >= len)
		return 0;
	return s[n + 1] == '\n' ? (ssize_t)n + 2 : -1;
}

/* Count the bytes at the end that may begin a delimiter, whose only CR is its
 * first byte. */
static size_t
held_back(const struct multipart *m, const char *s, size_t len)
{
	size_t most = len < m->delimiter_len ? len : m->delimiter_len - 1;
	const char *cr = memrchr(s + len - most, '\r', most);
	size_t n = cr == NULL ? 0 : (size_t)(s + len - cr);

	return n > 0 && memcmp(cr, m->delimiter, n) == 0 ? n : 0;
}

/* Read data up to a delimiter, or a delimiter.  Its bytes; 0: there is more to
 * come. */
static size_t
multipart_read_data(struct multipart *m, const char *s, size_t len)
{
	const char *found = memmem(s, len, m->delimiter, m->delimiter_len);
	size_t n = found != NULL ? (size_t)(found - s) :
				   len - held_back(m, s, len);
	ssize_t tail;

	if (n > 0)
		return multipart_put(m, s, n);
	if (found == NULL)
		return 0;
	n = m->delimiter_len;
	tail = tail_length(s + n, len - n);
	if (tail == 0)
		return 0;
	if (tail < 0)
		return multipart_put(m, s, n);
	m->state = s[n] == '-' ? MULTIPART_EPILOGUE : MULTIPART_HEAD;
	return n + (size_t)tail;
}

/* ---- the whole ---- */

bool
multipart_open(struct multipart *m, const char *content_type)
{
	auto_buf struct buf boundary = BUF_INIT(MULTIPART_BOUNDARY_MAX);

	*m = (struct multipart){ .state = MULTIPART_EPILOGUE,
		.held = BUF_INIT(2 * MULTIPART_PIECE),
		.name = BUF_INIT(MULTIPART_HEAD_MAX),
		.filename = BUF_INIT(2 * MULTIPART_HEAD_MAX) };
	if (content_type == NULL)
		return true;
	content_type += strspn(content_type, " \t");
	if (!text_is(content_type, strcspn(content_type, "; \t"),
		"multipart/form-data"))
		return true;
	if (!disposition_get(&boundary, content_type, strlen(content_type),
		"boundary") ||
	    boundary.len == 0 || boundary.overflow ||
	    strpbrk(buf_str(&boundary), "\r\n") != NULL)
		return false;
	m->state = MULTIPART_PREAMBLE;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, buf_str(&boundary), boundary.len);
	m->delimiter_len = 4 + boundary.len;
	/* The first delimiter may stand without an end of a line before it. */
	buf_adds(&m->held, "\r\n");
	return true;
}

void
multipart_release(struct multipart *m)
{
	buf_release(&m->held);
	buf_release(&m->name);
	buf_release(&m->filename);
}

void
multipart_add(struct multipart *m, const void *data, size_t len)
{
	assert(len <= MULTIPART_PIECE);
	buf_drop(&m->held, m->used);
	buf_add(&m->held, data, len);
	m->used = 0;
}

enum multipart_event
multipart_next(struct multipart *m)
{
	size_t step = 1;

	m->event = MULTIPART_MORE;
	while (m->error == NULL && m->event == MULTIPART_MORE && step > 0 &&
	    m->used < m->held.len) {
		const char *s = m->held.data + m->used;
		size_t len = m->held.len - m->used;

		if (m->state == MULTIPART_HEAD)
			step = multipart_read_head(m, s, len);
		else if (m->state == MULTIPART_EPILOGUE)
			step = len;
		else
			step = multipart_read_data(m, s, len);
		m->used += step;
	}
	return m->error != NULL ? MULTIPART_FAILED : m->event;
}

const char *
multipart_end(struct multipart *m)
{
	const char *rest = buf_str(&m->held);

	if (m->error != NULL)
		return m->error;
	/* An empty body is a form without fields. */
	if (m->state == MULTIPART_PREAMBLE && !m->preamble &&
	    rest[m->used + strspn(rest + m->used, "\r\n")] == '\0')
		return NULL;
	return m->state == MULTIPART_EPILOGUE ? NULL : MULTIPART_INVALID;
}
