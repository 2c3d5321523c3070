/* SPDX-License-Identifier: MIT */
#include "drive.h"

#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/loop.h"

#define ERRORS_MAX 20
#define RETRY_MS 2

static void
on_timer(void *arg)
{
	loop_stop(arg);
}

/* Let ms pass; what is under way goes on. */
static void
pass(struct bench *bench, int64_t ms)
{
	if (ms <= 0)
		return;
	loop_timer_set(bench->loop, NULL, ms, on_timer, bench->loop);
	loop_run(bench->loop);
}

/* ---- one after another ---- */

struct one {
	struct bench *bench;
	bool over;
	bool running; /* the loop */
};

static void
on_one(void *arg, struct lane *lane)
{
	struct one *one = arg;

	(void)lane;
	one->over = true;
	if (one->running)
		loop_stop(one->bench->loop);
}

static void
run_once(struct lane *lane)
{
	struct one one = { .bench = lane->bench };

	lane->done = on_one;
	lane->arg = &one;
	lane_prepare(lane);
	lane_start(lane);
	one.running = true;
	while (!one.over)
		loop_run(lane->bench->loop);
}

void
drive_alternate(struct bench *bench, struct target *targets, size_t n,
    int64_t count, int64_t block, int64_t gap_ms)
{
	struct lane **lanes = xcalloc(n, sizeof(*lanes));

	for (size_t i = 0; i < n; i++)
		lanes[i] = lane_new(bench, &targets[i], 0);
	for (int64_t done = 0; done < count; done += block) {
		for (size_t i = 0; i < n; i++) {
			for (int64_t k = 0; k < block && done + k < count &&
			     targets[i].errors < ERRORS_MAX;
			     k++) {
				run_once(lanes[i]);
				pass(bench, gap_ms);
			}
		}
	}
	for (size_t i = 0; i < n; i++)
		lane_free(lanes[i]);
	free(lanes);
}

/* ---- many at a time ---- */

struct clients {
	struct bench *bench;
	int64_t until_us;
	size_t active;
	struct lane **due; /* that are to be started again */
	size_t due_count;
};

/* Not started from in here: one that fails at once would call itself. */
static void
on_member(void *arg, struct lane *lane)
{
	struct clients *clients = arg;

	clients->due[clients->due_count++] = lane;
	loop_stop(clients->bench->loop);
}

static void
start_member(struct clients *clients, struct lane *lane)
{
	lane->done = on_member;
	lane->arg = clients;
	lane_prepare(lane);
	clients->active++;
	lane_start(lane);
}

static void
take_back(struct clients *clients)
{
	while (clients->due_count > 0) {
		struct lane *lane = clients->due[--clients->due_count];
		struct target *target = lane->target;

		clients->active--;
		if (clock_monotonic_us() > clients->until_us)
			continue;
		target->counted++;
		if (target->errors < ERRORS_MAX)
			start_member(clients, lane);
	}
}

static void
slice(struct bench *bench, struct target *target, struct lane **lanes,
    size_t count, int64_t ms)
{
	int64_t started_us = clock_monotonic_us();
	struct clients clients = { .bench = bench,
		.until_us = started_us + ms * 1000,
		.due = xcalloc(count, sizeof(struct lane *)) };

	for (size_t i = 0; i < count; i++)
		start_member(&clients, lanes[i]);
	for (;;) {
		take_back(&clients);
		if (clients.active == 0)
			break;
		loop_run(bench->loop);
	}
	target->seconds += (double)ms / 1000.0;
	free(clients.due);
}

void
drive_sustain(struct bench *bench, struct target *targets, size_t n,
    int64_t lanes, const int64_t *slice_ms, int64_t rounds)
{
	size_t count = (size_t)lanes;
	struct lane **all = xcalloc(n * count, sizeof(*all));

	for (size_t i = 0; i < n * count; i++)
		all[i] = lane_new(bench, &targets[i / count], i % count);
	for (int64_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++)
			slice(bench, &targets[i], all + i * count, count,
			    slice_ms[i]);
	for (size_t i = 0; i < n * count; i++)
		lane_free(all[i]);
	free(all);
}

/* ---- all at once ---- */

static void
on_burst(void *arg, struct lane *lane)
{
	size_t *left = arg;

	if (--*left == 0)
		loop_stop(lane->bench->loop);
}

void
drive_burst(struct bench *bench, struct target *target, int64_t lanes)
{
	size_t count = (size_t)lanes;
	struct lane **all = xcalloc(count, sizeof(*all));
	size_t left = count;

	for (size_t i = 0; i < count; i++) {
		all[i] = lane_new(bench, target, i);
		all[i]->done = on_burst;
		all[i]->arg = &left;
		lane_prepare(all[i]);
	}
	for (size_t i = 0; i < count; i++)
		lane_start(all[i]);
	while (left > 0)
		loop_run(bench->loop);
	for (size_t i = 0; i < count; i++)
		lane_free(all[i]);
	free(all);
}

