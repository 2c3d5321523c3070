/* SPDX-License-Identifier: MIT */
#include "node_answer.h"

#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"

#define NOTE_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define VALUE_MAX 4096 /* of a header that is looked at */

void
node_answer_add(struct buf *headers, const char *name, const char *note)
{
	size_t len = strlen(name);

	/* The end says what kind of file it is. */
	if (len > NODE_NAME_MAX) {
		name += len - NODE_NAME_MAX;
		while (((unsigned char)*name & 0xc0) == 0x80)
			name++;
	}
	buf_addf(headers, NODE_HEADER_NOTE ": %s\r\n" NODE_HEADER_NAME ": ",
	    note);
	text_add_escaped(headers, name, strlen(name), "-._~");
	buf_adds(headers, "\r\n");
}

/* A name as text_add_escaped() wrote it. */
static bool
read_name(char name[NODE_NAME_MAX + 1], const char *text, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++, out++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '%') {
			if (i + 2 >= len ||
			    !text_parse_hex(text + i + 1, 2, &byte, 1))
				return false;
			i += 2;
		}
		if (out == NODE_NAME_MAX || byte == '\0')
			return false;
		name[out] = (char)byte;
	}
	name[out] = '\0';
	return utf8_valid(name, out);
}

static bool
read_length(int64_t *length, const char *text)
{
	/* Said twice, it may mean either. */
	return *length < 0 && text_parse_int(text, 0, NODE_FILE_MAX, length);
}

/* A line between its beginning and its "\r\n". */
static bool
read_header(struct node_answer *answer, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon == NULL ? 0 : (size_t)(colon - line);
	char value[VALUE_MAX];

	if (name == 0 || memchr(line, '\0', len) != NULL)
		return false;
	colon++;
	len -= name + 1;
	while (len > 0 && *colon == ' ') {
		colon++;
		len--;
	}
	/* It would not be the file as it is. */
	if (text_is(line, name, "Transfer-Encoding"))
		return false;
	if (len >= sizeof(value))
		return !text_is(line, name, "Content-Length");
	memcpy(value, colon, len);
	value[len] = '\0';
	if (text_is(line, name, "Content-Length"))
		return read_length(&answer->length, value);
	if (text_is(line, name, NODE_HEADER_NAME))
		return read_name(answer->name, value, len);
	if (!text_is(line, name, NODE_HEADER_NOTE))
		return true;
	memcpy(answer->note, value, len < sizeof(answer->note) ? len + 1 : 0);
	return len <= FILESTORE_NOTE_MAX && strspn(value, NOTE_CHARS) == len;
}

/* "HTTP/1.1 200 …" */
static bool
read_status(struct node_answer *answer, const char *line, size_t len)
{
	static const char begin[] = "HTTP/1.";
	const size_t at = sizeof(begin) + 1;
	char digits[4] = "";
	int64_t status = 0;

	if (len < at + 3 || memcmp(line, begin, sizeof(begin) - 1) != 0 ||
	    line[at - 1] != ' ' || (len > at + 3 && line[at + 3] != ' '))
		return false;
	memcpy(digits, line + at, 3);
	if (!text_parse_int(digits, 100, 599, &status))
		return false;
	answer->status = (int)status;
	return true;
}

ssize_t
node_answer_read(struct node_answer *answer, const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	const char *line = text;

	*answer = (struct node_answer){ .length = -1 };
	if (end == NULL)
		return len < NODE_HEAD_MAX ? 0 : -1;
	while (line <= end) {
		size_t rest = (size_t)(end + 2 - line);
		const char *next = memmem(line, rest, "\r\n", 2);
		size_t line_len = (size_t)(next - line);

		if (line == text ? !read_status(answer, line, line_len) :
				   !read_header(answer, line, line_len))
			return -1;
		line = next + 2;
	}
	return end + 4 - text;
}
