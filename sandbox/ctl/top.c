/* SPDX-License-Identifier: MIT */
/*
 * `ilctl top`: what runs now, once or again and again.  Cells come from the
 * broker, jobs from the database, and what a container takes from its cgroup,
 * which is found by its first process: the broker is asked for nothing that
 * costs it more than its list.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/file.h"
#include "ctl/ctl.h"
#include "protocol/frame.h"
#include "protocol/lease.h"
#include "store/db.h"
#include "store/job.h"

#define TOP_CELLS 200 /* as the broker tells */
#define TOP_JOBS 200
#define ASK_MS 5000
#define KERNELS_MAX 8192 /* of its files about a cgroup */
#define CGROUPS "/sys/fs/cgroup"
#define EVERY_MS 2000
#define CLEAR "\033[H\033[2J\033[3J"

struct top {
	struct lease_status broker;
	struct job_counts counts;
	int64_t cells_count; /* that there are; -1: il-sandboxd does not say, */
	struct err trouble;  /* and why not */
	json_t *cells;
	json_t *jobs;
};

/* ---- cgroups ---- */

/* The number after a word, or at the beginning, in so many of its units; -1: it
 * is not there. */
static int64_t
number_in(const char *folder, const char *file, const char *word, int64_t unit)
{
	auto_free char *path = xprintf("%s/%s", folder, file);
	auto_buf struct buf text = BUF_INIT(KERNELS_MAX);
	struct err ignored;
	const char *at;

	(void)file_read(path, &text, &ignored);
	at = strstr(buf_str(&text), word);
	if (at == NULL || text.len == 0)
		return -1;
	return strtoll(at + strlen(word), NULL, 10) / unit;
}

/* The folder of a process's cgroup, by a line of /proc/PID/cgroup: of a
 * controller, or with "" of the one tree that version 2 has.  Heap, NULL: there
 * is none. */
static char *
folder_of(const struct buf *text, const char *controller)
{
	auto_free char *copy = xstrdup(buf_str(text));
	char *rest = copy;
	char *line;

	/* 4:memory:/docker/… */
	while ((line = strsep(&rest, "\n")) != NULL) {
		char *path = line;
		const char *names;

		(void)strsep(&path, ":");
		names = strsep(&path, ":");
		if (path == NULL || strcmp(names, controller) != 0)
			continue;
		if (strstr(path, "/..") != NULL)
			return NULL;
		return xprintf(CGROUPS "%s%s%s", *names != '\0' ? "/" : "",
		    names, path);
	}
	return NULL;
}

/* CPU time and memory of this process's container; -1: not known. */
static void
top_measure(int64_t pid, int64_t *cpu_ms, int64_t *memory)
{
	auto_free char *path = xprintf("/proc/%" PRId64 "/cgroup", pid);
	auto_buf struct buf lines = BUF_INIT(KERNELS_MAX);
	struct err ignored;
	auto_free char *all = NULL;
	auto_free char *of_memory = NULL;
	auto_free char *of_cpu = NULL;

	*cpu_ms = *memory = -1;
	if (pid <= 0)
		return;
	(void)file_read(path, &lines, &ignored);
	of_memory = folder_of(&lines, "memory");
	of_cpu = folder_of(&lines, "cpuacct");
	if (of_cpu == NULL)
		of_cpu = folder_of(&lines, "cpu,cpuacct");
	all = folder_of(&lines, "");
	if (of_memory != NULL)
		*memory = number_in(of_memory, "memory.usage_in_bytes", "", 1);
	else if (all != NULL)
		*memory = number_in(all, "memory.current", "", 1);
	if (of_cpu != NULL)
		*cpu_ms = number_in(of_cpu, "cpuacct.usage", "", 1000000);
	else if (all != NULL)
		*cpu_ms = number_in(all, "cpu.stat", "usage_usec ", 1000);
}

/* ---- broker and database ---- */

/* Members of a cell, as the broker describes it. */
static const struct {
	const char *key;
	enum frame_tag tag;
	bool is_text;
} members[] = {
	{ "name", TAG_CELL_NAME, true },
	{ "class", TAG_CLASS, true },
	{ "sandbox", TAG_SANDBOX, true },
	{ "interpreter", TAG_INTERPRETER, true },
	{ "state", TAG_STATE, true },
	{ "state_ms", TAG_STATE_MS, false },
	{ "runs", TAG_RUNS, false },
};

