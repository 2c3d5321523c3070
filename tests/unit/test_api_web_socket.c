/* SPDX-License-Identifier: MIT */
/* A WebSocket's connection: waits end in time, whatever the client does. */
#include "fcgi/api/web_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/base/clock.h"

#include "tap.h"

/* A ping without data, masked by nothing. */
static const char ping[] = { '\x89', '\x80', 0, 0, 0, 0 };

int
main(void)
{
	struct web_socket s;
	int fds[2];

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
	(void)close(fds[1]);
	web_socket_receive(&s);
	ok(s.gone && !web_socket_wait(&s, INT64_MAX),
	    "who is gone says nothing");
	web_socket_release(&s);
	(void)close(fds[0]);
	return tap_done();
}
