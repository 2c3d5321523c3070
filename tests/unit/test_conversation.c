/* SPDX-License-Identifier: MIT */
/* One request from its head to its result, whatever becomes of the cell and
 * whatever comes in between. */
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/basics.h"
#include "protocol/cell.h"
#include "protocol/frame.h"

static int cell[2];   /* ours, the cell's */
static int broker[2]; /* ours, the broker's */
static int stop[2];
static struct conversation c;
static struct cell_result result;
static struct err err;
static int events;
static int ticks;
static int enough_at; /* the number of the event that is enough; 0: none */
static int hang_up_at;

static void
take_event(void *arg, const struct cell_event *event)
{
	(void)arg;
	if (event->kind != CELL_RESULT && event->kind != CELL_QUIET)
		events++;
	c.enough = enough_at > 0 && events >= enough_at;
	c.hang_up = hang_up_at > 0 && events >= hang_up_at;
}

static void
take_tick(void *arg)
{
	struct frame frame;

	(void)arg;
	frame_start(&frame, FRAME_RESULT);
	frame_add_int(&frame, TAG_REASON, REASON_EXIT);
	if (++ticks == 3)
		(void)send(cell[1], frame.data, frame.len, 0);
}

static void
reset(void)
{
	int *pairs[] = { cell, broker, stop };

	for (size_t i = 0; i < 3; i++) {
		if (pairs[i][0] > 0) {
			(void)close(pairs[i][0]);
			(void)close(pairs[i][1]);
		}
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]) != 0)
			exit(1);
	}
	events = ticks = enough_at = hang_up_at = 0;
	err = (struct err){ 0 };
	c = (struct conversation){ .cell_fd = cell[0],
		.broker_fd = broker[0],
		.event = take_event,
		.send_ms = 1000,
		.within_ms = 1000 };
}

/* Send a frame of the cell's before it is asked to. */
static void
say(int fd, enum frame_kind kind, enum frame_tag tag, int64_t value)
{
	struct frame frame;

	frame_start(&frame, kind);
	if (tag != 0)
		frame_add_int(&frame, tag, value);
	if (kind == FRAME_OUTPUT)
		frame_add_text(&frame, TAG_DATA, "hi");
	if (send(fd, frame.data, frame.len, 0) != (ssize_t)frame.len)
		exit(1);
}

static void
say_run(int outputs)
{
	say(cell[1], FRAME_STARTED, (enum frame_tag)0, 0);
	for (int i = 0; i < outputs; i++)
		say(cell[1], FRAME_OUTPUT, TAG_STREAM, 1);
}

static enum run_end
hold(void)
{
	struct cell_request request = {
		.op = OP_RUN, .source = "1", .source_len = 1, .output_max = 100
	};

	return conversation_hold(&c, &request, &result, &err);
}

/* The number of frames of this kind that the client has sent. */
static int
count_sent(enum frame_kind kind)
{
	unsigned char packet[FRAME_MAX];
	int count = 0;

	while (recv(cell[1], packet, sizeof(packet), MSG_DONTWAIT) > 0)
		count += packet[0] == kind;
	return count;
}

static void
test_result(void)
{
	reset();
	say_run(3);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_TIME);
	is_int(hold(), RUN_RESULT, "a run has a result");
	is_int(result.reason, REASON_TIME, "as the cell says");
	is_int(events, 4, "its events have come, the result is none");
	ok(c.heard && err.text[0] == '\0', "nothing is to be logged");
	is_int(count_sent(FRAME_GO), 1, "the request was sent");
	c.event = NULL;
	say_run(1);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_EXIT);
	is_int(hold(), RUN_RESULT, "so has a second, without a sink");
}

static void
test_lost(void)
{
	reset();
	(void)shutdown(cell[1], SHUT_RDWR);
	is_int(hold(), RUN_BROKEN, "the cell is gone");
	ok(!c.heard && err.text[0] != '\0', "before it said a word");
	reset();
	say_run(1);
	say(cell[1], FRAME_GO, (enum frame_tag)0, 0);
	say(broker[1], FRAME_STATUS, (enum frame_tag)0, 0);
	is_int(hold(), RUN_BROKEN, "the cell breaks the protocol");
	ok(c.heard && events == 2, "after its events");
}

