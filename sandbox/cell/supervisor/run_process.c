/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/run_process.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cell/supervisor/base.h"
#include "cell/supervisor/fast_path.h"
#include "cell/supervisor/jail.h"
#include "cell/supervisor/kept.h"

#include "protocol/frame.h"

#define SIGNALS_MAX 256 /* queued: all cells together have some thousands */
#define NICE 5		/* of runs: run.py, NICE */
#define CHANNEL 1000	/* a descriptor that no program gets by itself */
#define STREAMS 4	/* standard streams and the task */

_Static_assert(STREAMS <= BASE_FDS_MAX, "base_receive() has room for them");

/* Every packet that is sent is counted by the one device, or as refused. */
static const char *const counters[NETWORK_FILES] = { "self/net/dev",
	"self/net/snmp", "self/net/snmp6" };
/* Docker sets it to 0 in a container, and so do we; where that is not allowed,
 * a run's ports begin at 1024. */
#define PORTS "sys/net/ipv4/ip_unprivileged_port_start"

/* ---- in the process of a run, before its lease ---- */

/* Be confined, and report to the supervisor. */
static void
run_process_begin(struct supervisor *k)
{
	char text[1 + SUPERVISOR_WHY_MAX] = "!";
	const char *failed = NULL;
	ssize_t len = -1;

	/* beside a kept process we must stay out of its reach */
	if (k->jailed != 0)
		failed = jail_confine(k);
	else if (k->kept == 0)
		failed = jail_go_first(k);
	/* a failure must show before there is a lease, and so a client */
	if (failed == NULL && k->tries != 0)
		failed = jail_narrow(k);
	/* out of reach of other processes, as PID 1 is */
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

/* Its packets, which other structs refer to: this process has one run. */
static char packets[SUPERVISOR_PACKETS][FRAME_MAX];

/* Receive the next packet; ends the process when the client is gone or the
 * packet is too long for a frame. */
static size_t
receive_from_client(const struct supervisor *k, char *packet)
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

/* Read the next packet of the request; *whole: it was the last.  False: the
 * request is not a fast one. */
static bool
read_packet(struct supervisor *k, bool *whole)
{
	uint32_t number = k->packet_count++;
	char *packet = packets[number];
	size_t len = receive_from_client(k, packet);

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

/* Wait for the lease, unless it goes on, and read the request.  False: the
 * request is not a fast one. */
static bool
read_fast_request(struct supervisor *k)
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
		    !read_packet(k, &whole))
			return false;
	return may_run(k);
}

/* Report a failed step as output, if the process has its standard streams by
 * then. */
static _Noreturn void
exit_failed(const char *step)
{
	static const char text[] = "sandbox: cannot begin: ";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)!write(STDERR_FILENO, step, strlen(step));
	(void)!write(STDERR_FILENO, "\n", 1);
	_exit(255);
}

uint64_t
run_process_list(const struct supervisor *k, uint64_t folder, const char *path,
    size_t path_len)
{
	int root = openat(AT_FDCWD, base_folders[folder], O_PATH | O_CLOEXEC);
	int64_t len = listing_write(root, path, path_len, k->file);

	/* end: the file holds a part of the notes, and cannot be used again */
	if (len < 0)
		exit_failed("the notes");
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
	    (!listing_empty_folder(SUPERVISOR_CODE) ||
		access(base_folders[SUPERVISOR_WORKSPACE], R_OK | W_OK | X_OK) <
		    0))
		return false;
	if (k->plan.input > 0 &&
	    write(k->file, k->input, k->plan.input) != (ssize_t)k->plan.input)
		exit_failed("standard input");
	if (fast_file.name != NULL && !fast_file_stage(k))
		return false;
	if (personal && k->plan.files > 0) {
		k->plan.after = SUPERVISOR_IF_CHANGED;
		k->plan.notes = run_process_list(k, SUPERVISOR_WORKSPACE, "",
		    0);
	}
	run_process_become(k);
	return true;
}

