/* SPDX-License-Identifier: MIT */
#include "discord/siblings.h"

#include <stdatomic.h>

void
siblings_begin(struct siblings *s, size_t index, int64_t now_ms)
{
	if (s->busy_ms[index] == 0)
		s->busy_ms[index] = now_ms;
}

/* One that has been at it for long waits for something: nobody waits for it. */
bool
siblings_alone(const struct siblings *s, size_t index, int64_t now_ms)
{
	for (size_t i = 0; i < SIBLINGS_MAX; i++) {
		int64_t since_ms = s->busy_ms[i];

		if (i != index && since_ms != 0 &&
		    now_ms - since_ms < SIBLINGS_HOLD_MS)
			return false;
	}
	return true;
}

size_t
siblings_end(struct siblings *s, size_t index, size_t jobs, bool more,
    int64_t now_ms)
{
	size_t before = atomic_fetch_add(&s->held, jobs);

	if (before == 0)
		s->held_ms = now_ms;
	/* Only now: of two who end together the later one sees both. */
	s->busy_ms[index] = 0;
	if ((more || !siblings_alone(s, index, now_ms)) &&
	    now_ms - s->held_ms < SIBLINGS_HOLD_MS)
		return 0;
	return atomic_exchange(&s->held, 0);
}

size_t
siblings_lost(struct siblings *s)
{
	for (size_t i = 0; i < SIBLINGS_MAX; i++)
		s->busy_ms[i] = 0;
	return atomic_exchange(&s->held, 0);
}
