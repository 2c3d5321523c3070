/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "../../base/cleanup.h"
#include "../../base/clock.h"
#include "../../rest/rest.h"

#define LOG_MAX (4 * 1024 * 1024)
#define WAIT_MS 60000

/* Show the log so far.  What Discord says to it does not matter: the last edit
 * tells all. */
static void
show_progress(void *arg)
{
	struct task *task = arg;
	struct rest_reply reply;
	struct err err = { 0 };
	auto_message struct message message = MESSAGE_INIT;
	auto_free char *body = NULL;

	render_pip_progress(&message, &task->collect.output,
	    clock_monotonic_ms() - task->begun_ms);
	body = message_json(&message, false);
	(void)rest_edit_original(task->worker->rest, task->job->token, body,
	    NULL, 0, REST_PROGRESS, task->until_ms, &reply, &err);
}

int
cmd_pip(struct task *task, struct err *err)
{
	struct requirements words;
	enum requirements_result result = requirements_parse(&words,
	    task->job->text);
	struct cell_request request = {
		.op = OP_PIP,
		.args = (const char *const *)words.words,
		.wall_ms = task->worker->config->pip_timeout_ms,
		.output_max = LOG_MAX,
	};

	(void)err;
	/* nothing that is not a requirement reaches pip */
	if (result != REQUIREMENTS_OK) {
		render_bad_requirements(&task->message, result,
		    words.count > 0 ? words.words[words.count - 1] : "");
		task->outcome = "not a requirement";
	} else {
		task->tick = show_progress;
		collect_init(&task->collect, LOG_MAX, 0);
		run_once(task, "pip", ACCESS_WRITE, &request, WAIT_MS);
		if (command_has_run(task))
			render_pip(&task->message, &task->run,
			    &task->collect.output, words.words, &task->env);
	}
	requirements_release(&words);
	return 0;
}
