/* SPDX-License-Identifier: MIT */
#include "command.h"


#define LOG_MAX (4 * 1024 * 1024)
#define WAIT_MS 60000

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
		task->tick = command_show_progress;
		collect_init(&task->collect, LOG_MAX, 0);
		run_once(task, "pip", ACCESS_WRITE, &request, WAIT_MS);
		if (command_has_run(task))
			render_pip(&task->message, &task->run,
			    &task->collect.output, words.words, &task->env);
	}
	requirements_release(&words);
	return 0;
}
