/* SPDX-License-Identifier: MIT */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cell/supervisor/shared.h"

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

/* value in digits, without an end; at most 20.  Returns how many. */
size_t base_decimal(char *text, uint64_t value);

void base_close(int *fd);

/* Close all descriptors but 0, 1, 2 and `kept`; -1: only those stay. */
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

#endif
