/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../../store/view.h"
#include "../render/render_view.h"

/* The row first: should the message stay, it says so and has no buttons. */
int
cmd_py_remove(struct task *task, struct err *err)
{
	if (view_remove(task->worker->db, task->job->view_id,
		task->job->user_id, err) < 0)
		return -1;
	buf_adds(&task->message.lead, _(TEXT_REMOVED));
	task->remove = true;
	task->outcome = "removed";
	return 0;
}
