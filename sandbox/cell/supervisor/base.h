/* SPDX-License-Identifier: MIT */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/supervisor/shared.h"
#include "cell/supervisor/watch.h"

/* Helpers for all other files, in the supervisor and in a run's process. */

/* SUPERVISOR_FOLDERS. */
extern const char *const base_folders[SUPERVISOR_FOLDER_COUNT];

/* The cell ends, and with it everything that runs in the container. */
_Noreturn void base_leave(void);

/* "STEP ERRNO" into why.  Returns its length. */
size_t base_describe(char why[SUPERVISOR_WHY_MAX], const char *step, int code);

/* The same into k->why, with errno, and SUPERVISOR_FAILED; step NULL: nothing
 * has failed, SUPERVISOR_DONE. */
int base_fail(struct supervisor *k, const char *step);

/* The number at the beginning of a text, after blanks; 0: there is none. */
int64_t base_number(const char *text);

/* The index of a path among SUPERVISOR_FOLDERS; -1: it is none of them. */
int base_find_folder(const unsigned char *path, size_t len);

void base_close(int *fd);

/* Close all descriptors but 0, 1, 2 and `kept`; -1: only those stay.  Ends the
 * process when that fails. */
void base_close_others(int kept);

/* Close a run's standard streams and brief: its process has copies. */
void base_close_streams(struct supervisor *k);

/* Wait for events at fd.  The process ends at events_above, or when the peer at
 * above is gone; PID 1 ends the cell with it. */
void base_wait(int above, short events_above, int fd, short events);

/* recvmsg() of a packet with `count` descriptors, BASE_FDS_MAX at most.  fds[0]
 * is -1 where exactly so many have not come. */
#define BASE_FDS_MAX 4
ssize_t base_receive(int socket, void *data, size_t size, int how, int *fds,
    size_t count);

/* Receive the next lease from the broker, with its terms; ends the process when
 * the broker is gone.  With MSG_PEEK the lease stays there for another process;
 * -1: a reader beside a run that has ended came instead, and its connection is
 * closed. */
int base_next_lease(struct supervisor *k, int how);

/* Receive the socket of a reader beside the run, while a lease goes on.  -1:
 * there is no room for one more descriptor. */
int base_receive_reader(const struct supervisor *k);

/* The names in a folder, without a heap: begin with its descriptor, which is
 * borrowed, and nothing else. */
struct base_names {
	int folder;
	bool failed; /* names may be missing */
	size_t at;
	size_t end;
	char bytes[2048] __attribute__((aligned(8)));
};

/* The next name, or NULL after the last one. */
const char *base_next_name(struct base_names *names);

/*
 * The state of one run, in memory that no clone gets: nothing of it has to be
 * wiped, and writing to it never costs the copy of a page.
 */
#define RUN_STATE_SAID_MAX 256
#define RUN_STATE_READERS 4 /* beside a run */

/*
 * The network namespace of runs that have a /proc, which shows its counters.
 * Runs share one until something has been sent in it: most runs send nothing,
 * and a new namespace costs a quarter of a run.
 */
#define NETWORK_FILES 3
#define NETWORK_MAX 8192

struct network {
	int files[NETWORK_FILES]; /* /proc/net/...; -1: none */
	size_t lens[NETWORK_FILES];
	char noted[NETWORK_FILES][NETWORK_MAX]; /* at its beginning */
	char now[NETWORK_MAX];
};

/* The process of an earlier run that will do the next one: kept.h. */
struct kept {
	pid_t pid; /* 0: none */
	int channel;
	int64_t cpu_us; /* used when it came to rest */
	int64_t bytes;	/* of memory */
	uint64_t names; /* of variables */
	int64_t ended;	/* enum kept_end of the last one, until reported */
};

struct run_state {
	pid_t init; /* 0: reaped */
	pid_t run;
	int status;  /* wait status of run; -1 while it is not known */
	bool adopts; /* children_adopt_all() was called */
	bool spares; /* an orphan is not charged to the run */
	/* of all reaped processes */
	int64_t cpu_us;
	int64_t rss_kib; /* of the largest */
	int64_t ooms;	 /* the memory limit's kills before the run */
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
	bool crowded; /* kept_make_room() made room; to be reported */
	struct supervisor_plan plan;
	char said[RUN_STATE_SAID_MAX];
};

/*
 * Children: a jail's init, its run, the process that sends files; for PID 1
 * also orphans.
 */

/* fork(), with the hooks of the interpreter before and after. */
pid_t children_clone(const struct supervisor *k);

/* PID 1 only: from here on the end of any process interrupts ppoll() with an
 * empty mask, and children_kill_all() ends all that is in the container. */
void children_adopt_all(struct run_state *state);

/* Wait for the next child that ends; how: 0, or WNOHANG.  Returns its pid; 0:
 * none has ended yet; -1: there is no child. */
pid_t children_reap(struct run_state *state, int how);

/* Reap all children that have ended. */
void children_reap_ended(struct run_state *state);

/* End the jail: the kernel ends all processes in it with its init.  PID 1 ends
 * every process.  Returns when no child is left. */
void children_kill_all(struct run_state *state);

/* The number of processes that the memory limit has killed so far. */
int64_t run_state_count_ooms(const struct supervisor *k);

/*
 * The result of a run, for the client: k->state->watch.frame.
 */

/* Begin the frame: the reason of the end, and the status.  wall_ns: the
 * duration of the run. */
void run_state_begin_result(struct supervisor *k, enum watch_end end,
    int64_t wall_ns);

/* Add the used bytes and files of a folder's file system. */
void run_state_add_disk(struct supervisor *k, int folder);

/* The number of names in the folder: each, also a link, takes one of its
 * inodes. */
uint64_t run_state_used_files(const struct supervisor *k, int folder);

/* The whole frame for a process that was killed before it became the run. */
void run_state_fail_result(struct supervisor *k);

#endif
