/* SPDX-License-Identifier: MIT */
#ifndef BASE_H
#define BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/supervisor/shared.h"

/*
 * What the other files here build on, in the supervisor as in a run's process.
 */

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

/* Close all but 0, 1, 2 and this one; -1: all but those. */
void base_close_others(int kept);

/* A run's standard streams, and its brief: its process has copies of them. */
void base_close_streams(struct supervisor *k);

/* Until something comes of events at fd; the cell ends, or a run's process,
 * when the end comes of whoever is at above, or events_above. */
void base_wait(int above, short events_above, int fd, short events);

/* The next lease from the broker, with its terms; ends the process when the
 * broker is gone.  With MSG_PEEK it is there for the next one to take, too; -1:
 * that was one who wanted to look beside a run that is over, and is hung up on.
 */
int base_next_lease(struct supervisor *k, int how);

/* In a lease, something has come of the broker: the socket of one who wants to
 * look beside it.  -1: there is no room for one more descriptor. */
int base_take_beside(const struct supervisor *k);

/* The names in a folder, without a heap: begin with its descriptor, which is
 * borrowed, and nothing else. */
struct base_names {
	int folder;
	bool failed; /* there may be others */
	size_t at;
	size_t end;
	char bytes[2048] __attribute__((aligned(8)));
};

/* The next one, or NULL when there is none left. */
const char *base_next_name(struct base_names *names);

#endif
