/* SPDX-License-Identifier: MIT */
#include "mcp_work.h"

#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "../contract/mcp/mcp_media.h"
#include "../contract/mcp/mcp_picture.h"
#include "../contract/path_text.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"

#define TICK_MS 1000
#define LINE_BYTES 200
#define PATH_BYTES 4096
#define SVG "image/svg+xml"

/* ---- files ---- */

static struct mcp_left *
add_left(struct mcp_work *w, const char *path, int64_t size)
{
	auto_buf struct buf text = BUF_INIT(PATH_BYTES);
	struct mcp_left *file;

	if (w->left_count == MCP_WORK_LEFT) {
		w->more_left = true;
		return NULL;
	}
	path_text_write(&text, path);
	file = &w->left[w->left_count++];
	*file = (struct mcp_left){ .path = buf_steal(&text, NULL),
		.size = size,
		.type = mcp_media_type(path, "\0", 1),
		.content = BUF_INIT(MCP_PICTURE_BYTES) };
	return file;
}

void
mcp_work_leave_out(struct mcp_work *w, const char *path, int64_t size,
    const char *why)
{
	struct mcp_left *file = add_left(w, path, size);

	if (file != NULL)
		file->why = why;
}

void
mcp_work_end_file(struct mcp_work *w)
{
	struct mcp_left *file = w->file;
	bool counted;

	if (file == NULL)
		return;
	if (w->fresh.store != NULL)
		file->id = api_left_keep(&w->fresh, file->path, &file->why);
	counted = file->content.len > 0;
	mcp_check_picture(file);
	if (counted && file->content.len == 0)
		w->shown -= file->size;
	w->file = NULL;
}

static void
begin_file(struct mcp_work *w, const struct cell_event *event)
{
	struct err err;

	mcp_work_end_file(w);
	w->file = add_left(w, event->name, event->size);
	w->taken = 0;
	if (w->file != NULL &&
	    filestore_begin(&w->x->app->store, &w->fresh, &err) != 0)
		w->file->why = api_left_refused(&w->fresh, &err);
}

/* Small pictures are shown, so they are kept here, too. */
static void
take_bytes(struct mcp_work *w, const struct cell_event *event)
{
	struct mcp_left *file = w->file;
	struct buf *content;
	int64_t most;
	struct err err;

	if (file == NULL)
		return;
	content = &file->content;
	if (w->fresh.store != NULL &&
	    filestore_write(&w->fresh, event->data, event->len, &err) != 0)
		w->file->why = api_left_refused(&w->fresh, &err);
	/* Whether the store takes it or not. */
	if (w->taken == 0)
		file->type = mcp_media_type(file->path, event->data,
		    event->len);
	w->taken += (int64_t)event->len;
	most = strcmp(file->type, SVG) == 0  ? MCP_SHOWN_TEXT_BYTES :
	    mcp_media_is_picture(file->type) ? MCP_PICTURE_BYTES :
					       0;
	/* All of a run together have the room of one. */
	if (file->size > most ||
	    (content->len == 0 && w->shown + file->size > MCP_PICTURE_BYTES))
		return;
	w->shown += content->len == 0 ? file->size : 0;
	buf_add(content, event->data, event->len);
}

/* ---- what comes from the cell ---- */

void
mcp_work_event(void *arg, const struct cell_event *event)
{
	struct mcp_work *w = arg;

	switch (event->kind) {
	case CELL_STARTED:
		w->started_ms = clock_monotonic_ms();
		break;
	case CELL_OUTPUT:
		mcp_output_add(event->stream == 1 ? &w->out : &w->err,
		    event->data, event->len);
		break;
	case CELL_FILE:
		begin_file(w, event);
		break;
	case CELL_BYTES:
		take_bytes(w, event);
		break;
	case CELL_LEFT_OUT:
		mcp_work_leave_out(w, event->name, event->size,
		    api_run_left_out[event->why]);
		break;
	case CELL_ENTRY:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

/* The client is told that it goes on, and what was printed last. */
static void
tick(void *arg)
{
	struct mcp_work *w = arg;
	auto_buf struct buf line = BUF_INIT(4 * LINE_BYTES);
	int64_t ms = w->started_ms == 0 ? -1 :
					  clock_monotonic_ms() - w->started_ms;

	mcp_output_last_line(&line, &w->out, LINE_BYTES);
	mcp_tell(w->x, ms, w->x->call.timeout_s * 1000, &line);
}

static bool
cancelled(void *arg)
{
	struct mcp_work *w = arg;

	w->cancelled = true;
	return true;
}

/* ---- begin and end ---- */

struct mcp_work *
mcp_work_new(struct mcp_exchange *x, const struct cell_request *request)
{
	struct mcp_work *w = xcalloc(1, sizeof(*w));

	w->x = x;
	w->out = (struct mcp_output)MCP_OUTPUT_INIT;
	w->err = (struct mcp_output)MCP_OUTPUT_INIT;
	w->run = (struct api_run){ .app = x->app,
		.req = x->req,
		.request = request,
		.lease_wait_ms = MCP_WAIT_MS,
		.c = { .event = mcp_work_event,
		    .tick = tick,
		    .tick_ms = TICK_MS,
		    .cancelled = cancelled,
		    .arg = w } };
	return w;
}

void
mcp_work_free(struct mcp_work *w)
{
	filestore_abort(&w->fresh);
	for (size_t i = 0; i < w->left_count; i++) {
		free(w->left[i].path);
		free(w->left[i].id);
		buf_release(&w->left[i].content);
	}
	mcp_output_release(&w->out);
	mcp_output_release(&w->err);
	free(w);
}

static void
answer_result(struct mcp_work *w)
{
	const struct mcp_run run = {
		.out = &w->out,
		.err = &w->err,
		.cell = &w->run.result,
		.duration_ms = w->run.result.wall_us / 1000,
		.timeout_s = w->x->call.timeout_s,
		.left = w->left,
		.left_count = w->left_count,
		.more_left = w->more_left || w->run.result.cut,
	};

	mcp_add_run(&w->x->body, &w->x->m, &run);
	mcp_send(w->x);
}

void
mcp_work_answer(struct mcp_work *w)
{
	struct api_run *run = &w->run;

	mcp_work_end_file(w);
	if (w->cancelled)
		run->end = API_GONE;
	switch (run->end) {
	case API_REFUSED:
		mcp_busy(w->x);
		break;
	case API_LOST:
		mcp_trouble(w->x,
		    "A fault of Inline's, not of the code: the container was "
		    "lost, and nothing is known of what the run did "
		    "(reference %s).",
		    run->reference);
		break;
	case API_GONE:
		break;
	case API_RESULT:
		if (run->result.reason == REASON_ERROR)
			mcp_explain(w->x, &run->result);
		else
			answer_result(w);
		break;
	}
	metrics_run(&run->app->metrics, API_MCP, run->end, run->result.reason,
	    run->duration_us, run->waited_us);
}
