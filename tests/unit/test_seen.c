/* SPDX-License-Identifier: MIT */
/* fcgi/discord/seen.c: the last interactions are known, whatever their ids
 * are. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fcgi/discord/seen.h"
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
	seen_init(&seen);
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

/* Another process does something to it. */
static void
in_child(void (*what)(struct seen *shared), struct seen *shared)
{
	pid_t pid = fork();

	if (pid == 0) {
		what(shared);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void
note_seven(struct seen *shared)
{
	(void)seen_add(shared, 7);
}

static void
die_in_the_middle(struct seen *shared)
{
	(void)pthread_mutex_lock(&shared->lock);
	shared->heads[1] = SEEN_MAX;
	(void)raise(SIGKILL);
}

static void
test_shared(void)
{
	struct seen *shared = mmap(NULL, sizeof(*shared),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	seen_init(shared);
	in_child(note_seven, shared);
	ok(!seen_add(shared, 7), "what another process noted is known");
	in_child(die_in_the_middle, shared);
	ok(seen_add(shared, 7), "one killed in the middle: all is forgotten");
	is_int(shared->heads[1], 0, "half a change, too");
	ok(!seen_add(shared, 7), "and it goes on");
	seen_forget(shared);
	ok(seen_add(shared, 7), "what is forgotten is new");
	(void)munmap(shared, sizeof(*shared));
}

int
main(void)
{
	test_shared();
	test_order(1, "ids in a row");
	test_order(INT64_C(1) << 22, "ids a millisecond apart");
	test_order(INT64_C(1000003), "ids scattered");
	return tap_done();
}
