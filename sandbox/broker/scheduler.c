/* SPDX-License-Identifier: MIT */
/*
 * The scheduler serves the queue of tickets: first come, first served, but a
 * ticket that can be served now never waits for one that cannot.  It also
 * decides which cells stay warm, and when they are replaced.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/engine.h"
#include "broker/pool.h"

/* Limit of concurrent docker run: more would only slow down each. */
#define POOL_RUNS_MAX 2

/* The cell will be idle in a while: it is starting, or it is coming back from a
 * lease after which it can be leased again. */
static bool
is_coming(const struct container *c)
{
	return c->state <= CONTAINER_STARTING ||
	    (c->state == CONTAINER_RELEASING &&
		c->class->reuse == REUSE_ANYONE &&
		c->isolation == ISOLATION_RUN && !c->retire);
}

/* Standby cells are evicted last: any sandbox can use one. */
static bool
ends_before(const struct container *c, const struct container *other)
{
	return other == NULL || c->standby < other->standby ||
	    (c->standby == other->standby && is_evicted_before(c, other));
}

/* The idle cell of the budget that is evicted first; NULL: none. */
static struct container *
oldest_idle(const struct pool *pool, enum cell_budget budget)
{
	struct container *oldest = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state == CONTAINER_IDLE && c->class->budget == budget &&
		    ends_before(c, oldest))
			oldest = c;
	}
	return oldest;
}

/* A lease is cold when its ticket waited for the start of the cell. */
static void
grant(struct container *c, struct ticket *ticket, struct pool *pool,
    enum access access)
{
	int64_t ready_ms = c->since_ms;
	int client_end = container_lease(c, ticket->lease_ms, access,
	    ticket->keep_session, ticket->folder);

	if (client_end < 0)
		return; /* the cell ends; the ticket stays queued */
	ticket->cold = c->runs == 0 && ready_ms > ticket->since_ms &&
	    !c->adopted;
	ticket_leave_queue(pool, ticket,
	    ticket->cold		   ? WAY_COLD :
		c->adopted && c->runs == 0 ? WAY_STANDBY :
					     WAY_WARM);
	ticket->container = c;
	c->ticket = ticket;
	ticket_granted(ticket, c->name, client_end, access);
}

/* A ticket for read access is served while a run goes on.  True: the ticket has
 * its answer. */
static bool
serve_reader(struct pool *pool, struct ticket *ticket, struct container *c)
{
	int client_end;

	if (ticket->access != ACCESS_LOOK || !container_is_running(c))
		return false;
	client_end = container_open_reader(c);
	if (client_end < 0) {
		ticket_refuse(pool, ticket, REFUSAL_BUSY,
		    "the cell takes no more readers");
		return true;
	}
	ticket_leave_queue(pool, ticket, WAY_LOOK);
	ticket_granted(ticket, c->name, client_end, ACCESS_LOOK);
	return true;
}

/* The ticket's sandbox is leased: wait POOL_BUSY_MS for the lease's end, then
 * refuse.  True: the ticket was refused. */
static bool
refuse_busy(struct pool *pool, struct ticket *ticket, const struct container *c)
{
	int64_t since = c->since_ms > ticket->since_ms ? c->since_ms :
							 ticket->since_ms;
	int64_t due = since + POOL_BUSY_MS;

	if (c->state != CONTAINER_LEASED)
		return false;
	if (clock_monotonic_ms() >= due) {
		ticket_refuse(pool, ticket, REFUSAL_BUSY,
		    "the sandbox is leased to another");
		return true;
	}
	host_schedule(pool->host, due);
	return false;
}

/* Refuse the ticket when the engine is not ready.  True: it was refused. */
static bool
refuse_engine(struct pool *pool, struct ticket *ticket)
{
	struct engine *engine = pool->host->engine;
	const struct image *pulling = pool->host->images->pulling;
	enum engine_state state = engine_state(engine);
	bool down = state == ENGINE_DOWN;
	char text[256];

	if (state == ENGINE_READY || state == ENGINE_WAIT)
		return false;
	(void)snprintf(text, sizeof(text), "%s: %s%s",
	    down ? "the Docker engine does not answer" : "the image is missing",
	    engine->trouble,
	    pulling != NULL && images_is_needed(pool->host->images, pulling) ?
		" (it is being pulled)" :
		"");
	ticket_refuse(pool, ticket, down ? REFUSAL_ENGINE : REFUSAL_IMAGE,
	    text);
	return true;
}

