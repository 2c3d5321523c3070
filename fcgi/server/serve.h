/* SPDX-License-Identifier: MIT */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "../../sandbox/base/log.h"

struct err;
struct http_request;

/*
 * The loop of a process that serves FastCGI, alone or beside others on the same
 * socket: take the requests that have come, answer them, finish the answers,
 * and only then do what may follow.  It ends at SIGTERM or
 * SIGINT, after the requests that had already connected were answered.
 */
struct serve {
	int listen_fd;	  /* borrowed, nonblocking */
	const char *path; /* of our own socket, borrowed; NULL: who waits there
			   * is not to be answered before the end */
};

/* nginx gives up at once when the queue is full, so it is long; the kernel cuts
 * it at net.core.somaxconn. */
#define SERVE_BACKLOG 4096

struct serve_calls {
	/* Answer the request, or keep it: true, and settle() answers it, the
	 * index-th of those that were kept. */
	bool (*take)(void *arg, struct http_request *req, size_t index);
	/* Answer the first count that were kept.  NULL: none ever is. */
	void (*settle)(void *arg, size_t count);
	/* more: others wait already; whoever takes them, it is called again
	 * at once.  May be NULL. */
	void (*after)(void *arg, bool more);
	void *arg;
};

/* How many are kept at most, and how long after the first came there is looked
 * for another: nobody waits much longer for the others than for himself. */
#define SERVE_TOGETHER 256
#define SERVE_GATHER_MS 25

/* The command line of such a program: [-tv] [-e envfile], and [-l] where that
 * is taken.  False: it is not. */
struct serve_options {
	const char *env_file; /* NULL: none */
	enum log_level level;
	bool test;   /* check the configuration and exit */
	bool linger; /* master.h */
};

/* takes: the options, for getopt(3). */
bool serve_options_parse(struct serve_options *options, const char *takes,
    int argc, char **argv);

/* Did a supervisor pass us so many sockets, from descriptor SERVE_PASSED_FD on
 * (LISTEN_FDS, LISTEN_PID)? */
#define SERVE_PASSED_FD 3
bool serve_was_passed(int count);

/* Run until a signal ends it.  0, or -1 when waiting itself failed. */
int serve_run(struct serve *serve, const struct serve_calls *calls,
    struct err *err);

#endif
