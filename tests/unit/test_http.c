/* SPDX-License-Identifier: MIT */
/* fcgi/server/serve.c: how long an answer waits for its reader, and how a long
 * one is written. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/basics.h"
#include "server/serve.h"
#include "tap.h"

#define LONG 100000

/* One request without a body, as nginx begins it: BEGIN_REQUEST for a
 * responder, no PARAMS, no STDIN (the FastCGI specification 1.0, section 8). */
static const unsigned char request[] = { 1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0,
	0, 0, 0, 1, 4, 0, 1, 0, 0, 0, 0, 1, 5, 0, 1, 0, 0, 0, 0 };

static int listener;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static char text[LONG];

static int
begin(struct http_request *req)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0);

	if (connect(client, (struct sockaddr *)&address, sizeof(address)) !=
		0 ||
	    write(client, request, sizeof(request)) != sizeof(request) ||
	    !http_accept(req))
		(void)close(client), client = -1;
	return client;
}

/* All of an answer, which is over: its standard output, and the longest record
 * of it. */
static size_t
take(int client, unsigned char *out, size_t *longest)
{
	static unsigned char all[2 * LONG];
	size_t have = 0;
	size_t len = 0;
	ssize_t n;

	while ((n = read(client, all + have, sizeof(all) - have)) > 0)
		have += (size_t)n;
	*longest = 0;
	for (size_t at = 0; at + 8 <= have;) {
		const unsigned char *head = all + at;
		size_t content = (size_t)head[4] << 8 | head[5];

		at += 8 + content + head[6];
		if (head[0] != 1 || head[3] != 1 || at > have)
			return 0;
		if (head[1] != 6)
			continue;
		memcpy(out + len, head + 8, content);
		len += content;
		if (content > *longest)
			*longest = content;
	}
	return len;
}

/* A short body, a long one, and a short one again. */
static void
test_long(struct http_request *req)
{
	static const char head[] =
	    "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\na";
	static unsigned char got[2 * LONG];
	size_t before = sizeof(head) - 1;
	int client = begin(req);
	size_t longest;
	size_t len;

	for (size_t i = 0; i < LONG; i++)
		text[i] = (char)(i * 7 + i / 251);
	http_begin(req, 200, "text/plain", NULL);
	http_write(req, "a", 1);
	http_write(req, text, LONG);
	http_write(req, "z", 1);
	http_finish(req);
	len = take(client, got, &longest);
	is_int(len, before + LONG + 1, "all of a long answer comes");
	ok(memcmp(got, head, before) == 0 &&
		memcmp(got + before, text, LONG) == 0 &&
		got[before + LONG] == 'z',
	    "in its order");
	is_int(longest, 65528, "in records as long as they may be");
	(void)close(client);
}

static void
wait_past(int64_t until_ms)
{
	while (clock_monotonic_ms() <= until_ms)
		(void)poll(NULL, 0, 1);
}

int
main(void)
{
	char folder[] = "/tmp/inline-http-XXXXXX";
	struct http_request req;
	int client;

	if (mkdtemp(folder) == NULL)
		return 1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s",
	    folder);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, 1) != 0)
		return 1;
	http_init(&req, listener);

	client = begin(&req);
	ok(client >= 0, "a request is taken");
	http_begin(&req, 200, "text/plain", NULL);
	http_write(&req, text, LONG);
	ok(!req.failed && req.sent == LONG, "an answer that is read goes out");
	http_finish(&req);
	(void)close(client);

	test_long(&req);

	client = begin(&req);
	http_allow_slow_reader(&req, 1);
	wait_past(clock_monotonic_ms() + 1);
	http_begin(&req, 200, "text/plain", NULL);
	ok(!req.failed && req.until_ms > 0, "its time begins with its head");
	wait_past(req.until_ms);
	http_write(&req, "1", 1);
	ok(!req.failed, "what waits for nobody is written in any case");
	http_write(&req, text, LONG);
	ok(req.failed, "who has not taken all in time is dropped");
	http_finish(&req);
	(void)close(client);

	client = begin(&req);
	http_begin(&req, 200, "text/plain", NULL);
	http_write(&req, text, LONG);
	ok(!req.failed && req.until_ms == 0 && req.stall_ms == HTTP_STALL_MS,
	    "the next request begins anew");
	http_finish(&req);
	(void)close(client);

	(void)unlink(address.sun_path);
	(void)rmdir(folder);
	return tap_done();
}
