/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config_images.h"
#include "base/log.h"
#include "store/editor.h"
#include "worker/render/render_where.h"

/* The function of each kind of job, from the rows of commands.def. */
static int (*const functions[JOB_UNKNOWN])(struct task *task,
    struct err *err) = {
#define COMMAND(kind, name, function, ...) [JOB_##kind] = cmd_##function,
#include "store/commands.def"
};

bool
command_choose_version(struct task *task)
{
	const char *list = task->worker->config->chat_images;
	struct image_entry usual;
	struct image_entry chosen;

	if (!images_find(list, task->job->version, &chosen)) {
		render_no_version(&task->message, task->job->version, list);
		task->outcome = "no such version";
		return false;
	}
	(void)images_find(list, "", &usual);
	(void)snprintf(task->version, sizeof(task->version), "%s", chosen.name);
	task->env.version = strcmp(chosen.name, usual.name) != 0 ?
	    task->version :
	    NULL;
	return true;
}

/* il-fcgi makes no jobs of these commands. */
int
cmd_none(struct task *task, struct err *err)
{
	return err_set(err, ERR_INPUT, "%s makes no job",
	    commands[task->job->kind].name);
}

/* A button's view has the whole path; a typed one is relative to the current
 * directory. */
bool
command_resolve(struct task *task)
{
	const char *cwd = task->job->view_id != 0 ? "" : task->sandbox.cwd;
	enum path_result result = path_resolve(cwd, task->job->path,
	    task->path);

	/* packages differ between versions, files do not */
	if (result == PATH_OK)
		return path_in_packages(task->path) == NULL ||
		    command_choose_version(task);
	render_path(&task->message, result);
	task->outcome = "not inside";
	return false;
}

bool
command_resolve_file(struct task *task)
{
	const char *path = task->job->path;

	if (task->job->view_id != 0 || !path_means_folder(path))
		return command_resolve(task);
	buf_addf(&task->message.lead, _(TEXT_NAMES_FOLDER),
	    phrase_name(path, PATH_SHOWN).text);
	task->outcome = "no file's name";
	return false;
}

int
command_open_editor(struct task *task, const char *custom_id, const char *title,
    json_t *inputs, struct err *err)
{
	json_auto_t *modal = editor_open(custom_id, title, inputs);

	if (modal != NULL)
		task->editor = json_dumps(modal, JSON_COMPACT);
	if (task->editor == NULL)
		return err_set(err, ERR_INPUT, "no editor for this text");
	task->outcome = "editor";
	return 0;
}

/* A usage that cannot be stored now is replaced after the next request. */
void
command_note_usage(struct task *task)
{
	const struct cell_result *result = &task->run.result;
	struct err err = { 0 };

	/* the run in the cell reports it at its end */
	if (task->run.beside)
		return;
	if (task->run.end == RUN_RESULT && result->used_bytes >= 0 &&
	    result->used_files >= 0 &&
	    sandbox_set_usage(task->worker->db, task->sandbox.id,
		result->used_bytes, result->used_files, task->renamed,
		&err) < 0)
		log_warn("%s sandbox=%s", err.text, task->sandbox.id);
}

/* The message that was begun is dropped. */
void
command_not_done(struct task *task)
{
	message_release(&task->message);
	render_not_done(&task->message, &task->run, task->path, &task->env);
	place_offer(task);
	task->outcome = render_word(&task->run, task->word);
}

void
command_show_progress(void *arg)
{
	struct task *task = arg;
	struct rest_reply reply;
	struct err err = { 0 };
	struct rest_target target = { REST_ORIGINAL, task->job->token,
		task->until_ms };
	auto_message struct message message = MESSAGE_INIT;
	auto_free char *body = NULL;
	enum rest_outcome outcome;

	if (task->quiet)
		return;
	render_progress(&message, task->job->kind, task->job->id,
	    &task->collect.output, clock_monotonic_ms() - task->asked_ms);
	body = message_json(&message, false);
	outcome = rest_send_message(task->worker->rest, &target, body, NULL, 0,
	    REST_PROGRESS, &reply, &err);
	/* there is no message, or its text is refused */
	if (outcome == REST_GONE || rest_is_moderated(&reply))
		task->quiet = true;
}

bool
command_succeeded(struct task *task)
{
	bool good = !task->taken && outcome_succeeded(&task->run);

	if (!good && !task->taken)
		command_not_done(task);
	return good;
}

/* A run that was broken off has output and effects, so it counts as one that
 * began. */
bool
command_has_run(struct task *task)
{
	if (task->taken)
		return false;
	if (!outcome_began(&task->run)) {
		command_not_done(task);
		return false;
	}
	task->outcome = render_word(&task->run, task->word);
	return true;
}

bool
command_ask(struct task *task, struct cell_request request)
{
	request.wall_ms = task->run.beside ? BESIDE_OP_MS : FILE_OP_MS;
	collect_release(&task->collect);
	return run_request(task, &request) && outcome_succeeded(&task->run);
}

