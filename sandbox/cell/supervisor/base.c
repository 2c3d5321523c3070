/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protocol/frame.h"

#define DISK_ROOM_LEAST 65536
#define SECOND_NS 1000000000
#define MS_NS 1000000

const char *const base_folders[] = { SUPERVISOR_FOLDERS };

/* At the end of PID 1 the kernel ends all processes of the container. */
_Noreturn void
base_leave(void)
{
	_exit(0);
}

int64_t
base_number(const char *text)
{
	int64_t value = 0;

	while (*text == ' ' || *text == '\t')
		text++;
	for (; *text >= '0' && *text <= '9' && value < INT64_MAX / 16; text++)
		value = value * 10 + (*text - '0');
	return value;
}

int
base_find_folder(const unsigned char *path, size_t len)
{
	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++)
		if (strlen(base_folders[i]) == len &&
		    memcmp(base_folders[i], path, len) == 0)
			return i;
	return -1;
}

size_t
base_describe(char why[SUPERVISOR_WHY_MAX], const char *step, int code)
{
	const int most = SUPERVISOR_WHY_MAX - 24;

	return (size_t)snprintf(why, SUPERVISOR_WHY_MAX, "%.*s %d", most, step,
	    code);
}

int
base_fail(struct supervisor *k, const char *step)
{
	if (step == NULL)
		return SUPERVISOR_DONE;
	(void)base_describe(k->why, step, errno);
	return SUPERVISOR_FAILED;
}

void
base_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void
base_close_others(int kept)
{
	const int first = STDERR_FILENO + 1;

	if ((kept > first &&
		syscall(SYS_close_range, first, kept - 1, 0) < 0) ||
	    syscall(SYS_close_range, kept < first ? first : kept + 1, ~0U, 0) <
		0)
		_exit(255); /* the run would reach broker and client */
}

void
base_close_streams(struct supervisor *k)
{
	base_close(&k->in);
	base_close(&k->out);
	base_close(&k->err);
	base_close(&k->brief);
}

void
base_wait(int above, short events_above, int fd, short events)
{
	struct pollfd p[] = { { above, events_above, 0 }, { fd, events, 0 } };

	(void)TEMP_FAILURE_RETRY(poll(p, 2, -1));
	if (p[0].revents != 0)
		base_leave();
}

ssize_t
base_receive(int socket, void *data, size_t size, int how, int *fds,
    size_t count)
{
	union {
		char bytes[CMSG_SPACE(BASE_FDS_MAX * sizeof(int))];
		struct cmsghdr head;
	} extra = { { 0 } };
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = extra.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	ssize_t len = TEMP_FAILURE_RETRY(recvmsg(socket, &message,
	    how | MSG_CMSG_CLOEXEC));

	fds[0] = -1;
	if (len > 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
	    message.msg_controllen >= CMSG_LEN(count * sizeof(int)) &&
	    extra.head.cmsg_len == CMSG_LEN(count * sizeof(int)) &&
	    extra.head.cmsg_level == SOL_SOCKET &&
	    extra.head.cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(&extra.head), count * sizeof(int));
	return len;
}

/* Receive a packet of the broker's; *fd: the descriptor with it, or -1. */
static uint32_t
receive_packet(const struct supervisor *k, void *data, size_t size, int how,
    int *fd)
{
	ssize_t len = base_receive(k->control, data, size, how, fd, 1);

	if (len <= 0)
		base_leave();
	return (uint32_t)len;
}

int
base_next_lease(struct supervisor *k, int how)
{
	uint8_t kind;
	int fd;

	k->terms_len = receive_packet(k, k->terms, sizeof(k->terms), how, &fd);
	if (k->terms[0] == FRAME_BESIDE && how == MSG_PEEK) {
		base_close(&fd);
		(void)recv(k->control, &kind, 1, 0);
		return -1;
	}
	if (k->terms[0] != FRAME_SERVE || fd < 0)
		_exit(1); /* no lease: this is no broker of ours */
	return fd;
}

int
base_receive_reader(const struct supervisor *k)
{
	uint8_t kind;
	int fd;

	(void)receive_packet(k, &kind, 1, 0, &fd);
	if (kind != FRAME_BESIDE)
		base_leave();
	return fd;
}

const char *
base_next_name(struct base_names *names)
{
	const struct dirent64 *entry;
	long len;

	do {
		if (names->at == names->end) {
			len = syscall(SYS_getdents64, names->folder,
			    names->bytes, sizeof(names->bytes));
			names->failed = len < 0;
			if (len <= 0)
				return NULL;
			names->at = 0;
			names->end = (size_t)len;
		}
		entry = (const void *)(names->bytes + names->at);
		names->at += entry->d_reclen;
	} while (strcmp(entry->d_name, ".") == 0 ||
	    strcmp(entry->d_name, "..") == 0);
	return entry->d_name;
}

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

/* ---- the result ---- */

