/* SPDX-License-Identifier: MIT */
#include "kept.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "background.h"
#include "base.h"
#include "children.h"
#include "processes.h"
#include "run_state.h"

#define MS_NS 1000000
#define QUIET_MS 1000 /* for all to have ended or stopped */
#define TICK_US 10000 /* of times in /proc */

static const sigset_t none;

/* ---- what /proc says ---- */

/* After "KEY:" in /proc/PID/status; 0 where there is none. */
static int64_t
status_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at == NULL ? 0 : processes_number(at + strlen(key));
}

/* What a process has used, and those that it has waited for: microseconds. */
static int64_t
cpu_of(const struct supervisor *k, pid_t pid, const char *name)
{
	/* a clock of another process: clock_getcpuclockid(3) */
	clockid_t clock = (clockid_t)(~(unsigned int)pid << 3 | 2);
	struct timespec used = { 0 };
	char text[PROCESSES_TEXT_MAX];
	int64_t ticks = 0;

	(void)clock_gettime(clock, &used);
	if (processes_read(k, name, "/stat", text))
		ticks = processes_number(processes_field(text, STAT_CUTIME)) +
		    processes_number(processes_field(text, STAT_CSTIME));
	return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000 +
	    ticks * TICK_US;
}

static void
note_usage(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;
	char name[21];
	char text[PROCESSES_TEXT_MAX];
	int64_t most;

	name[base_decimal(name, (uint64_t)kept->pid)] = '\0';
	kept->cpu_us = cpu_of(k, kept->pid, name);
	state->cpu_us += kept->cpu_us;
	(void)processes_read(k, name, "/status", text);
	most = status_field(text, "\nVmHWM:");
	if (most > state->rss_kib)
		state->rss_kib = most;
	kept->bytes = status_field(text, "\nVmRSS:") * 1024;
}

/* ---- nobody else ---- */

/* Until a child has ended or stopped, but not for long. */
static void
wait_a_moment(void)
{
	struct timespec moment = { .tv_nsec = MS_NS };

	(void)ppoll(NULL, 0, &moment, &none);
}

/* Stop this one, and end the others.  Stopped by one signal to all, nobody can
 * make another while we look for them.  False: it has ended, or they will not
 * in time. */
static bool
quieten(struct supervisor *k, pid_t one, bool stopped)
{
	int64_t until = watch_now() + (int64_t)QUIET_MS * MS_NS;
	int status = 0;

	for (;;) {
		size_t alive = processes_kill(k, one, 0, 0);
		pid_t found = stopped ?
		    0 :
		    wait4(one, &status, WNOHANG | WUNTRACED | __WALL, NULL);

		if (found < 0 || (found > 0 && !WIFSTOPPED(status)))
			return false;
		stopped = stopped || found > 0;
		if (stopped && alive == 0)
			return true;
		if (watch_now() >= until)
			return false;
		wait_a_moment();
		while (children_reap(k->state, WNOHANG) > 0)
			;
	}
}

/* ---- between two runs ---- */

