/* SPDX-License-Identifier: MIT */
#ifndef NETWORK_H
#define NETWORK_H

#include <stddef.h>

/*
 * The network namespace of runs that have a /proc, which shows what was counted
 * there.  They share one until something has been sent in it: most runs send
 * nothing, and another one costs a quarter of a run.
 */
#define NETWORK_FILES 3
#define NETWORK_MAX 8192

struct network {
	int files[NETWORK_FILES]; /* /proc/net/...; -1: there is none */
	size_t lens[NETWORK_FILES];
	char noted[NETWORK_FILES][NETWORK_MAX]; /* when it was made */
	char now[NETWORK_MAX];
};

/* No namespace is ours yet. */
void network_init(struct network *network);

/* The supervisor calls it before the clone of a run's process: from then on it
 * is in a namespace that has counted nothing, with its loopback device up.
 * proc is a /proc.  Returns NULL, or the step that failed, with errno. */
const char *network_renew(struct network *network, int proc);

#endif
