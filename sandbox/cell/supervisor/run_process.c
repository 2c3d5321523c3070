/* SPDX-License-Identifier: MIT */
#include "run_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base.h"
#include "jail.h"
#include "fast_path.h"
#include "kept.h"
#include "look.h"
#include "shared.h"

#include "../../protocol/frame.h"

#define SIGNALS_MAX 256 /* that wait: all cells together have some thousands */
#define FILES_MAX 64	/* the interpreter's own limit: run.py, FD_MAX */
#define NICE 5		/* of runs: run.py, NICE */
#define CHANNEL 1000	/* a number that no program comes to by itself */
#define STREAMS 4	/* the three, and what to do */

/* ---- before its lease ---- */

void
run_process_begin(struct supervisor *k)
{
	char text[1 + SUPERVISOR_WHY_MAX] = "!";
	const char *failed = NULL;
	ssize_t len = -1;

	/* a kept process may take us by surprise: out of reach all the time */
	if (k->jailed != 0)
		failed = jail_confine(k);
	else if (k->kept == 0)
		failed = jail_go_first(k);
	/* no lease, and so no client, is to find that out */
	if (failed == NULL && k->tries != 0)
		failed = jail_narrow(k);
	/* out of reach, as PID 1 is */
	if (failed == NULL && k->jailed == 0 &&
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		failed = "prctl";
	(void)signal(SIGCHLD, SIG_DFL);
	if (failed == NULL) {
		failed = "readlink";
		len = readlinkat(k->proc, "self", text, sizeof(text));
	}
	if (len < 0)
		len = 1 + (ssize_t)base_describe(text + 1, failed, errno);
	if (send(k->channel, text, (size_t)len, MSG_NOSIGNAL) < 0 ||
	    text[0] == '!')
		_exit(1);
	if (k->kept == 0)
		base_close(&k->proc);
}

/* ---- its request ---- */

/* What is read of it stays here: this process has one run. */
static char packets[SUPERVISOR_PACKETS][FRAME_MAX];

/* Until the client says something; ends the process when it will not, or when
 * that is too long for a frame. */
static size_t
receive(const struct supervisor *k, char *packet)
{
	ssize_t len;

	for (;;) {
		len = recv(k->lease, packet, FRAME_MAX,
		    MSG_DONTWAIT | MSG_TRUNC);
		if (len > 0 && len <= FRAME_MAX)
			return (size_t)len;
		if (len >= 0 || (errno != EAGAIN && errno != EINTR))
			base_leave();
		base_wait(k->channel, POLLIN, k->lease, POLLIN);
	}
}

/* The next packet of the request; with *whole it was the last.  False: not a
 * fast one. */
static bool
take_packet(struct supervisor *k, bool *whole)
{
	uint32_t number = k->packet_count++;
	char *packet = packets[number];
	size_t len = receive(k, packet);

	k->packets[number] = packet;
	k->packet_len[number] = len;
	if (number == 0)
		return fast_read_head(k, packet, len);
	*whole = len == 1 && packet[0] == FRAME_GO;
	return *whole ? fast_is_whole(k) : fast_read_piece(k, packet, len);
}

/* May anything be run with this lease? */
static bool
may_run(const struct supervisor *k)
{
	struct frame_view view;
	int64_t access = 0;

	return frame_parse(&view, k->terms, k->terms_len) &&
	    (!frame_get_int(&view, TAG_ACCESS, &access) ||
		access != ACCESS_TIDY);
}

/* Wait for the lease, unless it goes on, and read the request.  False: it is
 * not a fast one. */
static bool
take_request(struct supervisor *k)
{
	char word;
	bool whole = false;

	if (k->lease < 0) {
		if (recv(k->channel, &word, 1, 0) != 1)
			base_leave();
		k->lease = base_next_lease(k, 0);
	}
	if (k->jailed != 0 && jail_narrow(k) != NULL)
		base_leave();
	base_close(&k->control);
	if (k->reads == SUPERVISOR_READS_NONE || k->kept != 0)
		return false;
	while (!whole)
		if (k->packet_count == SUPERVISOR_PACKETS ||
		    !take_packet(k, &whole))
			return false;
	return may_run(k);
}

/* Told as output, where the process has its standard streams by then. */
static _Noreturn void
fail(const char *step)
{
	static const char text[] = "sandbox: cannot begin: ";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)!write(STDERR_FILENO, step, strlen(step));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(255);
}

uint64_t
run_process_look(const struct supervisor *k, uint64_t folder, const char *path,
    size_t path_len)
{
	int root = openat(AT_FDCWD, base_folders[folder], O_PATH | O_CLOEXEC);
	int64_t len = look_note(root, path, path_len, k->file);

	/* what is in the file by now must not be the next run's */
	if (len < 0)
		fail("the notes");
	(void)close(root);
	return (uint64_t)len;
}

/* Begin the request that has been read.  False: a person's folder, or that of
 * the source, is not as usual, or a file has no room. */
static bool
begin_fast(struct supervisor *k)
{
	bool personal = k->reads == SUPERVISOR_READS_SOURCE;

	if (personal &&
	    (!look_sweep(SUPERVISOR_CODE) ||
		access(base_folders[SUPERVISOR_WORKSPACE], R_OK | W_OK | X_OK) <
		    0))
		return false;
	if (k->plan.input > 0 &&
	    write(k->file, k->input, k->plan.input) != (ssize_t)k->plan.input)
		fail("standard input");
	if (fast_file.name != NULL && !fast_file_stage(k))
		return false;
	if (personal && k->plan.files > 0) {
		k->plan.after = SUPERVISOR_IF_CHANGED;
		k->plan.notes = run_process_look(k, SUPERVISOR_WORKSPACE, "",
		    0);
	}
	run_process_become(k);
	return true;
}