static void
test_died(void)
{
	reset();
	say_run(1);
	say(broker[1], FRAME_LOST, TAG_REASON, REASON_MEMORY);
	(void)shutdown(cell[1], SHUT_WR);
	is_int(hold(), RUN_RESULT, "its memory has taken the cell");
	ok(c.died, "which is told");
	is_int(result.reason, REASON_MEMORY, "which is the result");
	is_int(result.signal, SIGKILL, "with the signal");
	is_int(result.used_bytes, -1, "and without the space used");
	ok(err.text[0] != '\0', "the log is told");
	reset();
	say(broker[1], FRAME_LOST, TAG_REASON, REASON_MEMORY);
	(void)shutdown(cell[1], SHUT_WR);
	is_int(hold(), RUN_BROKEN, "not of a run that has not begun");
}

static void
test_overdue(void)
{
	int64_t began_ms = clock_monotonic_ms();

	reset();
	c.within_ms = 100 - LIMIT_OUTSIDE_MS;
	say_run(1);
	is_int(hold(), RUN_OVERDUE, "no result in time");
	is_str(err.text, "no result in time", "which the log is told");
	ok(clock_monotonic_ms() - began_ms >= 100, "not before its time");
}

static bool cancels;

static bool
is_cancelled(void *arg)
{
	char byte;

	(void)arg;
	(void)recv(stop[0], &byte, 1, MSG_DONTWAIT);
	return cancels;
}

static void
test_cancel(void)
{
	struct pollfd asked;

	reset();
	asked = (struct pollfd){ .fd = stop[0], .events = POLLIN };
	c.cancel = &asked;
	c.cancel_ms = 700;
	c.cancelled = is_cancelled;
	cancels = false;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	say_run(1);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_EXIT);
	is_int(hold(), RUN_RESULT, "another run is cancelled");
	is_int(count_sent(FRAME_ENOUGH), 0, "and this one goes on");
	reset();
	asked.fd = stop[0];
	c.cancel = &asked;
	c.cancel_ms = 700;
	c.cancelled = is_cancelled;
	cancels = true;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	say_run(1);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_OUTPUT);
	is_int(hold(), RUN_RESULT, "this one is, and has a result");
	is_int(count_sent(FRAME_ENOUGH), 1,
	    "after the cell was told to end it");
	reset();
	asked.fd = stop[0];
	c.cancel = &asked;
	c.cancel_ms = 700;
	c.cancelled = is_cancelled;
	c.within_ms = 60000;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	say_run(1);
	is_int(hold(), RUN_STOPPED,
	    "a cell that does not obey is not waited for");
}

static void
test_stop(void)
{
	struct pollfd happened;
	int64_t began_ms;

	reset();
	happened = (struct pollfd){ .fd = stop[0], .events = POLLIN };
	c.stop = &happened;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	say_run(1);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_EXIT);
	is_int(hold(), RUN_STOPPED, "stopped at once");
	ok(events == 0 && err.text[0] == '\0', "whatever the cell has said");
	reset();
	happened.fd = stop[0];
	c.stop = &happened;
	c.stop_ms = 100;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	say_run(1);
	began_ms = clock_monotonic_ms();
	is_int(hold(), RUN_STOPPED, "stopped a little later");
	ok(events == 2 && clock_monotonic_ms() - began_ms >= 100,
	    "until then it goes on");
	reset();
	happened.fd = stop[0];
	c.stop = &happened;
	c.stop_ms = 60000;
	c.within_ms = 100 - LIMIT_OUTSIDE_MS;
	say(stop[1], FRAME_GO, (enum frame_tag)0, 0);
	is_int(hold(), RUN_OVERDUE, "its own limit comes first");
}

static void
test_wishes(void)
{
	reset();
	enough_at = 2;
	say_run(4);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_OUTPUT);
	is_int(hold(), RUN_RESULT, "enough goes on to the result");
	is_int(events, 5, "with all events");
	is_int(count_sent(FRAME_ENOUGH), 1, "and is told once");
	reset();
	hang_up_at = 2;
	say_run(4);
	say(cell[1], FRAME_RESULT, TAG_REASON, REASON_OUTPUT);
	is_int(hold(), RUN_STOPPED, "who hangs up has no result");
	is_int(events, 2, "nor what comes before it");
}

static void
test_ticks(void)
{
	reset();
	c.event = NULL;
	c.tick = take_tick;
	c.tick_ms = 20;
	is_int(hold(), RUN_RESULT, "it ticks while it waits");
	is_int(ticks, 3, "as often as there is time for");
}

int
main(void)
{
	test_result();
	test_lost();
	test_died();
	test_overdue();
	test_cancel();
	test_stop();
	test_wishes();
	test_ticks();
	return tap_done();
}
