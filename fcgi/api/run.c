/* SPDX-License-Identifier: MIT */
#include "api/run.h"

#include <ctype.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "api/app.h"
#include "api/gate.h"
#include "contract/multipart.h"
#include "contract/run_files.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "protocol/cell.h"

#define LOOKED_AT 65536	   /* bytes of each text: imports stand at the top */
#define PARTS_LOOKED_AT 16 /* arguments, and files */
#define SEND_MS 30000
#define REMOVE_MS 5000
#define ERROR_BYTES 8192
#define CANCEL_MORE_MS 700
#define FILE_MODE 0644
#define PATH_BYTES 4096

/* ---- imports of a program ---- */

/* Is the name a word of the text? */
static bool
has_word(const char *text, size_t len, const char *name, size_t name_len)
{
	const char *end = text + len;
	const char *at = text;

	while ((at = memmem(at, (size_t)(end - at), name, name_len)) != NULL) {
		const char *after = at + name_len;

		if ((at == text ||
			(!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    (after == end ||
			(!isalnum((unsigned char)*after) && *after != '_')))
			return true;
		at++;
	}
	return false;
}

/* The modules whose packages the text names. */
static uint32_t
named_in(const char *modules, const char *text, size_t len)
{
	uint32_t mask = 0;
	const char *name;
	size_t name_len;

	if (len > LOOKED_AT)
		len = LOOKED_AT;
	if (text == NULL || !has_word(text, len, "import", strlen("import")))
		return 0;
	for (size_t i = 0; (name = preload_next(&modules, &name_len)) != NULL;
	     i++)
		if (has_word(text, len, name, strcspn(name, ".,")))
			mask |= preload_bit(i);
	return mask;
}

/* Would an import find the file?  The program itself is imported by nobody. */
static bool
is_own_module(const char *path, const struct cell_request *request)
{
	const struct cell_bytes *word = request->words;

	return fnmatch("*@(.py|.pyc|.so|matplotlibrc)", path, FNM_EXTMATCH) ==
	    0 &&
	    (request->path == NULL || strcmp(request->path, path) != 0) &&
	    (request->word_count == 0 || word->len != strlen(path) ||
		memcmp(word->data, path, word->len) != 0);
}

int64_t
imports_of(const char *modules, const struct cell_request *request)
{
	uint32_t mask;

	for (size_t i = 0; i < request->input_count; i++)
		if (is_own_module(request->inputs[i].path, request))
			return PRELOAD_APART;
	mask = named_in(modules, request->source, request->source_len);

	for (size_t i = 0; i < request->word_count && i < PARTS_LOOKED_AT; i++)
		mask |= named_in(modules, request->words[i].data,
		    request->words[i].len);
	for (size_t i = 0; i < request->input_count && i < PARTS_LOOKED_AT; i++)
		mask |= named_in(modules, request->inputs[i].content.data,
		    request->inputs[i].content.len);
	return mask;
}

const char *const api_environment[] = {
	"LANG=C.UTF-8",
	"HOME=/workspace",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"PYTHONUNBUFFERED=1",
	"PYTHONDONTWRITEBYTECODE=1",
	"PYTHONIOENCODING=utf-8",
	"PYTHONUSERBASE=/snekbox/user_base", /* ilctl packages */
	/* Caches are no files that a run has made. */
	"MPLCONFIGDIR=/tmp/matplotlib",
	"XDG_CACHE_HOME=/tmp/cache",
	"XDG_CONFIG_HOME=/tmp/config",
	/* A thread for each core of a large host is more than may be. */
	"OMP_NUM_THREADS=4",
	"OPENBLAS_NUM_THREADS=4",
	NULL,
};

static const char *const run_left_out[] = {
	[LEFT_OUT_COUNT] = "too many files",
	[LEFT_OUT_SIZE] = "too large",
	[LEFT_OUT_TOTAL] = "too large together",
	[LEFT_OUT_UNREADABLE] = "not readable",
	[LEFT_OUT_TIME] = "out of time",
	[LEFT_OUT_PATH] = "too deep",
	[LEFT_OUT_KIND] = "not a regular file",
	[LEFT_OUT_GONE] = RUN_FILE_REMOVED,
};

/* ---- events of the cell ---- */

struct run_file *
api_run_add_file(struct api_run *run, const char *path, int64_t size,
    const char *why)
{
	auto_buf struct buf text = BUF_INIT(PATH_BYTES);
	const struct run_front *front = run->front;
	struct run_files *files = &run->files;

	if (front->files_max > 0 && files->count == front->files_max) {
		run->more_files = true;
		return NULL;
	}
	if (front->keep == RUN_KEEP_STORE)
		path_text_write_new(&text, path, files);
	else if (front->keep == RUN_KEEP_PATHS)
		path_text_write(&text, path);
	else
		buf_adds(&text, path);
	return run_files_add(files, buf_str(&text), size, why);
}

void
api_run_add_left_out(struct buf *headers, const struct api_run *run)
{
	size_t count = run_files_left_out(&run->files);

	if (count > 0 || run->result.cut)
		buf_addf(headers, "Inline-Left-Out: %zu%s\r\n", count,
		    run->result.cut ? "+" : "");
}

/* The store refuses the incoming file: note why, and log more. */
static void
run_refuse_file(struct api_run *run, const struct err *err)
{
	log_warn("a file was not kept: %s", err->text);
	filestore_abort(&run->fresh);
	run->file->refused = true;
	run->file->why = err->code == ERR_LIMIT || err->code == ERR_QUOTA ?
	    "the store is full" :
	    "the store failed";
}

/* The incoming file is whole: it gets its place in the store. */
static void
run_store_file(struct api_run *run)
{
	const char *name = run->file->path;
	const char *slash = strrchr(name, '/');
	struct err err;

	if (slash != NULL && !run->front->stores_paths)
		name = slash + 1;
	if (run->note != NULL)
		(void)snprintf(run->fresh.note, sizeof(run->fresh.note), "%s",
		    run->note);
	if (filestore_commit(&run->fresh, name, &err) == 0)
		run->file->id = xstrdup(run->fresh.id);
	else
		run_refuse_file(run, &err);
}

/* The last file is whole. */
static void
run_end_file(struct api_run *run)
{
	if (run->file != NULL && run->fresh.store != NULL)
		run_store_file(run);
	if (run->file != NULL && run->front->whole != NULL)
		run->front->whole(run);
	run->file = NULL;
}

static void
run_begin_file(struct api_run *run, const struct cell_event *event)
{
	const struct run_front *front = run->front;
	struct err err;

	/* Files come one after the other. */
	run_end_file(run);
	if (run->cancelled || front->keep == RUN_KEEP_NONE ||
	    (front->file != NULL && !front->file(run, event)))
		return;
	run->file = api_run_add_file(run, event->name, event->size, NULL);
	if (run->file != NULL && front->keep != RUN_KEEP_HERE &&
	    filestore_begin(&run->app->store, &run->fresh, &err) != 0)
		run_refuse_file(run, &err);
}

static void
run_add_bytes(struct api_run *run, const struct cell_event *event)
{
	struct err err;

	if (run->front->bytes != NULL)
		run->front->bytes(run, event);
	if (run->file != NULL && run->front->keep == RUN_KEEP_HERE)
		buf_add(&run->file->content, event->data, event->len);
	if (run->fresh.store != NULL &&
	    filestore_write(&run->fresh, event->data, event->len, &err) != 0)
		run_refuse_file(run, &err);
}

static void
run_event(void *arg, const struct cell_event *event)
{
	struct api_run *run = arg;
	const struct run_front *front = run->front;

	switch (event->kind) {
	case CELL_STARTED:
		if (front->started != NULL)
			front->started(run);
		break;
	case CELL_OUTPUT:
		front->output(run, event);
		break;
	case CELL_FILE:
		run_begin_file(run, event);
		break;
	case CELL_BYTES:
		run_add_bytes(run, event);
		break;
	case CELL_LEFT_OUT:
		run_end_file(run);
		if (front->left_out == NULL || front->left_out(run, event))
			(void)api_run_add_file(run, event->name, event->size,
			    run_left_out[event->why]);
		break;
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* The client of a run in a session is gone: the run ends, its cell goes on. */
static bool
run_cancelled(void *arg)
{
	struct api_run *run = arg;

	run->cancelled = true;
	return true;
}

static void
run_set_front(struct api_run *run)
{
	if (run->front == NULL)
		return;
	run->c.event = run_event;
	run->c.arg = run;
}

/* ---- the run ---- */

/* The longest that the cell may take for all that is asked of it. */
static int64_t
limits_ms(const struct cell_request *request)
{
	return request->wall_ms + request->collect_ms;
}

static bool
has_lost_cell(const struct api_run *run)
{
	return run->end != RUN_RESULT || run->c.died;
}

/* Hold the conversation, and say how the run has ended.  stop: what ends it, or
 * NULL. */
static void
converse(struct api_run *run, int cell_fd, int broker_fd,
    const struct pollfd *stop, const char *cell_name)
{
	int64_t began_us = clock_monotonic_us();
	struct err err;

	run->c.cell_fd = cell_fd;
	run->c.broker_fd = broker_fd;
	run->c.send_ms = SEND_MS;
	run->c.within_ms = limits_ms(run->request);
	run->c.stop = stop;
	metrics_change(&run->app->metrics, METRICS_RUNNING, 1);
	run->end = conversation_hold(&run->c, run->request, &run->result, &err);
	metrics_change(&run->app->metrics, METRICS_RUNNING, -1);
	run->duration_us = clock_monotonic_us() - began_us;
	/* The contracts know fewer ends. */
	if (run->end == RUN_OVERDUE)
		run->end = RUN_BROKEN;
	if (has_lost_cell(run) && run->end != RUN_STOPPED)
		log_warn("%s cell=%s", err.text, cell_name);
	if (run->end != RUN_BROKEN)
		return;
	/* A run does not take its cell with it, and where it does by using up
	 * the memory, that is known.  So this is our fault, or somebody ended
	 * the container, and nothing is known of what the run did. */
	text_random_hex(run->reference, API_REFERENCE_LEN);
	log_err("a run lost its cell reference=%s started=%d cell=%s",
	    run->reference, run->c.heard, cell_name);
}

/* Lease a cell, run in it, and give it back. */
static void
attempt(struct api_run *run, const char *interpreter, const struct pollfd *gone)
{
	struct metrics *metrics = &run->app->metrics;
	struct lease_request request = {
		.class = "api",
		.sandbox = "",
		.interpreter = interpreter,
		.folder = run->request->folder,
		.imports = imports_of(preload_list(run->app->config->preload),
		    run->request),
		.lease_ms = SEND_MS + limits_ms(run->request) +
		    LIMIT_OUTSIDE_MS + LIMIT_LEASE_MORE_MS,
		.unless = gone,
		.tick = run->c.tick,
		.tick_arg = run->c.arg,
		.tick_ms = run->c.tick_ms,
	};
	int64_t asked_us = clock_monotonic_us();
	enum refusal refusal;
	struct lease lease;
	struct err err;

	run->end = RUN_STOPPED;
	if (http_client_gone(run->req))
		return;
	/* Wait for a cell, but not longer than the client does. */
	metrics_change(metrics, METRICS_WAITING, 1);
	refusal = lease_open_again(&lease, run->app->lease_socket, &request,
	    run->lease_wait_ms > 0 ? run->lease_wait_ms :
				     config_lease_wait_ms(run->app->config),
	    INT64_MAX, &err);
	metrics_change(metrics, METRICS_WAITING, -1);
	if (refusal != REFUSAL_NONE)
		log_warn("no cell: %s", err.text);
	if (refusal == REFUSAL_TIME && http_client_gone(run->req))
		return;
	metrics_lease(metrics, refusal);
	run->waited_us += clock_monotonic_us() - asked_us;
	if (refusal != REFUSAL_NONE) {
		run->end = RUN_REFUSED;
		run->refusal = refusal;
		return;
	}
	if (!http_client_gone(run->req))
		converse(run, lease.cell_fd, lease.broker_fd, gone,
		    lease.cell_name);
	lease_close(&lease);
}

void
api_run(struct api_run *run, const char *interpreter)
{
	const struct pollfd gone = { .fd = http_fd(run->req),
		.events = POLLRDHUP };

	run_set_front(run);
	attempt(run, interpreter, &gone);
	/* It was gone before it began: nothing of the request has happened. */
	if (run->end == RUN_BROKEN && !run->c.heard)
		attempt(run, interpreter, &gone);
}

bool
api_run_in(struct api_run *run, struct lease *b, bool ends)
{
	const struct pollfd gone = { .fd = http_fd(run->req),
		.events = POLLRDHUP };

	run_set_front(run);
	run->c.cancel = ends ? &gone : NULL;
	run->c.cancelled = run_cancelled;
	/* The files of the run are on their way, though nobody wants them. */
	run->c.cancel_ms = run->request->collect_ms + CANCEL_MORE_MS;
	converse(run, b->cell_fd, b->broker_fd, NULL, "of a session");
	run->c.cancel = NULL;
	b->lost = has_lost_cell(run);
	if (run->cancelled)
		run->end = RUN_STOPPED;
	return !b->lost;
}

bool
api_remove_in(const struct api_run *run, struct lease *b, const char *path)
{
	const struct cell_request request = { .op = OP_REMOVE,
		.folder = run->request->folder,
		.path = path,
		.wall_ms = REMOVE_MS };
	struct api_run removal = {
		.app = run->app, .req = run->req, .request = &request
	};

	return api_run_in(&removal, b, false);
}

void
api_answer_lost(const struct api_run *run)
{
	char header[64];

	(void)snprintf(header, sizeof(header), "Inline-Reference: %s\r\n",
	    run->reference);
	reply_failed(run->req, header);
}

const struct run_error *
api_run_error(const struct run_error *rows, const struct cell_result *result,
    struct buf *text)
{
	const char *path = result->error_path;
	size_t len;

	log_warn("the cell says: %s", result->error_text);
	while (rows->status != 0 &&
	    ((rows->error != 0 && rows->error != result->error) ||
		(rows->has_path && path[0] == '\0')))
		rows++;
	if (rows->status == 0)
		return NULL;
	len = strcspn(rows->text, "*");
	buf_add(text, rows->text, len);
	if (rows->text[len] != '\0')
		buf_addf(text, "%s%s", path, rows->text + len + 1);
	return rows;
}

static void
run_answer_result(struct api_run *run)
{
	const struct run_front *front = run->front;
	const struct run_error *error = NULL;
	auto_buf struct buf text = BUF_INIT(ERROR_BYTES);

	if (run->result.reason == REASON_ERROR && front->errors != NULL)
		error = api_run_error(front->errors, &run->result, &text);
	if (error != NULL)
		front->refuse(run, error->status, buf_str(&text));
	else
		front->answer(run);
}

/* There was no cell, or it is lost. */
static void
run_answer_none(struct api_run *run)
{
	const struct run_front *front = run->front;
	bool busy = run->end == RUN_REFUSED;
	void (*answer)(struct api_run * run) = busy ? front->busy : front->lost;
	char text[64] = REPLY_BUSY;

	if (!busy)
		(void)snprintf(text, sizeof(text),
		    "Internal Server Error, reference %s", run->reference);
	if (answer != NULL)
		answer(run);
	else if (run->req->begun)
		front->refuse(run, busy ? 503 : 500, text);
	else if (busy)
		reply_busy(run->req);
	else
		api_answer_lost(run);
}

void
api_run_answer(struct api_run *run)
{
	if (run->end == RUN_RESULT) {
		run_end_file(run);
		run_answer_result(run);
	} else if (run->end == RUN_REFUSED || run->end == RUN_BROKEN) {
		run_answer_none(run);
	}
	filestore_abort(&run->fresh);
	run_files_release(&run->files);
	metrics_run(&run->app->metrics, run->front->kind, run->end,
	    run->result.reason, run->duration_us, run->waited_us);
}

/* ---- bodies and files of a request ---- */

bool
api_read_body(struct http_request *req, struct buf *body)
{
	if (req->length <= (int64_t)API_BODY_MAX)
		return http_read_all(req, body);
	reply_refuse(req, 413, NULL, "The body is too long");
	return false;
}

bool
api_read_form(struct http_request *req, struct multipart *form,
    bool (*event)(void *arg, bool part), void *arg)
{
	char piece[MULTIPART_PIECE];
	bool wanted = true;
	ssize_t n;

	while ((n = http_read(req, piece, sizeof(piece))) > 0) {
		enum multipart_event kind = MULTIPART_PART;

		if (wanted)
			multipart_add(form, piece, (size_t)n);
		while (wanted &&
		    (kind = multipart_next(form)) != MULTIPART_MORE)
			wanted = kind != MULTIPART_FAILED &&
			    event(arg, kind == MULTIPART_PART);
	}
	return n == 0;
}

struct cell_input *
api_inputs_add(struct api_inputs *in, const char *path, const char *data,
    size_t len)
{
	struct cell_input *input;

	in->items = xrealloc(in->items, (in->count + 1) * sizeof(*in->items));
	input = &in->items[in->count++];
	*input = (struct cell_input){
		.path = path, .mode = FILE_MODE, .content = { data, len }
	};
	return input;
}

struct cell_input *
api_inputs_add_file(struct api_inputs *in, const char *path, int file)
{
	auto_close int fd = file;
	struct cell_bytes *map;
	struct stat st;
	size_t len;
	void *data;

	if (fd < 0 || fstat(fd, &st) != 0)
		return NULL;
	len = (size_t)st.st_size;
	if (len == 0) /* needs no memory */
		return api_inputs_add(in, path, "", 0);
	data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return NULL;
	in->maps = xrealloc(in->maps, (in->map_count + 1) * sizeof(*in->maps));
	map = &in->maps[in->map_count++];
	*map = (struct cell_bytes){ data, len };
	return api_inputs_add(in, path, data, len);
}

void
api_inputs_release(struct api_inputs *in)
{
	for (size_t i = 0; i < in->map_count; i++)
		(void)munmap((void *)(uintptr_t)in->maps[i].data,
		    in->maps[i].len);
	free(in->maps);
	free(in->items);
	*in = (struct api_inputs){ .items = NULL };
}
