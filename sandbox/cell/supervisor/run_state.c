/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/run_state.h"

#include <signal.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/frame.h"

#define DISK_ROOM_LEAST 65536

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

/* The true reason: what ended it comes before how it died. */
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

/* What its own files take may be more than what is used now. */
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
	/* what a run could not write is not known: there is no room now */
	if (fs.f_bavail * (uint64_t)fs.f_frsize < DISK_ROOM_LEAST)
		frame_add_int(frame, TAG_DISK_FULL, DISK_FULL_BYTES);
	else if (fs.f_ffree == 0)
		frame_add_int(frame, TAG_DISK_FULL, DISK_FULL_FILES);
}

/* The memory is its run's fault, anything else is ours. */
void
run_state_tell_nothing(struct supervisor *k)
{
	struct frame *frame = &k->state->watch.frame;
	bool ours = run_state_count_ooms(k) <= k->state->ooms;

	frame_start(frame, FRAME_RESULT);
	frame_add_int(frame, TAG_REASON, ours ? REASON_ERROR : REASON_MEMORY);
	if (ours)
		frame_add_int(frame, TAG_CODE, ERROR_FAILED);
}
