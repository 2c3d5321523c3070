/* SPDX-License-Identifier: MIT */
#include "api/librechat_run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "api/librechat_who.h"
#include "api/reply.h"
#include "api/routes.h"
#include "contract/stage.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"

/* A session that is being made is worth waiting for.  A busy one may stay busy
 * for any time. */
#define TURN_MS 2000
#define LASTS_MS (INT64_C(12) * 3600 * 1000) /* in any case */
#define PROCESSES 64
#define FILES_MAX 1000
#define FILE_BYTES (INT64_C(100) << 20)
#define COLLECT_MS 10000
#define PATH_BUF 4096
#define CODE_MODE 0644
#define READ_ONLY_MODE 0444
#define OWN_MAX 3 /* files that are not of the store */

/* ---- the cell of a conversation ---- */

/* The id of the conversation's session, which no other owner's conversation
 * has. */
static void
name_session(char id[SESSION_ID_SIZE], const struct api_app *app,
    const char *hint)
{
	unsigned char hash[SESSION_DIGITS / 2];
	char digits[SESSION_DIGITS + 1];

	(void)crypto_generichash(hash, sizeof(hash),
	    (const unsigned char *)hint, strlen(hint), app->owner,
	    sizeof(app->owner));
	(void)sodium_bin2hex(digits, sizeof(digits), hash, sizeof(hash));
	(void)snprintf(id, SESSION_ID_SIZE, SESSION_PREFIX "%s", digits);
}

/* Take one of the token's slots for the session; its runs are counted like any
 * other.  An older session may give way.  -1: there is no slot. */
static int
librechat_claim_slot(struct api_app *app)
{
	const int64_t most = app->config->api_sessions;
	int64_t next_ms;
	int slot = LIMITS_NONE;

	if (app->limited)
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	if (slot == -1 && session_holder_make_room(app, true, &next_ms))
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	return slot;
}

/* The cell, then its holder, which has the slot. */
static int
start(struct api_app *app, struct http_request *req,
    struct session_claim *claim, int slot, struct err *err)
{
	const int run_slot = app->slot;
	struct lease lease;
	int64_t next_ms;
	int result;

	if (session_cell_lease(app, req, NULL, LASTS_MS, &lease, &next_ms,
		err) != REFUSAL_NONE) {
		session_holder_disclaim(app, claim);
		return -1;
	}
	app->slot = slot;
	result = session_holder_start_claimed(app, &lease, LASTS_MS, claim,
	    err);
	app->slot = run_slot;
	return result;
}

/* Make the session.  If that fails, the run has a cell of its own. */
static void
create(struct libre_session *s, struct api_app *app, struct http_request *req)
{
	struct session_claim claim = {
		.rest_ms = app->config->librechat_rest_ms
	};
	int slot = librechat_claim_slot(app);
	struct err err;
	int result;

	if (slot == -1)
		return;
	memcpy(claim.id, s->id, sizeof(claim.id));
	/* Two requests may make the session at one time. */
	result = session_holder_claim(app, &claim, &err);
	if (result == 0)
		result = start(app, req, &claim, slot, &err);
	if (slot >= 0)
		(void)close(slot);
	if (result == 0)
		result = session_holder_borrow(app, s->id, http_fd(req),
		    TURN_MS, &s->cell, &err);
	if (result != 0)
		log_info("a conversation has no cell: %s", err.text);
	s->fresh = result == 0;
}

/* Borrow the session's cell, if it can be had.  hint NULL: the conversation is
 * not known. */
static void
librechat_session_borrow(struct libre_session *s, struct api_app *app,
    struct http_request *req, const char *hint)
{
	struct err err;

	*s = (struct libre_session){ .cell.connection = -1 };
	if (hint == NULL || app->config->librechat_rest_ms == 0)
		return;
	name_session(s->id, app, hint);
	if (session_holder_borrow(app, s->id, http_fd(req), TURN_MS, &s->cell,
		&err) != 0 &&
	    err.code == ERR_NOT_FOUND)
		create(s, app, req);
}

