/* SPDX-License-Identifier: MIT */
#ifndef MASTER_H
#define MASTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve.h"

struct config;
struct err;

/*
 * The first process of il-api and of il-fcgi: it holds the sockets, forks the
 * children that serve them, and starts those again that end.  A child that
 * dies takes what it has in hand with it, and nothing else.  The sockets may be
 * handed over by a supervisor as descriptors 3 and on (LISTEN_FDS, LISTEN_PID).
 */
struct master_child;

#define MASTER_SOCKETS_MAX 4

struct master_socket {
	const char *name; /* in the state directory; static */
	int backlog;	  /* the kernel cuts it at net.core.somaxconn */
	size_t children;
};

struct master {
	size_t sockets;
	int listen_fd[MASTER_SOCKETS_MAX];
	char *path[MASTER_SOCKETS_MAX]; /* our own; NULL when handed over */
	struct master_child *children;
	size_t count;
	/* In the index-th child: serve its socket until a signal says to end.
	 * Returns the status to end with. */
	int (*work)(void *arg, struct serve *serve, size_t index);
	/* In the master, at the start and every tick_ms.  Or NULL. */
	void (*tick)(void *arg);
	int64_t tick_ms;
	/* In the master: a child ended otherwise than it should.  Or NULL. */
	void (*lost)(void *arg);
	void *arg;
	int64_t stop_ms; /* to answer what is at hand; then they are killed */
	/* At the end do not wait: a child that has a request in hand finishes
	 * it, and ends then.  For a supervisor that starts the next master at
	 * once and kills nobody. */
	bool linger;
};

/* After -1 there is nothing to close. */
int master_open(struct master *master, const struct config *config,
    const struct master_socket *sockets, size_t count, struct err *err);
/* 0 after SIGTERM or SIGINT, when all children are gone. */
int master_run(struct master *master, struct err *err);
void master_close(struct master *master);

#endif
