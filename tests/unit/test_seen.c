/* fcgi/seen.c: the last interactions are known, whatever their ids are. */
#include <string.h>

#include "fcgi/seen.h"
#include "tap.h"

static struct seen seen;

/* All of first, first + step, … that are in it; they are not noted. */
static int
known(int64_t first, int64_t step, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		struct seen copy = seen;

		if (!seen_add(&copy, first + i * step))
			found++;
	}
	return found;
}

static int
added(int64_t first, int64_t step, int count)
{
	int new = 0;

	for (int i = 0; i < count; i++)
		if (seen_add(&seen, first + i * step))
			new ++;
	return new;
}

static void
test_order(int64_t step, const char *name)
{
	memset(&seen, 0, sizeof(seen));
	note("%s", name);
	is_int(added(step, step, SEEN_MAX), SEEN_MAX, "each is new");
	is_int(added(step, step, SEEN_MAX), 0, "none is new again");
	is_int(added(step * (SEEN_MAX + 1), step, 100), 100,
	    "a hundred more are new");
	is_int(known(step, step, 100), 0, "the oldest hundred are forgotten");
	is_int(known(101 * step, step, 100), 100, "the next hundred are known");
	is_int(added(step, step, SEEN_MAX), SEEN_MAX,
	    "all come round again, in place of all others");
}

int
main(void)
{
	test_order(1, "ids in a row");
	test_order(INT64_C(1) << 22, "ids a millisecond apart");
	test_order(INT64_C(1000003), "ids scattered");
	return tap_done();
}
