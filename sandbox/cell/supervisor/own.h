#ifndef OWN_H
#define OWN_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "keeper.h"
#include "watch.h"

/*
 * What concerns one run, in memory that no clone gets: so nothing of it has to
 * be wiped, and to write here never costs the copy of a page.  And what the
 * keeper's files share.
 */
#define OWN_SAID_MAX 256

struct keeper_own {
	bool away;  /* are our next children in a jail? */
	pid_t init; /* 0: reaped */
	pid_t run;
	int status; /* wait status of run; -1 while it is not known */
	struct rusage usage;
	int64_t ooms; /* the memory limit's kills before it */
	int channel;
	int folders[KEEPER_FOLDER_COUNT];
	int mounts; /* the jail's mount namespace */
	struct watch watch;
	struct keeper_plan plan;
	char said[OWN_SAID_MAX];
};

/* The cell ends, and with it everything that runs in the container. */
_Noreturn void own_leave(void);

/* "STEP ERRNO" into why.  Returns its length. */
size_t own_describe(char why[KEEPER_WHY_MAX], const char *step, int code);

/* The same into k->why, with errno.  Returns KEEPER_FAILED. */
int own_fail(struct keeper *k, const char *step);

/* value in digits, without an end; at most 20.  Returns how many. */
size_t own_decimal(char *text, uint64_t value);

void own_close(int *fd);

/* In the keeper: what the run's process says, into own->said, with a NUL behind
 * it; 0 when it has ended.  Ends the cell when the broker is gone. */
size_t own_hear(struct keeper *k);

/* The next lease from the broker; ends the process when that is gone.  With
 * MSG_PEEK it is there for the next one to take, too. */
int own_next_lease(const struct keeper *k, int how);

#endif
