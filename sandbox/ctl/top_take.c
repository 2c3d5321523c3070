/* SPDX-License-Identifier: MIT */
/*
 * What runs now: cells from the broker, jobs from the database, and what a
 * container takes from its cgroup, which is found by its first process: the
 * broker is asked for nothing that costs it more than a look at its list.
 */
#include "top_take.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../protocol/lease.h"
#include "../protocol/frame.h"
#include "../store/db.h"

#define ASK_MS 5000
#define CGROUPS "/sys/fs/cgroup"

/* ---- cgroups ---- */

/* A short file of the kernel's; "" where there is none. */
static void
read_short(const char *path, char *text, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	text[len < 0 ? 0 : len] = '\0';
}

/* The number after a word, or at the beginning, in so many of its units; -1: it
 * is not there. */
static int64_t
number_in(const char *folder, const char *file, const char *word, int64_t unit)
{
	auto_free char *path = xprintf("%s/%s", folder, file);
	char text[2048];
	const char *at;

	read_short(path, text, sizeof(text));
	at = strstr(text, word);
	if (at == NULL || text[0] == '\0')
		return -1;
	return strtoll(at + strlen(word), NULL, 10) / unit;
}

/* Where a process is, by a line of /proc/PID/cgroup: of a controller, or with
 * "" of the one tree that version 2 has.  Heap, NULL: nowhere. */
static char *
folder_of(const char *lines, const char *controller)
{
	const char *next;

	for (const char *line = lines; *line != '\0'; line = next) {
		size_t len = strcspn(line, "\n");
		const char *names = memchr(line, ':', len);
		const char *path = names == NULL ?
		    NULL :
		    memchr(names + 1, ':', len - (size_t)(names + 1 - line));
		size_t size = path == NULL ? 0 : (size_t)(path - names - 1);

		next = line + len + (line[len] == '\n');
		if (path == NULL || size != strlen(controller) ||
		    memcmp(names + 1, controller, size) != 0)
			continue;
		len -= (size_t)(path + 1 - line);
		if (memmem(path + 1, len, "/..", 3) != NULL)
			return NULL;
		return xprintf(CGROUPS "%s%s%.*s", size > 0 ? "/" : "",
		    controller, (int)len, path + 1);
	}
	return NULL;
}

static void
measure(struct top_cell *cell)
{
	auto_free char *path = xprintf("/proc/%" PRId64 "/cgroup", cell->pid);
	char lines[4096];
	auto_free char *all = NULL;
	auto_free char *memory = NULL;
	auto_free char *cpu = NULL;

	cell->cpu_ms = cell->memory = -1;
	if (cell->pid <= 0)
		return;
	read_short(path, lines, sizeof(lines));
	memory = folder_of(lines, "memory");
	cpu = folder_of(lines, "cpuacct");
	if (cpu == NULL)
		cpu = folder_of(lines, "cpu,cpuacct");
	all = folder_of(lines, "");
	if (memory != NULL)
		cell->memory = number_in(memory, "memory.usage_in_bytes", "",
		    1);
	else if (all != NULL)
		cell->memory = number_in(all, "memory.current", "", 1);
	if (cpu != NULL)
		cell->cpu_ms = number_in(cpu, "cpuacct.usage", "", 1000000);
	else if (all != NULL)
		cell->cpu_ms = number_in(all, "cpu.stat", "usage_usec ", 1000);
}

/* ---- broker and database ---- */

