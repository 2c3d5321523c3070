/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <string.h>

#include "store/db.h"
#include "store/view.h"
#include "worker/render/render_view.h"

#define REMOVE_WAIT_MS 30000
#define NONE_THEN 2

/* Delete the views of this person's answers. */
static int
delete_views(struct task *task, struct err *err)
{
	if (!run_start(task))
		return 0;
	if (view_forget(task->worker->db, task->job->user_id, err) < 0)
		return -1;
	buf_adds(&task->message.lead, _(TEXT_FORGOTTEN));
	task->outcome = "forgotten";
	return 0;
}

/* Mark the sandbox as removed and delete its owner's views, at once. */
static int
remove_rows(struct task *task, struct err *err)
{
	struct db *db = task->worker->db;

	if (db_begin(db, err) != 0)
		return -1;
	if (sandbox_remove(db, task->sandbox.id, err) >= 0 &&
	    view_forget(db, task->job->user_id, err) >= 0 &&
	    db_commit(db, err) == 0)
		return 0;
	db_rollback(db);
	return -1;
}

/* Find the sandbox that the question was about, not one that was made since.
 * 1: it is gone; NONE_THEN: there was none, and the question was about the
 * views. */
static int
find_asked(struct task *task, struct err *err)
{
	struct db *db = task->worker->db;
	int found = sandbox_find(db, task->job->user_id, &task->sandbox, err);
	struct view view;
	int asked;

	if (found < 0 || task->job->view_id == 0)
		return found;
	asked = view_find(db, task->job->view_id, &view, err);
	if (asked != 0)
		return asked;
	if (view.path[0] == '\0')
		return NONE_THEN;
	return strcmp(view.path, task->sandbox.id) == 0 ? found : 1;
}

/* The sweeper removes a folder that cannot be removed now. */
int
cmd_delete(struct task *task, struct err *err)
{
	int found = find_asked(task, err);
	bool removed;

	if (found < 0)
		return -1;
	if (found == NONE_THEN)
		return delete_views(task, err);
	if (found == 1 || task->sandbox.state != SANDBOX_ACTIVE) {
		buf_adds(&task->message.lead, _(TEXT_NO_SANDBOX));
		task->outcome = "no sandbox";
		return 0;
	}
	if (!run_start(task))
		return 0;
	if (remove_rows(task, err) < 0)
		return -1;
	removed = command_remove_files(task->worker, task->sandbox.id,
	    REMOVE_WAIT_MS);
	buf_adds(&task->message.lead,
	    removed ? _(TEXT_DELETED) : _(TEXT_REMOVING));
	task->outcome = removed ? "deleted" : "removing";
	return 0;
}