int
run_process_start(struct supervisor *k)
{
	if (!read_fast_request(k) || !begin_fast(k))
		return SUPERVISOR_RUN;
	/* that of its form takes the place of the one that is there */
	if (supervisor_fast.usual == SUPERVISOR_PROGRAM)
		environ = k->variables;
	return SUPERVISOR_FAST;
}

/* ---- becoming the run ---- */

/* Set a limit as high as is wanted and allowed; 0: leave it. */
static void
set_limit(int resource, uint64_t value)
{
	struct rlimit both;

	if (value == 0)
		return;
	if (syscall(SYS_prlimit64, 0, resource, NULL, &both) < 0)
		exit_failed("getrlimit");
	if (value > both.rlim_max)
		value = both.rlim_max;
	both.rlim_cur = both.rlim_max = value;
	if (syscall(SYS_prlimit64, 0, resource, &both, NULL) < 0)
		exit_failed("setrlimit");
}

static void
apply_limits(const struct supervisor *k)
{
	set_limit(RLIMIT_AS, k->limits[FAST_MEMORY]);
	set_limit(RLIMIT_CPU, k->limits[FAST_CPU]);
	/* the interpreter had lowered its own */
	set_limit(RLIMIT_NOFILE,
	    k->limits[FAST_FILES] > 0 ? k->limits[FAST_FILES] : UINT64_MAX);
	if (k->jailed != 0) {
		set_limit(RLIMIT_NPROC, k->limits[FAST_PROCESSES]);
		set_limit(RLIMIT_SIGPENDING, SIGNALS_MAX);
	}
}

/* Close the cell's descriptors.  The channel of a kept process gets a number
 * that no program uses. */
static void
close_cell(struct supervisor *k)
{
	if (k->plan.keep != 0) {
		k->channel = fcntl(k->channel, F_DUPFD_CLOEXEC, CHANNEL);
		if (k->channel < 0)
			exit_failed("its channel");
	}
	base_close_others(k->plan.keep != 0 ? k->channel : -1);
}

/* Send the plan, by which the supervisor's clock starts.  Returns if the run is
 * ours, and not a kept process's. */
static void
send_plan(struct supervisor *k)
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
		exit_failed("its place");
}

void
run_process_become(struct supervisor *k)
{
	send_plan(k);
	if (dup2(k->in, STDIN_FILENO) < 0 || dup2(k->out, STDOUT_FILENO) < 0 ||
	    dup2(k->merge != 0 ? k->out : k->err, STDERR_FILENO) < 0)
		exit_failed("standard streams");
	if (setsid() < 0 ||
	    (k->cwd >= 0 ? fchdir(k->cwd) :
			   chdir(base_folders[k->plan.folder])) < 0)
		exit_failed("the folder");
	apply_limits(k);
	close_cell(k);
	/* its /proc/self is its own again */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		exit_failed("prctl");
	errno = 0;
	if (nice(NICE) == -1 && errno != 0)
		exit_failed("its priority");
}

/* ---- resting ---- */

int
run_process_rest(struct supervisor *k, uint64_t status, uint64_t names)
{
	struct kept_word word = { .status = status, .names = names };
	int fds[STREAMS];
	char begin;

	if (send(k->channel, &word, sizeof(word), MSG_NOSIGNAL) < 0 ||
	    base_receive(k->channel, &begin, 1, 0, fds, STREAMS) != 1 ||
	    fds[0] < 0)
		return -1;
	/* they come in their order, so none has the number of an earlier one */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fds[fd] != fd) {
			(void)dup2(fds[fd], fd);
			(void)close(fds[fd]);
		}
		(void)fcntl(fd, F_SETFD, 0);
	}
	return fds[STREAMS - 1];
}

/* ---- in the supervisor: the network ---- */

