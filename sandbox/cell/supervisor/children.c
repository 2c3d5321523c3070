/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/children.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell/supervisor/run_state.h"

/* SIGCHLD interrupts ppoll() alone, so that none is missed before it. */
static void
mask_ends(int how)
{
	static const uint64_t set = 1ULL << (SIGCHLD - 1);

	(void)syscall(SYS_rt_sigprocmask, how, &set, NULL, sizeof(set));
}

pid_t
children_clone(const struct supervisor *k)
{
	pid_t pid;
	int code;

	k->before_fork();
	pid = fork();
	code = errno; /* the hooks may change it */
	if (pid == 0) {
		mask_ends(SIG_UNBLOCK);
		k->in_child();
	} else {
		k->in_parent();
	}
	errno = code;
	return pid;
}

/* A handler, because PID 1 gets no signal that has none. */
static void
do_nothing(int number)
{
	(void)number;
}

void
children_take_all(struct run_state *state)
{
	state->takes_all = true;
	(void)signal(SIGCHLD, do_nothing);
	mask_ends(SIG_BLOCK);
}

static int64_t
microseconds(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

/* A child that is not the run's: its place is free. */
static bool
is_ours(struct run_state *state, pid_t pid)
{
	if (pid == state->init) {
		state->init = 0;
		return true;
	}
	for (int i = 0; i < RUN_STATE_READERS; i++) {
		if (pid == state->readers[i].pid) {
			state->readers[i].pid = 0;
			return true;
		}
	}
	return false;
}

/* The run is charged for all that it reaps, but for our own processes.  An
 * orphan of a session may be an earlier command's: it is charged to none. */
static void
note(struct run_state *state, pid_t pid, int status, const struct rusage *usage)
{
	if (is_ours(state, pid))
		return;
	if (pid == state->run)
		state->status = status;
	else if (state->spares && state->plan.end_all == 0)
		return;
	state->cpu_us += microseconds(&usage->ru_utime) +
	    microseconds(&usage->ru_stime);
	if (usage->ru_maxrss > state->rss_kib)
		state->rss_kib = usage->ru_maxrss;
}

/* __WALL: a run chooses by which signal its children tell their end. */
pid_t
children_reap(struct run_state *state, int how)
{
	struct rusage usage;
	int status = 0;
	pid_t found;

	found = (pid_t)TEMP_FAILURE_RETRY(wait4(-1, &status, how | __WALL,
	    &usage));
	if (found > 0)
		note(state, found, status, &usage);
	return found;
}

void
children_reap_ended(struct run_state *state)
{
	while (children_reap(state, WNOHANG) > 0)
		;
}

void
children_kill_all(struct run_state *state)
{
	pid_t found = 1;

	/* So many have ended at most: a run that makes more does not hold up
	 * its end. */
	for (int i = 0; i < 16 && found > 0; i++)
		found = children_reap(state, WNOHANG);
	/* Whoever lives descends from us: without a child there is nobody.  To
	 * look for one, the kernel would go through all of the host's. */
	if (found < 0)
		return;
	/* One reaches all: a process with a pending SIGKILL cannot fork. */
	if (state->takes_all)
		(void)kill(-1, SIGKILL);
	if (state->init > 0)
		(void)kill(state->init, SIGKILL);
	while (children_reap(state, 0) > 0)
		;
}

int
children_do(const struct supervisor *k)
{
	pid_t pid = children_clone(k);
	int status = -1;

	if (pid <= 0)
		return pid;
	(void)TEMP_FAILURE_RETRY(wait4(pid, &status, 0, NULL));
	errno = ECHILD;
	return status == 0 ? 1 : -1;
}
