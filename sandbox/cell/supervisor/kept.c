/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cell/supervisor/base.h"

#define MS_NS 1000000
#define QUIET_MS 1000 /* for all to have ended or stopped */
#define TICK_US 10000 /* of times in /proc */

static const sigset_t no_signals;

/* ---- reading /proc ---- */

#define TEXT_MAX 2048
/* Fields of /proc/PID/stat. */
enum {
	STAT_STATE = 0,
	STAT_PARENT = 1,
	STAT_SESSION = 3,
	STAT_CUTIME = 13,
	STAT_CSTIME = 14,
	STAT_THREADS = 17,
	STAT_STARTED = 19
};

/* Read "/stat" or "/status" of a pid into text, with a NUL behind it.  False:
 * there is no such process. */
static bool
read_process(const struct supervisor *k, int64_t pid, const char *what,
    char text[TEXT_MAX])
{
	char path[32];
	ssize_t got = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "%lld%s", (long long)pid, what);
	fd = openat(k->proc, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, TEXT_MAX - 1);
		(void)close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* Returns where a field of /proc/PID/stat begins.  It is "PID (NAME) STATE …":
 * STATE has the number 0, and a process chooses its NAME. */
static const char *
stat_field(const char *text, int number)
{
	const char *end = strrchr(text, ')');
	const char *at = end != NULL ? end + 1 : text;

	for (; number >= 0 && *at != '\0'; at++)
		number -= *at == ' ';
	return at;
}

static int64_t
field_of(const char *stat, int number)
{
	return base_number(stat_field(stat, number));
}

/* The first of its threads may be dead and others alive. */
static bool
is_alive(const char *stat)
{
	const char *state = stat_field(stat, STAT_STATE);

	return (*state != 'Z' && *state != 'X') ||
	    field_of(stat, STAT_THREADS) > 1;
}

/* Is the process of that session or a later one, and did it begin at `since` or
 * later, and do both hold for all of its ancestors but PID 1?  Overwrites its
 * stat. */
static bool
is_of(const struct supervisor *k, char stat[TEXT_MAX], pid_t session,
    int64_t since)
{
	int64_t parent;

	do {
		if (field_of(stat, STAT_SESSION) < session ||
		    field_of(stat, STAT_STARTED) < since)
			return false;
		parent = session > 0 ? field_of(stat, STAT_PARENT) : 0;
	} while (parent > 1 && read_process(k, parent, "/stat", stat));
	return true;
}

/* Kill all processes for which is_of() holds, but not PID 1 and spared (0:
 * none).  Returns how many of them were alive; it is not 0 where that is
 * not known. */
