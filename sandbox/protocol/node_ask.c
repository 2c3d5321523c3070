/* SPDX-License-Identifier: MIT */
#include "node_ask.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../base/utf8.h"
#include "node_table.h"

#define HEADER_NOTE "Inline-Note"
#define HEADER_NAME "Inline-Name"
#define NOTE_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define VALUE_MAX 4096 /* of a header that is looked at */
#define PIECE 65536

/* ---- the head ---- */

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
	buf_addf(headers, HEADER_NOTE ": %s\r\n" HEADER_NAME ": ", note);
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
	return *length < 0 && text_parse_int(text, 0, NODE_LENGTH_MAX, length);
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
	if (text_is(line, name, HEADER_NAME))
		return read_name(answer->name, value, len);
	if (!text_is(line, name, HEADER_NOTE))
		return true;
	memcpy(answer->note, value, len < sizeof(answer->note) ? len + 1 : 0);
	return len <= NODE_NOTE_MAX && strspn(value, NOTE_CHARS) == len;
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

/* ---- a request ---- */

int
node_ask_begin(struct node_ask *ask, const struct config *config,
    const struct node_entry *node, const char *request, const char *headers,
    struct err *err)
{
	auto_free char *path = config_state_path(config, NODES_SOCKET);
	auto_free char *text = xprintf("%s HTTP/1.0\r\nHost: inline\r\n"
				       "Inline-Node: %s\r\n%s\r\n",
	    request, node->address, headers);
	size_t len = strlen(text);

	ask->fd = fd_connect_unix(path, SOCK_STREAM, err);
	if (ask->fd < 0 ||
	    send(ask->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		(ssize_t)len)
		return err_set(err, ERR_UNAVAILABLE,
		    "nginx does not listen at %s: does it run, with what "
		    "`ilctl nginx` prints?",
		    path);
	return 0;
}

ssize_t
node_ask_receive(struct node_ask *ask, struct err *err)
{
	size_t most = ask->body.max - ask->body.len;
	char *room;
	ssize_t n;

	if (most == 0)
		return err_set(err, ERR_LIMIT, "the answer is too long");
	if (most > PIECE)
		most = PIECE;
	room = buf_reserve(&ask->body, most);
	if (!fd_wait_unless(ask->fd, &ask->unless,
		clock_poll_timeout(ask->until_ms)))
		return err_set(err, ERR_TIMEOUT, "its client is gone");
	n = recv(ask->fd, room, most, MSG_DONTWAIT);
	if (n < 0)
		return err_set(err, ERR_UNAVAILABLE, "it does not go on");
	buf_commit(&ask->body, (size_t)n);
	return n;
}

int
node_ask_head(struct node_ask *ask, struct err *err)
{
	ssize_t len = 0;

	while (len == 0) {
		ssize_t n = node_ask_receive(ask, err);

		if (n < 0)
			return -1;
		len = node_answer_read(&ask->answer, buf_str(&ask->body),
		    ask->body.len);
		if (len < 0 || (n == 0 && len == 0))
			return err_set(err, ERR_UNAVAILABLE,
			    "an answer that makes no sense");
	}
	buf_drop(&ask->body, (size_t)len);
	return 0;
}

int
node_ask_body(struct node_ask *ask, struct err *err)
{
	int64_t length = ask->answer.length;
	ssize_t n = 1;

	while (n > 0 && (int64_t)ask->body.len != length)
		n = node_ask_receive(ask, err);
	if (n == 0 && length >= 0)
		return err_set(err, ERR_UNAVAILABLE, "half an answer");
	return n < 0 ? -1 : 0;
}

void
node_ask_end(struct node_ask *ask)
{
	cleanup_close(&ask->fd);
	buf_release(&ask->body);
}

/* ---- a run ---- */

void
node_view_release(struct node_view *view)
{
	free(view->text);
	free(view->input);
	free(view->version);
	*view = (struct node_view){ .text = NULL };
}

char *
node_view_write(const struct node_view *view)
{
	json_auto_t *root = json_pack("{s:s, s:s, s:s, s:b}", "text",
	    view->text, "input", view->input, "version", view->version,
	    "timeit", view->timeit);
	char *json = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);

	if (json == NULL)
		log_fatal(1, "out of memory for a view");
	return json;
}

int
node_view_read(struct node_view *view, const char *json, size_t len,
    struct err *err)
{
	json_auto_t *root = json_loadb(json, len, 0, NULL);
	const char *text = NULL;
	const char *input = NULL;
	const char *version = NULL;
	int timeit = 0;

	if (json_unpack(root, "{s:s, s:s, s:s, s:b}", "text", &text, "input",
		&input, "version", &version, "timeit", &timeit) != 0 ||
	    *text == '\0' || strlen(text) > NODE_VIEW_TEXT_MAX ||
	    strlen(input) > NODE_VIEW_TEXT_MAX ||
	    strlen(version) > NODE_VIEW_TEXT_MAX)
		return err_set(err, ERR_PROTOCOL,
		    "what it says of the view makes no sense");
	*view = (struct node_view){
		.text = xstrdup(text),
		.input = xstrdup(input),
		.version = xstrdup(version),
		.timeit = timeit != 0,
	};
	return 0;
}
