/* SPDX-License-Identifier: MIT */
#include "discord.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"

#define REQUEST_MAX (32 << 20)
#define READ_SIZE 16384
#define TOKEN_MAX 256

static const char answer[] = "HTTP/1.1 200 OK\r\n"
			     "Content-Type: application/json\r\n"
			     "Content-Length: 63\r\n\r\n"
			     "{\"id\":\"600000000000000001\",\"type\":0,"
			     "\"content\":\"\",\"embeds\":[] }\n";

struct caller {
	LIST_ENTRY(caller) link;
	struct discord *discord;
	int fd;
	struct buf in;
};

struct discord {
	struct loop *loop;
	int listen_fd;
	discord_fn fn;
	void *arg;
	LIST_HEAD(, caller) callers;
};

static void
caller_free(struct caller *caller)
{
	loop_remove(caller->discord->loop, caller->fd);
	(void)close(caller->fd);
	LIST_REMOVE(caller, link);
	buf_release(&caller->in);
	free(caller);
}

/* …/webhooks/APPLICATION/TOKEN/… */
static void
find_token(const char *head, char token[TOKEN_MAX])
{
	const char *p = strstr(head, "/webhooks/");
	size_t len;

	token[0] = '\0';
	p = p != NULL ? strchr(p + 10, '/') : NULL;
	if (p == NULL)
		return;
	len = strcspn(p + 1, "/? ");
	if (len >= TOKEN_MAX)
		return;
	memcpy(token, p + 1, len);
	token[len] = '\0';
}

static size_t
content_length(const char *head)
{
	for (const char *p = strstr(head, "\r\n"); p != NULL;
	     p = strstr(p + 2, "\r\n")) {
		if (strncasecmp(p + 2, "Content-Length:", 15) == 0)
			return (size_t)strtoull(p + 17, NULL, 10);
	}
	return 0;
}

/* One request, if it is whole; false: not yet. */
static bool
take_request(struct caller *caller)
{
	struct discord *discord = caller->discord;
	char token[TOKEN_MAX];
	char *end = caller->in.len > 0 ? strstr(caller->in.data, "\r\n\r\n") :
					 NULL;
	size_t head;
	size_t body;

	if (end == NULL)
		return false;
	*end = '\0';
	head = (size_t)(end - caller->in.data) + 4;
	body = content_length(caller->in.data);
	find_token(caller->in.data, token);
	*end = '\r';
	if (caller->in.len < head + body)
		return false;
	discord->fn(discord->arg, token, caller->in.data + head, body);
	if (send(caller->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
		return false; /* its end is seen when it is read again */
	memmove(caller->in.data, caller->in.data + head + body,
	    caller->in.len - head - body);
	buf_cut(&caller->in, caller->in.len - head - body);
	return true;
}

static void
on_bytes(void *arg, int fd, uint32_t events)
{
	struct caller *caller = arg;
	char *room = buf_reserve(&caller->in, READ_SIZE);
	ssize_t got = room != NULL ? recv(fd, room, READ_SIZE, MSG_DONTWAIT) :
				     0;

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		caller_free(caller);
		return;
	}
	buf_commit(&caller->in, (size_t)got);
	while (take_request(caller))
		;
}

static void
on_caller(void *arg, int listen_fd, uint32_t events)
{
	struct discord *discord = arg;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct caller *caller;
	int one = 1;

	(void)events;
	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	caller = xcalloc(1, sizeof(*caller));
	caller->discord = discord;
	caller->fd = fd;
	buf_init(&caller->in, REQUEST_MAX);
	LIST_INSERT_HEAD(&discord->callers, caller, link);
	loop_add(discord->loop, fd, EPOLLIN, on_bytes, caller);
}

struct discord *
discord_new(struct loop *loop, int listen_fd, discord_fn fn, void *arg)
{
	struct discord *discord = xcalloc(1, sizeof(*discord));

	discord->loop = loop;
	discord->listen_fd = listen_fd;
	discord->fn = fn;
	discord->arg = arg;
	LIST_INIT(&discord->callers);
	loop_add(loop, listen_fd, EPOLLIN, on_caller, discord);
	return discord;
}

void
discord_free(struct discord *discord)
{
	if (discord == NULL)
		return;
	while (!LIST_EMPTY(&discord->callers))
		caller_free(LIST_FIRST(&discord->callers));
	loop_remove(discord->loop, discord->listen_fd);
	free(discord);
}
