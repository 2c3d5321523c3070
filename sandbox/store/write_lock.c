/* SPDX-License-Identifier: MIT */
#include "write_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"

#define MODE 0660 /* fronts and workers are one group */
/* A signal may fall between the timer and the wait: it comes again. */
#define AGAIN_NS 50000000L

static void
on_timer(int signal_number)
{
	(void)signal_number;
}

void
write_lock_open(struct write_lock *lock, const char *database)
{
	auto_free char *path = xprintf("%s-turn", database);
	struct sigaction action = { .sa_handler = on_timer };
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN,
	};

	*lock = (struct write_lock){ .fd = -1 };
	/* A wait for a lock is ended by nothing but a signal. */
	if (sigaction(SIGRTMIN, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &lock->timer) != 0)
		return;
	lock->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (lock->fd < 0)
		(void)timer_delete(lock->timer);
	else
		(void)fchmod(lock->fd, MODE); /* whatever the umask is */
}

void
write_lock_close(struct write_lock *lock)
{
	if (lock->fd < 0)
		return;
	(void)close(lock->fd);
	(void)timer_delete(lock->timer);
	lock->fd = -1;
}

static void
set_timer(struct write_lock *lock, int timeout_ms)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = timeout_ms / 1000,
		    .tv_nsec = timeout_ms % 1000 * 1000000L },
		.it_interval = { .tv_nsec = timeout_ms > 0 ? AGAIN_NS : 0 },
	};

	(void)timer_settime(lock->timer, 0, &when, NULL);
}

bool
write_lock_take(struct write_lock *lock, int timeout_ms)
{
	int64_t until_ms = clock_monotonic_ms() + timeout_ms;

	if (lock->fd < 0 || lock->held)
		return true;
	lock->held = flock(lock->fd, LOCK_EX | LOCK_NB) == 0;
	if (lock->held || errno != EWOULDBLOCK)
		return lock->held;
	set_timer(lock, timeout_ms);
	do
		lock->held = flock(lock->fd, LOCK_EX) == 0;
	while (!lock->held && errno == EINTR &&
	    clock_monotonic_ms() < until_ms);
	set_timer(lock, 0);
	return lock->held;
}

void
write_lock_give(struct write_lock *lock)
{
	if (!lock->held)
		return;
	(void)flock(lock->fd, LOCK_UN);
	lock->held = false;
}
