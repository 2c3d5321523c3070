/* SPDX-License-Identifier: MIT */
/*
 * Loop devices: on a busy host another process may win the race for a free one,
 * so there are several tries.  The ledger is a list, short enough to be summed
 * up for each question.
 */
#include "broker/volume.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/loop.h"
#include "broker/workspace.h"
#include "volume/owner.h"

/* Tries to get a free device before another process does. */
#define ATTACH_TRIES 32
#define LOOP_MAJOR 7
#define RESERVED_BYTES 4096

/* Open /dev/loopN, and make the node where no devtmpfs did; then put the volume
 * on it.  -1: errno says why.  Direct I/O keeps a second copy out of the host's
 * page cache.  The kernel falls back by itself where the volume's file system
 * cannot do it. */
static int
device_open(int number, int volume_fd)
{
	struct loop_config config = { .fd = (uint32_t)volume_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT &&
	    (mknod(path, S_IFBLK | 0660,
		 makedev(LOOP_MAJOR, (unsigned int)number)) == 0 ||
		errno == EEXIST))
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) != 0)
		cleanup_close(&fd);
	return fd;
}

/* Another process may take the free device first: then the next one is tried.
 */
int
attachment_attach(struct attachment *a, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	assert(a->volume_fd >= 0 && a->device_fd < 0);
	if (control < 0)
		return err_system(err, "open /dev/loop-control");
	for (int i = 0; i < ATTACH_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			return err_system(err, "find a free loop device");
		a->device_fd = device_open(number, a->volume_fd);
		if (a->device_fd < 0 && errno == EBUSY)
			continue;
		if (a->device_fd < 0)
			return err_system(err, "configure /dev/loop%d", number);
		a->device = number;
		return 0;
	}
	return err_set(err, ERR_BUSY, "no loop device stays free");
}

/* A device without a file would be free for others, so it gets a few bytes of
 * memory. */
int
attachment_reserve(struct attachment *a, struct err *err)
{
	a->volume_fd = memfd_create("held", MFD_CLOEXEC);
	if (a->volume_fd < 0 || ftruncate(a->volume_fd, RESERVED_BYTES) != 0)
		return err_system(err, "make the file of a loop device");
	return attachment_attach(a, err);
}

/* The kernel clears a device when its last user closes it.  It is an error when
 * another process takes the device in that moment. */
int
attachment_replace(struct attachment *a, struct err *err)
{
	assert(a->volume_fd >= 0 && a->device_fd >= 0);
	(void)ioctl(a->device_fd, LOOP_CLR_FD);
	cleanup_close(&a->device_fd);
	a->device_fd = device_open(a->device, a->volume_fd);
	return a->device_fd >= 0 ?
	    0 :
	    err_system(err, "configure /dev/loop%d", a->device);
}

void
attachment_detach(struct attachment *a)
{
	cleanup_close(&a->device_fd);
	a->device = -1;
}

void
attachment_release(struct attachment *a)
{
	attachment_detach(a);
	cleanup_close(&a->volume_fd);
}

/* ---- the lock ---- */

/* Wait in flock(), and end with the lock or with the broker. */
static void __attribute__((noreturn)) lock_wait_main(int fd, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* No other descriptor of the broker may live on here. */
	if (fd > 0)
		(void)close_range(0, (unsigned int)fd - 1, 0);
	(void)close_range((unsigned int)fd + 1, UINT32_MAX, 0);
	_exit(TEMP_FAILURE_RETRY(flock(fd, LOCK_EX)) == 0 ? 0 : 1);
}

void
lock_wait_stop(struct lock_wait *w)
{
	if (w->child == 0)
		return;
	loop_timer_clear(w->loop, &w->timer);
	loop_close(w->loop, &w->child_fd);
	(void)kill(w->child, SIGKILL);
	(void)waitpid(w->child, NULL, 0);
	w->child = 0;
}

/* The child has the lock, and with it the broker; or the child died. */
static void
lock_wait_on_end(void *arg, int fd, uint32_t events)
{
	struct lock_wait *w = arg;
	struct err err;

	(void)fd;
	(void)events;
	lock_wait_stop(w);
	if (flock(w->fd, LOCK_EX | LOCK_NB) == 0) {
		w->done(w->arg, NULL);
		return;
	}
	(void)err_system(&err, "wait for the lock of the volume");
	w->done(w->arg, &err);
}

/* The older container did not unlock the volume in time. */
static void
lock_wait_on_deadline(void *arg)
{
	struct lock_wait *w = arg;
	struct err err;

	lock_wait_stop(w);
	(void)err_set(&err, ERR_BUSY,
	    "the volume is still in use by an older container");
	w->done(w->arg, &err);
}

