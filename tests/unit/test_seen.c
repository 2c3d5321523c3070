/* SPDX-License-Identifier: MIT */
/* fcgi/discord/siblings.c: the last interactions are known, whatever their ids
 * are. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fcgi/discord/siblings.h"
#include "sandbox/base/err.h"
#include "tap.h"

static struct siblings *siblings;

/* All of first, first + step, … that are in it; they are not noted. */
static int
known(int64_t first, int64_t step, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		static struct siblings copy;

		memcpy(&copy, siblings, sizeof(copy));
		if (!siblings_note(&copy, first + i * step))
			found++;
	}
	return found;
}

static int
added(int64_t first, int64_t step, int count)
{
	int new = 0;

	for (int i = 0; i < count; i++)
		if (siblings_note(siblings, first + i * step))
			new ++;
	return new;
}

static void
test_order(int64_t step, const char *name)
{
	(void)siblings_lost(siblings);
	note("%s", name);
	is_int(added(step, step, SIBLINGS_SEEN), SIBLINGS_SEEN, "each is new");
	is_int(added(step, step, SIBLINGS_SEEN), 0, "none is new again");
	is_int(added(step * (SIBLINGS_SEEN + 1), step, 100), 100,
	    "a hundred more are new");
	is_int(known(step, step, 100), 0, "the oldest hundred are forgotten");
	is_int(known(101 * step, step, 100), 100, "the next hundred are known");
	is_int(added(step, step, SIBLINGS_SEEN), SIBLINGS_SEEN,
	    "all come round again, in place of all others");
}

/* Another process does something to it. */
static void
in_child(void (*what)(struct siblings *shared), struct siblings *shared)
{
	pid_t pid = fork();

	if (pid == 0) {
		what(shared);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void
note_seven(struct siblings *shared)
{
	(void)siblings_note(shared, 7);
}

static void
die_in_the_middle(struct siblings *shared)
{
	(void)pthread_mutex_lock(&shared->lock);
	shared->seen[1] = 8;
	(void)raise(SIGKILL);
}

static void
test_shared(void)
{
	struct siblings *shared = siblings;

	in_child(note_seven, shared);
	ok(!siblings_note(shared, 7), "what another process noted is known");
	in_child(die_in_the_middle, shared);
	ok(siblings_note(shared, 7),
	    "one killed in the middle: all is forgotten");
	is_int(shared->seen[1], 0, "half a change, too");
	ok(!siblings_note(shared, 7), "and it goes on");
	(void)siblings_lost(shared);
	ok(siblings_note(shared, 7), "what is forgotten is new");
}

int
main(void)
{
	struct err err = { 0 };

	siblings = siblings_open(&err);
	test_shared();
	test_order(1, "ids in a row");
	test_order(INT64_C(1) << 22, "ids a millisecond apart");
	test_order(INT64_C(1000003), "ids scattered");
	siblings_close(siblings);
	return tap_done();
}
