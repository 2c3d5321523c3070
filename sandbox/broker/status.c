/* SPDX-License-Identifier: MIT */
/*
 * The broker's state: STATUS for /health and for people, METRICS for
 * Prometheus, CELLS for `ilctl top`. Also the end of idle cells, for `ilctl
 * backup`.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/loop.h"
#include "broker/client.h"
#include "broker/engine.h"
#include "broker/volume.h"
#include "broker/workspace.h"
#include "protocol/lease_status.h"

#define FRESH_MS 5000 /* age of a status from which docker is asked */

/* Returns for how long docker run has been running without any cell coming up;
 * 0: no such call.  A call that hangs while others do not is one cell's
 * trouble.  An adoption makes no call. */
static int64_t
start_pending_ms(const struct pool *pool)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t oldest_ms = now_ms;
	const struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (c->state == CONTAINER_STARTING && c->called &&
		    !c->adopting && c->run_ms < oldest_ms)
			oldest_ms = c->run_ms;
	}
	if (oldest_ms < now_ms && oldest_ms < pool->came_up_ms)
		oldest_ms = pool->came_up_ms;
	return now_ms - oldest_ms;
}

/* Add the engine's state: whether it answers, and whether starts succeed. */
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

/* Begin a status with all that needs no walk over the sandboxes. */
static void
status_start(struct frame *frame, const struct host *host)
{
	const struct pool *pool = host->pool;
	struct pool_count count;
	struct ledger_space space = { 0 };
	struct err err;

	pool_count(pool, &count);
	(void)ledger_measure(host->ledger, host->base, &space, &err);
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
	frame_add_int(frame, TAG_PROMISED, space.reserved);
	frame_add_int(frame, TAG_FLOOR, space.floor);
	frame_add_int(frame, TAG_ISOLATION, pool->isolation);
	frame_add_text(frame, TAG_TEXT, pool->isolation_reason);
}

/* The answer has the last known state, at once: clients ask when something is
 * wrong, and must not wait for that.  A probe follows where the state is old.
 */
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

/* Programs that may not ask read the same from a file. */
void
status_publish(void *arg)
{
	struct host *host = arg;
	struct frame frame;

	status_start(&frame, host);
	lease_status_tell(host->status, &frame);
	loop_timer_set(host->loop, &host->status_timer, LEASE_STATUS_TELL_MS,
	    status_publish, arg);
}

/* ---- for Prometheus ---- */

static const char *const outcomes[WAYS] = {
	[WAY_WARM] = "warm",
	[WAY_STANDBY] = "spare",
	[WAY_COLD] = "cold",
	[WAY_LOOK] = "look",
	[WAY_GONE] = "gone",
	[WAY_REFUSED + REFUSAL_INPUT] = "input",
	[WAY_REFUSED + REFUSAL_BUSY] = "busy",
	[WAY_REFUSED + REFUSAL_FULL] = "full",
	[WAY_REFUSED + REFUSAL_ENGINE] = "engine",
	[WAY_REFUSED + REFUSAL_IMAGE] = "image",
	[WAY_REFUSED + REFUSAL_NO_WORKSPACE] = "workspace",
	[WAY_REFUSED + REFUSAL_DISK] = "disk",
	[WAY_REFUSED + REFUSAL_START] = "start",
	[WAY_REFUSED + REFUSAL_INTERPRETER] = "interpreter",
	[WAY_REFUSED + REFUSAL_SANDBOXES] = "sandboxes",
};

/* States for an operator. */
enum shown { STARTING, STANDBY, IDLE, LEASED, ENDING, SHOWN };

static enum shown
shown_state(const struct container *c)
{
	if (c->state <= CONTAINER_STARTING)
		return STARTING;
	if (c->state == CONTAINER_IDLE)
		return c->standby ? STANDBY : IDLE;
	return c->state == CONTAINER_LEASED ? LEASED : ENDING;
}

/* Returns the label of the classes; the array gets their names. */
static struct exposition_label
classes(const char *names[CLASS_MAX])
{
	const struct cell_class *class;
	size_t count = 0;

	for (; (class = class_at(count)) != NULL; count++)
		names[count] = class->name;
	return (struct exposition_label){ "class", names, count };
}

static void
status_add_cells(struct buf *out, const struct pool *pool)
{
	static const char *const shown[SHOWN] = { "starting", "spare", "idle",
		"leased", "ending" };
	const char *names[CLASS_MAX];
	const struct exposition_label class = classes(names);
	const struct exposition_label state = { "state", shown, SHOWN };
	_Atomic int64_t cells[CLASS_MAX][SHOWN] = { 0 };
	const struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (c->state != CONTAINER_GONE)
			cells[class_index(c->class)][shown_state(c)]++;
	}
	exposition_table(out, "inline_cells", "gauge",
	    "Cells, by class and state.", &class, &state, &cells[0][0]);
}

