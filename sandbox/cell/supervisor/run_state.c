/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/run_state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/frame.h"

#define DISK_ROOM_LEAST 65536

/* ---- children ---- */

/* Block SIGCHLD but for ppoll(), so that no end is missed before it. */
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

/* PID 1 gets no signal that has no handler. */
static void
do_nothing(int number)
{
	(void)number;
}

void
children_adopt_all(struct run_state *state)
{
	state->adopts = true;
	(void)signal(SIGCHLD, do_nothing);
	mask_ends(SIG_BLOCK);
}

static int64_t
microseconds(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

/* A child that is not the run's: its slot is free. */
static bool
free_slot(struct run_state *state, pid_t pid)
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

/* Charge the run for a reaped process, unless the process is one of ours.  An
 * orphan in a session may be an earlier command's: it is charged to none. */
static void
charge(struct run_state *state, pid_t pid, int status,
    const struct rusage *usage)
{
	if (free_slot(state, pid))
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

/* __WALL: a run chooses the signal by which its children report their end. */
pid_t
children_reap(struct run_state *state, int how)
{
	struct rusage usage;
	int status = 0;
	pid_t found;

	found = (pid_t)TEMP_FAILURE_RETRY(wait4(-1, &status, how | __WALL,
	    &usage));
	if (found > 0)
		charge(state, found, status, &usage);
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

	/* no more than these: a run that makes more does not delay its end */
	for (int i = 0; i < 16 && found > 0; i++)
		found = children_reap(state, WNOHANG);
	/* All processes descend from us: without a child there is none.  For
	 * kill(-1) the kernel would search all processes of the host. */
	if (found < 0)
		return;
	/* one call is enough: a process with a pending SIGKILL cannot fork */
	if (state->adopts)
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

/* ---- the result ---- */

/* The line "oom_kill N" of memory.events (cgroup v2) and of memory.oom_control
 * (v1). */
int64_t
run_state_count_ooms(const struct supervisor *k)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	const char *at;
	int64_t count = 0;
	ssize_t len = -1;

	if (k->ooms >= 0)
		len = pread(k->ooms, text + 1, sizeof(text) - 2, 0);
	if (len <= 0)
		return 0;
	text[1 + len] = '\0';
	at = strstr(text, key);
	if (at == NULL)
		return 0;
	for (at += sizeof(key) - 1; *at >= '0' && *at <= '9'; at++)
		count = count * 10 + (*at - '0');
	return count;
}

/* The true reason: our limits come before the status of the process. */
static void
add_ending(const struct supervisor *k, enum watch_end end)
{
	struct frame *frame = &k->state->watch.frame;
	int status = k->state->status;
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (end == WATCH_TIME) {
		frame_add_int(frame, TAG_REASON, REASON_TIME);
	} else if (end == WATCH_OUTPUT || k->state->watch.over) {
		frame_add_int(frame, TAG_REASON, REASON_OUTPUT);
	} else if (WIFEXITED(status)) {
		frame_add_int(frame, TAG_REASON, REASON_EXIT);
		frame_add_int(frame, TAG_STATUS, WEXITSTATUS(status));
	} else {
		frame_add_int(frame, TAG_REASON,
		    killed && run_state_count_ooms(k) > k->state->ooms ?
			REASON_MEMORY :
			REASON_SIGNAL);
		frame_add_int(frame, TAG_SIGNAL, WTERMSIG(status));
	}
}

void
run_state_begin_result(struct supervisor *k, enum watch_end end,
    int64_t wall_ns)
{
	struct frame *frame = &k->state->watch.frame;

	frame_start(frame, FRAME_RESULT);
	add_ending(k, end);
	frame_add_int(frame, TAG_WALL_US, wall_ns / 1000);
	frame_add_int(frame, TAG_CPU_US, k->state->cpu_us);
	frame_add_int(frame, TAG_MAX_RSS, k->state->rss_kib * 1024);
}

/* Less, but not below 0: a file system's own files may be more than its used
 * ones. */
static uint64_t
minus(uint64_t value, uint64_t less)
{
	return value > less ? value - less : 0;
}

uint64_t
run_state_used_files(const struct supervisor *k, int folder)
{
	struct statfs fs;

	return fstatfs(folder, &fs) < 0 ?
	    0 :
	    minus(fs.f_files - fs.f_ffree, k->own_files);
}

void
run_state_add_disk(struct supervisor *k, int folder)
{
	struct frame *frame = &k->state->watch.frame;
	struct statfs fs;

	if (fstatfs(folder, &fs) < 0)
		return;
	frame_add_int(frame, TAG_USED_BYTES,
	    (int64_t)minus(fs.f_blocks - fs.f_bfree, k->own_blocks) *
		(int64_t)fs.f_frsize);
	frame_add_int(frame, TAG_USED_FILES,
	    (int64_t)minus(fs.f_files - fs.f_ffree, k->own_files));
	/* whether a write has failed is unknown: report that the disk is
	 * full */
	if (fs.f_bavail * (uint64_t)fs.f_frsize < DISK_ROOM_LEAST)
		frame_add_int(frame, TAG_DISK_FULL, DISK_FULL_BYTES);
	else if (fs.f_ffree == 0)
		frame_add_int(frame, TAG_DISK_FULL, DISK_FULL_FILES);
}

/* A kill by the memory limit is the run's fault, any other end is ours. */
void
run_state_fail_result(struct supervisor *k)
{
	struct frame *frame = &k->state->watch.frame;
	bool ours = run_state_count_ooms(k) <= k->state->ooms;

	frame_start(frame, FRAME_RESULT);
	frame_add_int(frame, TAG_REASON, ours ? REASON_ERROR : REASON_MEMORY);
	if (ours)
		frame_add_int(frame, TAG_CODE, ERROR_FAILED);
}
