#include "command.h"

#include <string.h>

#include "../../base/err.h"
#include "../../base/log.h"
#include "../../store/view.h"
#include "../worker.h"

#define REMOVE_WAIT_MS 30000

/* The question was about this very sandbox, not about one made since.  1: it
 * was not. */
static int
check_view(struct task *task, struct err *err)
{
	struct view view;
	int found;

	if (task->job->view_id == 0)
		return 0;
	found = view_find(task->worker->db, task->job->view_id, &view, err);
	if (found != 0)
		return found;
	return strcmp(view.path, task->sandbox.id) == 0 ? 0 : 1;
}

/* From the row's change on the sandbox is gone for its owner.  A folder that
 * cannot be removed now is the sweeper's. */
static int delete (struct task *task, struct err *err)
{
	const char *id = task->sandbox.id;
	struct err why = { 0 };
	bool removed;

	if (sandbox_remove(task->worker->db, id, err) < 0)
		return -1;
	removed = lease_remove_workspace(task->worker->lease_socket, id,
		      REMOVE_WAIT_MS, &why) == REFUSAL_NONE &&
	    sandbox_gone(task->worker->db, id, &why) >= 0;
	if (!removed)
		log_warn("left to the sweeper: %s sandbox=%s", why.text, id);
	render_deleted(&task->message, removed);
	command_set_outcome(task, removed ? "deleted" : "removing");
	return 0;
}

int
cmd_delete(struct task *task, struct err *err)
{
	int found = sandbox_find(task->worker->db, task->job->user_id,
	    &task->sandbox, err);

	if (found == 0)
		found = check_view(task, err);
	if (found < 0)
		return -1;
	if (found == 1 || task->sandbox.state != SANDBOX_ACTIVE) {
		render_no_sandbox(&task->message);
		command_set_outcome(task, "no sandbox");
		return 0;
	}
	return run_start(task) ? delete (task, err) : 0;
}
