/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <string.h>

#include "../../store/view.h"

#define REMOVE_WAIT_MS 30000

/* From the row's change on the sandbox is gone for its owner.  A folder that
 * cannot be removed now is the sweeper's. */
int
cmd_delete(struct task *task, struct err *err)
{
	struct db *db = task->worker->db;
	int found = sandbox_find(db, task->job->user_id, &task->sandbox, err);
	struct view view;
	bool removed;

	/* The question was about this sandbox, not about one made since. */
	if (found == 0 && task->job->view_id != 0) {
		found = view_find(db, task->job->view_id, &view, err);
		if (found == 0 && strcmp(view.path, task->sandbox.id) != 0)
			found = 1;
	}
	if (found < 0)
		return -1;
	if (found == 1 || task->sandbox.state != SANDBOX_ACTIVE) {
		buf_adds(&task->message.lead, TEXT_NO_SANDBOX);
		task->outcome = "no sandbox";
		return 0;
	}
	if (!run_start(task))
		return 0;
	if (sandbox_remove(db, task->sandbox.id, err) < 0)
		return -1;
	removed = command_remove_files(task, REMOVE_WAIT_MS);
	buf_adds(&task->message.lead,
	    _(removed ? TEXT_DELETED : TEXT_REMOVING));
	task->outcome = removed ? "deleted" : "removing";
	return 0;
}
