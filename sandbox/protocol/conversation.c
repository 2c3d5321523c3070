/* SPDX-License-Identifier: MIT */
#include "protocol/conversation.h"

#include <poll.h>
#include <signal.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "protocol/lease.h"

/* State of the loop. */
struct wait {
	struct conversation *c;
	struct cell cell;
	const struct pollfd *stop;   /* NULL: it has happened */
	const struct pollfd *cancel; /* the same */
	int64_t since_us;
	int64_t deadline_ms;
	int64_t tick_at_ms; /* INT64_MAX: never */
	bool told;	    /* that it is enough */
	bool stopped;	    /* deadline_ms is that of an early end */
};

/* From now on the cell has so long at most. */
static void
conversation_end_within(struct wait *wait, int64_t ms)
{
	int64_t until_ms = clock_monotonic_ms() + ms;

	if (until_ms >= wait->deadline_ms)
		return;
	wait->deadline_ms = until_ms;
	wait->stopped = true;
}

/* Everything that waits for its time; returns when the next thing does. */
static int64_t
keep_time(struct wait *wait)
{
	const struct conversation *c = wait->c;

	if (c->tick != NULL && clock_monotonic_ms() >= wait->tick_at_ms) {
		c->tick(c->arg);
		wait->tick_at_ms = clock_monotonic_ms() + c->tick_ms;
	}
	return wait->tick_at_ms < wait->deadline_ms ? wait->tick_at_ms :
						      wait->deadline_ms;
}

/* An event that ends the request early has happened: it is not watched any
 * more. */
static void
conversation_end_early(struct wait *wait, bool stop, bool cancel)
{
	struct conversation *c = wait->c;

	if (stop) {
		wait->stop = NULL;
		conversation_end_within(wait, c->stop_ms);
	}
	if (cancel && c->cancelled(c->arg)) {
		wait->cancel = NULL;
		cell_enough(&wait->cell);
		conversation_end_within(wait, c->cancel_ms);
	}
}

/* The cell is told once that it is enough. */
static void
tell_enough(struct wait *wait)
{
	if (wait->c->enough && !wait->told)
		cell_enough(&wait->cell);
	wait->told = wait->c->enough;
}

/* Has one of the others happened?  Their owner sees to it. */
static void
conversation_check_others(struct wait *wait, const struct pollfd *fds)
{
	struct conversation *c = wait->c;

	for (size_t i = 0; i < c->other_count; i++)
		if (fds[i].revents != 0) {
			c->other(c->arg);
			tell_enough(wait);
			return;
		}
}

/* True when the cell has sent something, false when the deadline has passed or
 * nobody waits any more. */
static bool
conversation_wait(struct wait *wait)
{
	const struct conversation *c = wait->c;

	while (!c->hang_up && clock_monotonic_ms() < wait->deadline_ms) {
		int64_t until_ms = keep_time(wait);
		struct pollfd fds[3 + CONVERSATION_OTHERS] = {
			{ .fd = wait->cell.fd, .events = POLLIN },
			{ .fd = -1 },
			{ .fd = -1 },
		};

		if (wait->cancel != NULL)
			fds[1] = *wait->cancel;
		if (wait->stop != NULL)
			fds[2] = *wait->stop;
		for (size_t i = 0; i < c->other_count; i++)
			fds[3 + i] = c->others[i];
		if (poll(fds, 3 + c->other_count,
			clock_poll_timeout(until_ms)) <= 0)
			continue;
		if (fds[1].revents == 0 && fds[2].revents == 0)
			conversation_check_others(wait, fds + 3);
		if (fds[0].revents == 0 && fds[1].revents == 0 &&
		    fds[2].revents == 0)
			continue;
		if (fds[1].revents == 0 && fds[2].revents == 0)
			return true;
		conversation_end_early(wait, fds[2].revents != 0,
		    fds[1].revents != 0);
	}
	return false;
}

/* The cell is gone, with what it still had to tell.  Code can have it that the
 * memory limit takes the cell and not the code: that is how it has ended. */
static enum run_end
conversation_end_lost(const struct wait *wait, struct cell_result *result)
{
	if (!wait->cell.started || wait->cell.file_left > 0 ||
	    !lease_is_out_of_memory(wait->c->broker_fd))
		return RUN_BROKEN;
	wait->c->died = true;
	*result = (struct cell_result){ .reason = REASON_MEMORY,
		.signal = SIGKILL,
		.wall_us = clock_monotonic_us() - wait->since_us,
		.used_bytes = -1,
		.used_files = -1,
		.used_packages = -1 };
	return RUN_RESULT;
}

static enum run_end
conversation_read_events(struct wait *wait, struct cell_result *result,
    struct err *err)
{
	struct conversation *c = wait->c;
	struct cell_event event;

	while (!c->hang_up && conversation_wait(wait)) {
		if (cell_next(&wait->cell, &event, clock_monotonic_ms() + 1,
			err) != 0)
			return conversation_end_lost(wait, result);
		if (event.kind == CELL_QUIET)
			continue;
		c->heard = true;
		if (event.kind == CELL_RESULT) {
			*result = event.result;
			return RUN_RESULT;
		}
		if (c->event != NULL)
			c->event(c->arg, &event);
		tell_enough(wait);
	}
	if (c->hang_up || wait->stopped)
		return RUN_STOPPED;
	(void)err_set(err, ERR_TIMEOUT, "no result in time");
	return RUN_OVERDUE;
}

enum run_end
conversation_hold(struct conversation *c, const struct cell_request *request,
    struct cell_result *result, struct err *err)
{
	auto_free struct wait *wait = xmalloc(sizeof(*wait));
	int64_t now_ms;

	c->enough = c->hang_up = c->heard = c->died = false;
	cell_init(&wait->cell, c->cell_fd);
	if (cell_send(&wait->cell, request, c->send_ms, err) != 0)
		return RUN_BROKEN;
	now_ms = clock_monotonic_ms();
	wait->c = c;
	wait->stop = c->stop;
	wait->stopped = wait->told = false;
	c->cell = &wait->cell;
	wait->since_us = clock_monotonic_us();
	wait->deadline_ms = now_ms + c->within_ms + LIMIT_OUTSIDE_MS;
	wait->cancel = c->cancel;
	wait->tick_at_ms = INT64_MAX;
	if (c->tick != NULL)
		wait->tick_at_ms = now_ms +
		    (c->tick_first_ms != 0 ? c->tick_first_ms : c->tick_ms);
	return conversation_read_events(wait, result, err);
}
