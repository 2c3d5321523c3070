/* SPDX-License-Identifier: MIT */
/* fcgi/discord/siblings.c: the workers are woken once all have their answer, by
 * whoever is the last, and never later than that. */
#include <stddef.h>

#include "discord/siblings.h"

#include "base/err.h"
#include "base/shared_file.h"
#include "tap.h"

#define NOW INT64_C(1000000)

static void
test_alone(struct siblings *s)
{
	siblings_begin(s, 0, NOW);
	is_int((long)siblings_end(s, 0, 1, false, NOW + 1), 1,
	    "alone: a job wakes at once");
	siblings_begin(s, 0, NOW);
	is_int((long)siblings_end(s, 0, 0, false, NOW + 1), 0,
	    "no job wakes nobody");
	siblings_begin(s, 1, NOW);
	is_int((long)siblings_end(s, 1, 3, true, NOW + 1), 0,
	    "others wait: the bytes are held back");
	siblings_begin(s, 1, NOW + 1);
	is_int((long)siblings_end(s, 1, 2, false, NOW + 2), 5,
	    "and come with the last ones");
}

static void
test_two(struct siblings *s)
{
	siblings_begin(s, 0, NOW);
	siblings_begin(s, 1, NOW);
	is_int((long)siblings_end(s, 0, 4, false, NOW + 9), 0,
	    "the other one is not done: nobody is woken");
	is_int((long)siblings_end(s, 1, 0, false, NOW + 10), 4,
	    "it wakes for both");
	siblings_begin(s, 1, NOW);
	siblings_begin(s, 1, NOW + SIBLINGS_HOLD_MS - 1);
	siblings_begin(s, 0, NOW + SIBLINGS_HOLD_MS - 1);
	is_int((long)siblings_end(s, 0, 1, false, NOW + SIBLINGS_HOLD_MS), 1,
	    "one that takes too long is not waited for");
	is_int((long)siblings_end(s, 1, 0, true, NOW + SIBLINGS_HOLD_MS), 0,
	    "nothing is woken twice");
}

static void
test_hold(struct siblings *s)
{
	siblings_begin(s, 0, NOW);
	(void)siblings_end(s, 0, 1, true, NOW);
	siblings_begin(s, 0, NOW + 1);
	is_int((long)siblings_end(s, 0, 1, true, NOW + SIBLINGS_HOLD_MS - 1), 0,
	    "bytes are held back for a moment");
	siblings_begin(s, 0, NOW + 1);
	is_int((long)siblings_end(s, 0, 1, true, NOW + SIBLINGS_HOLD_MS), 3,
	    "and no longer, whoever waits");
}

static void
test_lost(struct siblings *s)
{
	siblings_begin(s, 0, NOW);
	siblings_begin(s, 1, NOW);
	(void)siblings_end(s, 1, 2, false, NOW);
	is_int((long)siblings_lost(s), 2, "one is killed: its bytes are due");
	siblings_begin(s, 1, NOW + 1);
	is_int((long)siblings_end(s, 1, 1, false, NOW + 1), 1,
	    "nobody waits for it");
}

int
main(void)
{
	struct err err;
	struct siblings *s = shared_file_open(NULL, sizeof(*s), &err);

	ok(s != NULL, "there is memory for both");
	test_alone(s);
	test_two(s);
	test_hold(s);
	test_lost(s);
	shared_file_close(s, sizeof(*s));
	return tap_done();
}
