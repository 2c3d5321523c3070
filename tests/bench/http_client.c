/* SPDX-License-Identifier: MIT */
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"

#define ANSWER_MAX (16 << 20)
#define READ_SIZE 131072

void
http_client_init(struct http_client *client, struct loop *loop, uint16_t port)
{
	*client = (struct http_client){ .loop = loop, .port = port, .fd = -1 };
	buf_init(&client->in, ANSWER_MAX);
	buf_init(&client->body, ANSWER_MAX);
}

void
http_client_release(struct http_client *client)
{
	http_client_close(client);
	buf_release(&client->in);
	buf_release(&client->body);
}

void
http_client_close(struct http_client *client)
{
	if (client->fd < 0)
		return;
	loop_remove(client->loop, client->fd);
	(void)close(client->fd);
	client->fd = -1;
	client->reused = false;
}

static void on_ready(void *arg, int fd, uint32_t events);

bool
http_client_connect(struct http_client *client)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(client->port),
		.sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
	int one = 1;
	int fd;

	if (client->fd >= 0)
		return true;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		(void)close(fd);
		return false;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	client->fd = fd;
	client->reused = false;
	loop_add(client->loop, fd, EPOLLIN, on_ready, client);
	return true;
}

static void
finish(struct http_client *client, int status, const char *error)
{
	client->waiting = false;
	if (error != NULL || client->sent < client->request_len)
		http_client_close(client);
	client->answer(client->arg, status, &client->body, error);
}

/* Wait for these. */
static void
watch(struct http_client *client, uint32_t events)
{
	loop_remove(client->loop, client->fd);
	loop_add(client->loop, client->fd, events, on_ready, client);
}

static void push(struct http_client *client);

/* As much of the request as there is room for. */
static void
send_some(struct http_client *client)
{
	size_t left = client->request_len - client->sent;
	ssize_t sent = send(client->fd, client->request + client->sent, left,
	    MSG_NOSIGNAL);

	if (sent < 0 && client->reused &&
	    (errno == EPIPE || errno == ECONNRESET)) {
		http_client_close(client);
		push(client); /* on a new one, hence once */
		return;
	}
	if (sent < 0 && errno != EAGAIN) {
		finish(client, 0, "cannot send");
		return;
	}
	left -= sent > 0 ? (size_t)sent : 0;
	/* a short request is sent at once: there is nothing to wait for */
	if (left > 0 && client->sent == 0)
		watch(client, EPOLLIN | EPOLLOUT);
	if (left == 0 && client->sent > 0)
		watch(client, EPOLLIN);
	client->sent = client->request_len - left;
}

static void
push(struct http_client *client)
{
	buf_reset(&client->in);
	buf_reset(&client->body);
	client->sent = 0;
	if (http_client_connect(client))
		send_some(client);
	else
		finish(client, 0, "cannot connect");
}

void
http_client_send(struct http_client *client, const char *data, size_t len)
{
	client->request = data;
	client->request_len = len;
	client->waiting = true;
	push(client);
}

/* ---- answers ---- */

struct head {
	int status;
	size_t len;	/* of the head, with the empty line */
	int64_t length; /* -1: until the end, -2: chunked */
	bool close;
};

static const char *
field(const char *head, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(head, "\r\n"); p != NULL;
	     p = strstr(p + 2, "\r\n")) {
		if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':')
			return p + 3 + n + strspn(p + 3 + n, " ");
	}
	return NULL;
}

/* False: not all of it is there. */
static bool
parse_head(struct http_client *client, struct head *head)
{
	char *text = client->in.data;
	char *end = client->in.len > 0 ? strstr(text, "\r\n\r\n") : NULL;
	const char *value;

	if (end == NULL)
		return false;
	*end = '\0';
	*head = (struct head){ .length = -1 };
	head->len = (size_t)(end - text) + 4;
	head->status = (int)strtol(text + strcspn(text, " "), NULL, 10);
	value = field(text, "Content-Length");
	if (value != NULL)
		head->length = strtoll(value, NULL, 10);
	value = field(text, "Transfer-Encoding");
	if (value != NULL && strncasecmp(value, "chunked", 7) == 0)
		head->length = -2;
	value = field(text, "Connection");
	head->close = value != NULL && strncasecmp(value, "close", 5) == 0;
	*end = '\r';
	return true;
}

/* 1: whole, 0: more is to come, -1: that is no chunk. */
static int
read_chunks(struct http_client *client, const char *p, const char *end)
{
	buf_reset(&client->body);
	for (;;) {
		char *after = NULL;
		size_t left = (size_t)(end - p);
		unsigned long long size;

		if (memchr(p, '\n', left) == NULL)
			return 0;
		size = strtoull(p, &after, 16);
		if (after == p || size > ANSWER_MAX)
			return -1;
		p = (const char *)memchr(p, '\n', left) + 1;
		if ((size_t)(end - p) < size + 2)
			return 0;
		if (size == 0)
			return 1;
		buf_add(&client->body, p, (size_t)size);
		p += size + 2;
	}
}

static void
look(struct http_client *client, bool ended)
{
	struct head head;
	size_t have;
	int whole;

	if (!parse_head(client, &head)) {
		if (ended)
			finish(client, 0, "the answer is cut short");
		return;
	}
	have = client->in.len - head.len;
	if (head.length == -2) {
		whole = read_chunks(client, client->in.data + head.len,
		    client->in.data + client->in.len);
	} else {
		whole = head.length < 0 ? ended : have >= (size_t)head.length;
		if (whole == 1)
			buf_add(&client->body, client->in.data + head.len,
			    head.length < 0 ? have : (size_t)head.length);
	}
	if (whole < 0 || (whole == 0 && ended)) {
		finish(client, head.status, "the answer's body is broken");
		return;
	}
	if (whole == 0)
		return;
	client->reused = true;
	if (ended || head.close)
		http_client_close(client);
	finish(client, head.status, NULL);
}

static void
on_ready(void *arg, int fd, uint32_t events)
{
	struct http_client *client = arg;
	char *room;
	ssize_t got;

	if ((events & EPOLLOUT) != 0) {
		send_some(client);
		return;
	}
	room = buf_reserve(&client->in, READ_SIZE);
	got = room != NULL ? recv(fd, room, READ_SIZE, 0) : -1;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) {
		buf_commit(&client->in, (size_t)got);
		if (client->waiting)
			look(client, false);
		return;
	}
	if (!client->waiting) {
		http_client_close(client);
		return;
	}
	if (client->in.len == 0 && client->reused) {
		http_client_close(client);
		push(client);
		return;
	}
	look(client, true);
}
