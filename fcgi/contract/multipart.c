/* SPDX-License-Identifier: MIT */
#include "multipart.h"

#include <string.h>
#include <sys/types.h>

#include "disposition.h"

#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"

#define TEXT(value) TEXT_OF(value)
#define TEXT_OF(value) #value
#define NO_NAME \
	"The Content-Disposition header field \"name\" must be provided."
#define TOO_MANY_FILES \
	"Too many files. Maximum number of files is " TEXT( \
	    MULTIPART_PARTS_MAX) "."
#define TOO_MANY_FIELDS \
	"Too many fields. Maximum number of fields is " TEXT( \
	    MULTIPART_PARTS_MAX) "."
#define TOO_LONG "Part exceeded maximum size of 1024KB."
#define PIECE 65536   /* of the body is looked at together */
#define BLANKS_MAX 62 /* between a delimiter and the end of its line */

/* Always false. */
static bool
fail(struct multipart *m, const char *error)
{
	m->state = MULTIPART_FAILED;
	m->error = error;
	return false;
}

/* ---- heads ---- */

/* A name of a header field (RFC 7230). */
static bool
is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f ||
		    strchr("()<>@,;:\\\"/[]?={}", s[i]) != NULL)
			return false;
	return len > 0;
}

/* Walk the lines of the head: all must be fields.  The value of
 * Content-Disposition, "" when there is none. */
static bool
find_disposition(const char *s, size_t head_len, const char **value,
    size_t *len)
{
	const char *end = s + head_len;

	*value = "";
	*len = 0;
	while (s < end) {
		const char *line = memmem(s, (size_t)(end - s), "\r\n", 2);
		size_t line_len = (size_t)(line - s);
		const char *colon = memchr(s, ':', line_len);

		if (colon == NULL || !is_token(s, (size_t)(colon - s)) ||
		    memchr(s, '\r', line_len) != NULL ||
		    memchr(s, '\n', line_len) != NULL ||
		    memchr(s, '\0', line_len) != NULL)
			return false;
		if (text_is(s, (size_t)(colon - s), "content-disposition")) {
			*value = colon + 1;
			*len = (size_t)(line - colon) - 1;
		}
		s = line + 2;
	}
	return true;
}

/* Files and other fields are counted apart. */
static bool
count_part(struct multipart *m)
{
	if (m->is_file)
		return ++m->files <= MULTIPART_PARTS_MAX ||
		    fail(m, TOO_MANY_FILES);
	return ++m->fields <= MULTIPART_PARTS_MAX || fail(m, TOO_MANY_FIELDS);
}

/* With its head, each line with its end. */
static bool
begin_part(struct multipart *m, const char *head, size_t head_len)
{
	auto_buf struct buf name = BUF_INIT(MULTIPART_HEAD_MAX);
	auto_buf struct buf filename = BUF_INIT(2 * MULTIPART_HEAD_MAX);
	struct multipart_part part;
	const char *field;
	size_t len;

	if (!find_disposition(head, head_len, &field, &len))
		return fail(m, MULTIPART_INVALID);
	if (!disposition_get(&name, field, len, "name"))
		return fail(m, NO_NAME);
	m->is_file = disposition_get_filename(&filename, field, len);
	m->field_len = 0;
	part.name = utf8_valid(buf_str(&name), name.len) ? buf_str(&name) : "";
	part.filename = m->is_file ? buf_str(&filename) : NULL;
	if (!count_part(m))
		return false;
	m->state = MULTIPART_DATA;
	return m->calls->begin(m->arg, &part) || fail(m, NULL);
}

/* A whole head, up to and with its empty line.  How many bytes that was; 0:
 * there is more to come. */
static size_t
take_head(struct multipart *m, const char *s, size_t len)
{
	const char *end = memmem(s, len, "\r\n\r\n", 4);
	size_t lines = end == NULL ? len : (size_t)(end - s) + 2;

	if (len >= 2 && memcmp(s, "\r\n", 2) == 0)
		lines = 0;
	else if (end == NULL && len <= MULTIPART_HEAD_MAX)
		return 0;
	if (lines + 2 > MULTIPART_HEAD_MAX) {
		(void)fail(m, MULTIPART_INVALID);
		return len;
	}
	(void)begin_part(m, s, lines);
	return lines + 2;
}

/* ---- data and delimiters ---- */