/* Refuse a ticket that the disk can never admit.  True: it was refused; else it
 * waits. */
static bool
refuse_disk(struct pool *pool, struct ticket *ticket, enum admission admission)
{
	if (admission != ADMIT_NEVER)
		return false;
	ticket_refuse(pool, ticket, REFUSAL_DISK,
	    "the disk is too full to write");
	return true;
}

/* Serve the ticket by an idle container.  True: something was done. */
static bool
serve_by(struct pool *pool, struct ticket *ticket, struct container *c)
{
	enum access access;
	enum admission admission = admission_to(pool, ticket, c, &access);

	if (admission == ADMIT)
		grant(c, ticket, pool, access);
	else if (admission == ADMIT_OTHERWISE)
		cell_end_idle(c, KEPT_REPLACED);
	else
		return refuse_disk(pool, ticket, admission);
	return true;
}

/* Do the next step for the first ticket whose sandbox has a container, or that
 * is refused.  True: something was done. */
static bool
scheduler_serve_one(struct pool *pool)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		struct container *c = pool_container_of(pool, ticket);

		if (ticket->refusal != 0) {
			ticket_refuse(pool, ticket, ticket->refusal,
			    ticket->refusal == REFUSAL_FULL ?
				"too many are waiting for a cell" :
				"there is no such workspace");
			return true;
		}
		if (c == NULL)
			continue;
		if (pool_serves(c, ticket)) {
			if (serve_by(pool, ticket, c))
				return true;
			continue;
		}
		/* An idle cell of another class or version uses the volumes. */
		if (c->state == CONTAINER_IDLE) {
			cell_end_idle(c,
			    ticket->class->has_sessions ? KEPT_REPLACED :
							  KEPT_PACKAGES);
			return true;
		}
		if (serve_reader(pool, ticket, c) ||
		    refuse_busy(pool, ticket, c))
			return true;
		/* Without the engine the container stays in this state. */
		if ((c->state == CONTAINER_PREPARING ||
			c->state == CONTAINER_ENDING) &&
		    refuse_engine(pool, ticket))
			return true;
	}
	return false;
}

/* Claim a cell that is coming for the ticket, each for one ticket.  A cell that
 * still has much to import is claimed only by a ticket that would start such a
 * cell. */
static bool
claim_coming(struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (is_coming(c) && !c->claimed &&
		    (c->imports == 0 || c->state > CONTAINER_STARTING ||
			warm_imports(pool, ticket) != 0) &&
		    pool_matches(c, ticket)) {
			c->claimed = true;
			return true;
		}
	}
	return false;
}

/* Start a cell for the ticket, or adopt the standby cell.  True: something was
 * done. */
static bool
start_for(struct pool *pool, struct ticket *ticket, struct container *standby)
{
	bool writable;
	bool grows;
	enum admission admission = admission_to_new(pool, ticket, &writable,
	    &grows);

	if (admission != ADMIT)
		return refuse_disk(pool, ticket, admission);
	if (standby != NULL)
		standby_adopt(standby, ticket, writable, grows);
	else
		container_new(pool, ticket, writable, grows);
	return true;
}

/* Find a standby cell for the ticket; NULL: none. */
static struct container *
standby_find(const struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	if (ticket->no_standby)
		return NULL;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->standby && c->state == CONTAINER_IDLE && c->pidfd >= 0 &&
		    c->class == ticket->class &&
		    strcmp(c->interpreter.name, ticket->interpreter.name) == 0)
			return c;
	}
	return NULL;
}

/* The first ticket that a standby cell can serve gets it.  True: something was
 * done. */
static bool
adopt_one(struct pool *pool)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		struct container *standby = standby_find(pool, ticket);

		if (standby != NULL &&
		    pool_container_of(pool, ticket) == NULL &&
		    start_for(pool, ticket, standby))
			return true;
	}
	return false;
}

/* Refuse the ticket when starts have failed and the next one is not due yet.
 * True: it was refused. */
static bool
refuse_pause(struct pool *pool, struct ticket *ticket)
{
	const struct pause *pause = &pool->pause;
	int64_t now = clock_monotonic_ms();
	char text[256];

	if (!pause_is_told(pause, now))
		return false;
	(void)snprintf(text, sizeof(text), "%s (%d in a row; next try in %d s)",
	    pause->text, pause->failures,
	    (int)((pause->until_ms - now + 999) / 1000));
	ticket_refuse(pool, ticket, pause->code, text);
	return true;
}