/* ---- beside others ---- */

static void
repeat(struct bench *bench, struct lane *lane, int64_t ms, int64_t pause_ms,
    const struct one *until, size_t others)
{
	int64_t end = clock_monotonic_ms() + ms;

	while (clock_monotonic_ms() < end &&
	    lane->target->errors < ERRORS_MAX) {
		run_once(lane);
		for (size_t i = 0; i < others; i++) {
			if (until[i].over)
				return;
		}
		pass(bench, pause_ms);
	}
}

static void
beside(struct bench *bench, struct lane **lanes, size_t n, int64_t phase_ms,
    const int64_t *times_ms)
{
	struct one *others = xcalloc(n, sizeof(*others));

	for (size_t i = 2; i < n; i++) {
		others[i].bench = bench;
		lanes[i]->done = on_one;
		lanes[i]->arg = &others[i];
		lane_prepare(lanes[i]);
		lane_start(lanes[i]);
	}
	pass(bench, times_ms[0]);
	repeat(bench, lanes[1], phase_ms, times_ms[1], others + 2, n - 2);
	for (size_t i = 2; i < n; i++) {
		others[i].running = true;
		while (!others[i].over)
			loop_run(bench->loop);
	}
	free(others);
}

void
drive_beside(struct bench *bench, struct target *targets, size_t n,
    int64_t rounds, int64_t phase_ms, const int64_t *times_ms)
{
	struct lane **lanes = xcalloc(n, sizeof(*lanes));

	for (size_t i = 0; i < n; i++)
		lanes[i] = lane_new(bench, &targets[i], 0);
	for (int64_t round = 0; round < rounds; round++) {
		repeat(bench, lanes[0], phase_ms, times_ms[1], NULL, 0);
		beside(bench, lanes, n, phase_ms, times_ms);
		pass(bench, times_ms[0]);
	}
	for (size_t i = 0; i < n; i++)
		lane_free(lanes[i]);
	free(lanes);
}

/* ---- many people, now and then ---- */

struct visit {
	int64_t at_ms; /* since the round's begin */
	struct lane *lane;
};

static int
compare_visits(const void *a, const void *b)
{
	const struct visit *x = a;
	const struct visit *y = b;

	return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* A round of everybody's visits, which is over with the last of its time. */
static void
visit_all(struct bench *bench, struct visit *visits, size_t count,
    int64_t every_ms)
{
	int64_t begin_ms = clock_monotonic_ms();

	for (size_t i = 0; i < count; i++)
		visits[i].at_ms = random() % every_ms;
	qsort(visits, count, sizeof(*visits), compare_visits);
	for (size_t i = 0; i < count; i++) {
		struct lane *lane = visits[i].lane;

		pass(bench, begin_ms + visits[i].at_ms - clock_monotonic_ms());
		if (lane->busy || lane->target->errors >= ERRORS_MAX)
			continue;
		lane_prepare(lane);
		lane_start(lane);
	}
	pass(bench, begin_ms + every_ms - clock_monotonic_ms());
}

/* arg: is the loop to stop for it? */
static void
on_visit(void *arg, struct lane *lane)
{
	const bool *ending = arg;

	if (*ending)
		loop_stop(lane->bench->loop);
}

void
drive_people(struct bench *bench, struct target *target, int64_t lanes,
    int64_t every_ms, int64_t rounds)
{
	size_t count = (size_t)lanes;
	struct visit *visits = xcalloc(count, sizeof(*visits));
	bool ending = false;

	srandom(1);
	for (size_t i = 0; i < count; i++) {
		visits[i].lane = lane_new(bench, target, i);
		visits[i].lane->done = on_visit;
		visits[i].lane->arg = &ending;
	}
	for (int64_t round = 0; round < rounds; round++)
		visit_all(bench, visits, count, every_ms);
	ending = true;
	for (size_t i = 0; i < count; i++) {
		while (visits[i].lane->busy)
			loop_run(bench->loop);
		lane_free(visits[i].lane);
	}
	free(visits);
}

/* ---- until it works ---- */

void
drive_first(struct bench *bench, struct target *target, int64_t since_us,
    int64_t most_ms)
{
	struct lane *lane = lane_new(bench, target, 0);
	int64_t until_us = since_us + most_ms * 1000;
	uint64_t refused = 0;

	while (clock_monotonic_us() < until_us) {
		uint64_t before = target->errors;

		run_once(lane);
		if (target->errors == before)
			break;
		refused++;
		pass(bench, RETRY_MS);
	}
	if (target->whole.count > 0) {
		target->errors -= refused; /* that is what "until" means */
		target->whole.ms[0] = (double)(clock_monotonic_us() -
					  since_us) /
		    1000.0;
	}
	lane_free(lane);
}