/* The model is told of /mnt/data, another name of the workspace.  Caches and
 * settings of programs lie elsewhere, so they do not come back as files. */
static const char *const environment[] = {
	"LANG=C.UTF-8",
	"HOME=/mnt/data",
	"PWD=/mnt/data",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"PYTHONUNBUFFERED=1",
	"PYTHONDONTWRITEBYTECODE=1",
	"PYTHONIOENCODING=utf-8",
	"MPLBACKEND=agg",
	"MPLCONFIGDIR=/tmp/matplotlib",
	"XDG_CACHE_HOME=/tmp/cache",
	"XDG_CONFIG_HOME=/tmp/config",
	/* A thread for each core of a large host is more than may be. */
	"OMP_NUM_THREADS=4",
	"OPENBLAS_NUM_THREADS=4",
	NULL,
};

/* ---- files in ---- */

/* A file that is not of the store. */
static void
add_own(struct libre_run *x, const char *path, const char *data, size_t len)
{
	x->inputs[x->input_count++] = (struct cell_input){
		.path = path, .content = { data, len }, .mode = CODE_MODE
	};
}

/* The code comes first for Python, then the files that the store still has.  A
 * missing file does not end the conversation: the answer names it. */
static void
open_inputs(struct libre_run *x)
{
	const struct libre_exec *exec = x->exec;
	struct filestore_entry entry;
	struct err err;

	x->sources = xcalloc(exec->file_count + 1, sizeof(*x->sources));
	x->inputs = xcalloc(exec->file_count + OWN_MAX, sizeof(*x->inputs));
	if (exec->lang == LIBRE_PYTHON)
		add_own(x, exec->entry, exec->code, exec->code_len);
	if (x->program != NULL) {
		add_own(x, x->helper, libre_helper, libre_helper_len);
		add_own(x, x->state, buf_str(&x->program->whole),
		    x->program->whole.len);
	}
	x->beside = x->input_count;
	for (size_t i = 0; i < exec->file_count; i++) {
		struct source *source = &x->sources[i];
		struct cell_input *input = &x->inputs[x->input_count];
		auto_close int fd = -1;

		source->file = &exec->files[i];
		if (source->file->replaced)
			continue;
		fd = librechat_file(x->run.app, x->run.req,
		    &source->file->resource, source->file->session,
		    source->file->id, &entry, &err);
		source->missing = fd < 0 || !api_input_map(input, fd);
		if (fd < 0)
			continue;
		source->read_only = entry.note[LIBRE_ID_LEN] ==
		    LIBRECHAT_READ_ONLY;
		free(entry.name);
		if (source->missing)
			continue;
		input->path = source->file->name;
		input->mode = source->read_only ? READ_ONLY_MODE : 0;
		input->mtime = -1;
		x->input_count++;
	}
}

static void
release(struct libre_run *x)
{
	filestore_abort(&x->fresh);
	for (size_t i = x->beside; i < x->input_count; i++)
		api_input_unmap(&x->inputs[i]);
	for (size_t i = 0; i < x->made_count; i++)
		free(x->made[i].name);
	free(x->made);
	free(x->missing);
	free(x->deleted);
	free(x->sources);
	buf_release(&x->calls);
	free(x->inputs);
	buf_release(&x->out.text);
	buf_release(&x->err.text);
}

/* ---- files out ---- */

/* One more in the list, by the name that its client is told. */
static struct libre_made *
add_made(struct libre_run *x, const char *path)
{
	auto_buf struct buf name = BUF_INIT(PATH_BUF);
	struct libre_made *made;

	path_text_write_new(&name, path, x->made, x->made_count,
	    sizeof(*x->made));
	x->made = xrealloc(x->made, (x->made_count + 1) * sizeof(*x->made));
	made = &x->made[x->made_count++];
	*made = (struct libre_made){ .name = buf_steal(&name, NULL) };
	memcpy(made->session, x->session, sizeof(made->session));
	return made;
}