/* The line "oom_kill N" of memory.events (cgroup v2) and of memory.oom_control
 * (v1). */
int64_t
run_state_count_ooms(const struct supervisor *k)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	const char *at;
	ssize_t len = -1;

	if (k->ooms >= 0)
		len = pread(k->ooms, text + 1, sizeof(text) - 2, 0);
	if (len <= 0)
		return 0;
	text[1 + len] = '\0';
	at = strstr(text, key);
	return at == NULL ? 0 : base_number(at + sizeof(key) - 1);
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

/* ---- watching a process ---- */

/* After a small piece of output the pipes are not read for a while, so that the
 * next pieces travel in one frame: a run writes every print() at once.  Each
 * further small piece doubles that rest, up to this; a small piece may be the
 * beginning of a large one, whose writer blocks once the pipe is full. */
#define REST_NS (5 * MS_NS)
#define SHORT_REST_NS (MS_NS / 10)
/* Most runs have ended by then, and their output is passed on at once. */
#define FIRST_REST_NS (2 * MS_NS)
#define SIGNAL_MAX 64
#define SIGNAL_LEN 14 /* bytes of such a frame, with one integer */
#define ENDED (POLLHUP | POLLERR | POLLNVAL)

int64_t
watch_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

void
watch_close(struct watch *watch)
{
	base_close(&watch->feed);
	for (int i = 0; i < WATCH_STREAMS; i++)
		base_close(&watch->outputs[i]);
	base_close(&watch->file);
}

void
watch_start(struct watch *watch, uint64_t wall_ms, uint64_t output_max,
    bool drains)
{
	watch->started = watch_now();
	watch->deadline = watch->started + (int64_t)wall_ms * MS_NS;
	watch->rest = watch->started + FIRST_REST_NS;
	watch->next_rest = SHORT_REST_NS;
	for (int i = 0; i < WATCH_STREAMS; i++)
		watch->left[i] = output_max;
	watch->drains = drains;
	watch->over = false;
	watch->pending = false;
}

/* ---- to the client ---- */

/* Send the frame if there is room.  False: the client is gone. */
static bool
send_if_room(struct watch *watch)
{
	const struct frame *frame = &watch->frame;

	watch->pending = send(watch->lease, frame->data, frame->len,
			     MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
	return !watch->pending || errno == EAGAIN;
}

/* Send the pending frame, however slow the client is. */
static bool
send_pending(struct watch *watch)
{
	while (watch->pending) {
		if (!send_if_room(watch))
			return false;
		if (watch->pending)
			base_wait(watch->control, 0, watch->lease, POLLOUT);
	}
	return true;
}

bool
watch_send(struct watch *watch)
{
	watch->pending = true;
	return send_pending(watch);
}

/* Pass a signal to the group of the run, once it leads one. */
static bool
send_signal(const struct watch *watch, const struct frame_view *view)
{
	int64_t number;

	if (!frame_get_int(view, TAG_SIGNAL, &number) || number < 1 ||
	    number > SIGNAL_MAX)
		return false;
	if (kill(-watch->leader, (int)number) < 0)
		(void)kill(watch->leader, (int)number);
	return true;
}

/* Read a packet of the client during the run: a kind, or a kind and a
 * number. */
static bool
read_client(struct watch *watch)
{
	uint8_t packet[SIGNAL_LEN + 1];
	ssize_t len = recv(watch->lease, packet, sizeof(packet), MSG_DONTWAIT);
	struct frame_view view;

	if (len < 0)
		return errno == EAGAIN;
	if (len == SIGNAL_LEN && frame_parse(&view, packet, SIGNAL_LEN) &&
	    view.kind == FRAME_SIGNAL)
		return send_signal(watch, &view);
	watch->over = true;
	return len == 1 && packet[0] == FRAME_ENOUGH;
}

/* ---- from and to the process ---- */

/* Returns how many of the bytes are within the limit. */
static size_t
count_output(struct watch *watch, int stream, size_t len)
{
	if (len > watch->left[stream]) {
		watch->over = watch->over || !watch->drains;
		len = (size_t)watch->left[stream];
	}
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (!watch->drains || i == stream)
			watch->left[i] -= len;
	return len;
}

/* Set how long the pipes are not read after a piece of output. */
static void
rest_after(struct watch *watch, size_t size)
{
	if (size >= FRAME_CHUNK / 2) {
		watch->next_rest = SHORT_REST_NS;
		return;
	}
	watch->rest = watch_now() + watch->next_rest;
	watch->next_rest *= 2;
	if (watch->next_rest > REST_NS)
		watch->next_rest = REST_NS;
}

/* Pass on one piece of output.  Returns its length, 0: there was none; *gone:
 * the client is gone. */
static size_t
read_output(struct watch *watch, int stream, bool *gone)
{
	ssize_t len = read(watch->outputs[stream], watch->data,
	    sizeof(watch->data));
	size_t size;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len <= 0) {
		base_close(&watch->outputs[stream]);
		return 0;
	}
	size = count_output(watch, stream, (size_t)len);
	rest_after(watch, size);
	frame_start(&watch->frame, FRAME_OUTPUT);
	frame_add_int(&watch->frame, TAG_STREAM, stream + 1);
	frame_add_bytes(&watch->frame, TAG_DATA, watch->data, size);
	if (size > 0 && !send_if_room(watch))
		*gone = true;
	return (size_t)len;
}

