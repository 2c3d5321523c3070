/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "store/view.h"
#include "worker/render/render_packages.h"

#define PACKAGES_MOST 1000
#define RECORD_MAX (1 << 20) /* bytes from which a size is added up */
#define LIST_MAX (1 << 20)

/* The list comes from a cell of the user's, which can read packages and is
 * warm. */
int
cmd_packages_list(struct task *task, struct err *err)
{
	struct cell_request request = {
		.op = OP_PACKAGES,
		.count = PACKAGES_MOST,
		.max_bytes = RECORD_MAX,
		.output_max = LIST_MAX,
	};

	(void)err;
	collect_init(&task->collect, LIST_MAX, 0);
	if (!command_choose_version(task) || !command_do(task, &request))
		return 0;
	render_packages(&task->message, &task->collect.output,
	    &task->run.result, &task->env);
	task->outcome = "listed";
	return 0;
}

/* Store the view of a button that removes unneeded packages; 0: there are none,
 * or no view could be stored. */
static int64_t
offer_rest(struct task *task)
{
	struct err err = { 0 };
	struct view view = { .kind = JOB_PACKAGES_REMOVE,
		.user_id = task->job->user_id };

	if (task->collect.output.len == 0)
		return 0;
	(void)snprintf(view.version, sizeof(view.version), "%s",
	    task->job->version);
	if (view_insert(task->worker->db, &view, &err) < 0) {
		log_err("no button: %s job=%" PRId64, err.text, task->job->id);
		return 0;
	}
	return view.id;
}

/* Code cannot write to packages, so a cell that mounts nothing else removes
 * them.  A button names no package: it removes unneeded ones. */
int
cmd_packages_remove(struct task *task, struct err *err)
{
	const char *name = task->job->view_id == 0 ? task->job->text : NULL;
	struct cell_request request = {
		.op = OP_UNINSTALL,
		.name = name,
		.count = PACKAGES_MOST,
		.output_max = LIST_MAX,
		.wall_ms = FILE_OP_MS,
	};
	const struct cell_result *result = &task->run.result;

	(void)err;
	if (!command_choose_version(task))
		return 0;
	collect_init(&task->collect, LIST_MAX, 0);
	run_once(task, "packages", &request);
	/* nothing was installed for that Python, or not this package */
	if (name != NULL &&
	    ((task->run.end == RUN_REFUSED &&
		 task->run.refusal == REFUSAL_NO_WORKSPACE) ||
		outcome_failed_with(&task->run, ERROR_NOT_FOUND))) {
		buf_addf(&task->message.lead, _(TEXT_NO_PACKAGE),
		    phrase_name(name, PACKAGE_SHOWN).text);
		task->outcome = "not installed";
		return 0;
	}
	if (!command_succeeded(task))
		return 0;
	task->outcome = "removed";
	if (name == NULL) {
		render_rest_removed(&task->message, &task->collect.output,
		    result, task->env.config);
		return 0;
	}
	render_uninstalled(&task->message, name, &task->collect.output,
	    offer_rest(task), result, task->env.config);
	return 0;
}