/* May another container be started?  If not, the next pass is scheduled. */
static bool
may_start(struct pool *pool, const struct pool_count *count)
{
	if (pool->pause.failures == 0)
		return true;
	if (pause_holds(&pool->pause, clock_monotonic_ms())) {
		host_schedule(pool->host, pool->pause.until_ms);
		return false;
	}
	return count->starting == 0 && count->runs == 0;
}

/* Start a container for the first ticket that needs one, make room, or refuse
 * the ticket.  True: something was done. */
static bool
start_one(struct pool *pool)
{
	struct pool_count count;
	struct container *c;
	struct ticket *ticket;

	pool_count(pool, &count);
	TAILQ_FOREACH(c, &pool->containers, link)
		c->claimed = false;
	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		const struct cell_class *class = ticket->class;
		struct pool_slots *slots = &count.slots[class->budget];

		if (slots->full || pool_container_of(pool, ticket) != NULL ||
		    (class->in_memory && claim_coming(pool, ticket)))
			continue;
		if (refuse_engine(pool, ticket) || refuse_pause(pool, ticket))
			return true;
		if (engine_state(pool->host->engine) != ENGINE_READY ||
		    !may_start(pool, &count))
			return false;
		if (slots->taken <
		    class_budget(class->budget, pool->host->config)) {
			if (start_for(pool, ticket, NULL))
				return true;
			continue;
		}
		/* Each ending cell will make room for one ticket. */
		if (slots->ending-- > 0)
			continue;
		c = oldest_idle(pool, class->budget);
		if (c != NULL) {
			log_debug("making room cell=%s", c->name);
			cell_end_idle(c, KEPT_GAVE_WAY);
			return true;
		}
		slots->full = true;
		/* All cells are leased for as long as their clients like. */
		if (class->lasting && slots->leased >= slots->taken) {
			ticket_refuse(pool, ticket, REFUSAL_FULL,
			    "all of them are leased");
			return true;
		}
	}
	return false;
}

/* ---- warm cells ---- */

/* Modules that a warm cell shall have imported.  A single slot goes to modules
 * that the operator has named, and otherwise to a cell without imports. */
static uint32_t
wanted(const struct pool *pool)
{
	const struct config *config = pool->host->config;

	if (preload_is_auto(config->preload) &&
	    (config->api_warm == 0 || config->api_cells == 1))
		return 0;
	return preload_wanted(&pool->preload, config, clock_monotonic_ms());
}

/* Class and interpreter of warm cells, with or without the imports. */
static void
warm_kind(const struct pool *pool, struct ticket *kind, bool imports)
{
	*kind = (struct ticket){ .class = class_find("api"),
		.imports = imports ? wanted(pool) : 0 };
	(void)images_find(pool->host->config->sandbox_images, "",
	    &kind->interpreter);
}

void
warm_note(struct pool *pool, const struct ticket *ticket)
{
	struct ticket kind;

	warm_kind(pool, &kind, false);
	if (ticket->class == kind.class &&
	    strcmp(ticket->interpreter.name, kind.interpreter.name) == 0)
		preload_note(&pool->preload, ticket->imports,
		    clock_monotonic_ms());
}

/* Number of warm cells, with or without the imports. */
static int64_t
warm_count(const struct pool *pool, bool imports)
{
	const struct config *config = pool->host->config;
	bool split = wanted(pool) != 0 && config->api_warm > 0;

	if (imports)
		return split;
	return config->api_warm < config->api_cells - split ?
	    config->api_warm :
	    config->api_cells - split;
}

uint32_t
warm_imports(const struct pool *pool, const struct ticket *ticket)
{
	struct ticket kind;
	bool ready;

	warm_kind(pool, &kind, true);
	ready = strcmp(ticket->interpreter.name, kind.interpreter.name) == 0;
	if (ticket->class->reuse != REUSE_ANYONE ||
	    (ticket->imports & kind.imports) == 0 ||
	    (ready && ticket->client != NULL && warm_count(pool, true) != 0) ||
	    (!ready && preload_is_auto(pool->host->config->preload)))
		return 0;
	return kind.imports;
}

