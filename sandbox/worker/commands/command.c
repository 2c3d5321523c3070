/* SPDX-License-Identifier: MIT */
#include "worker/commands/command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/config.h"
#include "store/editor.h"
#include "store/job.h"
#include "worker/render/render_files.h"

/* ---- the current directory ---- */

/* Send one more request to the leased cell.  task->run stays as it is. */
static struct run_outcome
place_ask(struct task *task, enum cell_op op, const char *path)
{
	struct run_outcome before = task->run;
	struct run_outcome result;

	(void)command_ask(task,
	    (struct cell_request){ .op = op, .path = path });
	result = task->run;
	task->run = before;
	return result;
}

/* Is the path missing or closed? */
static bool
place_is_lost(const struct run_outcome *run)
{
	return outcome_failed_with(run, ERROR_NOT_FOUND) ||
	    outcome_failed_with(run, ERROR_NOT_DIRECTORY) ||
	    outcome_failed_with(run, ERROR_NOT_INSIDE) ||
	    outcome_failed_with(run, ERROR_PERMISSION);
}

static void
cut_last_name(char *path)
{
	char *slash = strrchr(path, '/');

	*(slash != NULL ? slash : path) = '\0';
}

bool
place_set(struct task *task, const char *path)
{
	struct err err = { 0 };

	if (sandbox_set_cwd(task->worker->db, task->sandbox.id, path, &err) <
	    0) {
		log_warn("%s job=%" PRId64, err.text, task->job->id);
		return false;
	}
	memmove(task->sandbox.cwd, path, strlen(path) + 1);
	return true;
}

bool
place_find(struct task *task)
{
	struct run_outcome asked = task->run;
	char path[PATH_SIZE];
	char was[PATH_SIZE];

	if (task->sandbox.cwd[0] == '\0' || !place_is_lost(&asked))
		return false;
	memcpy(was, task->sandbox.cwd, sizeof(was));
	memcpy(path, was, sizeof(path));
	asked = place_ask(task, OP_LIST, path);
	while (path[0] != '\0' && place_is_lost(&asked)) {
		cut_last_name(path);
		if (path[0] != '\0')
			asked = place_ask(task, OP_LIST, path);
	}
	if ((path[0] != '\0' && !outcome_succeeded(&asked)) ||
	    strcmp(path, was) == 0 || !place_set(task, path))
		return false;
	memcpy(task->gone, was, sizeof(was));
	return true;
}

bool
place_find_room(struct task *task, const char *name)
{
	struct run_outcome asked;
	char folder[PATH_SIZE];
	char path[PATH_SIZE];

	if (!place_find(task) || task->job->view_id != 0 ||
	    path_resolve(task->sandbox.cwd, task->job->path, folder) !=
		PATH_OK ||
	    path_resolve(folder, name, path) != PATH_OK)
		return false;
	asked = place_ask(task, OP_STAT, path);
	if (!outcome_failed_with(&asked, ERROR_NOT_FOUND))
		return false;
	memcpy(task->path, path, sizeof(path));
	return true;
}

void
place_look_at_top(struct task *task)
{
	struct run_outcome asked;
	char path[PATH_SIZE];

	if (task->job->view_id != 0 ||
	    !outcome_failed_with(&task->run, ERROR_NOT_FOUND) ||
	    path_resolve("", task->job->path, path) != PATH_OK ||
	    path[0] == '\0' || strcmp(path, task->path) == 0 ||
	    path_in_packages(path) != NULL)
		return;
	asked = place_ask(task, OP_STAT, path);
	if (outcome_succeeded(&asked))
		memcpy(task->elsewhere, path, sizeof(path));
}

void
place_leave(struct task *task, const char *removed)
{
	const char *cwd = task->sandbox.cwd;
	size_t len = strlen(removed);
	char path[PATH_SIZE];

	if (strncmp(cwd, removed, len) != 0 ||
	    (cwd[len] != '\0' && cwd[len] != '/'))
		return;
	(void)snprintf(path, sizeof(path), "%s", removed);
	cut_last_name(path);
	task->place_told = place_set(task, path);
	if (task->place_told)
		render_place(&task->message.tail, path, "", true);
}

int64_t
place_make_way(struct task *task, enum job_kind kind, const char *path)
{
	struct view view = { .kind = kind, .user_id = task->job->user_id };
	/* a path with a tilde is as if it had been typed */
	int len = snprintf(view.path, sizeof(view.path), "%s%s%s",
	    kind == JOB_LOOK ? "~" : "",
	    kind == JOB_LOOK && *path != '\0' ? "/" : "", path);

	if (len >= (int)sizeof(view.path))
		return 0;
	return command_store_view(task, &view);
}

/* Add a button to this path. */
static void
offer(struct task *task, const char *path)
{
	enum job_kind kind = task->job->kind;
	int64_t view_id = place_make_way(task, kind, path);

	if (view_id != 0)
		render_way(&task->message,
		    kind == JOB_LOOK ? WAY_LOOK : WAY_GET, view_id, path);
}

/* Offer another path in an answer that something does not exist. */
static void
place_offer(struct task *task)
{
	enum job_kind kind = task->job->kind;
	const char *elsewhere = task->elsewhere;

	if (!outcome_failed_with(&task->run, ERROR_NOT_FOUND))
		return;
	if (*elsewhere != '\0')
		buf_addf(&task->message.lead, _(" There is %s, though."),
		    phrase_path(elsewhere).text);
	if (*elsewhere != '\0' && (kind == JOB_LOOK || kind == JOB_GET))
		offer(task, elsewhere);
	if (kind == JOB_LOOK &&
	    (*elsewhere == '\0' || strcmp(elsewhere, task->sandbox.cwd) != 0))
		offer(task, task->sandbox.cwd);
}

