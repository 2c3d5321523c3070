/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

static int64_t
clock_us(clockid_t id)
{
	struct timespec now;

	/* Cannot fail: both clocks always exist on Linux. */
	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
clock_monotonic_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t
clock_monotonic_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

int64_t
clock_wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

int
clock_poll_timeout(int64_t deadline_ms)
{
	int64_t now = clock_monotonic_ms();

	if (deadline_ms < 0)
		return -1;
	if (deadline_ms <= now)
		return 0;
	return deadline_ms - now < INT_MAX ? (int)(deadline_ms - now) : INT_MAX;
}

int64_t
clock_backoff_ms(int64_t first_ms, int64_t most_ms, int failures)
{
	for (; failures > 0 && first_ms < most_ms; failures--)
		first_ms *= 2;
	return first_ms < most_ms ? first_ms : most_ms;
}