/* A cell, with its cgroup's figures; unknown numbers are 0 or -1.  NULL: the
 * frame is the last one, which is of no cell. */
static json_t *
top_read_cell(const struct frame_view *view)
{
	json_t *cell;
	char text[64];
	int64_t kept = 0;
	int64_t pid = 0;
	int64_t cpu_ms;
	int64_t memory;

	if (!frame_get_text(view, TAG_CELL_NAME, text, sizeof(text)) ||
	    *text == '\0')
		return NULL;
	(void)frame_get_int(view, TAG_PID, &pid);
	(void)frame_get_int(view, TAG_KEPT, &kept);
	top_measure(pid, &cpu_ms, &memory);
	cell = json_pack("{s:b, s:s, s:I, s:I}", "kept", kept != 0, "user", "0",
	    "cpu_ms", (json_int_t)cpu_ms, "memory", (json_int_t)memory);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		int64_t number = 0;

		*text = '\0';
		if (members[i].is_text)
			(void)frame_get_text(view, members[i].tag, text,
			    sizeof(text));
		else
			(void)frame_get_int(view, members[i].tag, &number);
		(void)json_object_set_new(cell, members[i].key,
		    members[i].is_text ? table_text_to_json(text) :
					 json_integer(number));
	}
	return cell;
}

static int
top_read_cells(struct top *top, const char *path, struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + ASK_MS;
	unsigned char packet[4096];
	struct frame_view view;
	auto_close int fd = -1;
	json_t *cell;

	if (lease_command(&fd, path,
		&(struct lease_request){ .kind = FRAME_CELLS }, ASK_MS,
		err) != REFUSAL_NONE)
		return -1;
	for (;;) {
		ssize_t len = fd_receive_packet(fd, packet, sizeof(packet),
		    NULL, clock_poll_timeout(deadline), err);

		if (len < 0)
			return -1;
		if (!frame_parse(&view, packet, (size_t)len))
			return err_set(err, ERR_PROTOCOL, "it breaks off");
		cell = top_read_cell(&view);
		if (cell == NULL)
			break;
		if (json_array_size(top->cells) < TOP_CELLS)
			(void)json_array_append(top->cells, cell);
		json_decref(cell);
	}
	(void)frame_get_int(&view, TAG_CELLS, &top->cells_count);
	return 0;
}

/* Find the owners of the sandboxes that cells have. */
static int
find_owners(struct top *top, struct db *db, struct err *err)
{
	json_t *cell;
	size_t i;

	json_array_foreach(top->cells, i, cell) {
		auto_stmt struct stmt *s = db_statement(db,
		    STATEMENT_LIST_OWNER);
		int row;

		db_bind_text(s, ":id", table_json_text(cell, "sandbox"));
		row = db_step(db, s, err);
		if (row < 0)
			return -1;
		if (row == 1)
			(void)json_object_set_new(cell, "user",
			    json_string(db_column_text(s, 0)));
	}
	return 0;
}

static void
top_release(struct top *top)
{
	json_decref(top->cells);
	json_decref(top->jobs);
}

/* Jobs are listed without a broker, too. */
static int
top_read(const struct config *config, struct top *top, struct err *err)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_CTL);
	auto_db struct db *db = db_open(config->database, DB_READER, err);

	*top = (struct top){ .cells = json_array() };
	if (db == NULL || job_count(db, &top->counts, err) != 0)
		return -1;
	top->jobs = table_read(db,
	    db_bound(db, STATEMENT_LIST_TOP,
		DB_VALUES(BIND(":now_ms", clock_wall_ms()),
		    BIND(":most", TOP_JOBS))),
	    err);
	if (top->jobs == NULL)
		return -1;
	if (lease_status(path, &top->broker, ASK_MS, &top->trouble) !=
		REFUSAL_NONE ||
	    top_read_cells(top, path, &top->trouble) != 0) {
		(void)json_array_clear(top->cells);
		top->cells_count = -1;
	}
	return find_owners(top, db, err);
}

/* ---- showing ---- */

