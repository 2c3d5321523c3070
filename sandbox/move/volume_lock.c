/* SPDX-License-Identifier: MIT */
#include "volume_lock.h"

#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/time.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "../protocol/lease.h"

#define ROUND_MS 5000 /* then its cell is asked for once more */

static void
on_alarm(int number)
{
	(void)number;
}

/* flock(2) with an end: the signal comes again and again, so it is not lost
 * before the call. */
static bool
lock_within(int fd, int64_t ms)
{
	const struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval timer = { { 1, 0 }, { ms / 1000, ms % 1000 * 1000 } };
	bool locked;

	(void)sigaction(SIGALRM, &act, NULL);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
	locked = flock(fd, LOCK_EX) == 0;
	timer = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	(void)setitimer(ITIMER_REAL, &timer, NULL);
	return locked;
}

bool
volume_lock(const char *socket, int fd, const char *sandbox, int64_t wait_ms)
{
	int64_t until_ms = clock_monotonic_ms() + wait_ms;
	int64_t rest_ms;
	struct err err;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	do {
		/* without a broker whoever holds it ends by itself */
		(void)lease_kept(socket, sandbox, true, &rest_ms, ROUND_MS,
		    &err);
		if (lock_within(fd, ROUND_MS))
			return true;
	} while (clock_monotonic_ms() < until_ms);
	return false;
}
