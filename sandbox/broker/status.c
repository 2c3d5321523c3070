/* SPDX-License-Identifier: MIT */
/*
 * The broker's state: STATUS for /health, for people and for Prometheus, CELLS
 * for `ilctl top`.  Also the end of idle cells, for `ilctl backup`.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"
#include "broker/client.h"
#include "broker/engine.h"
#include "protocol/counters.h"
#include "protocol/lease.h"

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

/* Begin a status with all that needs no walk over the sandboxes. */
static void
status_start(struct frame *frame, const struct host *host)
{
	const struct pool *pool = host->pool;
	const struct engine *engine = host->engine;
	bool starts = pool->pause.failures == 0 || !engine->up ||
	    !engine->image;
	struct pool_count count;
	struct ledger_space space = { 0 };
	struct err err;

	pool_count(pool, &count);
	(void)ledger_measure(host->ledger, host->base, &space, &err);
	frame_start(frame, FRAME_STATUS_IS);
	frame_add_int(frame, TAG_ENGINE, engine->up);
	frame_add_int(frame, TAG_IMAGE, engine->image);
	if (engine->probed_ms >= 0)
		frame_add_int(frame, TAG_ENGINE_AGE,
		    clock_monotonic_ms() - engine->probed_ms);
	frame_add_text(frame, TAG_TROUBLE,
	    starts ? engine->trouble : pool->pause.text);
	frame_add_int(frame, TAG_START_FAILURES, pool->pause.failures);
	frame_add_int(frame, TAG_START_PENDING, start_pending_ms(pool));
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

static enum counted_state
counted_state(const struct container *c)
{
	if (c->state <= CONTAINER_STARTING)
		return COUNTED_STARTING;
	if (c->state == CONTAINER_IDLE)
		return c->standby ? COUNTED_STANDBY : COUNTED_IDLE;
	return c->state == CONTAINER_LEASED ? COUNTED_LEASED : COUNTED_ENDING;
}

/* The counters are read after this status. */
static void
count_cells(const struct clients *clients, const struct pool *pool)
{
	int64_t cells[COUNTED_CLASSES][COUNTED_STATES] = { 0 };
	const struct container *c;
	const struct client *client;
	int64_t sessions = 0;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (c->state != CONTAINER_GONE)
			cells[class_index(c->class)][counted_state(c)]++;
	}
	for (size_t i = 0; i < COUNTED_CLASSES; i++)
		for (size_t k = 0; k < COUNTED_STATES; k++)
			pool->counters->cells[i][k] = cells[i][k];
	TAILQ_FOREACH(client, &clients->all, link)
		sessions += client->session.cell_fd >= 0;
	pool->counters->api_sessions[0][0] = sessions;
}

/* The answer has the last known state, at once: clients ask when something is
 * wrong, and must not wait for that.  A probe follows where the state is old.
 */
enum refusal
request_status(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->host;
	struct frame frame;

	(void)view;
	count_cells(client->clients, host->pool);
	status_start(&frame, host);
	frame_add_int(&frame, TAG_SANDBOXES, workspace_count(host->base));
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(host->engine, FRESH_MS);
	return REFUSAL_NONE;
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
enum refusal
request_cells(struct client *client, const struct frame_view *view)
{
	const struct container *c;
	struct frame frame;
	int64_t count = 0;
	bool sent;

	(void)view;
	frame_start(&frame, FRAME_GRANTED);
	sent = client_send(client, &frame, -1);
	TAILQ_FOREACH(c, &client->host->cells->all, link) {
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
	return REFUSAL_NONE;
}