/* The input that has this name; NULL: it is a new file. */
static struct source *
find_source(struct libre_run *x, const char *path)
{
	for (size_t i = 0; i < x->exec->file_count; i++) {
		struct source *source = &x->sources[i];

		if (!source->file->replaced && !source->missing &&
		    strcmp(source->file->name, path) == 0)
			return source;
	}
	return NULL;
}

static struct libre_made *
last_made(struct libre_run *x)
{
	return &x->made[x->made_count - 1];
}

/* The store does not take it. */
static void
refuse_made(struct libre_run *x, struct libre_made *made, const struct err *err)
{
	made->why = api_left_refused(&x->fresh, err);
	made->refused = true;
}

/* The last file is whole. */
static void
end_file(struct libre_run *x)
{
	struct libre_made *made;
	struct err err;

	if (x->fresh.store == NULL)
		return;
	made = last_made(x);
	memcpy(x->fresh.note, x->session, sizeof(x->session));
	if (filestore_commit(&x->fresh, made->name, &err) == 0)
		libre_id_of_file(made->id, x->fresh.id);
	else
		refuse_made(x, made, &err);
}

/* Is it one of those that were put beside a program? */
static bool
is_ours(const struct libre_run *x, const char *path)
{
	size_t len = strlen(x->exec->place);

	return x->program != NULL && strncmp(path, x->exec->place, len) == 0 &&
	    path[len] == '/';
}

/* A file begins.  If it may not be changed, nothing of it is kept. */
static void
begin_file(struct libre_run *x, const char *path)
{
	struct source *source = find_source(x, path);
	struct libre_made *made;
	struct err err;

	x->taking_calls = x->program != NULL && strcmp(path, x->left) == 0;
	x->has_calls = x->has_calls || x->taking_calls;
	if (is_ours(x, path) || (source != NULL && source->read_only))
		return;
	made = add_made(x, path);
	if (source != NULL) {
		source->changed = true;
		memcpy(made->from_id, source->file->id, LIBRE_ID_LEN + 1);
		memcpy(made->from_session, source->file->session,
		    LIBRE_ID_LEN + 1);
	}
	if (filestore_begin(&x->run.app->store, &x->fresh, &err) != 0)
		refuse_made(x, made, &err);
}

/* An input that may not be changed is there for the next run as it was. */
static void
note_gone(struct libre_run *x, const char *path)
{
	struct source *source = find_source(x, path);

	if (source != NULL && !source->read_only)
		source->gone = true;
}

/* ---- what comes from the cell ---- */

