/* SPDX-License-Identifier: MIT */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "network.h"
#include "shared.h"
#include "watch.h"

/*
 * What concerns one run, in memory that no clone gets: so nothing of it has to
 * be wiped, and to write here never costs the copy of a page.
 */
#define RUN_STATE_SAID_MAX 256
#define RUN_STATE_READERS 4 /* see beside.h */

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

#endif
