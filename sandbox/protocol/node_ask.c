/* SPDX-License-Identifier: MIT */
#include "protocol/node_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/utf8.h"

#define HEADER_NOTE "Inline-Note"
#define HEADER_NAME "Inline-Name"
#define NOTE_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define PIECE 65536

/* ---- the head ---- */

void
node_answer_add(struct buf *headers, const char *name, const char *note)
{
	size_t len = strlen(name);

	/* The end says what kind of file it is. */
	if (len > NODE_NAME_MAX) {
		name += len - NODE_NAME_MAX;
		while (utf8_is_tail(*name))
			name++;
	}
	buf_addf(headers, HEADER_NOTE ": %s\r\n" HEADER_NAME ": ", note);
	text_add_escaped(headers, name, strlen(name), "-._~");
	buf_adds(headers, "\r\n");
}

/* A name as text_add_escaped() wrote it. */
static bool
node_answer_read_name(char name[NODE_NAME_MAX + 1], const char *text)
{
	size_t len = 0;

	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '%') {
			if (!text_parse_hex(text + 1, strnlen(text + 1, 2),
				&byte, 1))
				return false;
			text += 2;
		}
		if (len == NODE_NAME_MAX || byte == '\0')
			return false;
		name[len++] = (char)byte;
	}
	name[len] = '\0';
	return utf8_valid(name, len);
}

static bool
read_header(struct node_answer *answer, const char *line)
{
	const char *value = strchr(line, ':');
	size_t len = value == NULL ? 0 : (size_t)(value - line);

	if (len == 0)
		return false;
	value += 1 + strspn(value + 1, " ");
	/* It would not be the file as it is. */
	if (text_is(line, len, "Transfer-Encoding"))
		return false;
	/* Said twice, it may mean either. */
	if (text_is(line, len, "Content-Length"))
		return answer->length < 0 &&
		    text_parse_int(value, 0, NODE_LENGTH_MAX, &answer->length);
	if (text_is(line, len, HEADER_NAME))
		return node_answer_read_name(answer->name, value);
	if (!text_is(line, len, HEADER_NOTE))
		return true;
	(void)snprintf(answer->note, sizeof(answer->note), "%s", value);
	return strcmp(answer->note, value) == 0 &&
	    value[strspn(value, NOTE_CHARS)] == '\0';
}

/* "HTTP/1.1 200 …" */
static bool
read_status(struct node_answer *answer, const char *line)
{
	char digits[4];
	int end = 0;
	int64_t status = 0;

	if (sscanf(line, "HTTP/1.%*[0-9]%*[ ]%3[0-9]%n", digits, &end) != 1 ||
	    (line[end] != ' ' && line[end] != '\0') ||
	    !text_parse_int(digits, 100, 599, &status))
		return false;
	answer->status = (int)status;
	return true;
}

ssize_t
node_answer_read(struct node_answer *answer, const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	auto_free char *copy = NULL;
	char *next;

	*answer = (struct node_answer){ .length = -1 };
	if (end == NULL)
		return len < NODE_HEAD_MAX ? 0 : -1;
	copy = xstrndup(text, (size_t)(end - text));
	if (strlen(copy) != (size_t)(end - text))
		return -1;
	for (char *line = copy; line != NULL; line = next) {
		next = strstr(line, "\r\n");
		if (next != NULL) {
			*next = '\0';
			next += 2;
		}
		if (line == copy ? !read_status(answer, line) :
				   !read_header(answer, line))
			return -1;
	}
	return end + 4 - text;
}

/* ---- a request ---- */

int
node_ask_begin(struct node_ask *ask, const struct config *config,
    const char *address, const char *request, const char *headers,
    struct err *err)
{
	auto_free char *path = config_state_path(config, NODES_SOCKET);
	auto_free char *text = xprintf("%s HTTP/1.0\r\nHost: inline\r\n"
				       "Inline-Node: %s\r\n%s\r\n",
	    request, address, headers);
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