static size_t
read_counter(int fd, char text[NETWORK_MAX])
{
	ssize_t len = fd < 0 ? 0 : pread(fd, text, NETWORK_MAX, 0);

	return len > 0 ? (size_t)len : 0;
}

/* Has the namespace counted anything since it was made, or is there none? */
static bool
is_network_used(struct network *network)
{
	if (network->files[0] < 0)
		return true;
	for (int i = 0; i < NETWORK_FILES; i++) {
		size_t len = read_counter(network->files[i], network->now);

		if (len != network->lens[i] ||
		    memcmp(network->now, network->noted[i], len) != 0)
			return true;
	}
	return false;
}

static const char *
raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC,
	    0);
	long done;

	if (fd < 0)
		return "socket";
	request.ifr_flags = IFF_UP;
	done = syscall(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
	(void)close(fd);
	return done < 0 ? "loopback device" : NULL;
}

static void
open_ports(int proc)
{
	int fd = openat(proc, PORTS, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	(void)close(fd);
}

/* Called before the clone of a run's process: from here on the supervisor is in
 * a namespace whose counters are 0, with its loopback device up. */
static const char *
renew_network(struct network *network, int proc)
{
	const char *failed;

	if (!is_network_used(network))
		return NULL;
	for (int i = 0; i < NETWORK_FILES; i++)
		base_close(&network->files[i]);
	if (unshare(CLONE_NEWNET) < 0)
		return "unshare network";
	failed = raise_loopback();
	if (failed != NULL)
		return failed;
	open_ports(proc);
	for (int i = 0; i < NETWORK_FILES; i++) {
		network->files[i] = openat(proc, counters[i],
		    O_RDONLY | O_CLOEXEC);
		/* a kernel without IPv6 has two */
		if (network->files[i] < 0 && errno != ENOENT)
			return "counters";
		network->lens[i] = read_counter(network->files[i],
		    network->noted[i]);
	}
	return NULL;
}

/* ---- in the supervisor: the process ---- */

/* Make a pipe; our end does not block. */
static int
make_pipe(int *ours, int *theirs, int which)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ours = ends[which];
	*theirs = ends[1 - which];
	return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

/* Make the standard streams, before the request comes.  If one fails,
 * enclose_end() closes the others. */
static const char *
make_streams(struct supervisor *k)
{
	struct watch *watch = &k->state->watch;
	int ends[2];

	if (make_pipe(&watch->feed, &k->in, 1) < 0 ||
	    make_pipe(&watch->outputs[0], &k->out, 0) < 0 ||
	    make_pipe(&watch->outputs[1], &k->err, 0) < 0)
		return "pipe2";
	watch->file = (int)syscall(SYS_memfd_create, "input", MFD_CLOEXEC);
	if (watch->file < 0)
		return "memfd_create";
	k->file = watch->file;
	if (k->kept != 0)
		k->brief = (int)syscall(SYS_memfd_create, "brief", MFD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return "socketpair";
	k->state->channel = ends[0];
	k->channel = ends[1];
	return NULL;
}

/* Open /proc/PID/WHAT; state->said is the PID. */
static int
open_proc(const struct supervisor *k, const char *what, int flags)
{
	char path[RUN_STATE_SAID_MAX + sizeof("/ns/mnt")];

	(void)snprintf(path, sizeof(path), "%s%s", k->state->said, what);
	return openat(k->proc, path, flags);
}

/* In a jail the folders are new, and harvest.py reads them.  Elsewhere their
 * owner may have locked them: O_PATH needs no right on them. */
static const char *
open_folders(struct supervisor *k, int root)
{
	int how = k->jailed != 0 ? O_RDONLY : O_PATH;

	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++) {
		k->state->folders[i] = openat(root, base_folders[i] + 1,
		    how | O_DIRECTORY | O_CLOEXEC);
		if (k->state->folders[i] < 0 && k->jailed != 0 &&
		    i != SUPERVISOR_SITE)
			return base_folders[i];
	}
	return NULL;
}

void
enclose_find_folders(struct supervisor *k)
{
	if (k->jailed == 0)
		(void)open_folders(k, AT_FDCWD);
}

/* Open the jail's folders by way of the supervisor's /proc, which no run
 * sees. */
static const char *
open_jail(struct supervisor *k)
{
	int root = open_proc(k, "/root", O_PATH | O_CLOEXEC);
	const char *failed;

	if (root < 0)
		return "root";
	failed = open_folders(k, root);
	(void)close(root);
	if (failed != NULL)
		return failed;
	/* Unmounting waits for all processors.  With this descriptor it happens
	 * in enclose_end(), and not before the end of the run. */
	k->state->mounts = open_proc(k, "/ns/mnt", O_RDONLY | O_CLOEXEC);
	return k->state->mounts < 0 ? "ns/mnt" : NULL;
}

size_t
enclose_hear(struct supervisor *k)
{
	ssize_t len;

	/* POLLIN of the broker is ignored: it may send the next lease */
	kept_wait(k, k->control, 0, k->state->channel, POLLIN);
	len = recv(k->state->channel, k->state->said, RUN_STATE_SAID_MAX - 1,
	    0);
	if (len < 0)
		len = 0;
	k->state->said[len] = '\0';
	return (size_t)len;
}

/* The process sends its pid, as in /proc, or "!" and the failed step. */
static int
await_jail(struct supervisor *k)
{
	size_t len = enclose_hear(k);

	if (len > 0 && k->state->said[0] == '!') {
		memcpy(k->why, k->state->said + 1, SUPERVISOR_WHY_MAX);
		k->why[SUPERVISOR_WHY_MAX - 1] = '\0';
		return SUPERVISOR_FAILED;
	}
	if (k->jailed == 0) /* serve_lease() notices its death */
		return SUPERVISOR_DONE;
	errno = 0;
	if (len == 0 || len > 10 || strspn(k->state->said, "0123456789") != len)
		return base_fail(k, "a jail did not come up");
	return base_fail(k, open_jail(k));
}

int
enclose_jail(struct supervisor *k)
{
	struct run_state *state = k->state;
	const char *failed;
	pid_t pid;

	k->kept = state->kept.pid > 0;
	/* renew a namespace of our own: no run meets ports of the one before */
	failed = k->shows != 0 || state->network.files[0] >= 0 ?
	    renew_network(&state->network, k->proc) :
	    NULL;
	if (failed == NULL)
		failed = make_streams(k);
	state->status = -1;
	state->went_on = false;
	state->spares = k->lasts != 0 && k->once != 0;
	state->cpu_us = state->rss_kib = 0;
	state->ooms = run_state_count_ooms(k);
	if (failed == NULL)
		failed = jail_leave(k);
	if (failed == NULL && k->jailed != 0)
		failed = jail_open(&state->init);
	if (failed != NULL)
		return base_fail(k, failed);
	k->lease = state->watch.lease;
	pid = children_clone(k);
	if (pid < 0 && kept_make_room(k))
		pid = children_clone(k);
	if (pid == 0) { /* there is no k->state */
		run_process_begin(k);
		return k->jailed != 0 ? run_process_start(k) : SUPERVISOR_AHEAD;
	}
	if (pid < 0)
		return base_fail(k, "fork");
	state->run = pid;
	base_close(&k->channel);
	if (k->kept == 0) /* else kept_begin() sends or closes them */
		base_close_streams(k);
	return await_jail(k);
}

void
enclose_end(struct supervisor *k)
{
	struct run_state *state = k->state;

	kept_end_others(k);
	base_close(&k->channel);
	base_close_streams(k);
	watch_close(&state->watch);
	base_close(&state->watch.process);
	base_close(&state->channel);
	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++)
		base_close(&state->folders[i]);
	base_close(&state->mounts);
	state->run = 0;
}