/* False: it is the last frame, which is of no cell. */
static bool
read_cell(struct top_cell *cell, const struct frame_view *view)
{
	const struct {
		enum frame_tag tag;
		char *text;
		size_t size;
	} texts[] = {
		{ TAG_CELL_NAME, cell->name, sizeof(cell->name) },
		{ TAG_CLASS, cell->class, sizeof(cell->class) },
		{ TAG_SANDBOX, cell->sandbox, sizeof(cell->sandbox) },
		{ TAG_INTERPRETER, cell->interpreter,
		    sizeof(cell->interpreter) },
		{ TAG_STATE, cell->state, sizeof(cell->state) },
	};
	int64_t kept = 0;

	*cell = (struct top_cell){ .cpu_ms = -1, .memory = -1 };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		(void)frame_get_text(view, texts[i].tag, texts[i].text,
		    texts[i].size);
	(void)frame_get_int(view, TAG_STATE_MS, &cell->state_ms);
	(void)frame_get_int(view, TAG_RUNS, &cell->runs);
	(void)frame_get_int(view, TAG_PID, &cell->pid);
	cell->kept = frame_get_int(view, TAG_KEPT, &kept) && kept != 0;
	return cell->name[0] != '\0';
}

static int
take_cells(struct top *top, const char *path, struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + ASK_MS;
	unsigned char packet[4096];
	struct frame_view view;
	struct top_cell cell;
	auto_close int fd = -1;

	if (lease_command(&fd, path,
		&(struct lease_command){ .kind = FRAME_CELLS }, ASK_MS,
		err) != REFUSAL_NONE)
		return -1;
	for (;;) {
		ssize_t len = fd_receive_packet(fd, packet, sizeof(packet),
		    NULL, clock_poll_timeout(deadline), err);

		if (len < 0)
			return -1;
		if (!frame_parse(&view, packet, (size_t)len))
			return err_set(err, ERR_PROTOCOL, "it breaks off");
		if (!read_cell(&cell, &view))
			break;
		measure(&cell);
		if (top->cells < TOP_CELLS)
			top->cell[top->cells++] = cell;
	}
	(void)frame_get_int(&view, TAG_CELLS, &top->cells_count);
	return 0;
}

static int
take_owners(struct top *top, struct db *db, struct err *err)
{
	for (size_t i = 0; i < top->cells; i++) {
		auto_stmt struct stmt *s = db_statement(db,
		    STATEMENT_LIST_OWNER);
		int row;

		db_bind_text(s, ":id", top->cell[i].sandbox);
		row = db_step(db, s, err);
		if (row < 0)
			return -1;
		if (row == 1)
			top->cell[i].user_id = db_column_int(s, 0);
	}
	return 0;
}

static int
take_jobs(struct top *top, struct db *db, struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_LIST_TOP);
	int row;

	db_bind_int(s, ":now_ms", clock_wall_ms());
	db_bind_int(s, ":most", TOP_JOBS);
	while ((row = db_step(db, s, err)) == 1 && top->jobs < TOP_JOBS) {
		struct top_job *job = &top->job[top->jobs++];

		job->id = db_column_int(s, 0);
		job->slot = db_column_int(s, 1);
		job->user_id = db_column_int(s, 2);
		job->guild_id = db_column_int(s, 3);
		(void)snprintf(job->kind, sizeof(job->kind), "%s",
		    db_column_text(s, 4));
		(void)snprintf(job->state, sizeof(job->state), "%s",
		    db_column_text(s, 5));
		job->age_ms = db_column_int(s, 6);
		job->run_ms = db_column_int(s, 7);
	}
	return row < 0 ? -1 : 0;
}

int
top_take(const struct config *config, struct top *top, struct err *err)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_CTL);
	auto_db struct db *db = db_open(config->database, DB_READER, err);

	*top = (struct top){ .cells_count = 0 };
	if (db == NULL || job_count(db, &top->jobs_count, err) != 0 ||
	    take_jobs(top, db, err) != 0)
		return -1;
	if (lease_status(path, &top->broker, ASK_MS, &top->trouble) !=
		REFUSAL_NONE ||
	    take_cells(top, path, &top->trouble) != 0) {
		(void)err_wrap(&top->trouble, "il-sandboxd");
		top->cells = 0;
		top->cells_count = -1;
	}
	return take_owners(top, db, err);
}