static void
add_counts(struct buf *out, const struct cell_metrics *m)
{
	static const char *const up[] = { "up", "failed" };
	const char *names[CLASS_MAX];
	const struct exposition_label class = classes(names);
	const struct exposition_label way = { "outcome", outcomes, WAYS };
	const struct exposition_label start = { "outcome", up, 2 };

	exposition_table(out, "inline_leases_total", "counter",
	    "Lease requests, by class and answer.", &class, &way,
	    &m->leases[0][0]);
	exposition_histograms(out, "inline_lease_wait_seconds",
	    "Wait for a cell that was granted.", &class, m->waited);
	exposition_table(out, "inline_cell_starts_total", "counter",
	    "Cells that were started, by class and whether they came up.",
	    &class, &start, &m->starts[0][0]);
	exposition_histograms(out, "inline_cell_start_seconds",
	    "From docker run until the cell was up.", &class, m->start);
	exposition_table(out, "inline_cell_memory_ends_total", "counter",
	    "Cells that the memory of their run has ended.", NULL, &class,
	    m->out_of_memory);
}

/* Space of the sandboxes' file system; nothing where it cannot be measured. */
static void
status_add_disk(struct buf *out, const struct host *host)
{
	struct ledger_space space;
	struct err err;

	if (ledger_measure(host->ledger, host->base, &space, &err) != 0)
		return;
	exposition_gauge(out, "inline_disk_free_bytes",
	    "Free bytes of the sandboxes' file system.", space.free);
	exposition_gauge(out, "inline_disk_promised_bytes",
	    "Of these: reserved for cells that may write.", space.reserved);
	exposition_gauge(out, "inline_disk_floor_bytes",
	    "Of these: never reserved.", space.floor);
}

static int64_t
count_sessions(const struct clients *clients)
{
	const struct client *client;
	int64_t count = 0;

	LIST_FOREACH(client, &clients->all, link)
		count += client->session.cell_fd >= 0;
	return count;
}

/* The answer has the status and the counters. */
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
	status_add_cells(&text, host->pool);
	exposition_gauge(&text, "inline_api_sessions", "Sessions.",
	    count_sessions(client->clients));
	exposition_gauge(&text, "inline_lease_queue",
	    "Lease requests that wait.", (int64_t)host->pool->waiting);
	exposition_gauge(&text, "inline_cell_start_failures",
	    "Starts in a row that have failed.", host->pool->pause.failures);
	add_counts(&text, &host->pool->metrics);
	status_add_disk(&text, host);
	frame_start(&frame, FRAME_METRICS_ARE);
	frame_add_text(&frame, TAG_TEXT, buf_str(&text));
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(host->engine, FRESH_MS);
}

/* ---- the cells ---- */

/* The socket's buffer holds that many answers. */
#define CELLS_LISTED 200

static const char *const states[] = {
	[CONTAINER_PREPARING] = "preparing",
	[CONTAINER_PREPARED] = "prepared",
	[CONTAINER_STARTING] = "starting",
	[CONTAINER_IDLE] = "idle",
	[CONTAINER_LEASED] = "leased",
	[CONTAINER_RELEASING] = "releasing",
	[CONTAINER_ENDING] = "ending",
	[CONTAINER_GONE] = "gone",
};

/* Returns the pid of a cell's first process, from its pidfd; 0: unknown, or
 * dead. */
static int64_t
pid_of(const struct container *c)
{
	auto_free char *path = xprintf("/proc/self/fdinfo/%d", c->pidfd);
	auto_close int fd = c->pidfd < 0 ? -1 :
					   open(path, O_RDONLY | O_CLOEXEC);
	int64_t pid = host_read_number(fd, "\nPid:\t");

	return pid > 0 ? pid : 0;
}

static void
cell_frame(struct frame *frame, const struct container *c)
{
	frame_start(frame, FRAME_GRANTED);
	frame_add_text(frame, TAG_CELL_NAME, c->name);
	frame_add_text(frame, TAG_CLASS, c->class->name);
	frame_add_text(frame, TAG_SANDBOX, c->sandbox);
	frame_add_text(frame, TAG_INTERPRETER, c->interpreter.name);
	frame_add_text(frame, TAG_STATE, states[c->state]);
	frame_add_int(frame, TAG_STATE_MS, clock_monotonic_ms() - c->since_ms);
	frame_add_int(frame, TAG_RUNS, c->runs);
	frame_add_int(frame, TAG_KEPT, c->has_session);
	frame_add_int(frame, TAG_PID, pid_of(c));
}

/* The answer is GRANTED, a frame for each cell, and their number. */
void
request_cells(struct client *client, const struct frame_view *view)
{
	const struct container *c;
	struct frame frame;
	int64_t count = 0;
	bool sent;

	(void)view;
	frame_start(&frame, FRAME_GRANTED);
	sent = client_send(client, &frame, -1);
	TAILQ_FOREACH(c, &client->clients->host->cells->all, link) {
		if (count++ >= CELLS_LISTED || !sent)
			continue;
		cell_frame(&frame, c);
		sent = client_send(client, &frame, -1);
	}
	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_CELLS, count);
	if (sent)
		(void)client_send(client, &frame, -1);
	client_close(client);
}