void
kept_end(struct supervisor *k, enum kept_end why)
{
	struct kept *kept = &k->state->kept;

	if (kept->pid <= 0)
		return;
	(void)kill(kept->pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(wait4(kept->pid, NULL, __WALL, NULL));
	base_close(&kept->channel);
	kept->pid = 0;
	kept->ended = why;
}

/* It is ended if it is not at rest, with all that its code has made meanwhile:
 * stopped like it, so that none makes another.  The run's process stays. */
static void
check(struct supervisor *k)
{
	struct run_state *state = k->state;
	pid_t pid = state->kept.pid;
	int status;

	/* oversee() must find the process of a run, even if it has ended */
	if (state->run == 0 && background_stays(k))
		background_reap(k);
	if (pid <= 0 ||
	    wait4(pid, &status, WNOHANG | WUNTRACED | WCONTINUED | __WALL,
		NULL) == 0)
		return;
	(void)kill(-1, SIGSTOP);
	kept_end(k, KEPT_DIED);
	if (!quieten(k, state->run, true))
		base_leave();
	if (state->run > 0)
		(void)kill(state->run, SIGCONT);
}

bool
kept_make_room(struct supervisor *k)
{
	struct run_state *state = k->state;

	if (errno != EAGAIN)
		return false;
	if (state->kept.pid > 0) {
		kept_end(k, KEPT_PROCESSES);
		k->kept = 0;
		while (children_reap(state, WNOHANG) > 0)
			; /* it has not waited for all of its own */
		return true;
	}
	if (!background_stays(k))
		return false;
	children_kill_all(state);
	state->crowded = true;
	return true;
}

int
kept_do(struct supervisor *k)
{
	struct run_state *state = k->state;
	pid_t pid;

	if (state->kept.pid == 0)
		return children_do(k);
	pid = children_clone(k);
	if (pid <= 0)
		return pid;
	state->run = pid; /* check() lets it live */
	state->status = -1;
	for (;;) {
		check(k);
		while (children_reap(state, WNOHANG) > 0)
			;
		if (state->status != -1) {
			errno = ECHILD;
			return state->status == 0 ? 1 : -1;
		}
		(void)ppoll(NULL, 0, NULL, &none);
	}
}

void
kept_wait(struct supervisor *k, int above, short events_above, int fd,
    short events)
{
	struct pollfd p[] = { { above, events_above, 0 }, { fd, events, 0 } };

	do
		check(k);
	while (ppoll(p, 2, NULL, &none) < 0 && errno == EINTR);
	if (p[0].revents != 0)
		base_leave();
}

void
kept_end_others(struct supervisor *k)
{
	struct run_state *state = k->state;

	check(k);
	if (background_stays(k)) {
		if (state->run > 0 && state->status == -1)
			(void)kill(state->run, SIGKILL);
		background_settle(k, false);
		return;
	}
	if (state->kept.pid > 0) {
		while (children_reap(state, WNOHANG) > 0)
			;
		if (quieten(k, state->kept.pid, true)) {
			while (children_reap(state, WNOHANG) > 0)
				;
			return;
		}
		kept_end(k, KEPT_DIED);
	}
	children_kill_all(state);
}

/* ---- the end of a run ---- */

/* What else it has said is not for the next run.  False: it has hung up, or has
 * said nothing at all, which looks the same. */
static bool
forget_words(int channel)
{
	uint8_t word;
	ssize_t len;

	do
		len = recv(channel, &word, 1, MSG_DONTWAIT);
	while (len > 0);
	return len < 0;
}

bool
kept_take(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;
	struct kept_word word;
	bool rests;
	bool makes_sense = recv(state->channel, &word, sizeof(word),
			       MSG_DONTWAIT | MSG_TRUNC) == sizeof(word) &&
	    word.status <= UINT8_MAX && word.names <= INT64_MAX;

	(void)kill(-1, SIGSTOP);
	rests = makes_sense && quieten(k, state->run, false) &&
	    forget_words(state->channel);
	if (!rests)
		children_kill_all(state);
	if (makes_sense)
		state->status = (int)word.status << 8;
	if (!rests)
		return false;
	kept->pid = state->run;
	kept->channel = state->channel;
	kept->names = word.names;
	state->run = 0;
	state->channel = -1;
	note_usage(k);
	return true;
}

void
kept_tell(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct frame *frame = &state->watch.frame;

	if (state->kept.pid > 0) {
		frame_add_int(frame, TAG_KEPT, 1);
		frame_add_int(frame, TAG_KEPT_NAMES,
		    (int64_t)state->kept.names);
		frame_add_int(frame, TAG_KEPT_BYTES, state->kept.bytes);
	}
	if (state->went_on)
		frame_add_int(frame, TAG_WENT_ON, 1);
	if (state->kept.ended != 0)
		frame_add_int(frame, TAG_ENDED, state->kept.ended);
	state->kept.ended = 0;
}

/* ---- the beginning of the next one ---- */

static bool
send_streams(const struct supervisor *k, int channel)
{
	const int fds[] = { k->in, k->out, k->err, k->brief };
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr head;
	} extra = { { 0 } };
	char word = '1';
	struct iovec part = { .iov_base = &word, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = extra.bytes,
		.msg_controllen = sizeof(extra.bytes) };

	extra.head.cmsg_len = CMSG_LEN(sizeof(fds));
	extra.head.cmsg_level = SOL_SOCKET;
	extra.head.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&extra.head), fds, sizeof(fds));
	return sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* How many descriptors may be under way is counted by user: its code can have
 * used that up. */
static bool
hand_over(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;

	check(k);
	if (kept->pid > 0 && !send_streams(k, kept->channel))
		kept_end(k, KEPT_DIED);
	if (kept->pid == 0)
		return false;
	/* the clone is out of reach, and reaped in the course of the run */
	(void)kill(state->run, SIGKILL);
	state->run = kept->pid;
	state->cpu_us -= kept->cpu_us;
	base_close(&state->channel);
	state->channel = kept->channel;
	kept->pid = 0;
	kept->channel = -1;
	state->went_on = true;
	(void)kill(state->run, SIGCONT);
	return true;
}

void
kept_begin(struct supervisor *k)
{
	static const char go_on = '1';

	if (k->kept == 0)
		return;
	if (!hand_over(k))
		(void)send(k->state->channel, &go_on, 1, MSG_NOSIGNAL);
	base_close(&k->in);
	base_close(&k->out);
	base_close(&k->err);
	base_close(&k->brief);
}
