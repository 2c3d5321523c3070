/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/basics.h"

#define BATCH 64

struct loop_watch {
	loop_fd_fn fn; /* NULL: not watched */
	void *arg;
	uint32_t turn; /* of use, so that a stale event is known */
};

struct loop_timer {
	struct loop_timer *next;
	struct loop_timer **slot; /* the caller's mark; NULL: none */
	int64_t at_ms;
	loop_timer_fn fn;
	void *arg;
};

struct loop {
	int epoll;
	bool stopped;
	struct loop_watch *watches; /* by descriptor */
	size_t count;
	struct loop_timer *timers; /* by time, then in the order of adding */
};

struct loop *
loop_new(void)
{
	struct loop *loop = xcalloc(1, sizeof(*loop));

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		log_fatal(1, "epoll_create1: %s", strerror(errno));
	return loop;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	while (loop->timers != NULL) {
		struct loop_timer *timer = loop->timers;

		loop->timers = timer->next;
		free(timer);
	}
	(void)close(loop->epoll);
	free(loop->watches);
	free(loop);
}

/* NULL: it is not watched. */
static struct loop_watch *
loop_find(const struct loop *loop, int fd)
{
	if (fd < 0 || (size_t)fd >= loop->count || loop->watches[fd].fn == NULL)
		return NULL;
	return &loop->watches[fd];
}

void
loop_add(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg)
{
	struct epoll_event event = { .events = events };
	size_t need = (size_t)fd + 1;
	struct loop_watch *watch;

	if (fd < 0 || loop_find(loop, fd) != NULL)
		log_fatal(1, "loop_add: fd=%d is bad or watched already", fd);
	if (need > loop->count) {
		need = need < 64 ? 64 : need * 2;
		loop->watches = xrealloc(loop->watches,
		    need * sizeof(*loop->watches));
		memset(loop->watches + loop->count, 0,
		    (need - loop->count) * sizeof(*loop->watches));
		loop->count = need;
	}
	watch = &loop->watches[fd];
	watch->fn = fn;
	watch->arg = arg;
	watch->turn++;
	event.data.u64 = (uint64_t)watch->turn << 32 | (uint32_t)fd;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		log_fatal(1, "epoll_ctl fd=%d: %s", fd, strerror(errno));
}

void
loop_remove(struct loop *loop, int fd)
{
	struct loop_watch *watch = loop_find(loop, fd);

	if (watch == NULL)
		return;
	watch->fn = NULL;
	/* Fails only when the descriptor is closed already, and then epoll has
	 * forgotten it by itself. */
	(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void
loop_close(struct loop *loop, int *fd)
{
	loop_remove(loop, *fd);
	cleanup_close(fd);
}

/* Behind all that are due at the same time; one that is overdue is due now. */
void
loop_timer_set(struct loop *loop, struct loop_timer **slot, int64_t ms,
    loop_timer_fn fn, void *arg)
{
	int64_t now = clock_monotonic_ms();
	struct loop_timer *timer = xcalloc(1, sizeof(*timer));
	struct loop_timer **at = &loop->timers;

	if (slot != NULL) {
		loop_timer_clear(loop, slot);
		*slot = timer;
	}
	timer->slot = slot;
	if (ms < 0)
		ms = 0;
	timer->at_ms = ms > INT64_MAX - now ? INT64_MAX : now + ms;
	timer->fn = fn;
	timer->arg = arg;
	while (*at != NULL && (*at)->at_ms <= timer->at_ms)
		at = &(*at)->next;
	timer->next = *at;
	*at = timer;
}

void
loop_timer_clear(struct loop *loop, struct loop_timer **slot)
{
	struct loop_timer *timer = *slot;
	struct loop_timer **at = &loop->timers;

	*slot = NULL;
	if (timer == NULL)
		return;
	while (*at != NULL && *at != timer)
		at = &(*at)->next;
	if (*at == NULL)
		log_fatal(1, "loop_timer_clear: no such timer");
	*at = timer->next;
	free(timer);
}

/* As many as are due now.  Timers that are added meanwhile wait for the next
 * round, so that one that renews itself without delay does not starve the
 * descriptors. */
static void
loop_fire_timers(struct loop *loop)
{
	int64_t now = clock_monotonic_ms();
	size_t count = 0;

	for (const struct loop_timer *timer = loop->timers;
	     timer != NULL && timer->at_ms <= now; timer = timer->next)
		count++;
	for (; count > 0 && !loop->stopped; count--) {
		struct loop_timer *timer = loop->timers;
		struct loop_timer due;

		if (timer == NULL || timer->at_ms > now)
			return;
		loop->timers = timer->next;
		due = *timer;
		free(timer);
		if (due.slot != NULL)
			*due.slot = NULL;
		due.fn(due.arg);
	}
}

void
loop_run(struct loop *loop)
{
	struct epoll_event events[BATCH];

	while (!loop->stopped) {
		/* Until the first timer; -1 means that there is none. */
		int wait = loop->timers == NULL ?
		    -1 :
		    clock_poll_timeout(loop->timers->at_ms);
		int n = epoll_wait(loop->epoll, events, BATCH, wait);

		if (n < 0 && errno != EINTR)
			log_fatal(1, "epoll_wait: %s", strerror(errno));
		/* An event of a descriptor that an earlier callback of the
		 * batch removed (and perhaps closed and opened anew) is
		 * nobody's. */
		for (int i = 0; i < n && !loop->stopped; i++) {
			uint64_t data = events[i].data.u64;
			int fd = (int)(data & UINT32_MAX);
			const struct loop_watch *watch = loop_find(loop, fd);

			if (watch != NULL &&
			    watch->turn == (uint32_t)(data >> 32))
				watch->fn(watch->arg, fd, events[i].events);
		}
		loop_fire_timers(loop);
	}
	loop->stopped = false;
}

void
loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