static size_t
kill_processes(const struct supervisor *k, pid_t spared, pid_t session,
    int64_t since)
{
	struct base_names names = { .folder = openat(k->proc, ".",
					O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	char stat[TEXT_MAX];
	const char *name;
	size_t alive = names.folder < 0;

	while (names.folder >= 0 && (name = base_next_name(&names)) != NULL) {
		pid_t pid = (pid_t)base_number(name);

		if (pid > 1 && pid != spared &&
		    read_process(k, pid, "/stat", stat) && is_alive(stat) &&
		    is_of(k, stat, session, since)) {
			alive++;
			(void)kill(pid, SIGKILL);
		}
	}
	alive += names.failed;
	base_close(&names.folder);
	return alive;
}

/* Kill these processes until none is alive, but not `spared`, which must have
 * stopped by then, or have been stopped (`stopped`).  One signal has stopped
 * all, so that none makes another one meanwhile.  False: `spared` has ended, or
 * the others do not end in time. */
static bool
quieten(struct supervisor *k, pid_t spared, bool stopped, pid_t session,
    int64_t since)
{
	int64_t until = watch_now() + (int64_t)QUIET_MS * MS_NS;
	int status = 0;

	for (;;) {
		size_t alive = kill_processes(k, spared, session, since);
		pid_t found = stopped ?
		    0 :
		    wait4(spared, &status, WNOHANG | WUNTRACED | __WALL, NULL);

		if (found < 0 || (found > 0 && !WIFSTOPPED(status)))
			return false;
		stopped = stopped || found > 0;
		if (stopped && alive == 0)
			return true;
		if (watch_now() >= until)
			return false;
		/* until a child has ended or stopped, but not for long */
		(void)ppoll(NULL, 0, &(struct timespec){ .tv_nsec = MS_NS },
		    &no_signals);
		children_reap_ended(k->state);
	}
}

/* ---- background processes ---- */

bool
background_stays(const struct supervisor *k)
{
	return k->lasts != 0 && k->once != 0 && k->state->plan.end_all == 0;
}

/* ---- a command that was cut short ---- */

/* Kill all processes of the command.  It leads a session (run_process.c); a
 * process that has left that session has a later one, and is no older.  Newer
 * processes of earlier commands differ by their ancestors. */
static void
end_its(struct supervisor *k)
{
	char stat[TEXT_MAX]; /* of a process that has not been reaped */

	(void)read_process(k, k->state->run, "/stat", stat);
	(void)kill(-1, SIGSTOP);
	if (quieten(k, 0, true, k->state->run, field_of(stat, STAT_STARTED)))
		(void)kill(-1, SIGCONT);
	else
		children_kill_all(k->state);
}

/* The command's process is dead, or dies. */
void
background_settle(struct supervisor *k, bool cut)
{
	struct run_state *state = k->state;

	if (cut) {
		state->spares = false;
		end_its(k);
	}
	while (state->run > 0 && state->status == -1 &&
	    children_reap(state, 0) > 0)
		;
	children_reap_ended(k->state);
}

/* ---- its pipes ---- */

/* Close all other descriptors: this process must not reach broker or client. */
static void
keep_only(const int fds[WATCH_STREAMS])
{
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (fds[i] >= 0)
			(void)dup2(fds[i], i);
		else
			(void)close(i);
	(void)syscall(SYS_close_range, WATCH_STREAMS, ~0U, 0);
}

static _Noreturn void
empty_pipes(void)
{
	static char bytes[4096];
	struct pollfd p[WATCH_STREAMS];
	int open = WATCH_STREAMS;

	for (int i = 0; i < WATCH_STREAMS; i++)
		p[i] = (struct pollfd){ i, POLLIN, 0 };
	while (open > 0) {
		(void)poll(p, WATCH_STREAMS, -1);
		for (int i = 0; i < WATCH_STREAMS; i++) {
			if (p[i].fd < 0 || p[i].revents == 0 ||
			    ((p[i].revents & POLLIN) != 0 &&
				read(i, bytes, sizeof(bytes)) != 0))
				continue;
			p[i].fd = -1;
			open--;
		}
	}
	_exit(0);
}

void
background_release(struct supervisor *k)
{
	struct watch *watch = &k->state->watch;
	int fds[WATCH_STREAMS];
	int open = 0;

	for (int i = 0; i < WATCH_STREAMS; i++) {
		fds[i] = watch->outputs[i];
		open += fds[i] >= 0;
	}
	if (open == 0 || children_reap(k->state, WNOHANG) < 0)
		return;
	if (children_clone(k) == 0) { /* there is no k->state */
		keep_only(fds);
		empty_pipes();
	}
}

/* ---- the kept process ---- */

/* After "KEY:" in /proc/PID/status; 0 where there is none. */
static int64_t
status_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at == NULL ? 0 : base_number(at + strlen(key));
}

/* CPU time of a process and of its reaped children: microseconds. */
static int64_t
read_cpu_us(const struct supervisor *k, pid_t pid)
{
	/* a clock of another process: clock_getcpuclockid(3) */
	clockid_t clock = (clockid_t)(~(unsigned int)pid << 3 | 2);
	struct timespec used = { 0 };
	char text[TEXT_MAX];
	int64_t ticks = 0;

	(void)clock_gettime(clock, &used);
	if (read_process(k, pid, "/stat", text))
		ticks = field_of(text, STAT_CUTIME) +
		    field_of(text, STAT_CSTIME);
	return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000 +
	    ticks * TICK_US;
}

static void
note_usage(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;
	char text[TEXT_MAX];
	int64_t most;

	kept->cpu_us = read_cpu_us(k, kept->pid);
	state->cpu_us += kept->cpu_us;
	(void)read_process(k, kept->pid, "/status", text);
	most = status_field(text, "\nVmHWM:");
	if (most > state->rss_kib)
		state->rss_kib = most;
	kept->bytes = status_field(text, "\nVmRSS:") * 1024;
}

/* ---- between two runs ---- */

void
kept_kill(struct supervisor *k, enum kept_end why)
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

/* End the kept process if it is not at rest, with all processes that it has
 * made meanwhile.  The run's process stays. */
static void
check_kept(struct supervisor *k)
{
	struct run_state *state = k->state;
	pid_t pid = state->kept.pid;
	int status;

	/* the process of a run is left to oversee(), even if it has ended */
	if (state->run == 0 && background_stays(k))
		children_reap_ended(k->state);
	if (pid <= 0 ||
	    wait4(pid, &status, WNOHANG | WUNTRACED | WCONTINUED | __WALL,
		NULL) == 0)
		return;
	(void)kill(-1, SIGSTOP);
	kept_kill(k, KEPT_DIED);
	if (!quieten(k, state->run, true, 0, 0))
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
		kept_kill(k, KEPT_PROCESSES);
		k->kept = 0;
		/* its children are orphans now */
		children_reap_ended(state);
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
	pid_t pid = children_clone(k);

	if (pid <= 0)
		return pid;
	state->run = pid; /* check_kept() lets it live */
	state->status = -1;
	for (;;) {
		check_kept(k);
		children_reap_ended(state);
		if (state->status != -1) {
			state->run = 0;
			errno = ECHILD;
			return state->status == 0 ? 1 : -1;
		}
		if (state->kept.pid > 0)
			(void)ppoll(NULL, 0, NULL, &no_signals);
		else
			(void)children_reap(state, 0);
	}
}

void
kept_wait(struct supervisor *k, int above, short events_above, int fd,
    short events)
{
	struct pollfd p[] = { { above, events_above, 0 }, { fd, events, 0 } };

	do
		check_kept(k);
	while (ppoll(p, 2, NULL, &no_signals) < 0 && errno == EINTR);
	if (p[0].revents != 0)
		base_leave();
}

void
kept_end_others(struct supervisor *k)
{
	struct run_state *state = k->state;

	check_kept(k);
	if (background_stays(k)) {
		if (state->run > 0 && state->status == -1)
			(void)kill(state->run, SIGKILL);
		background_settle(k, false);
		return;
	}
	if (state->kept.pid > 0) {
		children_reap_ended(state);
		if (quieten(k, state->kept.pid, true, 0, 0)) {
			children_reap_ended(state);
			return;
		}
		kept_kill(k, KEPT_DIED);
	}
	children_kill_all(state);
}

/* ---- the end of a run ---- */

/* Drop all further words.  False: the process has closed its channel, or sent
 * an empty packet, which looks the same. */
static bool
drop_words(int channel)
{
	uint8_t word;
	ssize_t len;

	do
		len = recv(channel, &word, 1, MSG_DONTWAIT);
	while (len > 0);
	return len < 0;
}

bool
kept_stop(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;
	struct kept_word word;
	bool rests;
	bool makes_sense = recv(state->channel, &word, sizeof(word),
			       MSG_DONTWAIT | MSG_TRUNC) == sizeof(word) &&
	    word.status <= UINT8_MAX && word.names <= INT64_MAX;

	(void)kill(-1, SIGSTOP);
	rests = makes_sense && quieten(k, state->run, false, 0, 0) &&
	    drop_words(state->channel);
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
kept_report(struct supervisor *k)
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

/* Sending can fail: the kernel limits a user's descriptors in transit, and the
 * code can have used that up. */
static bool
hand_run_over(struct supervisor *k)
{
	struct run_state *state = k->state;
	struct kept *kept = &state->kept;

	check_kept(k);
	if (kept->pid > 0 && !send_streams(k, kept->channel))
		kept_kill(k, KEPT_DIED);
	if (kept->pid == 0)
		return false;
	/* the clone is reaped in the course of the run */
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
	if (!hand_run_over(k))
		(void)send(k->state->channel, &go_on, 1, MSG_NOSIGNAL);
	base_close_streams(k);
}
