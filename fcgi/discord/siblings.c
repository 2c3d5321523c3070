/* SPDX-License-Identifier: MIT */
#include "siblings.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

/* ---- what was seen ---- */

static void
forget(struct siblings *s)
{
	memset(s->seen, 0, sizeof(s->seen));
	s->next = 0;
}

/* Whoever was killed while it held the lock has answered nobody since. */
static void
lock(struct siblings *s)
{
	int result = pthread_mutex_lock(&s->lock);

	if (result == EOWNERDEAD) {
		forget(s);
		result = pthread_mutex_consistent(&s->lock);
	}
	if (result != 0)
		log_fatal(1, "lock of what was seen: %s", strerror(result));
}

/* All of them are looked at, some at a time: that is four microseconds, and a
 * signature forty. */
bool
siblings_note(struct siblings *s, int64_t interaction_id)
{
	bool known = false;

	lock(s);
	for (size_t i = 0; i < SIBLINGS_SEEN; i++)
		known |= s->seen[i] == interaction_id;
	if (!known) {
		s->seen[s->next] = interaction_id;
		s->next = (s->next + 1) % SIBLINGS_SEEN;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return !known;
}

/* ---- all of them ---- */

struct siblings *
siblings_open(struct err *err)
{
	struct siblings *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	if (s == MAP_FAILED) {
		(void)err_system(err, "shared memory");
		return NULL;
	}
	if (pthread_mutexattr_init(&attributes) != 0 ||
	    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) !=
		0 ||
	    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) !=
		0 ||
	    pthread_mutex_init(&s->lock, &attributes) != 0)
		log_fatal(1, "no lock for what was seen");
	(void)pthread_mutexattr_destroy(&attributes);
	return s;
}

void
siblings_close(struct siblings *s)
{
	if (s != NULL)
		(void)munmap(s, sizeof(*s));
}

void
siblings_begin(struct siblings *s, size_t index, int64_t now_ms)
{
	if (s->busy_ms[index] == 0)
		s->busy_ms[index] = now_ms;
}

/* One that has been at it for long waits for something: nobody waits for it. */
static bool
is_anyone_busy(const struct siblings *s, int64_t now_ms)
{
	for (size_t i = 0; i < SIBLINGS_MAX; i++) {
		int64_t since_ms = s->busy_ms[i];

		if (since_ms != 0 && now_ms - since_ms < SIBLINGS_HOLD_MS)
			return true;
	}
	return false;
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
	if ((more || is_anyone_busy(s, now_ms)) &&
	    now_ms - s->held_ms < SIBLINGS_HOLD_MS)
		return 0;
	return atomic_exchange(&s->held, 0);
}

size_t
siblings_lost(struct siblings *s)
{
	lock(s);
	forget(s);
	(void)pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < SIBLINGS_MAX; i++)
		s->busy_ms[i] = 0;
	return atomic_exchange(&s->held, 0);
}