/* Is the cell one of those that stay warm?  The ones used last are. */
static bool
stays_warm(const struct pool *pool, const struct container *c)
{
	const struct container *other;
	struct ticket kind;
	int64_t before = 0;

	warm_kind(pool, &kind, c->imports != 0);
	if (!pool_matches(c, &kind))
		return false;
	TAILQ_FOREACH(other, &pool->containers, link) {
		if (other != c && pool_serves(other, &kind) &&
		    (other->imports != 0) == (c->imports != 0) &&
		    (other->since_ms > c->since_ms ||
			(other->since_ms == c->since_ms &&
			    other->number < c->number)))
			before++;
	}
	return before < warm_count(pool, c->imports != 0);
}

/* Is there a derived image by now?  A cell that serves many clients is worth
 * replacing. */
static bool
is_outdated(const struct pool *pool, const struct container *c)
{
	return (c->class->reuse == REUSE_ANYONE || c->standby) &&
	    c->state >= CONTAINER_IDLE && !c->derived &&
	    strcmp(images_name(pool->host->images, c->interpreter.image),
		c->interpreter.image) != 0;
}

/* End the cells with sessions beyond IL_SESSIONS, the ones idle for longest
 * first. */
static void
trim_sessions(struct pool *pool)
{
	int64_t count = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
		count += c->state == CONTAINER_IDLE && c->has_session;
	for (; count > pool->host->config->sessions; count--) {
		struct container *oldest = NULL;

		TAILQ_FOREACH(c, &pool->containers, link) {
			if (c->state == CONTAINER_IDLE && c->has_session &&
			    is_evicted_before(c, oldest))
				oldest = c;
		}
		cell_end_idle(oldest, KEPT_GAVE_WAY);
	}
}

static void
trim(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t idle = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		int64_t rest_s = c->has_session ? config->session_seconds :
						  config->warm_seconds;
		int64_t due_ms = c->since_ms + rest_s * 1000;
		bool outdated = is_outdated(pool, c);
		bool stays = c->standby || stays_warm(pool, c);

		c->retire = c->retire || outdated; /* after its lease */
		if (c->state != CONTAINER_IDLE)
			continue;
		if (c->class->reuse == REUSE_NEVER || outdated ||
		    (!stays && clock_monotonic_ms() >= due_ms)) {
			cell_end_idle(c, KEPT_RESTED);
			continue;
		}
		if (!stays)
			host_schedule(pool->host, due_ms);
		else if (c->imports != 0 && preload_is_auto(config->preload))
			host_schedule(pool->host,
			    clock_monotonic_ms() + config->warm_seconds * 1000);
		idle += c->class->reuse == REUSE_SANDBOX && !c->has_session &&
		    !c->standby;
	}
	trim_sessions(pool);
	for (; idle > config->warm_cells; idle--)
		container_end(oldest_idle(pool, BUDGET_SANDBOXES), false);
}

/* The cell has served as many runs as it may, or lacks imports that are wanted
 * by now: another cell shall replace it. */
static bool
is_worn(const struct pool *pool, const struct container *c)
{
	return c->class->reuse == REUSE_ANYONE &&
	    (c->runs >= c->host->config->api_runs ||
		(c->imports != 0 && (wanted(pool) & ~c->imports) != 0));
}

/* A worn cell may stay until its replacement is ready.  False: the replacement
 * is idle, or none can come. */
static bool
may_stay(const struct pool *pool, const struct container *worn,
    const struct ticket *kind, bool room)
{
	const struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (is_worn(pool, c) ||
		    (c->imports != 0) != (worn->imports != 0) ||
		    !pool_matches(c, kind))
			continue;
		if (pool_serves(c, kind))
			return false;
		room = room || is_coming(c);
	}
	return room;
}

static void
end_worn(struct pool *pool)
{
	const struct config *config = pool->host->config;
	struct pool_count count;
	struct ticket kind;
	struct container *c;
	bool room;

	pool_count(pool, &count);
	room = count.slots[BUDGET_RUNS].taken < config->api_cells;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state != CONTAINER_IDLE || !is_worn(pool, c))
			continue;
		warm_kind(pool, &kind, c->imports != 0);
		if (warm_count(pool, c->imports != 0) == 0 ||
		    !pool_matches(c, &kind) ||
		    c->runs >= 2 * config->api_runs ||
		    !may_stay(pool, c, &kind, room))
			container_end(c, false);
	}
}

/* Number of warm cells, ready or coming, less the cells that tickets wait for.
 */
