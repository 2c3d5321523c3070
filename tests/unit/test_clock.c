/* SPDX-License-Identifier: MIT */
#include "base/basics.h"

#include <limits.h>
#include <time.h>

#include "tap.h"

int
main(void)
{
	int64_t before = clock_monotonic_ms();
	int64_t micros = clock_monotonic_us();
	int left;

	ok(micros / 1000 - before >= 0 && micros / 1000 - before < 5000,
	    "both units are of one clock");
	ok(clock_wall_ms() / 1000 - (int64_t)time(NULL) <= 1 &&
		(int64_t)time(NULL) - clock_wall_ms() / 1000 <= 1,
	    "wall time");
	is_int(clock_poll_timeout(-1), -1, "no deadline");
	is_int(clock_poll_timeout(before), 0, "a deadline that has passed");
	left = clock_poll_timeout(clock_monotonic_ms() + 60000);
	ok(left > 50000 && left <= 60000, "what is left");
	is_int(clock_poll_timeout(INT64_MAX), INT_MAX, "a far deadline");
	return tap_done();
}
