/* SPDX-License-Identifier: MIT */
/* The holder of a session: whoever made it may be killed, and so may it. */
#include "api/app.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "protocol/lease.h"
#include "tap.h"

#define LONG_MS 60000

static struct api_app app;

/* One session, and what its holder has. */
struct session {
	char id[SESSION_ID_SIZE];
	int cell;   /* the other end of the cell's socket */
	int broker; /* of the lease */
	int slot;   /* of the slot: readable when nobody has that any more */
	int client; /* of the client's connection: the same */
};

static int64_t
sessions(void)
{
	static const char name[] = "\ninline_api_sessions ";
	auto_buf struct buf text = BUF_INIT(1 << 20);
	const struct metrics_others nobody = { NULL, NULL };

	metrics_add(&text, &app.metrics, &nobody, 0, 0, 0);
	return strtoll(strstr(buf_str(&text), name) + strlen(name), NULL, 10);
}

static bool
is_over(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* In a process that is killed when it has made the session, as a child of
 * il-api may be. */
static void
make_session(struct session *s, int64_t ttl_ms)
{
	struct lease lease = LEASE_NONE;
	struct err err;
	int pairs[5][2];
	int status;
	pid_t pid;

	for (int i = 0; i < 5; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]) != 0)
			exit(1);
	pid = fork();
	if (pid == 0) {
		lease.cell_fd = pairs[0][1];
		lease.broker_fd = pairs[1][1];
		app.slot = pairs[2][1];
		if (session_holder_start(&app, &lease, ttl_ms, s->id, &err) ==
		    0)
			(void)!write(pairs[4][1], s->id, sizeof(s->id));
		(void)kill(getpid(), SIGKILL);
	}
	for (int i = 0; i < 5; i++)
		(void)close(pairs[i][1]);
	is_int(read(pairs[4][0], s->id, sizeof(s->id)), sizeof(s->id), "made");
	is_int(waitpid(pid, &status, 0), pid, "who made it was killed");
	(void)close(pairs[4][0]);
	s->cell = pairs[0][0];
	s->broker = pairs[1][0];
	s->slot = pairs[2][0];
	s->client = pairs[3][0];
}

/* The holder has ended, as our child, and has left nothing. */
static void
is_gone(struct session *s)
{
	struct session_borrowed b;
	struct err err;

	ok(waitpid(-1, NULL, 0) > 0, "its holder was the master's child");
	is_int(sessions(), 0, "it is not counted any more");
	ok(is_over(s->slot), "its slot is free");
	ok(is_over(s->cell) && is_over(s->broker), "its lease has ended");
	is_int(session_holder_borrow(&app, s->id, -1, 0, &b, &err), -1,
	    "it is not there");
	is_int(err.code, ERR_NOT_FOUND, "which is said");
	(void)close(s->cell);
	(void)close(s->broker);
	(void)close(s->slot);
	(void)close(s->client);
}

/* Borrow the cell; -1: it is not to be had within so long. */
static int
borrow(const struct session *s, struct session_borrowed *b, int wait_ms,
    enum err_code *code)
{
	struct err err = { .code = ERR_NONE };
	int result = session_holder_borrow(&app, s->id, -1, wait_ms, b, &err);

	*code = err.code;
	return result;
}

static void
test_life(void)
{
	struct session s;
	enum err_code code;
	char byte = 0;
	struct session_borrowed b;
	struct session_borrowed none;

	make_session(&s, LONG_MS);
	ok(borrow(&s, &b, LONG_MS, &code) == 0,
	    "it is there when who made it is not");
	is_int(sessions(), 1, "it is counted");
	ok(is_over(s.client), "it keeps no connection of a client's");
	ok(!is_over(s.slot), "it keeps the slot");
	is_int(write(b.cell_fd, "x", 1), 1, "the cell is lent");
	ok(read(s.cell, &byte, 1) == 1 && byte == 'x', "and is the cell");
	is_int(borrow(&s, &none, 50, &code), -1, "to one at a time");
	is_int(code, ERR_TIMEOUT, "who comes later waits");
	session_holder_return(&b);

	app.owner[0] = 1;
	is_int(borrow(&s, &none, LONG_MS, &code), -1, "another's");
	is_int(code, ERR_NOT_FOUND, "is not there");
	ok(!session_holder_end(&app, s.id), "and is not ended by others");
	app.owner[0] = 0;

	ok(borrow(&s, &b, LONG_MS, &code) == 0, "it is lent again");
	session_holder_return(&b);
	ok(session_holder_end(&app, s.id), "it is ended");
	is_gone(&s);
	ok(!session_holder_end(&app, s.id), "once");
}

static void
test_ends(void)
{
	struct session s;
	enum err_code code;
	struct session_borrowed b;

	make_session(&s, LONG_MS);
	ok(borrow(&s, &b, LONG_MS, &code) == 0, "it is lent");
	b.lost = true;
	session_holder_return(&b);
	note("a request broke off");
	is_gone(&s);

	make_session(&s, LONG_MS);
	(void)shutdown(s.cell, SHUT_RDWR);
	note("its cell ended");
	is_gone(&s);

	make_session(&s, 50);
	note("its time is over");
	is_gone(&s);
}

/* By its pid, which nobody is told: it is the only child that we have. */
static void
test_killed(void)
{
	char path[64];
	struct session s;
	int pid = 0;
	FILE *children;

	make_session(&s, LONG_MS);
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children",
	    (int)getpid());
	children = fopen(path, "re");
	ok(children != NULL && fscanf(children, "%d", &pid) == 1, "found");
	if (children != NULL)
		(void)fclose(children);
	ok(pid > 0 && kill(pid, SIGKILL) == 0, "killed");
	is_gone(&s);
}

int
main(void)
{
	static const char *const routes[] = { "other", NULL };
	struct err err;
	char odd[SESSION_ID_SIZE + 8];
	struct session_borrowed b;

	app.sessions = (char *)(uintptr_t)tap_folder();
	app.master = getpid();
	app.slot = -1;
	if (metrics_open(&app.metrics, routes, &err) != 0)
		return 1;
	(void)snprintf(odd, sizeof(odd), "%s%s", SESSION_PREFIX, "../x");
	is_int(session_holder_borrow(&app, odd, -1, 0, &b, &err), -1, "no id");
	test_life();
	test_ends();
	test_killed();
	return tap_done();
}