static const struct table_column cell_columns[] = {
	{ "CELL", "name", TABLE_TEXT, 32 },
	{ "CLASS", "class", TABLE_TEXT, 8 },
	{ "STATE", "state", TABLE_TEXT, 9 },
	{ "FOR s", "state_ms", TABLE_AGE, 7 },
	{ "CPU s", "cpu_ms", TABLE_AGE, 7 },
	{ "MEMORY", "memory", TABLE_SIZE, 9 },
	{ "RUNS", "runs", TABLE_NUMBER, 4 },
	{ "SANDBOX", "sandbox", TABLE_TEXT, 0 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

static const struct table_column job_columns[] = {
	{ "JOB", "id", TABLE_TEXT, 20 },
	{ "WORKER", "worker", TABLE_NUMBER, 6 },
	{ "USER", "user", TABLE_TEXT, 20 },
	{ "GUILD", "guild", TABLE_TEXT, 20 },
	{ "KIND", "kind", TABLE_TEXT, 12 },
	{ "STATE", "state", TABLE_TEXT, 9 },
	{ "AGE s", "age_ms", TABLE_AGE, 7 },
	{ "RUNS s", "run_ms", TABLE_AGE, 7 },
	{ NULL, NULL, TABLE_TEXT, 0 },
};

/* For people the state of a cell with a session is "kept", and a sandbox has
 * its owner beside it. */
static void
show_cell(json_t *cell)
{
	const char *user = table_json_text(cell, "user");

	if (json_is_true(json_object_get(cell, "kept")))
		(void)json_object_set_new(cell, "state", json_string("kept"));
	if (strcmp(user, "0") != 0)
		(void)json_object_set_new(cell, "sandbox",
		    json_sprintf("%s of %s", table_json_text(cell, "sandbox"),
			user));
	table_print_row(cell_columns, cell);
}

static void
top_show(const struct top *top)
{
	const struct job_counts *count = &top->counts;
	json_t *row;
	size_t i;

	printf("jobs  %" PRId64 " queued, %" PRId64 " running, %" PRId64
	       " not delivered; the oldest waits for %.1f s\n",
	    count->queued, count->running, count->untold,
	    (double)count->oldest_ms / 1e3);
	if (top->cells_count < 0)
		printf("cells are not known: il-sandboxd: %s\n\n",
		    top->trouble.text);
	else
		printf("cells %" PRId64 ", %" PRId64 " leased, %" PRId64
		       " starting; %" PRId64 " wait for one\n\n",
		    top->cells_count, top->broker.leased, top->broker.starting,
		    top->broker.waiting);
	table_print_heads(cell_columns);
	json_array_foreach(top->cells, i, row)
		show_cell(row);
	printf("\n");
	table_print_heads(job_columns);
	json_array_foreach(top->jobs, i, row)
		table_print_row(job_columns, row);
}

static int
top_print_json(const struct top *top)
{
	const struct job_counts *count = &top->counts;

	return table_print_json(
	    json_pack("{s:{s:I, s:I, s:I, s:I}, s:I, s:I, s:O, s:O}", "queue",
		"queued", (json_int_t)count->queued, "running",
		(json_int_t)count->running, "untold", (json_int_t)count->untold,
		"oldest_ms", (json_int_t)count->oldest_ms, "cells_count",
		(json_int_t)top->cells_count, "waiting",
		(json_int_t)top->broker.waiting, "cells", top->cells, "jobs",
		top->jobs));
}

/* ---- again and again ---- */

/* Show it until a signal ends it, or nobody reads any more. */
static int
top_watch(const struct ctl *ctl, struct err *err)
{
	auto_close int signals = fd_signals(false, err);
	struct pollfd p = { .fd = signals, .events = POLLIN };
	struct top top;

	if (signals < 0)
		return -1;
	do {
		/* a broker that restarts is back in a moment */
		printf(CLEAR);
		if (top_read(&ctl->config, &top, err) == 0)
			top_show(&top);
		else
			printf("%s\n", err->text);
		top_release(&top);
	} while (fflush(stdout) == 0 && poll(&p, 1, EVERY_MS) == 0);
	return 0;
}

int
ctl_top(struct ctl *ctl, struct err *err)
{
	struct top top;
	bool once = ctl_cut(ctl, "-1", 1) != NULL || ctl->json ||
	    isatty(STDOUT_FILENO) == 0;
	int code = -1;

	if (ctl->argc != 1)
		return CTL_MISUSED;
	if (!once)
		return top_watch(ctl, err);
	if (top_read(&ctl->config, &top, err) == 0) {
		code = CTL_OK;
		if (ctl->json)
			code = top_print_json(&top);
		else
			top_show(&top);
		if (top.cells_count < 0) {
			*err = top.trouble;
			code = err_wrap(err, "il-sandboxd");
		}
	}
	top_release(&top);
	return code;
}