bool
command_look(struct task *task, bool (*ask)(struct task *task, void *arg),
    void *arg)
{
	bool good = false;
	bool again;

	for (enum access access = ACCESS_LOOK;; access = ACCESS_TIDY) {
		if (!run_open(task, "user", access, 3 * FILE_OP_MS))
			break;
		good = ask(task, arg);
		if (!good && place_find(task) && command_resolve(task))
			good = ask(task, arg);
		if (!good)
			place_look_at_top(task);
		again = task->run.beside &&
		    (task->run.end == RUN_BROKEN ||
			task->run.end == RUN_OVERDUE);
		command_note_usage(task);
		lease_close(&task->lease);
		if (!again)
			break;
	}
	return good || command_succeeded(task);
}

bool
command_do(struct task *task, struct cell_request *request)
{
	request->path = task->path;
	request->wall_ms = FILE_OP_MS;
	/* only writing needs room on the disk */
	if (run_open(task, "user",
		request->op == OP_WRITE ? ACCESS_WRITE : ACCESS_TIDY,
		3 * FILE_OP_MS) &&
	    run_request(task, request)) {
		/* a file in another directory is not removed */
		if (request->op != OP_WRITE)
			(void)place_find(task);
		else if (place_find_room(task, ""))
			(void)run_request(task, request);
		place_look_at_top(task);
	}
	run_close(task);
	command_note_usage(task);
	return command_succeeded(task);
}

static void
not_fetched(struct task *task, const char *text)
{
	buf_adds(&task->message.lead, _(text));
	task->outcome = "not fetched";
}

void *
command_download(struct task *task, const char *url, int64_t max, size_t *len)
{
	struct err err = { 0 };
	void *data = NULL;
	enum rest_outcome outcome = rest_download(task->worker->rest, url,
	    (size_t)max, &data, len, &err);

	if (outcome == REST_DONE)
		return data;
	free(data);
	log_warn("attachment: %s job=%" PRId64, err.text, task->job->id);
	not_fetched(task,
	    outcome == REST_GONE ? TEXT_UPLOAD_GONE : TEXT_NOT_FETCHED);
	return NULL;
}

bool
command_not_as_announced(struct task *task)
{
	log_warn("attachment: not as long as announced job=%" PRId64,
	    task->job->id);
	not_fetched(task, TEXT_NOT_FETCHED);
	return false;
}

bool
command_remove_files(struct worker *worker, const char *sandbox, int wait_ms)
{
	const struct lease_command remove = { .kind = FRAME_REMOVE,
		.sandbox = sandbox };
	struct err err = { 0 };
	/* The row goes last, so that the sweeper finds what is left. */
	bool removed = lease_command(NULL, worker->lease_socket, &remove,
			   wait_ms, &err) == REFUSAL_NONE &&
	    sandbox_gone(worker->db, sandbox, &err) >= 0;

	if (!removed)
		log_warn("not removed yet: %s sandbox=%s", err.text, sandbox);
	return removed;
}

/* Find the sandbox of a command that needs one, or make it, as `/il create`
 * does.  An editor that Discord waits for opens without one.  1: the message
 * says why there is none. */
static int
command_find_sandbox(struct task *task, struct err *err)
{
	struct sandbox *sandbox = &task->sandbox;
	int result = sandbox_find(task->worker->db, task->job->user_id, sandbox,
	    err);

	/* each use extends its life; it may expire in between */
	if (result == 0 && sandbox_is_usable(sandbox)) {
		result = sandbox_touch(task->worker->db, sandbox->id,
		    task->worker->config->retention_seconds, err);
	} else if (result == 0) {
		task->lost_at = sandbox->expires_at;
		result = 1;
	}
	if (result != 1)
		return result;
	if (task->job->answer == ANSWER_EDITOR) {
		*sandbox = (struct sandbox){ .user_id = task->job->user_id };
		return 0;
	}
	return command_make_sandbox(task, &task->made_sandbox, err);
}

/* Name the current directory below the answer, and say if the sandbox is
 * new. */
static void
command_tell_sandbox(struct task *task, enum command_needs needs)
{
	if (needs >= COMMAND_NEEDS_SANDBOX && !task->remove)
		place_tell(task);
	if (task->made_sandbox)
		render_made(&task->message, task->lost_at);
}

void
command_run(struct task *task)
{
	enum job_kind kind = task->job->kind;
	struct err err = { 0 };
	int result = 0;

	if (kind == JOB_UNKNOWN) {
		buf_adds(&task->message.lead, _(TEXT_UNKNOWN));
		task->outcome = "unknown kind";
		return;
	}
	/* Commands that need no sandbox look for one themselves. */
	if (commands[kind].needs >= COMMAND_NEEDS_SANDBOX)
		result = command_find_sandbox(task, &err);
	if (result == 0) {
		result = functions[kind](task, &err);
		if (result >= 0 && !task->taken)
			command_tell_sandbox(task, commands[kind].needs);
	}
	if (result >= 0)
		return;
	log_err("%s job=%" PRId64 " kind=%s", err.text, task->job->id,
	    commands[kind].name);
	message_release(&task->message);
	render_error(&task->message, task->job->id);
	task->outcome = "error";
	task->our_fault = true;
}
