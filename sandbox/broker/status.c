/* SPDX-License-Identifier: MIT */
/*
 * How it is: what clients are told for /health and for people, and what
 * Prometheus is told.
 */
#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/loop.h"
#include "../protocol/lease_status.h"
#include "client.h"
#include "engine.h"
#include "ledger.h"
#include "workspace.h"

#define FRESH_MS 5000 /* a status may be so old before docker is asked */

/* Returns how long calls of docker run have been going on and no cell has come
 * up; 0: there are none.  A call that hangs while others do not is one cell's
 * trouble.  An adoption makes no call. */
static int64_t
start_pending_ms(const struct pool *pool)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t oldest_ms = now_ms;
	const struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state == CONTAINER_STARTING && c->called &&
		    !c->adopting && c->run_ms < oldest_ms)
			oldest_ms = c->run_ms;
	}
	if (oldest_ms < now_ms && oldest_ms < pool->came_up_ms)
		oldest_ms = pool->came_up_ms;
	return now_ms - oldest_ms;
}

/* The engine: whether it answers, and whether it starts what it is told to. */
static void
add_engine(struct frame *frame, const struct host *host)
{
	const struct engine *engine = host->engine;
	const struct pause *pause = &host->pool->pause;
	bool starts = pause->failures == 0 || !engine->up || !engine->image;

	frame_add_int(frame, TAG_ENGINE, engine->up ? 1 : 0);
	frame_add_int(frame, TAG_IMAGE, engine->image ? 1 : 0);
	if (engine->probed_ms >= 0)
		frame_add_int(frame, TAG_ENGINE_AGE,
		    clock_monotonic_ms() - engine->probed_ms);
	frame_add_text(frame, TAG_TROUBLE,
	    starts ? engine->trouble : pause->text);
	frame_add_int(frame, TAG_START_FAILURES, pause->failures);
	frame_add_int(frame, TAG_START_PENDING, start_pending_ms(host->pool));
}

/* The frame gets all that needs no walk over the sandboxes. */
static void
status_start(struct frame *frame, const struct host *host)
{
	const struct pool *pool = host->pool;
	struct pool_count count;
	struct ledger_space space = { 0 };
	struct err err;

	pool_count(pool, &count);
	(void)ledger_look(host->ledger, host->base, &space, &err);
	frame_start(frame, FRAME_STATUS_IS);
	add_engine(frame, host);
	frame_add_text(frame, TAG_IMAGE_NAME, host->config->sandbox_image);
	frame_add_text(frame, TAG_IMAGES, host->config->sandbox_images);
	frame_add_text(frame, TAG_CHAT_IMAGES, host->config->chat_images);
	frame_add_text(frame, TAG_PYTHON, pool->python);
	frame_add_int(frame, TAG_CELLS, count.cells);
	frame_add_int(frame, TAG_LEASED, count.leased);
	frame_add_int(frame, TAG_STARTING, count.starting);
	frame_add_int(frame, TAG_WAITING, (int64_t)pool->waiting);
	frame_add_int(frame, TAG_FREE_BYTES, space.free);
	frame_add_int(frame, TAG_PROMISED, space.promised);
	frame_add_int(frame, TAG_FLOOR, space.floor);
	frame_add_int(frame, TAG_ISOLATION, pool->isolation);
	frame_add_text(frame, TAG_TEXT, pool->isolation_reason);
}

/* What is known last, at once: a status is asked for when something is wrong,
 * and must not wait for what is.  What is old is asked for anew behind it. */
void
request_status(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct frame frame;

	(void)view;
	status_start(&frame, host);
	frame_add_int(&frame, TAG_SANDBOXES, workspace_count(host->base));
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(host->engine, FRESH_MS);
}

/* Programs that may not ask get the same from a file. */
void
status_tell(void *arg)
{
	struct host *host = arg;
	struct frame frame;

	status_start(&frame, host);
	lease_status_tell(host->status, &frame);
	loop_timer_set(host->loop, &host->tell, LEASE_STATUS_TELL_MS,
	    status_tell, arg);
}

/* ---- for Prometheus ---- */

/* The states that an operator tells apart. */
enum shown { STARTING, SPARE, IDLE, LEASED, ENDING, SHOWN };

static enum shown
shown_state(const struct container *c)
{
	if (c->state <= CONTAINER_STARTING)
		return STARTING;
	if (c->state == CONTAINER_IDLE)
		return c->spare ? SPARE : IDLE;
	return c->state == CONTAINER_LEASED ? LEASED : ENDING;
}

static void
add_cells(struct buf *out, const struct pool *pool)
{
	static const char *const names[SHOWN] = { "starting", "spare", "idle",
		"leased", "ending" };
	const char *classes[CLASS_MAX];
	const struct exposition_label class = cell_metrics_classes(classes);
	const struct exposition_label state = { "state", names, SHOWN };
	_Atomic int64_t cells[CLASS_MAX][SHOWN] = { 0 };
	const struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state != CONTAINER_GONE)
			cells[class_index(c->class)][shown_state(c)]++;
	}
	exposition_table(out, "inline_cells", "gauge",
	    "Cells, by class and state.", &class, &state, &cells[0][0]);
}

/* Of the file system of the sandboxes.  It does not answer: nothing is said. */
static void
add_disk(struct buf *out, const struct host *host)
{
	struct ledger_space space;
	struct err err;

	if (ledger_look(host->ledger, host->base, &space, &err) != 0)
		return;
	exposition_gauge(out, "inline_disk_free_bytes",
	    "Free bytes of the sandboxes' file system.", space.free);
	exposition_gauge(out, "inline_disk_promised_bytes",
	    "Of these: promised to who may write.", space.promised);
	exposition_gauge(out, "inline_disk_floor_bytes",
	    "Of these: promised to nobody.", space.floor);
}

/* The same for Prometheus, and what was counted. */
void
request_metrics(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	auto_buf struct buf text = BUF_INIT(FRAME_MAX - 64);
	struct frame frame;

	(void)view;
	exposition_gauge(&text, "inline_engine_up",
	    "Whether the Docker engine answers.", host->engine->up);
	exposition_gauge(&text, "inline_image_present",
	    "Whether the image is there.", host->engine->image);
	add_cells(&text, host->pool);
	exposition_gauge(&text, "inline_lease_queue",
	    "Lease requests that wait.", (int64_t)host->pool->waiting);
	exposition_gauge(&text, "inline_cell_start_failures",
	    "Starts in a row that have failed.", host->pool->pause.failures);
	cell_metrics_add(&text, &host->pool->metrics);
	add_disk(&text, host);
	frame_start(&frame, FRAME_METRICS_ARE);
	frame_add_text(&frame, TAG_TEXT, buf_str(&text));
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(host->engine, FRESH_MS);
}
