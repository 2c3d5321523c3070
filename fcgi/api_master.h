#ifndef API_MASTER_H
#define API_MASTER_H

#include <stdbool.h>
#include <stddef.h>

struct config;
struct err;

/*
 * The first process of il-api: it holds the sockets, forks the children that
 * serve them, and starts those again that end.
 *
 *	api.sock   what is answered at once: a few children
 *	run.sock   what runs code: IL_API_CELLS children, one request each; the
 *	           rest waits in its backlog, IL_API_QUEUE long, in order
 *
 * So nothing that runs can hold up what does not, and a child that dies takes
 * one request with it.  Both sockets may be handed over by a supervisor as
 * descriptors 3 and 4 (LISTEN_FDS, LISTEN_PID).
 */
struct master_child;

enum master_socket { MASTER_QUICK, MASTER_RUN, MASTER_SOCKETS };

struct master {
	int listen_fd[MASTER_SOCKETS];
	char *path[MASTER_SOCKETS]; /* of our own; NULL when handed over */
	struct master_child *children;
	size_t count;
	/* In the child: serve the socket until a signal says to end. */
	int (*work)(void *arg, int listen_fd);
	/* In the master, at the start and every MASTER_TICK_MS. */
	void (*tick)(void *arg);
	void *arg;
};

#define MASTER_TICK_MS 60000

/* After -1 there is nothing to close. */
int master_open(struct master *master, const struct config *config,
    struct err *err);
/* 0 after SIGTERM or SIGINT, when all children are gone. */
int master_run(struct master *master, struct err *err);
void master_close(struct master *master);

#endif