/* The environment of its form takes the place of the one that is there. */
static void
set_environment(const struct supervisor *k)
{
	if (supervisor_fast.usual == SUPERVISOR_PROGRAM)
		environ = k->variables;
}

int
run_process_take(struct supervisor *k)
{
	if (!take_request(k) || !begin_fast(k))
		return SUPERVISOR_RUN;
	set_environment(k);
	return SUPERVISOR_FAST;
}

/* ---- it becomes the run ---- */

/* As much as is wanted, but no more than there may be; 0: as it is. */
static void
limit(int resource, uint64_t value)
{
	struct rlimit both;

	if (value == 0)
		return;
	if (syscall(SYS_prlimit64, 0, resource, NULL, &both) < 0)
		fail("getrlimit");
	if (value > both.rlim_max)
		value = both.rlim_max;
	both.rlim_cur = both.rlim_max = value;
	if (syscall(SYS_prlimit64, 0, resource, &both, NULL) < 0)
		fail("setrlimit");
}

static void
apply_limits(const struct supervisor *k)
{
	limit(RLIMIT_AS, k->limits[FAST_MEMORY]);
	limit(RLIMIT_CPU, k->limits[FAST_CPU]);
	/* the interpreter's own was lower */
	limit(RLIMIT_NOFILE,
	    k->limits[FAST_FILES] > 0 ? k->limits[FAST_FILES] : UINT64_MAX);
	if (k->jailed != 0 && k->counts != 0) {
		limit(RLIMIT_NPROC, k->limits[FAST_PROCESSES]);
		limit(RLIMIT_SIGPENDING, SIGNALS_MAX);
	}
}

/* All that is the cell's; before Linux 5.9 one by one.  A kept process says its
 * word where no program looks. */
static void
close_others(struct supervisor *k)
{
	unsigned int above = STDERR_FILENO + 1;

	if (k->plan.keep != 0) {
		k->channel = fcntl(k->channel, F_DUPFD_CLOEXEC, CHANNEL);
		if (k->channel < 0)
			fail("its channel");
		(void)syscall(SYS_close_range, k->channel + 1, ~0U, 0);
	}
	if (syscall(SYS_close_range, above,
		k->plan.keep != 0 ? (unsigned int)k->channel - 1 : ~0U, 0) < 0)
		for (int fd = (int)above; fd < FILES_MAX; fd++)
			(void)close(fd);
}

/* The supervisor's clock starts with the plan.  Returns if the run is ours: a
 * kept process may have it. */
static void
begin(struct supervisor *k)
{
	static const uint8_t started = FRAME_STARTED;
	char word;

	if (send(k->lease, &started, 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		base_leave();
	if (send(k->channel, &k->plan, sizeof(k->plan), MSG_NOSIGNAL) < 0)
		base_leave();
	if (k->kept == 0)
		return;
	if (TEMP_FAILURE_RETRY(recv(k->channel, &word, 1, 0)) != 1)
		base_leave();
	if (jail_go_first(k) != NULL)
		fail("its place");
}

void
run_process_become(struct supervisor *k)
{
	begin(k);
	if (dup2(k->in, STDIN_FILENO) < 0 || dup2(k->out, STDOUT_FILENO) < 0 ||
	    dup2(k->merge != 0 ? k->out : k->err, STDERR_FILENO) < 0)
		fail("standard streams");
	if (setsid() < 0 ||
	    (k->cwd >= 0 ? fchdir(k->cwd) :
			   chdir(base_folders[k->plan.folder])) < 0)
		fail("the folder");
	apply_limits(k);
	/* nothing of the cell's from here on */
	close_others(k);
	/* its /proc/self is its own again */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		fail("prctl");
	errno = 0;
	if (nice(NICE) == -1 && errno != 0)
		fail("its priority");
}

/* ---- it rests ---- */

/* Standard streams and what to do, in their order: so none of them has the
 * number of one before it. */
static int
receive_streams(const struct supervisor *k, int fds[STREAMS])
{
	union {
		char bytes[CMSG_SPACE(STREAMS * sizeof(int))];
		struct cmsghdr head;
	} extra = { { 0 } };
	char word;
	struct iovec part = { .iov_base = &word, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = extra.bytes,
		.msg_controllen = sizeof(extra.bytes) };

	if (TEMP_FAILURE_RETRY(recvmsg(k->channel, &message,
		MSG_CMSG_CLOEXEC)) != 1 ||
	    (message.msg_flags & MSG_CTRUNC) != 0 ||
	    extra.head.cmsg_len != CMSG_LEN(STREAMS * sizeof(int)))
		return -1;
	memcpy(fds, CMSG_DATA(&extra.head), STREAMS * sizeof(int));
	return 0;
}

int
run_process_rest(struct supervisor *k, uint64_t status, uint64_t names)
{
	struct kept_word word = { .status = status, .names = names };
	int fds[STREAMS];

	if (send(k->channel, &word, sizeof(word), MSG_NOSIGNAL) < 0 ||
	    receive_streams(k, fds) < 0)
		return -1;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fds[fd] != fd) {
			(void)dup2(fds[fd], fd);
			(void)close(fds[fd]);
		}
		(void)fcntl(fd, F_SETFD, 0);
	}
	return fds[STREAMS - 1];
}
