/* SPDX-License-Identifier: MIT */
#ifndef SEEN_H
#define SEEN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The interactions that were answered lately, in memory that the processes of
 * il-fcgi share: refuses what is sent again and makes no job (an editor that is
 * opened, a refusal).  What made a job is refused by the job's unique
 * interaction id for good.
 */
#define SEEN_MAX 8192

/* A ring of ids, each in the chain of its hash.  Zero is empty. */
struct seen {
	pthread_mutex_t lock; /* robust: its holder may be killed */
	int64_t ids[SEEN_MAX];
	uint16_t heads[SEEN_MAX]; /* the newest of a chain: its place + 1 */
	uint16_t older[SEEN_MAX]; /* the next one of the chain, likewise */
	unsigned next;
};

/* Once, in zeroed memory, before others share it. */
void seen_init(struct seen *seen);
/* Note the id (never 0).  False: it had been noted before. */
bool seen_add(struct seen *seen, int64_t id);
/* Forget all: somebody was killed who may have noted what it never answered. */
void seen_forget(struct seen *seen);

#endif