/* ---- jobs ---- */

/* The function of each kind of job, from the rows of commands.def. */
static bool (*const functions[JOB_UNKNOWN])(struct task *task) = {
#define COMMAND(kind, name, function, ...) [JOB_##kind] = cmd_##function,
#include "store/commands.def"
};

bool
command_say(struct task *task, enum say id, ...)
{
	va_list arguments;

	va_start(arguments, id);
	task->outcome = render_add_list(&task->message.lead, id, arguments);
	va_end(arguments);
	return false;
}

void
command_set(const char **field, char *text)
{
	free((void *)(uintptr_t)*field);
	*field = text;
}

int
command_load_view(struct task *task, int64_t id)
{
	int result;

	view_texts_release(&task->texts);
	result = view_find(task->worker->db, id, &task->view, &task->texts,
	    &task->err);
	task->view.texts = &task->texts;
	return result;
}

int64_t
command_store_view(struct task *task, struct view *view)
{
	struct err err = { 0 };

	if (view_insert(task->worker->db, view, &err) == 0)
		return view->id;
	log_err("no button: %s job=%" PRId64, err.text, task->job->id);
	return 0;
}

static bool
refuse_version(struct task *task, const char *list)
{
	auto_buf struct buf names = BUF_INIT(4096);
	struct image_entry entry;

	for (size_t pos = 0; images_next(list, &pos, &entry);)
		buf_addf(&names, "%s`%s`", names.len > 0 ? ", " : "",
		    entry.name);
	return command_say(task, SAY_NO_VERSION,
	    phrase_name(task->job->version, COMMAND_VERSION_MAX).text,
	    buf_str(&names), NULL);
}

bool
command_choose_version(struct task *task)
{
	const char *list = task->worker->config->chat_images;
	struct image_entry usual;
	struct image_entry chosen;

	if (!images_find(list, task->job->version, &chosen))
		return refuse_version(task, list);
	(void)images_find(list, "", &usual);
	(void)snprintf(task->version, sizeof(task->version), "%s", chosen.name);
	task->env.version = strcmp(chosen.name, usual.name) != 0 ?
	    task->version :
	    NULL;
	return true;
}

/* il-fcgi makes no jobs of these commands. */
bool
cmd_none(struct task *task)
{
	return err_set(&task->err, ERR_INPUT, "%s makes no job",
		   commands[task->job->kind].name) == 0;
}

bool
command_refuse_long(struct task *task)
{
	return command_say(task, SAY_PATH_TOO_LONG,
	    phrase_number(LIMIT_PATH).text, phrase_number(LIMIT_NAME).text,
	    NULL);
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
	return result == PATH_TOO_LONG ?
	    command_refuse_long(task) :
	    command_say(task, SAY_PATH_OUTSIDE, NULL);
}

bool
command_open_editor(struct task *task, const char *custom_id, const char *title,
    json_t *inputs)
{
	json_auto_t *modal = editor_open(custom_id, title, inputs);

	task->editor = json_dumps(modal, JSON_COMPACT);
	task->outcome = "editor";
	return task->editor != NULL ||
	    err_set(&task->err, ERR_INPUT, "no editor for this text") == 0;
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
	render_not_done(&task->env);
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
	(void)command_say(task,
	    outcome == REST_GONE ? SAY_UPLOAD_GONE : SAY_NOT_FETCHED, NULL);
	return NULL;
}

bool
command_not_as_announced(struct task *task)
{
	log_warn("attachment: not as long as announced job=%" PRId64,
	    task->job->id);
	return command_say(task, SAY_NOT_FETCHED, NULL);
}

bool
command_remove_files(struct worker *worker, const char *sandbox, int wait_ms)
{
	const struct lease_request remove = { .kind = FRAME_REMOVE,
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
 * does.  An editor that Discord waits for opens without one. */
static bool
command_find_sandbox(struct task *task)
{
	struct sandbox *sandbox = &task->sandbox;
	int result = sandbox_find(task->worker->db, task->job->user_id, sandbox,
	    &task->err);

	/* each use extends its life; it may expire in between */
	if (result == 0 && sandbox_is_usable(sandbox)) {
		result = sandbox_touch(task->worker->db, sandbox->id,
		    task->worker->config->retention_seconds, &task->err);
	} else if (result == 0) {
		task->lost_at = sandbox->expires_at;
		result = 1;
	}
	if (result == 1 && task->job->answer == ANSWER_EDITOR) {
		*sandbox = (struct sandbox){ .user_id = task->job->user_id };
		return true;
	}
	return result == 0 ||
	    (result == 1 && command_make_sandbox(task, &task->made_sandbox));
}

void
command_run(struct task *task)
{
	enum job_kind kind = task->job->kind;
	const struct command *command = &commands[kind];
	/* commands that need no sandbox look for one themselves */
	bool needs = command->needs >= COMMAND_NEEDS_SANDBOX;

	if (kind == JOB_UNKNOWN) {
		(void)command_say(task, SAY_UNKNOWN, NULL);
	} else if (!needs || command_find_sandbox(task)) {
		(void)functions[kind](task);
		/* the current directory is named, outside of the top */
		if (needs && !task->remove && !task->taken &&
		    (*task->gone != '\0' ||
			(*task->sandbox.cwd != '\0' && !task->place_told)))
			render_place(&task->message.tail, task->sandbox.cwd,
			    task->gone, false);
		if (task->made_sandbox && !task->taken)
			render_made(&task->message, task->lost_at);
	}
	if (task->err.code == ERR_NONE)
		return;
	log_err("%s job=%" PRId64 " kind=%s", task->err.text, task->job->id,
	    command->name);
	message_release(&task->message);
	render_error(&task->message, task->job->id);
	task->outcome = "error";
	task->our_fault = true;
}
