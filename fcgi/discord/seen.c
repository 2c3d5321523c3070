/* SPDX-License-Identifier: MIT */
#include "seen.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../../sandbox/base/log.h"

_Static_assert((SEEN_MAX & (SEEN_MAX - 1)) == 0, "a hash is cut by its bits");
_Static_assert(SEEN_MAX < UINT16_MAX, "places are 16 bits");

/* A snowflake's upper bits are the time, its lower ones hardly ever set. */
static size_t
hash(int64_t id)
{
	uint64_t mixed = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(mixed >> 40) & (SEEN_MAX - 1);
}

static void
clear(struct seen *seen)
{
	memset(seen->ids, 0, sizeof(seen->ids));
	memset(seen->heads, 0, sizeof(seen->heads));
	memset(seen->older, 0, sizeof(seen->older));
	seen->next = 0;
}

/* Whoever was killed in the middle of a change left half of it. */
static void
lock(struct seen *seen)
{
	int result = pthread_mutex_lock(&seen->lock);

	if (result == EOWNERDEAD) {
		clear(seen);
		result = pthread_mutex_consistent(&seen->lock);
	}
	if (result != 0)
		log_fatal(1, "lock of what was seen: %s", strerror(result));
}

void
seen_init(struct seen *seen)
{
	pthread_mutexattr_t attributes;

	if (pthread_mutexattr_init(&attributes) != 0 ||
	    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) !=
		0 ||
	    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) !=
		0 ||
	    pthread_mutex_init(&seen->lock, &attributes) != 0)
		log_fatal(1, "no lock for what was seen");
	(void)pthread_mutexattr_destroy(&attributes);
}

bool
seen_add(struct seen *seen, int64_t id)
{
	uint16_t *head = &seen->heads[hash(id)];
	unsigned place;
	unsigned i;

	lock(seen);
	for (i = *head; i != 0 && seen->ids[i - 1] != id;)
		i = seen->older[i - 1];
	if (i == 0) {
		/* Whatever stands at its place is the oldest of its chain. */
		place = seen->next;
		if (seen->ids[place] != 0) {
			uint16_t *link = &seen->heads[hash(seen->ids[place])];

			while (*link != place + 1)
				link = &seen->older[*link - 1];
			*link = seen->older[place];
		}
		seen->ids[place] = id;
		seen->older[place] = *head;
		*head = (uint16_t)(place + 1);
		seen->next = (place + 1) % SEEN_MAX;
	}
	(void)pthread_mutex_unlock(&seen->lock);
	return i == 0;
}

void
seen_forget(struct seen *seen)
{
	lock(seen);
	clear(seen);
	(void)pthread_mutex_unlock(&seen->lock);
}