/* Start the child and open its pidfd. */
static int
lock_wait_fork(struct lock_wait *w, struct err *err)
{
	pid_t parent = getpid();
	pid_t child = fork();

	if (child < 0)
		return err_system(err, "fork");
	if (child == 0)
		lock_wait_main(w->fd, parent);
	w->child_fd = (int)syscall(SYS_pidfd_open, child, 0);
	if (w->child_fd >= 0) {
		w->child = child;
		return 0;
	}
	(void)err_system(err, "pidfd_open");
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	return -1;
}

void
lock_wait_start(struct lock_wait *w, struct loop *loop, int fd, int ms,
    lock_wait_fn done, void *arg)
{
	struct err err;

	assert(fd >= 0 && w->child == 0);
	*w = (struct lock_wait){
		.loop = loop, .fd = fd, .done = done, .arg = arg
	};
	/* Most volumes are unlocked: no child is needed. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		done(arg, NULL);
	} else if (errno != EWOULDBLOCK) {
		(void)err_system(&err, "lock the volume");
		done(arg, &err);
	} else if (lock_wait_fork(w, &err) != 0) {
		done(arg, &err);
	} else {
		loop_add(loop, w->child_fd, EPOLLIN, lock_wait_on_end, w);
		if (ms >= 0)
			loop_timer_set(loop, &w->timer, ms,
			    lock_wait_on_deadline, w);
	}
}

/* ---- the ledger ---- */

/*
 * Disk space for the request bodies that nginx reads.  It limits the number of
 * each size at one time (nginx/api.conf.in and http.conf; tests/nginx/spool.t
 * compares).  Smaller ones stay in memory.
 */
#define SPOOL_MEDIUM INT64_C(32)
#define SPOOL_MEDIUM_BYTES INT64_C(8000000)
#define SPOOL_HUGE INT64_C(4)
#define SPOOL_HUGE_BYTES (INT64_C(128) << 20)
#define SPOOL_BYTES \
	(SPOOL_MEDIUM * SPOOL_MEDIUM_BYTES + SPOOL_HUGE * SPOOL_HUGE_BYTES)

/* Where no two blocks of a file are adjacent, the host's file system needs 12
 * bytes of metadata for each (ext4), or 16 (xfs): 1 in 256, and a page. */
#define NOTES_SHARE 256
#define NOTES_LEAST 4096
#define IMAGES_EACH 2 /* of one cell */

int64_t
ledger_floor(int64_t total, int64_t cells)
{
	int64_t mounts = cells * IMAGES_EACH * LEDGER_MOUNT_BYTES;
	int64_t floor = disk_floor(total);

	return floor > mounts ? floor : mounts;
}

int64_t
ledger_growth(int64_t size, int64_t allocated)
{
	int64_t more = size > allocated ? size - allocated : 0;

	return more + size / NOTES_SHARE + NOTES_LEAST;
}

bool
ledger_has_room(const struct ledger_space *space, int64_t wanted)
{
	int64_t most = INT64_MAX - space->floor;

	if (wanted > most || space->reserved > most - wanted)
		return false;
	return space->free >= space->floor + space->reserved + wanted;
}

void
ledger_release(struct ledger *ledger)
{
	while (!LIST_EMPTY(&ledger->all))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		reservation_free(LIST_FIRST(&ledger->all));
}

/* Returns how much a sparse volume may still grow. */
static int64_t
image_growth(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return 0;
	return ledger_growth(st.st_size, st.st_blocks * 512);
}

int64_t
ledger_volume_bytes(int volume_fd)
{
	return IMAGES_EACH * LEDGER_MOUNT_BYTES + image_growth(volume_fd);
}

int64_t
reservation_bytes(const struct reservation *r)
{
	return r->bytes + (r->grows ? image_growth(r->fd) : 0);
}

int64_t
reservation_more(const struct reservation *r)
{
	return r->grows ? 0 : image_growth(r->fd);
}

/* A volume's growth counts once: a new container reserves it before the older
 * container's mount is gone. */
static bool
is_counted_before(const struct ledger *ledger, const struct reservation *r)
{
	const struct reservation *other;

	LIST_FOREACH(other, &ledger->all, link) {
		if (other == r)
			return false;
		if (other->grows && other->device == r->device &&
		    other->inode == r->inode)
			return true;
	}
	return false;
}

static int64_t
free_bytes(int fd, int64_t *total, struct err *err)
{
	struct statvfs st;

	if (fstatvfs(fd, &st) != 0)
		return err_system(err, "ask for the free space");
	*total = (int64_t)(st.f_blocks * st.f_frsize);
	return (int64_t)(st.f_bavail * st.f_frsize);
}

/* The free space is read before and after the sum, so that a write or a discard
 * under way makes the answer smaller rather than larger. */
int
ledger_measure(const struct ledger *ledger, int fd, struct ledger_space *space,
    struct err *err)
{
	const struct reservation *r;
	int64_t total = 0;
	int64_t after;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_system(err, "ask for the file system");
	*space = (struct ledger_space){ .device = st.st_dev };
	space->free = free_bytes(fd, &total, err);
	if (space->free < 0)
		return -1;
	LIST_FOREACH(r, &ledger->all, link) {
		int64_t bytes;

		if (r->device != st.st_dev)
			continue;
		bytes = is_counted_before(ledger, r) ? r->bytes :
						       reservation_bytes(r);
		space->reserved += bytes;
		space->leaving += r->leaving ? bytes : 0;
	}
	after = free_bytes(fd, &total, err);
	if (after < 0)
		return -1;
	if (after < space->free)
		space->free = after;
	space->floor = ledger_floor(total, ledger->host->config->cells);
	return 0;
}

bool
ledger_has_files(int fd)
{
	struct statvfs st;

	/* Some file systems make inodes on demand and report none. */
	return fstatvfs(fd, &st) == 0 &&
	    (st.f_files == 0 || st.f_favail >= LEDGER_FILES);
}

struct reservation *
reservation_of_bytes(struct ledger *ledger, int fd, int64_t bytes)
{
	struct reservation *r;
	struct stat st;

	if (fstat(fd, &st) != 0) {
		(void)close(fd);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->ledger = ledger;
	r->fd = fd;
	r->device = st.st_dev;
	r->inode = st.st_ino;
	r->bytes = bytes;
	LIST_INSERT_HEAD(&ledger->all, r, link);
	return r;
}

struct reservation *
reservation_of_volume(struct ledger *ledger, int fd)
{
	return reservation_of_bytes(ledger, fd, LEDGER_MOUNT_BYTES);
}

/* A client may be waiting for the space. */
void
reservation_free(struct reservation *r)
{
	if (r == NULL)
		return;
	host_schedule(r->ledger->host, 0);
	lock_wait_stop(&r->wait);
	LIST_REMOVE(r, link);
	(void)close(r->fd);
	free(r);
}

void
reservation_supersede(struct ledger *ledger, const struct reservation *by)
{
	struct reservation *r;
	struct reservation *next;

	for (r = LIST_FIRST(&ledger->all); r != NULL; r = next) {
		next = LIST_NEXT(r, link);
		if (r != by && r->leaving && r->device == by->device &&
		    r->inode == by->inode)
			reservation_free(r);
	}
}

/* Without the lock it is unknown whether the device is still there: the space
 * stays reserved until the next start of the broker. */
static void
wait_on_lock(void *arg, const struct err *failure)
{
	struct reservation *r = arg;

	if (failure == NULL)
		reservation_free(r);
	else
		log_err("%s: its space stays reserved", failure->text);
}

void
reservation_leave(struct reservation *r)
{
	if (r == NULL)
		return;
	r->leaving = true;
	lock_wait_start(&r->wait, r->ledger->host->loop, r->fd, -1,
	    wait_on_lock, r);
}

/* Reserve for the volumes of one folder. */
static void
find_volumes(struct ledger *ledger, const char *id)
{
	int base = ledger->host->base;
	auto_dir DIR *volumes = workspace_list(base, id);
	const char *volume;
	struct err err;

	while ((volume = workspace_next_volume(volumes)) != NULL) {
		int fd = workspace_volume_open(base, id, volume, &err);
		struct reservation *r = reservation_of_volume(ledger, fd);

		if (r != NULL)
			r->grows = true;
		reservation_leave(r);
	}
}

/* Containers of an earlier life may be running: each volume counts in full
 * until its device is closed. */
void
ledger_find(struct ledger *ledger)
{
	auto_dir DIR *list = workspace_list(ledger->host->base, ".");
	const char *id;

	find_volumes(ledger, API_PACKAGES_ID);
	while (list != NULL && (id = workspace_next(list)) != NULL)
		find_volumes(ledger, id);
}

/* The first of these folders that exists counts. */
void
ledger_add_spool(struct ledger *ledger)
{
	const struct config *config = ledger->host->config;
	auto_free char *ours = config_state_path(config, "nginx/body");
	const char *const places[] = { ours, "/var/lib/nginx/body",
		config->state_dir };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			continue;
		(void)reservation_of_bytes(ledger, fd, SPOOL_BYTES);
		return;
	}
}
