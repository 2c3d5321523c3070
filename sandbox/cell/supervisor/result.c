#include "result.h"

#include <signal.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "children.h"
#include "run_state.h"

#include "../../protocol/frame.h"

#define DISK_FULL_BYTES 65536

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
		    killed && children_count_ooms(k) > k->state->ooms ?
			REASON_MEMORY :
			REASON_SIGNAL);
		frame_add_int(frame, TAG_SIGNAL, WTERMSIG(status));
	}
}

static int64_t
microseconds(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

void
result_begin(struct supervisor *k, enum watch_end end, int64_t wall_ns)
{
	struct frame *frame = &k->state->watch.frame;
	const struct rusage *usage = &k->state->usage;

	frame_start(frame, FRAME_RESULT);
	add_ending(k, end);
	frame_add_int(frame, TAG_WALL_US, wall_ns / 1000);
	frame_add_int(frame, TAG_CPU_US,
	    microseconds(&usage->ru_utime) + microseconds(&usage->ru_stime));
	frame_add_int(frame, TAG_MAX_RSS, (int64_t)usage->ru_maxrss * 1024);
}

uint64_t
result_add_disk(struct supervisor *k, int folder)
{
	struct frame *frame = &k->state->watch.frame;
	struct statfs fs;

	if (fstatfs(folder, &fs) < 0)
		return 0;
	frame_add_int(frame, TAG_USED_BYTES,
	    (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_frsize);
	frame_add_int(frame, TAG_USED_FILES,
	    (int64_t)(fs.f_files - fs.f_ffree - 1));
	if (fs.f_bavail * (uint64_t)fs.f_frsize < DISK_FULL_BYTES ||
	    fs.f_ffree == 0)
		frame_add_int(frame, TAG_DISK_FULL, 1);
	return fs.f_files - fs.f_ffree - 1;
}

bool
result_is_bad(const struct supervisor *k, enum watch_end end)
{
	int status = k->state->status;

	return end != WATCH_ENDED || k->state->watch.over ||
	    (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
	    children_count_ooms(k) > k->state->ooms;
}

void
result_of_nothing(struct supervisor *k)
{
	struct frame *frame = &k->state->watch.frame;

	frame_start(frame, FRAME_RESULT);
	if (children_count_ooms(k) > k->state->ooms) {
		frame_add_int(frame, TAG_REASON, REASON_MEMORY);
	} else {
		frame_add_int(frame, TAG_REASON, REASON_ERROR);
		frame_add_int(frame, TAG_CODE, ERROR_FAILED);
	}
}
