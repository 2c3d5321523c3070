/* SPDX-License-Identifier: MIT */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Milliseconds on the monotonic clock: for deadlines and durations. */
int64_t clock_monotonic_ms(void);
/* Microseconds on the monotonic clock: for measurements. */
int64_t clock_monotonic_us(void);
/* Milliseconds since 1970 on the wall clock: for what is stored and shown. */
int64_t clock_wall_ms(void);
/* Time left until a monotonic deadline, for poll(): 0..INT_MAX, or -1 when the
 * deadline is negative (none). */
int clock_poll_timeout(int64_t deadline_ms);
/* Pause before the next try: first_ms, twice as long after each failure in a
 * row that came before, and most_ms at most. */
int64_t clock_backoff_ms(int64_t first_ms, int64_t most_ms, int failures);

#endif
