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
 * master, holds the sockets, forks the children that serve them, and starts
 * those again that end.  A child that dies takes what it has in hand with it,
 * and nothing else.  The sockets may be handed over by a supervisor as
 * descriptors 3 and on (LISTEN_FDS, LISTEN_PID).
 *
 * A child takes the requests that have come, answers them, finishes the
 * answers, and only then does what may follow.  It ends at SIGTERM or SIGINT,
 * after the requests that had already connected were answered.
 */
#define SERVE_SOCKETS_MAX 6

struct serve_socket {
	const char *name; /* in the state directory; static */
	int backlog;	  /* the kernel cuts it at net.core.somaxconn */
	size_t children;
	/* NULL: FastCGI; or whoever connects is served here, one after the
	 * other; the descriptor is closed afterwards. */
	void (*plain)(void *arg, int fd);
};

/* nginx gives up at once when the queue is full, so it is long. */
#define SERVE_BACKLOG 4096

/* How many are kept at most, and how long after the first came there is looked
 * for another: nobody waits much longer for the others than for himself. */
#define SERVE_TOGETHER 256
#define SERVE_GATHER_MS 25

/* All functions get arg; all but take and tick may be NULL, the three of who
 * holds requests back only together. */
struct serve {
	const struct serve_socket *sockets;
	size_t socket_count;
	void *arg;

	/* In a child, first and last; index: which of all children it is. */
	void (*start)(void *arg, size_t index);
	void (*stop)(void *arg);
	/* Answer the request, or keep it: true, and settle() answers it, the
	 * index-th of those that were kept. */
	bool (*take)(void *arg, struct http_request *req, size_t index);
	/* Answer the first count that were kept, or hold some back (held in
	 * struct http_request).  NULL: none ever is kept. */
	void (*settle)(void *arg, size_t count);
	/* more: others wait already; whoever takes them, it is called again
	 * at once. */
	void (*after)(void *arg, bool more);
	/* For who holds requests back: what is waited for beside new ones, the
	 * descriptor after start() and the time (monotonic; INT64_MAX: none);
	 * and what is done when either has come. */
	int (*events_fd)(const void *arg);
	int64_t (*due_ms)(const void *arg);
	void (*events)(void *arg);
	/* At the end answer those who wait in the queue of a socket of our own,
	 * which goes with us. */
	bool drain;

	/* In the master: at the start and every tick_ms, but not while all
	 * children are stopped, as nobody is answered then; a child ended
	 * otherwise than it should. */
	void (*tick)(void *arg);
	int64_t tick_ms;
	void (*lost)(void *arg);
	int64_t stop_ms; /* to answer what is at hand; then they are killed */
	/* At the end do not wait: a child that has a request in hand finishes
	 * it, and ends then.  For a supervisor that starts the next master at
	 * once and kills nobody. */
	bool linger;
};

/* Open the sockets and serve them: 0 after SIGTERM or SIGINT, when all children
 * are gone.  The sockets' descriptors end with the process. */
int master_run(const struct serve *serve, const struct config *config,
    struct err *err);

/* How the main() of such a program begins: its command line, [-tv] [-e envfile]
 * and, where linger is not NULL, [-l], its log and its configuration.  It ends
 * the program where they are wrong.  True: -t, which is all that is wanted. */
bool master_begin(const char *name, int argc, char **argv,
    struct config *config, bool *linger);

#endif
