/* SPDX-License-Identifier: MIT */
/* The reservations of volume.c, on files of the test. */
#include "broker/volume.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/loop.h"
#include "tap.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

static const char *folder;
static const struct config config = { .cells = 8 };
static struct host host = { .config = &config };
static struct ledger ledger = { .host = &host };
static struct loop *loop;
static bool told; /* that all is to be inspected over; or it took too long */

static void
stop(void *arg)
{
	told = arg == &host;
	loop_stop(loop);
}

static void
test_floor(void)
{
	is_int(ledger_floor(GIB, 8), 256 * MIB, "a small disk: 256 MiB");
	is_int(ledger_floor(50 * GIB, 8), GIB, "then 2 %");
	is_int(ledger_floor(500 * GIB, 8), 2 * GIB, "at most 2 GiB");
	is_int(ledger_floor(GIB, 64), 512 * MIB,
	    "but what the mounts of many cells could need");
}

static void
test_growth(void)
{
	is_int(ledger_growth(256 * MIB, 0), 256 * MIB + MIB + 4096,
	    "all of it, and the host's notes");
	is_int(ledger_growth(256 * MIB, 100 * MIB), 157 * MIB + 4096,
	    "less what it has");
	is_int(ledger_growth(256 * MIB, 300 * MIB), MIB + 4096,
	    "never less than the notes");
}

static void
test_room(void)
{
	struct ledger_space space = { .free = 1000, .floor = 300 };

	ok(ledger_has_room(&space, 700), "down to the floor");
	ok(!ledger_has_room(&space, 701), "and no further");
	space.reserved = 600;
	ok(ledger_has_room(&space, 100), "less what is promised");
	ok(!ledger_has_room(&space, 101), "and no further either");
	space.reserved = 701;
	ok(!ledger_has_room(&space, 0),
	    "nothing when others have eaten what was promised");
	space.reserved = 0;
	ok(!ledger_has_room(&space, INT64_MAX), "no overflow by one");
	space.reserved = INT64_MAX;
	ok(!ledger_has_room(&space, INT64_MAX), "nor by two");
}

/* A sparse file of 64 MiB with so much in it. */
static int
volume(const char *name, int64_t allocated)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 64 * MIB) != 0 ||
	    (allocated > 0 && posix_fallocate(fd, 0, allocated) != 0))
		exit(1);
	return fd;
}

static int64_t
promised(void)
{
	struct ledger_space space;
	struct err err;

	if (ledger_measure(&ledger, ledger.all.lh_first->fd, &space, &err) != 0)
		return -1;
	return space.reserved;
}

static int64_t
leaving(void)
{
	struct ledger_space space;
	struct err err;

	if (ledger_measure(&ledger, ledger.all.lh_first->fd, &space, &err) != 0)
		return -1;
	return space.leaving;
}

static void
test_image(void)
{
	struct reservation *r = reservation_of_volume(&ledger, volume("a", 0));
	int again = volume("a", 0);

	is_int(promised(), LEDGER_MOUNT_BYTES, "a mount takes a little");
	is_int(reservation_more(r), ledger_growth(64 * MIB, 0),
	    "it could take more");
	r->grows = true;
	is_int(promised(), LEDGER_MOUNT_BYTES + ledger_growth(64 * MIB, 0),
	    "one that grows takes all that is left");
	is_int(reservation_more(r), 0, "and no more");
	if (posix_fallocate(again, 0, 10 * MIB) != 0)
		exit(1);
	ok(promised() <= LEDGER_MOUNT_BYTES + ledger_growth(64 * MIB, 10 * MIB),
	    "what it has written is not promised any more");
	if (fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		10 * MIB) != 0)
		exit(1);
	is_int(promised(), LEDGER_MOUNT_BYTES + ledger_growth(64 * MIB, 0),
	    "what it has given back is promised again");
	(void)close(again);
	loop_timer_clear(loop, &host.pass);
	reservation_free(r);
	ok(host.pass != NULL, "its end is told");
	ok(ledger.all.lh_first == NULL, "and it is gone");
}

static void
test_bytes(void)
{
	struct reservation *r = reservation_of_bytes(&ledger, volume("b", 0),
	    123);

	is_int(promised(), 123, "so many bytes");
	is_int(reservation_bytes(r), 123, "as it says");
	reservation_free(r);
	ok(reservation_of_bytes(&ledger, -1, 1) == NULL, "nowhere: none");
	reservation_free(NULL);
	reservation_leave(NULL);
}

static void
test_counted_once(void)
{
	struct reservation *old = reservation_of_volume(&ledger,
	    volume("c", 0));
	struct reservation *new;

	old->grows = true;
	new = reservation_of_volume(&ledger, volume("c", 0));
	new->grows = true;
	is_int(promised(), 2 * LEDGER_MOUNT_BYTES + ledger_growth(64 * MIB, 0),
	    "a volume with two holders counts once");
	reservation_free(new);
	is_int(promised(), LEDGER_MOUNT_BYTES + ledger_growth(64 * MIB, 0),
	    "and still when one has gone");
	reservation_free(old);
}

/* The holder of the lock stands for the loop device. */
static void
test_leave(void)
{
	struct reservation *r = reservation_of_volume(&ledger, volume("d", 0));
	int device = volume("d", 0);

	r->grows = true;
	reservation_leave(r);
	ok(ledger.all.lh_first == NULL, "unlocked: it is over at once");
	r = reservation_of_volume(&ledger, volume("d", 0));
	r->grows = true;
	(void)flock(device, LOCK_EX);
	reservation_leave(r);
	ok(ledger.all.lh_first == r, "locked: it counts on");
	is_int(leaving(), promised(), "as something that is on its way out");
	loop_timer_clear(loop, &host.pass);
	(void)close(device);
	loop_timer_set(loop, NULL, 60000, stop, NULL);
	loop_run(loop);
	ok(ledger.all.lh_first == NULL, "until the device lets go");
	ok(told, "which is told");
}

static void
test_supersede(void)
{
	struct reservation *old = reservation_of_volume(&ledger,
	    volume("e", 0));
	struct reservation *new = reservation_of_volume(&ledger,
	    volume("e", 0));
	struct reservation *other = reservation_of_volume(&ledger,
	    volume("f", 0));
	int device = volume("e", 0);
	int device_f = volume("f", 0);

	(void)flock(device, LOCK_EX);
	(void)flock(device_f, LOCK_EX);
	reservation_leave(old);
	reservation_leave(other);
	reservation_supersede(&ledger, new);
	is_int(promised(), 2 * LEDGER_MOUNT_BYTES,
	    "who has the lock ends who had the volume before, and only that");
	reservation_free(new);
	reservation_free(other);
	(void)close(device);
	(void)close(device_f);
}

int
main(void)
{
	folder = tap_folder();
	loop = loop_new();
	host.loop = loop;
	host.run_pass = stop;
	test_floor();
	test_growth();
	test_room();
	test_image();
	test_bytes();
	test_counted_once();
	test_leave();
	test_supersede();
	ledger_release(&ledger);
	loop_free(loop);
	return tap_done();
}
