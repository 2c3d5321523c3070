/* SPDX-License-Identifier: MIT */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/supervisor/shared.h"
#include "cell/supervisor/watch.h"

/*
 * What concerns one run, in memory that no clone gets: so nothing of it has to
 * be wiped, and to write here never costs the copy of a page.
 */
#define RUN_STATE_SAID_MAX 256
#define RUN_STATE_READERS 4 /* that look beside a run */

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

/* The process of an earlier run, which is to do the next one: kept.h. */
struct kept {
	pid_t pid; /* 0: there is none */
	int channel;
	int64_t cpu_us; /* that it had used when it came to rest */
	int64_t bytes;	/* of memory, */
	uint64_t names;
	int64_t ended; /* enum kept_end of the last one, if not told; or 0 */
};

struct run_state {
	pid_t init; /* 0: reaped */
	pid_t run;
	int status;	/* wait status of run; -1 while it is not known */
	bool takes_all; /* see children_take_all() */
	bool spares;	/* an orphan is not the run's: it is charged to none */
	/* of all that was reaped */
	int64_t cpu_us;
	int64_t rss_kib; /* of the largest */
	int64_t ooms;	 /* the memory limit's kills before it */
	struct reader {
		pid_t pid; /* 0: none */
		int64_t since;
	} readers[RUN_STATE_READERS];
	int channel;
	int folders[SUPERVISOR_FOLDER_COUNT];
	int mounts; /* the jail's mount namespace */
	struct watch watch;
	struct network network;
	struct kept kept;
	bool went_on; /* the run is one of a kept process */
	bool crowded; /* there was no room, see kept_make_room(); not told */
	struct supervisor_plan plan;
	char said[RUN_STATE_SAID_MAX];
};

/* How many processes the memory limit has killed so far. */
int64_t run_state_count_ooms(const struct supervisor *k);

/*
 * The result of a run, as the client is told: k->state->watch.frame.
 */

/* Begin the frame: why the run has ended, and with what.  wall_ns: how long it
 * has run. */
void run_state_begin_result(struct supervisor *k, enum watch_end end,
    int64_t wall_ns);

/* Add what is used of a folder's file system. */
void run_state_add_disk(struct supervisor *k, int folder);

/* The number of names in the folder: each, also a link, takes one of its
 * inodes. */
uint64_t run_state_used_files(const struct supervisor *k, int folder);

/* The whole frame for a process that was killed before it became the run. */
void run_state_tell_nothing(struct supervisor *k);

#endif
