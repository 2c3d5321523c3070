/* SPDX-License-Identifier: MIT */
/* `ilctl top`: what runs now, once or again and again. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "ctl.h"
#include "table.h"
#include "top_take.h"

#define EVERY_SECONDS 2
#define CLEAR "\033[H\033[2J\033[3J"

/* ---- for people ---- */

static struct text_short
seconds(int64_t ms)
{
	struct text_short text = { "-" };

	if (ms >= 0)
		(void)snprintf(text.text, sizeof(text.text), "%.1f",
		    (double)ms / 1e3);
	return text;
}

static void
show_cell(const struct top_cell *cell)
{
	printf("%-32s %-8s %-9s %8s %8s %9s %5" PRId64 "  %s", cell->name,
	    cell->class, cell->kept ? "kept" : cell->state,
	    seconds(cell->state_ms).text, seconds(cell->cpu_ms).text,
	    cell->memory < 0 ? "-" : text_size(cell->memory).text, cell->runs,
	    cell->sandbox);
	if (cell->user_id > 0)
		printf(" of %" PRId64, cell->user_id);
	printf("\n");
}

static void
show_job(const struct top_job *job)
{
	auto_free char *worker = job->slot < 0 ? xstrdup("-") :
						 xprintf("%" PRId64, job->slot);

	printf("%-20" PRId64 " %6s  %-20" PRId64 " %-20" PRId64
	       " %-12s %-9s %8s %8s\n",
	    job->id, worker, job->user_id, job->guild_id, job->kind, job->state,
	    seconds(job->age_ms).text, seconds(job->run_ms).text);
}

static void
show(const struct top *top)
{
	const struct job_counts *jobs = &top->jobs_count;

	printf("jobs  %" PRId64 " queued, %" PRId64 " running, %" PRId64
	       " not delivered; the oldest waits for %s s\n",
	    jobs->queued, jobs->running, jobs->untold,
	    seconds(jobs->oldest_ms).text);
	if (top->cells_count < 0)
		printf("cells are not known: %s\n\n", top->trouble.text);
	else
		printf("cells %" PRId64 ", %" PRId64 " leased, %" PRId64
		       " starting; %" PRId64 " wait for one\n\n",
		    top->cells_count, top->broker.leased, top->broker.starting,
		    top->broker.waiting);
	printf("%-32s %-8s %-9s %8s %8s %9s %5s  %s\n", "CELL", "CLASS",
	    "STATE", "FOR s", "CPU s", "MEMORY", "RUNS", "SANDBOX");
	for (size_t i = 0; i < top->cells; i++)
		show_cell(&top->cell[i]);
	printf("\n%-20s %6s  %-20s %-20s %-12s %-9s %8s %8s\n", "JOB", "WORKER",
	    "USER", "GUILD", "KIND", "STATE", "AGE s", "RUNS s");
	for (size_t i = 0; i < top->jobs; i++)
		show_job(&top->job[i]);
}

/* ---- for programs ---- */

/* Numbers of 0, or -1, where something is not known. */
static json_t *
json_of_cell(const struct top_cell *cell)
{
	auto_free char *user = xprintf("%" PRId64, cell->user_id);

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:I, "
			 "s:I}",
	    "name", cell->name, "class", cell->class, "sandbox", cell->sandbox,
	    "interpreter", cell->interpreter, "state", cell->state, "state_ms",
	    (json_int_t)cell->state_ms, "runs", (json_int_t)cell->runs, "kept",
	    cell->kept, "user", user, "cpu_ms", (json_int_t)cell->cpu_ms,
	    "memory", (json_int_t)cell->memory);
}

static json_t *
json_of_job(const struct top_job *job)
{
	auto_free char *id = xprintf("%" PRId64, job->id);
	auto_free char *user = xprintf("%" PRId64, job->user_id);
	auto_free char *guild = xprintf("%" PRId64, job->guild_id);

	return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:I, s:I}", "id", id,
	    "worker", (json_int_t)job->slot, "user", user, "guild", guild,
	    "kind", job->kind, "state", job->state, "age_ms",
	    (json_int_t)job->age_ms, "run_ms", (json_int_t)job->run_ms);
}

static int
print_json(const struct top *top)
{
	const struct job_counts *count = &top->jobs_count;
	json_t *cells = json_array();
	json_t *jobs = json_array();
	json_t *root;

	for (size_t i = 0; i < top->cells; i++)
		json_array_append_new(cells, json_of_cell(&top->cell[i]));
	for (size_t i = 0; i < top->jobs; i++)
		json_array_append_new(jobs, json_of_job(&top->job[i]));
	root = json_pack("{s:{s:I, s:I, s:I, s:I}, s:I, s:I, s:o, s:o}",
	    "queue", "queued", (json_int_t)count->queued, "running",
	    (json_int_t)count->running, "untold", (json_int_t)count->untold,
	    "oldest_ms", (json_int_t)count->oldest_ms, "cells_count",
	    (json_int_t)top->cells_count, "waiting",
	    (json_int_t)top->broker.waiting, "cells", cells, "jobs", jobs);
	return table_print_json(root);
}

/* ---- again and again ---- */

/* Until the next time.  False: it is to end, as somebody wants or since nobody
 * reads any more. */
static bool
wait_for_next(int timer_fd, int signal_fd)
{
	struct pollfd p[] = { { .fd = timer_fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN } };
	uint64_t times;

	return fflush(stdout) == 0 && poll(p, 2, -1) > 0 && p[1].revents == 0 &&
	    read(timer_fd, &times, sizeof(times)) == sizeof(times);
}

static int
watch(const struct ctl *ctl, struct top *top, struct err *err)
{
	const struct itimerspec every = { { EVERY_SECONDS, 0 },
		{ EVERY_SECONDS, 0 } };
	auto_close int signals = fd_signals(0, err);
	auto_close int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (signals < 0)
		return -1;
	if (timer < 0 || timerfd_settime(timer, 0, &every, NULL) != 0)
		return err_system(err, "a timer");
	do {
		/* a broker that restarts is back in a moment */
		printf(CLEAR);
		if (top_take(&ctl->config, top, err) == 0)
			show(top);
		else
			printf("%s\n", err->text);
	} while (wait_for_next(timer, signals));
	return 0;
}

int
ctl_top(struct ctl *ctl)
{
	struct err err = { 0 };
	auto_free struct top *top = xcalloc(1, sizeof(*top));
	bool once = isatty(STDOUT_FILENO) == 0;

	for (int i = 1; i < ctl->argc; i++) {
		if (strcmp(ctl->argv[i], "-1") != 0)
			return CTL_MISUSED;
		once = true;
	}
	if (!once && !ctl->json)
		return watch(ctl, top, &err) == 0 ? CTL_OK :
						    ctl_fail("top", &err);
	if (top_take(&ctl->config, top, &err) != 0)
		return ctl_fail("top", &err);
	if (ctl->json && print_json(top) != CTL_OK)
		return CTL_FAILED;
	if (!ctl->json)
		show(top);
	return top->cells_count < 0 ? ctl_fail("top", &top->trouble) : CTL_OK;
}
