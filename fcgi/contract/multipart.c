#include "multipart.h"

#include <string.h>
#include <strings.h>

#include "disposition.h"

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

static bool
fail(struct multipart *m, const char *error)
{
	m->state = MULTIPART_FAILED;
	m->error = error;
	return false;
}

/* ---- heads ---- */

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
find_disposition(const struct buf *head, const char **value, size_t *len)
{
	const char *s = buf_str(head);
	const char *end = s + head->len;

	*value = "";
	*len = 0;
	while (s < end) {
		const char *line = memmem(s, (size_t)(end - s), "\r\n", 2);
		const char *colon = memchr(s, ':', (size_t)(line - s));

		if (colon == NULL || !is_token(s, (size_t)(colon - s)) ||
		    memchr(s, '\r', (size_t)(line - s)) != NULL)
			return false;
		if (colon - s == (ptrdiff_t)strlen("content-disposition") &&
		    strncasecmp(s, "content-disposition",
			strlen("content-disposition")) == 0) {
			*value = colon + 1;
			*len = (size_t)(line - colon) - 1;
		}
		s = line + 2;
	}
	return true;
}

static bool
count_part(struct multipart *m)
{
	if (m->is_file)
		return ++m->files <= MULTIPART_PARTS_MAX ||
		    fail(m, TOO_MANY_FILES);
	return ++m->fields <= MULTIPART_PARTS_MAX || fail(m, TOO_MANY_FIELDS);
}

static bool
begin_part(struct multipart *m)
{
	auto_buf struct buf name = BUF_INIT(MULTIPART_HEAD_MAX);
	auto_buf struct buf filename = BUF_INIT(2 * MULTIPART_HEAD_MAX);
	struct multipart_part part;
	const char *field;
	size_t len;

	if (!find_disposition(&m->head, &field, &len))
		return fail(m, MULTIPART_INVALID);
	if (!disposition_get(&name, field, len, "name"))
		return fail(m, NO_NAME);
	m->is_file = disposition_get_filename(&filename, field, len);
	m->field_len = 0;
	part.name = buf_str(&name);
	part.filename = m->is_file ? buf_str(&filename) : NULL;
	if (!utf8_valid(part.name, name.len))
		part.name = "";
	if (!count_part(m))
		return false;
	m->state = MULTIPART_DATA;
	m->matched = 0;
	return m->calls->begin(m->arg, &part) || fail(m, NULL);
}

/* Take bytes of the head, up to its empty line. */
static size_t
take_head(struct multipart *m, const char *s, size_t len)
{
	const char *feed = memchr(s, '\n', len);
	size_t n = feed == NULL ? len : (size_t)(feed - s) + 1;
	size_t line;

	buf_add(&m->head, s, n);
	if (m->head.overflow || memchr(s, '\0', n) != NULL) {
		(void)fail(m, MULTIPART_INVALID);
		return n;
	}
	if (feed == NULL)
		return n;
	line = m->head.len;
	if (line < 2 || m->head.data[line - 2] != '\r') {
		(void)fail(m, MULTIPART_INVALID);
	} else if (line == 2 || m->head.data[line - 3] == '\n') {
		buf_cut(&m->head, line - 2);
		(void)begin_part(m);
	}
	return n;
}

/* ---- data and delimiters ---- */

