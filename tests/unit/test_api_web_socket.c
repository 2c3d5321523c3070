/* SPDX-License-Identifier: MIT */
/* A WebSocket's connection: waits end in time, whatever the client does. */

#include "api/web_socket.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/basics.h"

#include "tap.h"

/* A ping without data, masked by nothing. */
static const char ping[] = { '\x89', '\x80', 0, 0, 0, 0 };

/* A head of so many bytes. */
static bool
read_head(size_t len)
{
	static char text[SOCKET_HEAD_MAX + 2];
	struct socket_head head;
	struct web_socket s;
	int fds[2];
	bool good;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return false;
	(void)memset(text, 'x', len);
	(void)memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
	(void)memcpy(text + len - 4, "\r\n\r\n", 4);
	web_socket_open(&s, fds[0]);
	good = write(fds[1], text, len) == (ssize_t)len &&
	    web_socket_read_head(&s, &head);
	web_socket_release(&s);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return good;
}

/* Pings of a client that never reads. */
static void
test_pings(struct web_socket *s, int client)
{
	int more = 10;

	for (int i = 0; i < 1000000 && more > 0; i++) {
		if (write(client, ping, sizeof(ping)) != sizeof(ping))
			break;
		web_socket_receive(s);
		(void)web_socket_next(s);
		more -= s->out.len >= 65536 ? 1 : 0;
	}
	ok(more == 0 && s->out.len == 65536 && !s->gone,
	    "so many answers wait, and no more");
}

int
main(void)
{
	struct web_socket s;
	int fds[2];

	ok(read_head(SOCKET_HEAD_MAX), "the longest head");
	ok(!read_head(SOCKET_HEAD_MAX + 1), "a longer one");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return 1;
	web_socket_open(&s, fds[0]);
	ok(!web_socket_wait(&s, clock_monotonic_ms()), "nobody says anything");
	is_int(write(fds[1], ping, sizeof(ping)), sizeof(ping), "a ping");
	ok(web_socket_wait(&s, clock_monotonic_ms() + 60000), "is heard");
	ok(!web_socket_wait(&s, clock_monotonic_ms()),
	    "who never stops talking has no more time than others");
	web_socket_receive(&s);
	ok(!web_socket_next(&s) && s.out.len == 0, "a ping is no message");
	is_int(read(fds[1], (char[4]){ 0 }, 4), 2, "it is answered");
	test_pings(&s, fds[1]);
	(void)close(fds[1]);
	web_socket_receive(&s);
	ok(s.gone && !web_socket_wait(&s, INT64_MAX),
	    "who is gone says nothing");
	web_socket_release(&s);
	(void)close(fds[0]);
	return tap_done();
}
