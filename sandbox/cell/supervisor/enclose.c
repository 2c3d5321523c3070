#include "enclose.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"
#include "children.h"
#include "inmate.h"
#include "jail.h"
#include "own.h"

#define PLACE_MAX 32 /* "PID/root", "PID/ns/mnt" */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static const char *const folders[KEEPER_FOLDER_COUNT] = { KEEPER_FOLDERS };

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
make_streams(struct keeper *k)
{
	struct watch *watch = &k->own->watch;
	int ends[2];

	if (make_pipe(&watch->feed, &k->in, 1) < 0 ||
	    make_pipe(&watch->outputs[0], &k->out, 0) < 0 ||
	    make_pipe(&watch->outputs[1], &k->err, 0) < 0)
		return "pipe2";
	k->feed = watch->feed;
	watch->file = (int)syscall(SYS_memfd_create, "input", MFD_CLOEXEC);
	if (watch->file < 0)
		return "memfd_create";
	k->file = watch->file;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return "socketpair";
	k->own->channel = ends[0];
	k->channel = ends[1];
	return NULL;
}

static void
close_theirs(struct keeper *k)
{
	base_close(&k->in);
	base_close(&k->out);
	base_close(&k->err);
	base_close(&k->channel);
}

const char *
enclose_come_back(struct keeper *k)
{
	const char *failed = k->own->away ? jail_leave(k) : NULL;

	if (failed == NULL)
		k->own->away = false;
	return failed;
}

/* What is at /proc/PID/WHAT; PID is what the process has said. */
static int
open_place(const struct keeper *k, size_t pid_len, const char *what, int flags)
{
	char path[PLACE_MAX];
	size_t len = strlen(what);

	if (pid_len + len >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, k->own->said, pid_len);
	memcpy(path + pid_len, what, len + 1);
	return openat(k->proc, path, flags);
}

static const char *
look_inside(struct keeper *k, size_t pid_len)
{
	int root = open_place(k, pid_len, "/root", O_PATH | O_CLOEXEC);

	if (root < 0)
		return "root";
	for (int i = 0; i < KEEPER_FOLDER_COUNT; i++)
		k->own->folders[i] = openat(root, folders[i] + 1, FOLDER_FLAGS);
	(void)close(root);
	/* To take its mounts apart waits for all processors, and the end of the
	 * run would wait for that: with this it is enclose_end() that does. */
	k->own->mounts = open_place(k, pid_len, "/ns/mnt",
	    O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < KEEPER_FOLDER_COUNT; i++)
		if (k->own->folders[i] < 0)
			return folders[i];
	return k->own->mounts < 0 ? "ns/mnt" : NULL;
}

static int
await_jail(struct keeper *k)
{
	size_t len = own_hear(k);
	const char *failed;

	if (len > 0 && k->own->said[0] == '!') {
		memcpy(k->why, k->own->said + 1, KEEPER_WHY_MAX);
		k->why[KEEPER_WHY_MAX - 1] = '\0';
		return KEEPER_FAILED;
	}
	errno = 0;
	if (len == 0 || len > 10 || strspn(k->own->said, "0123456789") != len)
		return base_fail(k, "a jail did not come up");
	failed = look_inside(k, len);
	return failed == NULL ? KEEPER_DONE : base_fail(k, failed);
}

int
enclose_jail(struct keeper *k)
{
	struct keeper_own *own = k->own;
	const char *failed = make_streams(k);
	pid_t pid;

	own->status = -1;
	own->ooms = children_count_ooms(k);
	if (failed == NULL)
		failed = enclose_come_back(k);
	if (failed == NULL) {
		own->away = true;
		failed = jail_open(&own->init);
	}
	if (failed != NULL)
		return base_fail(k, failed);
	pid = children_clone(k);
	if (pid == 0)
		return inmate_live(k); /* which has no own */
	if (pid < 0)
		return base_fail(k, "fork");
	own->run = pid;
	close_theirs(k);
	return await_jail(k);
}

void
enclose_end(struct keeper *k)
{
	struct keeper_own *own = k->own;

	children_kill_all(own);
	close_theirs(k);
	watch_close(&own->watch);
	base_close(&own->watch.process);
	base_close(&own->watch.lease);
	base_close(&own->channel);
	for (int i = 0; i < KEEPER_FOLDER_COUNT; i++)
		base_close(&own->folders[i]);
	base_close(&own->mounts);
}