/* Write as much standard input as fits; close it after the last byte. */
static void
feed_some(struct watch *watch)
{
	while (watch->file_at < watch->file_end) {
		off_t at = (off_t)watch->file_at;
		ssize_t sent = sendfile(watch->feed, watch->file, &at,
		    (size_t)(watch->file_end - watch->file_at));

		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent <= 0)
			break; /* the process has closed it */
		watch->file_at = at;
	}
	base_close(&watch->feed);
}

/* ---- the loop ---- */

enum { CONTROL, LEASE, PROCESS, WORD, FEED, OUTPUTS };
#define POLLED (OUTPUTS + WATCH_STREAMS)

/* False: a signal has come. */
static bool
wait_for_any(const struct watch *watch, struct pollfd *p)
{
	int64_t now = watch_now();
	int64_t until = watch->deadline;
	bool reads = !watch->pending && now >= watch->rest;
	struct timespec left;
	static const sigset_t none;

	p[CONTROL] = (struct pollfd){ watch->control, POLLIN, 0 };
	p[LEASE] = (struct pollfd){ watch->lease,
		(short)(POLLIN | (watch->pending ? POLLOUT : 0)), 0 };
	p[PROCESS] = (struct pollfd){ watch->process, POLLIN, 0 };
	p[WORD] = (struct pollfd){ watch->word, POLLIN, 0 };
	p[FEED] = (struct pollfd){ watch->feed, POLLOUT, 0 };
	for (int i = 0; i < WATCH_STREAMS; i++)
		p[OUTPUTS + i] = (struct pollfd){
			reads ? watch->outputs[i] : -1, POLLIN, 0
		};
	/* wake up for the end of the rest */
	if (!watch->pending && !reads && watch->rest < until)
		until = watch->rest;
	until = until > now ? until - now : 0;
	left = (struct timespec){ .tv_sec = until / SECOND_NS,
		.tv_nsec = until % SECOND_NS };
	return ppoll(p, POLLED, &left, &none) >= 0;
}

/* Returns whether the client is still there. */
static bool
serve_ready(struct watch *watch, const struct pollfd *p)
{
	bool gone = false;

	if ((p[LEASE].revents & ENDED) != 0 ||
	    ((p[LEASE].revents & POLLIN) != 0 && !read_client(watch)))
		return false;
	if (p[FEED].revents != 0)
		feed_some(watch);
	if (watch->pending && (p[LEASE].revents & POLLOUT) != 0 &&
	    !send_if_room(watch))
		return false;
	for (int i = 0; i < WATCH_STREAMS && !gone; i++)
		if (p[OUTPUTS + i].revents != 0 && !watch->pending)
			(void)read_output(watch, i, &gone);
	return !gone;
}

enum watch_end
watch_run(struct watch *watch)
{
	struct pollfd p[POLLED];
	uint8_t word;

	feed_some(watch);
	for (;;) {
		if (watch_now() >= watch->deadline)
			return WATCH_TIME;
		if (!wait_for_any(watch, p))
			return WATCH_CHILD;
		if ((p[CONTROL].revents & ENDED) != 0)
			base_leave();
		if (p[CONTROL].revents != 0)
			return WATCH_BESIDE;
		if (!serve_ready(watch, p))
			return WATCH_GONE;
		/* its last output is in the pipes: watch_drain() */
		if (p[PROCESS].revents != 0)
			return WATCH_ENDED;
		if (watch->over)
			return WATCH_OUTPUT;
		if (p[WORD].revents == 0)
			continue;
		if (recv(watch->word, &word, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
			return WATCH_RESTS;
		watch->word = -1; /* it has closed its channel */
	}
}

/* Pass on at most the content of a full pipe: a background process may go on
 * filling it. */
static bool
drain_stream(struct watch *watch, int stream)
{
	long left = fcntl(watch->outputs[stream], F_GETPIPE_SZ);
	bool gone = false;
	size_t len = 1;

	while (!gone && !watch->over && left > 0 && len > 0) {
		len = read_output(watch, stream, &gone);
		left -= (long)len;
		gone = gone || !send_pending(watch);
	}
	return !gone;
}

bool
watch_drain(struct watch *watch)
{
	bool there = send_pending(watch);

	for (int i = 0; i < WATCH_STREAMS && there; i++)
		there = drain_stream(watch, i);
	return there;
}
