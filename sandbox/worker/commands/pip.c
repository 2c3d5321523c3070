#include "command.h"

#include <stdlib.h>

#include "../../base/cleanup.h"
#include "../../base/clock.h"
#include "../../base/config.h"
#include "../../base/err.h"
#include "../../rest/rest.h"
#include "../render/collect.h"
#include "../render/requirement.h"
#include "../worker.h"

#define LOG_MAX (4 * 1024 * 1024)
#define TICK_MS 3000
#define WAIT_MS 60000

struct pip {
	struct task *task;
	struct collect collect;
	int64_t started_ms;
};

/* Show the log so far.  What Discord says to it does not matter: the last edit
 * tells all. */
static void
show_progress(void *arg)
{
	struct pip *pip = arg;
	struct task *task = pip->task;
	struct rest_reply reply;
	struct err err = { 0 };
	struct message message;
	auto_free char *body = NULL;

	message_init(&message);
	render_pip_progress(&message, &pip->collect.output,
	    clock_monotonic_ms() - pip->started_ms);
	body = message_json(&message, false);
	(void)rest_edit_original(task->worker->rest, task->job->token, body,
	    NULL, 0, REST_PROGRESS, task->until_ms, &reply, &err);
	message_release(&message);
}

static void
take_event(void *arg, const struct cell_event *event)
{
	struct pip *pip = arg;

	collect_event(&pip->collect, event);
}

static void
install(struct pip *pip, struct requirements *words)
{
	struct task *task = pip->task;
	const struct config *config = task->worker->config;
	struct render_env env = command_env(task);
	struct cell_request request = {
		.op = OP_PIP,
		.args = (const char *const *)words->words,
		.wall_ms = config->pip_timeout_ms,
		.output_max = LOG_MAX,
	};
	struct cell_sink sink = { .event = take_event,
		.tick = show_progress,
		.tick_ms = TICK_MS,
		.arg = pip };
	struct run run;

	pip->started_ms = clock_monotonic_ms();
	if (run_open(&run, task, "pip", ACCESS_WRITE, config->pip_timeout_ms,
		WAIT_MS))
		(void)run_request(&run, &request, config->pip_timeout_ms,
		    &sink);
	run_close(&run);
	if (task->taken)
		return;
	if (run.outcome.end == RUN_REFUSED || run.outcome.end == RUN_TOO_LATE ||
	    (run.outcome.end == RUN_RESULT &&
		run.outcome.result.reason == REASON_ERROR)) {
		command_not_done(task, &run.outcome, "");
		return;
	}
	render_pip(&task->message, &run.outcome, &pip->collect.output,
	    words->words, &env);
	outcome_word(&run.outcome, task->outcome, sizeof(task->outcome));
}

int
cmd_pip(struct task *task, struct err *err)
{
	struct pip pip = { .task = task };
	struct requirements words;
	enum requirements_result result = requirements_parse(&words,
	    task->job->text);

	(void)err;
	if (result == REQUIREMENTS_OK) {
		collect_init(&pip.collect, LOG_MAX, 0);
		install(&pip, &words);
		collect_release(&pip.collect);
	} else {
		render_bad_requirements(&task->message, result,
		    words.count > 0 ? words.words[words.count - 1] : "");
		command_set_outcome(task, "not a requirement");
	}
	requirements_release(&words);
	return 0;
}
