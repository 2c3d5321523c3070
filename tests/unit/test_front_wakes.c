/* SPDX-License-Identifier: MIT */
/* fcgi/discord/front.c: the last process that answers wakes the workers for
 * all, and never later than 100 ms after the first job. */
#include <stddef.h>

#include "discord/front.h"

#include "base/basics.h"
#include "base/file.h"
#include "tap.h"

#define NOW INT64_C(1000000)

static void
test_alone(struct front_wakes *s)
{
	front_wakes_begin(s, 0, NOW);
	is_int((long)front_wakes_end(s, 0, 1, false, NOW + 1), 1,
	    "alone: a job wakes at once");
	front_wakes_begin(s, 0, NOW);
	is_int((long)front_wakes_end(s, 0, 0, false, NOW + 1), 0,
	    "no job wakes nobody");
	front_wakes_begin(s, 1, NOW);
	is_int((long)front_wakes_end(s, 1, 3, true, NOW + 1), 0,
	    "others wait: the bytes are held back");
	front_wakes_begin(s, 1, NOW + 1);
	is_int((long)front_wakes_end(s, 1, 2, false, NOW + 2), 5,
	    "and come with the last ones");
}

static void
test_two(struct front_wakes *s)
{
	front_wakes_begin(s, 0, NOW);
	front_wakes_begin(s, 1, NOW);
	is_int((long)front_wakes_end(s, 0, 4, false, NOW + 9), 0,
	    "the other one is not done: nobody is woken");
	is_int((long)front_wakes_end(s, 1, 0, false, NOW + 10), 4,
	    "it wakes for both");
	front_wakes_begin(s, 1, NOW);
	front_wakes_begin(s, 1, NOW + FRONT_WAKES_DELAY_MS - 1);
	front_wakes_begin(s, 0, NOW + FRONT_WAKES_DELAY_MS - 1);
	is_int((long)front_wakes_end(s, 0, 1, false,
		   NOW + FRONT_WAKES_DELAY_MS),
	    1, "one that takes too long is not waited for");
	is_int((long)front_wakes_end(s, 1, 0, true, NOW + FRONT_WAKES_DELAY_MS),
	    0, "nothing is woken twice");
}

static void
test_hold(struct front_wakes *s)
{
	front_wakes_begin(s, 0, NOW);
	(void)front_wakes_end(s, 0, 1, true, NOW);
	front_wakes_begin(s, 0, NOW + 1);
	is_int((long)front_wakes_end(s, 0, 1, true,
		   NOW + FRONT_WAKES_DELAY_MS - 1),
	    0, "bytes are held back for a moment");
	front_wakes_begin(s, 0, NOW + 1);
	is_int((long)front_wakes_end(s, 0, 1, true, NOW + FRONT_WAKES_DELAY_MS),
	    3, "and no longer, whoever waits");
}

static void
test_lost(struct front_wakes *s)
{
	front_wakes_begin(s, 0, NOW);
	front_wakes_begin(s, 1, NOW);
	(void)front_wakes_end(s, 1, 2, false, NOW);
	is_int((long)front_wakes_lost(s), 2,
	    "one is killed: its bytes are due");
	front_wakes_begin(s, 1, NOW + 1);
	is_int((long)front_wakes_end(s, 1, 1, false, NOW + 1), 1,
	    "nobody waits for it");
}

int
main(void)
{
	struct err err;
	struct front_wakes *s = shared_file_open(NULL, sizeof(*s), &err);

	ok(s != NULL, "there is memory for both");
	test_alone(s);
	test_two(s);
	test_hold(s);
	test_lost(s);
	shared_file_close(s, sizeof(*s));
	return tap_done();
}
