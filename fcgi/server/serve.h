/* SPDX-License-Identifier: MIT */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct http_request;

/*
 * The processes of il-api, of il-fcgi and of il-node.  The first one, the
 * master, owns the sockets, forks the children that serve them, and restarts
 * children that end.  A child that dies loses its own requests alone.  A
 * supervisor may pass the sockets as descriptors 3 and on (LISTEN_FDS,
 * LISTEN_PID).
 *
 * A child accepts the waiting requests, answers them, finishes the answers, and
 * only then does the work that may follow.  It ends at SIGTERM or SIGINT, after
 * it has answered the requests that had connected before.
 */
#define SERVE_SOCKETS_MAX 6

struct serve_socket {
	const char *name; /* in the state directory; static */
	int backlog;	  /* the kernel cuts it at net.core.somaxconn */
	size_t children;
	/* NULL: FastCGI.  Otherwise this function serves each connection, one
	 * after the other; the descriptor is closed afterwards. */
	void (*plain)(void *arg, int fd);
};

/* nginx gives up at once when the queue is full, so it is long. */
#define SERVE_BACKLOG 4096

/* A child answers at most so many requests together, and gathers them for so
 * long after the first one came. */
#define SERVE_TOGETHER 256
#define SERVE_GATHER_MS 25

/* All functions get arg.  All but answer and tick may be NULL; events_fd,
 * due_ms and events, for a program that holds requests back, only together. */
struct serve {
	const struct serve_socket *sockets;
	size_t socket_count;
	void *arg;

	/* In a child, first and last; index: the child's, among all. */
	void (*start)(void *arg, size_t index);
	void (*stop)(void *arg);
	/* Answer the request, or keep it: true.  settle() then answers it, the
	 * index-th kept one. */
	bool (*answer)(void *arg, struct http_request *req, size_t index);
	/* Answer the first count kept requests, or hold some back (held in
	 * struct http_request).  NULL: no request is ever kept. */
	void (*settle)(void *arg, size_t count);
	/* more: other requests wait already.  Whichever child accepts them,
	 * this is called again at once. */
	void (*after)(void *arg, bool more);
	/* A program that holds requests back also waits for this descriptor
	 * (after start()) and until this time (monotonic; INT64_MAX: none).
	 * events() is called when either has come. */
	int (*events_fd)(const void *arg);
	int64_t (*due_ms)(const void *arg);
	void (*events)(void *arg);
	/* At the end answer the requests in the queue of a socket of our own,
	 * which ends with us. */
	bool drain;

	/* In the master: tick() at the start and every tick_ms, but not while
	 * all children are stopped, when no request is answered; lost() when a
	 * child ended unexpectedly. */
	void (*tick)(void *arg);
	int64_t tick_ms;
	void (*lost)(void *arg);
	/* Time for the children to answer their requests; then they are
	 * killed. */
	int64_t stop_ms;
	/* At the end do not wait for the children: each finishes its request
	 * and ends.  For a supervisor that starts the next master at once and
	 * kills no process. */
	bool linger;
};

/* Open the sockets and serve them: 0 after SIGTERM or SIGINT, when all children
 * are gone.  The sockets' descriptors end with the process. */
int master_run(const struct serve *serve, const struct config *config,
    struct err *err);

/* Begin the main() of such a program: parse its command line, [-tv] [-e
 * envfile] and, where linger is not NULL, [-l]; open its log, read its
 * configuration.  A mistake in these ends the program.  True: -t, and the
 * program may end. */
bool master_begin(const char *name, int argc, char **argv,
    struct config *config, bool *linger);

#endif
