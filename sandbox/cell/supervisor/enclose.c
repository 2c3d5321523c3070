/* SPDX-License-Identifier: MIT */
#include "enclose.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "children.h"
#include "run_process.h"
#include "jail.h"
#include "kept.h"
#include "run_state.h"

#define PLACE_MAX 32 /* "PID/root", "PID/ns/mnt" */

/* All that is sent passes the one device, or is counted as refused. */
static const char *const counters[NETWORK_FILES] = { "self/net/dev",
	"self/net/snmp", "self/net/snmp6" };
/* Docker sets it to 0 in a container, and so do we; where that is not allowed,
 * a run's ports begin at 1024. */
#define PORTS "sys/net/ipv4/ip_unprivileged_port_start"

/* ---- the network ---- */

static size_t
read_counter(int fd, char text[NETWORK_MAX])
{
	ssize_t len = fd < 0 ? 0 : pread(fd, text, NETWORK_MAX, 0);

	return len > 0 ? (size_t)len : 0;
}

/* Has it counted anything since it was made, or is there none? */
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

/* Before the clone of a run's process: from here on it is in a namespace that
 * has counted nothing, with its loopback device up. */
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

/* ---- the process ---- */

/* Our end does not block. */
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

/* Standard streams that are there before the request.  What is made before one
 * of them fails is closed by enclose_end(). */
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

/* What is at /proc/PID/WHAT; PID is what the process has said. */
static int
open_place(const struct supervisor *k, size_t pid_len, const char *what,
    int flags)
{
	char path[PLACE_MAX];
	size_t len = strlen(what);

	if (pid_len + len >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, k->state->said, pid_len);
	memcpy(path + pid_len, what, len + 1);
	return openat(k->proc, path, flags);
}

/* In a jail they are new, and harvest.py works on them.  Elsewhere their owner
 * may have locked them: to hold them by their path needs no right. */
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

/* By the supervisor's own /proc, which no run sees. */
static const char *
look_inside(struct supervisor *k, size_t pid_len)
{
	int root = open_place(k, pid_len, "/root", O_PATH | O_CLOEXEC);
	const char *failed;

	if (root < 0)
		return "root";
	failed = open_folders(k, root);
	(void)close(root);
	if (failed != NULL)
		return failed;
	/* To take its mounts apart waits for all processors, and the end of the
	 * run would wait for that: with this it is enclose_end() that does. */
	k->state->mounts = open_place(k, pid_len, "/ns/mnt",
	    O_RDONLY | O_CLOEXEC);
	return k->state->mounts < 0 ? "ns/mnt" : NULL;
}

size_t
enclose_hear(struct supervisor *k)
{
	ssize_t len;

	/* a lease may be waiting at the broker's */
	kept_wait(k, k->control, 0, k->state->channel, POLLIN);
	len = recv(k->state->channel, k->state->said, RUN_STATE_SAID_MAX - 1,
	    0);
	if (len < 0)
		len = 0;
	k->state->said[len] = '\0';
	return (size_t)len;
}

/* The process says its pid, as /proc has it, or "!" and what failed. */
static int
await_jail(struct supervisor *k)
{
	size_t len = enclose_hear(k);

	if (len > 0 && k->state->said[0] == '!') {
		memcpy(k->why, k->state->said + 1, SUPERVISOR_WHY_MAX);
		k->why[SUPERVISOR_WHY_MAX - 1] = '\0';
		return SUPERVISOR_FAILED;
	}
	if (k->jailed == 0) /* serve_one() sees whether it has died */
		return SUPERVISOR_DONE;
	errno = 0;
	if (len == 0 || len > 10 || strspn(k->state->said, "0123456789") != len)
		return base_fail(k, "a jail did not come up");
	return base_fail(k, look_inside(k, len));
}

int
enclose_jail(struct supervisor *k)
{
	struct run_state *state = k->state;
	const char *failed;
	pid_t pid;

	k->kept = state->kept.pid > 0;
	/* once it has a namespace of its own, no run meets ports of the last */
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
	if (pid == 0) { /* which has no state */
		run_process_begin(k);
		return k->jailed != 0 ? run_process_take(k) : SUPERVISOR_AHEAD;
	}
	if (pid < 0)
		return base_fail(k, "fork");
	state->run = pid;
	base_close(&k->channel);
	if (k->kept == 0) /* else they may be the kept one's */
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
