/* SPDX-License-Identifier: MIT */
#include "beside.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "children.h"
#include "run_state.h"

#include "../../protocol/frame.h"

#define MS_NS 1000000
#define FILES_MAX 64 /* the interpreter's own limit: run.py, FD_MAX */

/* Room for one more, or NULL.  Each has an alarm that ends it: one that is
 * still there was stopped by the code beside it. */
static struct reader *
find_place(struct run_state *state)
{
	int64_t before = watch_now() - (int64_t)LIMIT_LOOK_MS * MS_NS;
	struct reader *place = NULL;

	for (int i = 0; i < RUN_STATE_READERS; i++) {
		struct reader *reader = &state->readers[i];

		if (reader->pid == 0)
			place = reader;
		else if (reader->since < before)
			(void)kill(reader->pid, SIGKILL);
	}
	return place;
}

/* Neither the broker nor the client of the run can be spoken to from here. */
static void
keep_only(int fd)
{
	if (syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0) == 0 &&
	    syscall(SYS_close_range, fd + 1, ~0U, 0) == 0)
		return;
	/* before Linux 5.9 one by one */
	for (int other = STDERR_FILENO + 1; other < FILES_MAX; other++)
		if (other != fd)
			(void)close(other);
}

bool
beside_begin(struct supervisor *k)
{
	struct reader *place;
	pid_t pid = -1;
	int fd;

	if (k->reads != SUPERVISOR_READS_SOURCE)
		base_leave(); /* not in a cell of this class */
	fd = base_take_beside(k);
	place = find_place(k->state);
	if (fd >= 0 && place != NULL)
		pid = children_clone(k);
	if (pid == 0) { /* which has no state */
		keep_only(fd);
		k->lease = fd;
		return true;
	}
	if (pid > 0)
		*place = (struct reader){ pid, watch_now() };
	base_close(&fd);
	return false;
}