static bool
put(struct multipart *m, const char *s, size_t len)
{
	if (len == 0)
		return true;
	if (m->before == MULTIPART_PREAMBLE) {
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

/* Take what is before the next CR. */
static size_t
take_plain(struct multipart *m, const char *s, size_t len)
{
	const char *stop = memchr(s, '\r', len);
	size_t n = stop == NULL ? len : (size_t)(stop - s);

	(void)put(m, s, n);
	return n;
}

/* Take data up to, and with, the next delimiter.  A delimiter has its only CR
 * at its beginning, so what does not match starts at most one anew. */
static size_t
take_data(struct multipart *m, const char *s, size_t len)
{
	size_t i = 0;

	m->before = m->state;
	while (i < len && m->matched > 0 && m->matched < m->delimiter_len &&
	    s[i] == m->delimiter[m->matched]) {
		m->matched++;
		i++;
	}
	if (m->matched == m->delimiter_len) {
		m->state = MULTIPART_DELIMITER;
		m->tail_len = 0;
		return i;
	}
	if (i == len)
		return i;
	if (m->matched > 0) {
		size_t held = m->matched;

		m->matched = 0;
		if (!put(m, m->delimiter, held))
			return i;
	}
	if (s[i] == '\r') {
		m->matched = 1;
		return i + 1;
	}
	return i + take_plain(m, s + i, len - i);
}

/* It was no delimiter after all: what was held is data. */
static void
take_back(struct multipart *m)
{
	m->state = m->before;
	m->matched = 0;
	if (put(m, m->delimiter, m->delimiter_len))
		(void)put(m, m->tail, m->tail_len);
}

static void
end_part(struct multipart *m)
{
	bool was_data = m->before == MULTIPART_DATA;

	m->matched = 0;
	buf_reset(&m->head);
	if (was_data && !m->calls->end(m->arg))
		(void)fail(m, NULL);
}

/* Does c go on what came after a delimiter? */
static bool
fits_tail(const struct multipart *m, char c)
{
	char last = m->tail_len > 0 ? m->tail[m->tail_len - 1] : '\0';

	if (m->tail_len == sizeof(m->tail))
		return false;
	if (c == '-')
		return m->tail_len == 0 || (m->tail_len == 1 && last == '-');
	if (c == '\n')
		return last == '\r';
	return (c == ' ' || c == '\t' || c == '\r') && last != '-' &&
	    last != '\r';
}

/* After a delimiter come "--", or blanks and the end of the line; one byte of
 * it.  0: it is none, and this byte is to be looked at again. */
static size_t
take_tail(struct multipart *m, char c)
{
	char last = m->tail_len > 0 ? m->tail[m->tail_len - 1] : '\0';

	if (!fits_tail(m, c)) {
		take_back(m);
		return 0;
	}
	m->tail[m->tail_len++] = c;
	if (c == '\n') {
		m->state = MULTIPART_HEAD;
		end_part(m);
	} else if (c == '-' && last == '-') {
		m->state = MULTIPART_EPILOGUE;
		end_part(m);
	}
	return 1;
}

/* ---- the whole ---- */

static bool
is_form_data(const char *type)
{
	size_t len;

	type += strspn(type, " \t");
	len = strcspn(type, "; \t");
	return len == strlen("multipart/form-data") &&
	    strncasecmp(type, "multipart/form-data", len) == 0;
}

enum multipart_kind
multipart_open(struct multipart *m, const char *content_type,
    const struct multipart_calls *calls, void *arg)
{
	auto_buf struct buf boundary = BUF_INIT(MULTIPART_BOUNDARY_MAX);

	memset(m, 0, sizeof(*m));
	if (content_type == NULL || !is_form_data(content_type))
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
	m->matched = 2;
	buf_init(&m->head, MULTIPART_HEAD_MAX);
	return MULTIPART_FINE;
}

void
multipart_release(struct multipart *m)
{
	buf_release(&m->head);
}

bool
multipart_add(struct multipart *m, const void *data, size_t len)
{
	const char *s = data;
	size_t used = 0;

	for (; len > 0; s += used, len -= used) {
		switch (m->state) {
		case MULTIPART_PREAMBLE:
		case MULTIPART_DATA:
			used = take_data(m, s, len);
			break;
		case MULTIPART_DELIMITER:
			used = take_tail(m, *s);
			break;
		case MULTIPART_HEAD:
			used = take_head(m, s, len);
			break;
		case MULTIPART_EPILOGUE:
			return true;
		case MULTIPART_FAILED:
			return false;
		}
	}
	return m->state != MULTIPART_FAILED;
}

bool
multipart_end(struct multipart *m)
{
	bool empty = m->state == MULTIPART_PREAMBLE && !m->preamble &&
	    m->matched <= 2;

	if (m->state == MULTIPART_FAILED)
		return false;
	return empty || m->state == MULTIPART_EPILOGUE ||
	    fail(m, MULTIPART_INVALID);
}