static int64_t
count_ready(const struct pool *pool, const struct ticket *kind, bool imports)
{
	const struct container *c;
	const struct ticket *ticket;
	int64_t n = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
		n += (c->state == CONTAINER_IDLE || is_coming(c)) &&
		    (!is_worn(pool, c) || c->state <= CONTAINER_STARTING) &&
		    (c->imports != 0) == imports && pool_matches(c, kind);
	/* a waiting ticket takes the first cell that comes up */
	TAILQ_FOREACH(ticket, &pool->tickets, link)
		n -= !imports && ticket->class == kind->class &&
		    strcmp(ticket->interpreter.name, kind->interpreter.name) ==
			0;
	return n;
}

/* Start one more warm cell of the kind where one is missing.  True: one was
 * begun. */
static bool
refill_kind(struct pool *pool, bool imports)
{
	struct ticket kind;

	warm_kind(pool, &kind, imports);
	if (count_ready(pool, &kind, imports) >= warm_count(pool, imports))
		return false;
	container_new(pool, &kind, false, false);
	host_schedule(pool->host, 0); /* there may be another one to start */
	return true;
}

/* May one more mounter be started now?  The end of a mounter schedules a pass.
 */
static bool
mounter_may_start(struct pool *pool)
{
	const struct container *m;

	if (pool->unmountable)
		return false;
	TAILQ_FOREACH(m, &pool->mounters, link) {
		if (m->cell == NULL)
			return false;
	}
	if (!pause_holds(&pool->mount_pause, clock_monotonic_ms()))
		return true;
	host_schedule(pool->host, pool->mount_pause.until_ms);
	return false;
}

/* Class and interpreter of standby cells. */
static void
standby_kind(const struct pool *pool, struct ticket *kind)
{
	*kind = (struct ticket){ .class = class_find("user") };
	(void)images_find(pool->host->config->chat_images, "",
	    &kind->interpreter);
}

/* Begin another standby cell where there are fewer than IL_SPARE_CELLS and no
 * ticket waits. */
static void
standby_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	const struct container *c;
	struct pool_count count;
	struct ticket kind;
	int64_t count_standby = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
		count_standby += c->standby && c->state <= CONTAINER_IDLE;
	pool_count(pool, &count);
	if (count_standby >= config->spare_cells || pool->waiting > 0 ||
	    count.starting > 0 ||
	    count.slots[BUDGET_SANDBOXES].taken >= config->cells ||
	    !mounter_may_start(pool))
		return;
	standby_kind(pool, &kind);
	container_new(pool, &kind, true, false);
}

/* Waiting tickets come first: no warm cell is begun while the engine has as
 * many starts as it may; after failures that is one. */
static void
refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;

	pool_count(pool, &count);
	if (count.starting >= most || !images_are_known(pool->host->images) ||
	    engine_state(pool->host->engine) != ENGINE_READY)
		return;
	if (clock_monotonic_ms() < pool->warm_not_ms) {
		host_schedule(pool->host, pool->warm_not_ms);
		return;
	}
	if (config->api_warm > 0 &&
	    count.slots[BUDGET_RUNS].taken < config->api_cells &&
	    (refill_kind(pool, false) || refill_kind(pool, true)))
		return;
	standby_refill(pool);
}

/* ---- one pass ---- */

/* Call docker run for the containers whose volumes are ready. */
static void
run_prepared(struct pool *pool)
{
	const int most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state == CONTAINER_PREPARED && c->adopting)
			standby_mount(c);
	}
	if (pause_holds(&pool->pause, clock_monotonic_ms())) {
		host_schedule(pool->host, pool->pause.until_ms);
		return;
	}
	pool_count(pool, &count);
	/* In order, but the cells in memory leave one start to sandboxes, whose
	 * clients would otherwise wait for cells that are only to be warm. */
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state != CONTAINER_PREPARED || count.runs >= most ||
		    (c->class->in_memory && most > 1 &&
			count.runs_in_memory >= most - 1))
			continue;
		container_run(c);
		count.runs++;
		count.runs_in_memory += c->class->in_memory;
	}
}

/* Waiting tickets come first, as long as anything can be done for them. */
void
scheduler_run(struct pool *pool)
{
	end_worn(pool);
	while (scheduler_serve_one(pool) || adopt_one(pool) || start_one(pool))
		;
	trim(pool);
	refill(pool);
	run_prepared(pool);
}
