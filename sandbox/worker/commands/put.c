#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/config.h"
#include "../../base/err.h"
#include "../../base/log.h"
#include "../../rest/rest.h"
#include "../render/collect.h"
#include "../worker.h"

/* The file is in our memory on its way. */
#define PUT_MAX (100 * 1024 * 1024)

struct put {
	struct task *task;
	char path[PATH_SIZE];
	bool folder; /* the path names a directory: the file goes into it */
	void *data;
	size_t len;
};

static bool
fetch(struct put *put)
{
	struct task *task = put->task;
	const struct job *job = task->job;
	int64_t most = task->worker->config->quota;
	enum rest_outcome outcome = REST_REFUSED;
	struct err err = { 0 };

	if (most > PUT_MAX)
		most = PUT_MAX;
	if (job->attachment_size < 0 || job->attachment_size > most) {
		render_too_large(&task->message, job->attachment_size, most);
		command_set_outcome(task, "too large");
		return false;
	}
	outcome = rest_download(task->worker->rest, job->attachment_url,
	    (size_t)job->attachment_size, &put->data, &put->len, &err);
	if (outcome == REST_DONE && put->len == (size_t)job->attachment_size)
		return true;
	log_warn("attachment: %s job=%" PRId64,
	    outcome == REST_DONE ? "not as long as announced" : err.text,
	    job->id);
	render_not_fetched(&task->message, outcome == REST_GONE);
	command_set_outcome(task, "not fetched");
	return false;
}

static bool
append_name(struct put *put)
{
	char name[FILENAME_SIZE];
	char folder[PATH_SIZE];

	(void)filename_clean(name, put->task->job->attachment_name);
	memcpy(folder, put->path, sizeof(folder));
	if (path_resolve(folder, name, put->path) == PATH_OK)
		return true;
	render_path(&put->task->message, PATH_TOO_LONG);
	command_set_outcome(put->task, "not inside");
	return false;
}

/* Without a path: into the current directory. */
static bool
find_target(struct put *put)
{
	const char *path = put->task->job->path;

	if (!command_resolve(put->task, path, put->path))
		return false;
	put->folder = path_means_folder(path);
	return !put->folder || append_name(put);
}

/* A path that names a directory without saying so: it goes inside as well. */
static bool
look_at_target(struct put *put, struct run *run)
{
	struct cell_request stat = {
		.op = OP_STAT, .path = put->path, .wall_ms = FILE_OP_MS
	};
	struct collect collect;
	struct cell_sink sink = { .event = collect_event, .arg = &collect };
	bool good;

	if (put->folder)
		return true;
	collect_init(&collect, 0, 0);
	good = run_request(run, &stat, FILE_OP_MS, &sink);
	if (good && collect.entry_count == 1 &&
	    collect.entries[0].kind == ENTRY_DIRECTORY)
		good = append_name(put);
	collect_release(&collect);
	return good;
}

static void
store(struct put *put, struct run *run)
{
	struct task *task = put->task;
	struct render_env env = command_env(task);
	struct cell_request write = {
		.op = OP_WRITE,
		.path = put->path,
		.content = put->data,
		.content_len = put->len,
		.wall_ms = FILE_OP_MS,
	};

	if (run_request(run, &write, 2 * FILE_OP_MS, NULL) &&
	    outcome_succeeded(&run->outcome)) {
		command_note_usage(task, &run->outcome);
		render_written(&task->message, put->path, (int64_t)put->len,
		    &run->outcome, &env);
		command_set_outcome(task, "stored");
	} else if (!task->taken) {
		command_not_done(task, &run->outcome, put->path);
	}
}

int
cmd_put(struct task *task, struct err *err)
{
	struct put put = { .task = task };
	struct run run;

	(void)err;
	if (!find_target(&put) || !fetch(&put)) {
		free(put.data);
		return 0;
	}
	if (!run_open(&run, task, "user", ACCESS_WRITE, 3 * FILE_OP_MS,
		config_lease_wait_ms(task->worker->config)))
		command_not_done(task, &run.outcome, put.path);
	else if (look_at_target(&put, &run))
		store(&put, &run);
	else if (run.outcome.end != RUN_RESULT && !task->taken)
		command_not_done(task, &run.outcome, put.path);
	run_close(&run);
	free(put.data);
	return 0;
}