/* Data of a part; of the preamble only whether there is any. */
static bool
put(struct multipart *m, const char *s, size_t len)
{
	if (m->state == MULTIPART_PREAMBLE) {
		for (size_t i = 0; i < len; i++)
			if (s[i] != '\r' && s[i] != '\n')
				m->preamble = true;
		return true;
	}
	m->field_len += len;
	if (!m->is_file && m->field_len > MULTIPART_FIELD_MAX)
		return fail(m, TOO_LONG);
	return m->calls->data(m->arg, s, len) || fail(m, NULL);
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

/* How many bytes at the end may be the beginning of a delimiter, whose only CR
 * is its first byte. */
static size_t
held_back(const struct multipart *m, const char *s, size_t len)
{
	size_t most = len < m->delimiter_len ? len : m->delimiter_len - 1;
	const char *cr = memrchr(s + len - most, '\r', most);
	size_t n = cr == NULL ? 0 : (size_t)(s + len - cr);

	return n > 0 && memcmp(cr, m->delimiter, n) == 0 ? n : 0;
}

/* Data up to a delimiter, or a delimiter.  How many bytes that was; 0: there is
 * more to come. */
static size_t
take_data(struct multipart *m, const char *s, size_t len)
{
	const char *found = memmem(s, len, m->delimiter, m->delimiter_len);
	size_t n = found != NULL ? (size_t)(found - s) :
				   len - held_back(m, s, len);
	bool was_data = m->state == MULTIPART_DATA;
	ssize_t tail;

	if (n > 0) {
		(void)put(m, s, n);
		return n;
	}
	if (found == NULL)
		return 0;
	n = m->delimiter_len;
	tail = tail_length(s + n, len - n);
	if (tail == 0)
		return 0;
	if (tail < 0) {
		(void)put(m, s, n);
		return n;
	}
	m->state = s[n] == '-' ? MULTIPART_EPILOGUE : MULTIPART_HEAD;
	if (was_data && !m->calls->end(m->arg))
		(void)fail(m, NULL);
	return n + (size_t)tail;
}

/* ---- the whole ---- */

enum multipart_kind
multipart_open(struct multipart *m, const char *content_type,
    const struct multipart_calls *calls, void *arg)
{
	auto_buf struct buf boundary = BUF_INIT(MULTIPART_BOUNDARY_MAX);

	memset(m, 0, sizeof(*m));
	if (content_type == NULL)
		return MULTIPART_OTHER;
	content_type += strspn(content_type, " \t");
	if (!text_is(content_type, strcspn(content_type, "; \t"),
		"multipart/form-data"))
		return MULTIPART_OTHER;
	if (!disposition_get(&boundary, content_type, strlen(content_type),
		"boundary") ||
	    boundary.len == 0 || boundary.overflow ||
	    strpbrk(buf_str(&boundary), "\r\n") != NULL)
		return MULTIPART_NO_BOUNDARY;
	m->calls = calls;
	m->arg = arg;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, buf_str(&boundary), boundary.len);
	m->delimiter_len = 4 + boundary.len;
	/* The first delimiter may stand without an end of a line before it. */
	buf_init(&m->held, 2 * PIECE);
	buf_adds(&m->held, "\r\n");
	return MULTIPART_FINE;
}

void
multipart_release(struct multipart *m)
{
	buf_release(&m->held);
}

/* One step; 0: there is more to come. */
static size_t
take(struct multipart *m, const char *s, size_t len)
{
	switch (m->state) {
	case MULTIPART_PREAMBLE:
	case MULTIPART_DATA:
		return take_data(m, s, len);
	case MULTIPART_HEAD:
		return take_head(m, s, len);
	case MULTIPART_EPILOGUE:
	case MULTIPART_FAILED:
		break;
	}
	return len;
}

bool
multipart_add(struct multipart *m, const void *data, size_t len)
{
	const char *s = data;

	while (len > 0 && m->state != MULTIPART_FAILED) {
		size_t piece = len < PIECE ? len : PIECE;
		size_t used = 0;
		size_t step;

		buf_add(&m->held, s, piece);
		s += piece;
		len -= piece;
		do {
			step = take(m, m->held.data + used, m->held.len - used);
			used += step;
		} while (step > 0 && used < m->held.len);
		memmove(m->held.data, m->held.data + used, m->held.len - used);
		buf_cut(&m->held, m->held.len - used);
	}
	return m->state != MULTIPART_FAILED;
}

bool
multipart_end(struct multipart *m)
{
	const char *rest = buf_str(&m->held);

	if (m->state == MULTIPART_FAILED)
		return false;
	/* An empty body is a form without fields. */
	if (m->state == MULTIPART_PREAMBLE && !m->preamble &&
	    rest[strspn(rest, "\r\n")] == '\0')
		return true;
	return m->state == MULTIPART_EPILOGUE || fail(m, MULTIPART_INVALID);
}