static void
take_event(void *arg, const struct cell_event *event)
{
	struct libre_run *x = arg;
	struct err err;

	switch (event->kind) {
	case CELL_OUTPUT:
		libre_stream_add(event->stream == 1 ? &x->out : &x->err,
		    event->data, event->len);
		break;
	case CELL_FILE:
		/* Files come one after the other. */
		end_file(x);
		begin_file(x, event->name);
		break;
	case CELL_BYTES:
		if (x->taking_calls)
			buf_add(&x->calls, event->data, event->len);
		else if (x->fresh.store != NULL &&
		    filestore_write(&x->fresh, event->data, event->len, &err) !=
			0)
			refuse_made(x, last_made(x), &err);
		break;
	case CELL_LEFT_OUT:
		end_file(x);
		if (event->why == LEFT_OUT_GONE) {
			note_gone(x, event->name);
			break;
		}
		if (x->program != NULL && strcmp(event->name, x->left) == 0)
			x->has_calls = true; /* which cannot be read */
		if (!is_ours(x, event->name))
			add_made(x, event->name)
			    ->why = api_run_left_out[event->why];
		break;
	case CELL_STARTED:
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* ---- the answer ---- */

/* Add the unchanged inputs with their ids, then the names of the missing inputs
 * and of those that the run has removed. */
static void
add_inherited(struct libre_run *x)
{
	const size_t most = x->exec->file_count + 1;
	size_t missing = 0;
	size_t deleted = 0;

	x->missing = xcalloc(most, sizeof(*x->missing));
	x->deleted = xcalloc(most, sizeof(*x->deleted));

	for (size_t i = 0; i < x->exec->file_count; i++) {
		const struct source *source = &x->sources[i];
		struct libre_made *made;

		if (source->file->replaced || source->changed)
			continue;
		if (source->missing) {
			x->missing[missing++] = source->file->name;
			continue;
		}
		if (source->gone) {
			x->deleted[deleted++] = source->file->name;
			continue;
		}
		made = add_made(x, source->file->name);
		made->inherited = true;
		memcpy(made->id, source->file->id, LIBRE_ID_LEN + 1);
		memcpy(made->session, source->file->session, LIBRE_ID_LEN + 1);
	}
}

/* The request as a whole did not fit into the cell. */
static void
answer_error(struct libre_run *x, const struct cell_result *cell)
{
	log_warn("the cell says: %s", cell->error_text);
	if (cell->error == ERROR_NO_SPACE)
		reply_librechat(x->run.req, 413, NULL,
		    "The files do not fit into the work folder",
		    cell->error_path);
	else if (cell->error == ERROR_TOO_LARGE)
		reply_librechat(x->run.req, 413, NULL, "The code is too long",
		    NULL);
	else if (cell->error_path[0] != '\0')
		reply_librechat(x->run.req, 400, NULL,
		    "A file cannot be written", cell->error_path);
	else
		reply_failed(x->run.req, NULL);
}

static void
sum_up(struct libre_run *x)
{
	add_inherited(x);
	x->outcome = (struct libre_outcome){
		.session = x->session,
		.out = &x->out,
		.err = &x->err,
		.cell = &x->run.result,
		.timeout_ms = x->exec->timeout_ms,
		.wall_ms = x->run.duration_us / 1000,
		.files = x->made,
		.file_count = x->made_count,
		.missing = x->missing,
		.deleted = x->deleted,
		.runtime = x->own.used ? x->own.id + strlen(SESSION_PREFIX) :
					 NULL,
		.runtime_new = x->own.fresh,
	};
}

void
librechat_run_forget(struct libre_run *x)
{
	struct filestore *store = &x->run.app->store;
	char uuid[LIBRE_UUID_LEN + 1];
	struct err err;

	for (size_t i = 0; i < x->made_count; i++) {
		const struct libre_made *made = &x->made[i];

		if (made->inherited || made->why != NULL ||
		    !libre_id_to_file(uuid, made->id, LIBRE_ID_LEN))
			continue;
		if (filestore_delete(store, uuid, LIBRE_UUID_LEN, &err) != 0)
			log_warn("a file of a run is not wanted: %s", err.text);
	}
}

/* ---- the run ---- */

/* The paths of the files that belong to a program that calls tools. */
static void
name_own(struct libre_run *x)
{
	const char *place = x->exec->place;

	(void)snprintf(x->helper, sizeof(x->helper), "%s/%s", place,
	    LIBRE_HELPER_FILE);
	(void)snprintf(x->state, sizeof(x->state), "%s/%s", place,
	    LIBRE_STATE_FILE);
	(void)snprintf(x->left, sizeof(x->left), "%s/%s", place,
	    LIBRE_CALLS_FILE);
}

/* Set the program: the code itself, or the helper that runs it. */
static void
set_code(struct libre_run *x, struct cell_request *cell)
{
	const struct libre_exec *exec = x->exec;

	cell->inputs = x->inputs;
	cell->input_count = x->input_count;
	if (exec->lang == LIBRE_BASH) {
		cell->source = exec->code;
		cell->source_len = exec->code_len;
	} else if (x->program == NULL) {
		cell->path = exec->entry;
	} else {
		x->words[0] = exec->entry;
		cell->args = x->words;
		cell->path = x->helper;
	}
}

static bool
cancelled(void *arg)
{
	struct libre_run *x = arg;

	x->cancelled = true;
	return true;
}

/* Run in the conversation's cell: a client that hangs up ends the run, but not
 * the cell. */
static void
run_in_own(struct libre_run *x)
{
	const struct pollfd gone = { .fd = http_fd(x->run.req),
		.events = POLLRDHUP };
	bool good;

	x->run.c.cancel = &gone;
	x->run.c.cancelled = cancelled;
	good = api_run_in(&x->run, &x->own.cell);
	x->run.c.cancel = NULL;
	if (good && x->run.result.reason == REASON_ERROR) {
		/* Files of earlier runs leave no room for those of this one,
		 * which has not begun.  A fresh cell may have it. */
		x->own.cell.lost = true;
		session_holder_return(&x->own.cell);
		api_run(&x->run, NULL);
		return;
	}
	x->own.used = true;
	/* The program is not a file of the conversation. */
	if (good && x->exec->lang == LIBRE_PYTHON)
		(void)api_remove_in(&x->run, &x->own.cell, x->exec->entry);
	session_holder_return(&x->own.cell);
	if (x->cancelled)
		x->run.end = RUN_STOPPED;
}

void
librechat_run(struct libre_run *x,
    void (*answer)(struct libre_run *x, void *arg), void *arg)
{
	const struct libre_exec *exec = x->exec;
	struct cell_request cell = {
		.op = exec->lang == LIBRE_PYTHON ? OP_RUN : OP_BASH,
		.folder = "/workspace",
		.env = environment,
		.args = exec->args,
		.wall_ms = exec->timeout_ms,
		.output_max = LIBRE_OUTPUT_MAX + 1, /* to tell it is over */
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
		.collect_files = FILES_MAX,
		.collect_bytes = FILE_BYTES,
		.collect_total = FILE_BYTES,
		.collect_how = COLLECT_BYTES | COLLECT_GONE,
		.collect_ms = COLLECT_MS,
	};

	x->run.request = &cell;
	x->run.c.event = take_event;
	x->run.c.arg = x;
	buf_init(&x->out.text, LIBRE_OUTPUT_MAX);
	buf_init(&x->err.text, LIBRE_OUTPUT_MAX);
	buf_init(&x->calls, LIBRE_CALLS_BYTES);
	name_own(x);
	open_inputs(x);
	set_code(x, &cell);
	/* A conversation keeps its files from run to run, but no process. */
	cell.end_all = x->own.cell.connection >= 0;
	if (cell.end_all)
		run_in_own(x);
	else
		api_run(&x->run, NULL);
	if (x->run.end == RUN_RESULT) {
		end_file(x);
		sum_up(x);
		if (x->run.result.reason == REASON_ERROR)
			answer_error(x, &x->run.result);
		else
			answer(x, arg);
	}
	api_run_end(&x->run, API_LIBRECHAT);
	release(x);
}

/* ---- POST /librechat/exec ---- */

static void
answer_outcome(struct libre_run *x, void *arg)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	(void)arg;
	libre_add_outcome(&body, &x->outcome);
	reply_json(x->run.req, 200, NULL, &body);
}

void
api_librechat_exec(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	struct libre_exec exec;
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &exec };
	int status = 400;

	if (!api_read_body(req, &body))
		return;
	if (!libre_exec_parse(&exec, buf_str(&body), body.len, &status,
		&error)) {
		reply_librechat(req, status, NULL, buf_str(&error), NULL);
		return;
	}
	buf_release(&body);
	librechat_make_session(app, x.session);
	librechat_session_borrow(&x.own, app, req, exec.hint);
	librechat_run(&x, answer_outcome, NULL);
	pyjson_release(&exec.doc);
}
