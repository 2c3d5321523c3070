/* SPDX-License-Identifier: MIT */
#include "naming.h"

#include <poll.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/conversation.h"
#include "../store/names.h"
#include "task.h"
#include "worker.h"

/* A cell that has not told them by then tells them another time. */
#define TELL_MS 1000
#define SEND_MS 100
#define PYTHON_MAX 32
/* Each name has a letter before it and a NUL behind. */
#define TOLD_MAX (NAMES_MOST * (NAMES_BYTES + 2) + PYTHON_MAX + 2)

/* ---- when ---- */

/* What a run has left in the folder, pictures apart that are nowhere. */
static bool
has_files(const struct collect *collect)
{
	for (size_t i = 0; i < collect->file_count; i++)
		if (!collect->files[i].displayed)
			return true;
	for (size_t i = 0; i < collect->left_count; i++)
		if (!collect->left[i].displayed)
			return true;
	return collect->left_more > 0;
}

static bool
may_rename(const struct task *task, const struct cell_request *request)
{
	const struct cell_result *result = &task->run.result;

	/* a directory that was made, what was removed: there are more of them,
	 * or fewer */
	if (request->op == OP_RUN)
		return has_files(&task->collect) ||
		    (result->used_files >= 0 &&
			result->used_files != task->sandbox.named_files);
	return request->op == OP_WRITE || request->op == OP_REMOVE ||
	    request->op == OP_PIP || request->op == OP_UNINSTALL;
}

void
naming_heed(struct task *task, const struct cell_request *request)
{
	if (may_rename(task, request))
		task->renamed = true;
}

void
naming_close(struct task *task)
{
	if (!task->renamed)
		lease_close(&task->lease);
}

/* ---- what the cell tells ---- */

struct told {
	struct buf text;
	struct name list[NAMES_MOST];
	size_t count;
	const char *python;
};

static void
take_event(void *arg, const struct cell_event *event)
{
	struct told *told = arg;

	if (event->kind == CELL_OUTPUT)
		buf_add(&told->text, event->data, event->len);
}

/* The kind by the letter before a name. */
static enum name_kind
kind_of(char letter)
{
	switch (letter) {
	case 'd':
		return NAME_DIRECTORY;
	case 'f':
		return NAME_FILE;
	case 'p':
		return NAME_PACKAGE;
	default:
		return NAME_KINDS;
	}
}

/* "3.11": what is no such version is no version. */
static bool
is_python(const char *text)
{
	size_t len = strlen(text);

	return len <= PYTHON_MAX && strspn(text, "0123456789.") == len;
}

/* The names in what the cell has told that are fit to be kept.  What follows a
 * name is its business (the version of a package, its size). */
static void
read_told(struct told *told, bool packages)
{
	const char *at = buf_str(&told->text);
	const char *end = at + told->text.len;

	told->python = "";
	for (; at < end; at += strlen(at) + 1) {
		enum name_kind kind = kind_of(*at);

		if (*at == 'v' && packages && is_python(at + 1))
			told->python = at + 1;
		if (kind == NAME_KINDS || (kind == NAME_PACKAGE) != packages ||
		    told->count == NAMES_MOST ||
		    !name_is_fit(at + 1, strlen(at + 1)))
			continue;
		told->list[told->count++] = (struct name){ kind, at + 1 };
	}
}

/* False: the cell did not tell. */
static bool
ask(struct task *task, struct told *told)
{
	const struct worker *worker = task->worker;
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };
	const struct cell_request request = {
		.op = task->at_packages ? OP_PACKAGES : OP_NAMES,
		.count = NAMES_MOST,
		.max_bytes = task->at_packages ? 0 : NAMES_BYTES,
		.output_max = TOLD_MAX,
		.wall_ms = TELL_MS,
	};
	struct conversation c = {
		.cell_fd = task->lease.cell_fd,
		.broker_fd = task->lease.broker_fd,
		.event = take_event,
		.arg = told,
		.send_ms = SEND_MS,
		/* nobody waits that much longer for names */
		.within_ms = TELL_MS - LIMIT_OUTSIDE_MS,
		.stop = &stop,
	};
	struct cell_result result = { 0 };
	struct err err = { .text = "the worker has to end" };
	enum conversation_end end = conversation_hold(&c, &request, &result,
	    &err);

	if (end == CONVERSATION_RESULT && result.reason == REASON_EXIT)
		return true;
	log_warn("no names: %s sandbox=%s",
	    end == CONVERSATION_RESULT ? result.error_text : err.text,
	    task->sandbox.id);
	return false;
}

void
naming_keep(struct task *task)
{
	struct told told = { .text = BUF_INIT(TOLD_MAX) };
	struct err err = { 0 };
	int64_t files = task->at_packages ? -1 : task->run.result.used_files;
	bool told_all = task->lease.cell_fd >= 0 && task->renamed &&
	    ask(task, &told);

	lease_close(&task->lease);
	task->renamed = false;
	if (!told_all) {
		buf_release(&told.text);
		return;
	}
	read_told(&told, task->at_packages);
	if (names_keep(task->worker->db, task->sandbox.id, told.python, files,
		told.list, told.count, &err) < 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
	buf_release(&told.text);
}
