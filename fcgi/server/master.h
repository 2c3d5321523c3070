/* SPDX-License-Identifier: MIT */
#ifndef MASTER_H
#define MASTER_H

struct config;
struct err;
struct serve;

/*
 * The first process of il-api, of il-fcgi and of il-node: the master owns the
 * sockets, forks the children that serve them, and restarts children that end.
 * A child that dies loses its own requests alone.  A supervisor may pass the
 * sockets as descriptors 3 and on (LISTEN_FDS, LISTEN_PID).
 */

/* Open the sockets and serve them: 0 after SIGTERM or SIGINT, when all children
 * are gone.  The sockets' descriptors end with the process. */
int master_run(const struct serve *serve, const struct config *config,
    struct err *err);

#endif
