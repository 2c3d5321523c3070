/* SPDX-License-Identifier: MIT */
/* The current directory may be gone, and a file that is not in it may be at the
 * top of the sandbox. */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "store/view.h"
#include "worker/render/render_where.h"

/* Send one more request to the leased cell. */
static bool
place_ask(struct task *task, enum cell_op op, const char *path)
{
	return command_ask(task,
	    (struct cell_request){ .op = op, .path = path });
}

/* Is the path missing or closed? */
static bool
place_is_lost(const struct run_outcome *run)
{
	return outcome_failed_with(run, ERROR_NOT_FOUND) ||
	    outcome_failed_with(run, ERROR_NOT_DIRECTORY) ||
	    outcome_failed_with(run, ERROR_NOT_INSIDE) ||
	    outcome_failed_with(run, ERROR_PERMISSION);
}

static void
cut_last_name(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash != NULL ? slash : path) = '\0';
}

bool
place_set(struct task *task, const char *path)
{
	struct err err = { 0 };

	if (sandbox_set_cwd(task->worker->db, task->sandbox.id, path, &err) <
	    0) {
		log_warn("%s job=%" PRId64, err.text, task->job->id);
		return false;
	}
	memmove(task->sandbox.cwd, path, strlen(path) + 1);
	return true;
}

bool
place_find(struct task *task)
{
	struct run_outcome failed = task->run;
	char path[PATH_SIZE];
	char was[PATH_SIZE];
	bool found;

	memcpy(was, task->sandbox.cwd, sizeof(was));
	if (was[0] == '\0' || !place_is_lost(&failed))
		return false;
	memcpy(path, was, sizeof(path));
	found = place_ask(task, OP_LIST, path);
	while (!found && place_is_lost(&task->run)) {
		cut_last_name(path);
		found = path[0] == '\0' || place_ask(task, OP_LIST, path);
	}
	task->run = failed;
	if (!found || strcmp(path, was) == 0 || !place_set(task, path))
		return false;
	memcpy(task->gone, was, sizeof(was));
	return true;
}

bool
place_find_room(struct task *task, const char *name)
{
	struct run_outcome failed = task->run;
	const char *typed = task->job->path;
	char folder[PATH_SIZE];
	char path[PATH_SIZE];

	if (!place_find(task) || task->job->view_id != 0 ||
	    path_resolve(task->sandbox.cwd, typed, folder) != PATH_OK ||
	    path_resolve(folder, name, path) != PATH_OK)
		return false;
	if (place_ask(task, OP_STAT, path) ||
	    !outcome_failed_with(&task->run, ERROR_NOT_FOUND)) {
		task->run = failed;
		return false;
	}
	memcpy(task->path, path, sizeof(path));
	return true;
}

void
place_look_at_top(struct task *task)
{
	struct run_outcome failed = task->run;
	const char *typed = task->job->path;
	char path[PATH_SIZE];

	if (task->job->view_id != 0 ||
	    !outcome_failed_with(&failed, ERROR_NOT_FOUND) ||
	    path_resolve("", typed, path) != PATH_OK || path[0] == '\0' ||
	    strcmp(path, task->path) == 0 || path_in_packages(path) != NULL)
		return;
	if (place_ask(task, OP_STAT, path))
		memcpy(task->elsewhere, path, sizeof(path));
	task->run = failed;
}

void
place_leave(struct task *task, const char *removed)
{
	const char *cwd = task->sandbox.cwd;
	size_t len = strlen(removed);
	char path[PATH_SIZE];

	if (strncmp(cwd, removed, len) != 0 ||
	    (cwd[len] != '\0' && cwd[len] != '/'))
		return;
	(void)snprintf(path, sizeof(path), "%s", removed);
	cut_last_name(path);
	if (!place_set(task, path))
		return;
	task->place_told = true;
	render_place(&task->message.tail, path, "", true);
}

int64_t
place_make_way(struct task *task, enum job_kind kind, const char *path,
    struct err *err)
{
	struct view view = { .kind = kind, .user_id = task->job->user_id };
	/* a path with a tilde is as if it had been typed */
	int len = snprintf(view.path, sizeof(view.path), "%s%s%s",
	    kind == JOB_LOOK ? "~" : "",
	    kind == JOB_LOOK && *path != '\0' ? "/" : "", path);

	if (len >= (int)sizeof(view.path))
		return 0;
	return view_insert(task->worker->db, &view, err) < 0 ? -1 : view.id;
}

/* Add a button to this path. */
static void
offer(struct task *task, enum job_kind kind, const char *path)
{
	struct err err = { 0 };
	int64_t view_id = place_make_way(task, kind, path, &err);

	if (view_id < 0)
		log_warn("no button: %s job=%" PRId64, err.text, task->job->id);
	else if (view_id > 0)
		render_way(&task->message,
		    kind == JOB_LOOK ? WAY_LOOK : WAY_GET, view_id, path);
}

void
place_offer(struct task *task)
{
	enum job_kind kind = task->job->kind;

	if (!outcome_failed_with(&task->run, ERROR_NOT_FOUND))
		return;
	if (task->elsewhere[0] != '\0') {
		buf_addf(&task->message.lead, _(TEXT_ELSEWHERE),
		    phrase_path(task->elsewhere).text);
		if (kind == JOB_LOOK || kind == JOB_GET)
			offer(task, kind, task->elsewhere);
	}
	if (kind == JOB_LOOK &&
	    (task->elsewhere[0] == '\0' ||
		strcmp(task->elsewhere, task->sandbox.cwd) != 0))
		offer(task, kind, task->sandbox.cwd);
}

void
place_tell(struct task *task)
{
	const char *cwd = task->sandbox.cwd;

	if (task->gone[0] != '\0' || (cwd[0] != '\0' && !task->place_told))
		render_place(&task->message.tail, cwd, task->gone, false);
}
