/* SPDX-License-Identifier: MIT */
#include "enclose.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
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

/* The process has its own copies of them. */
static void
close_theirs(struct supervisor *k)
{
	base_close(&k->in);
	base_close(&k->out);
	base_close(&k->err);
	base_close(&k->brief);
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
	    network_renew(&state->network, k->proc) :
	    NULL;
	if (failed == NULL)
		failed = make_streams(k);
	state->status = -1;
	state->went_on = false;
	state->spares = k->lasts != 0 && k->once != 0;
	state->cpu_us = state->rss_kib = 0;
	state->ooms = children_count_ooms(k);
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
		close_theirs(k);
	return await_jail(k);
}

void
enclose_end(struct supervisor *k)
{
	struct run_state *state = k->state;

	kept_end_others(k);
	base_close(&k->channel);
	close_theirs(k);
	watch_close(&state->watch);
	base_close(&state->watch.process);
	base_close(&state->channel);
	for (int i = 0; i < SUPERVISOR_FOLDER_COUNT; i++)
		base_close(&state->folders[i]);
	base_close(&state->mounts);
	state->run = 0;
}
