/* SPDX-License-Identifier: MIT */
/*
 * Policy: which ticket gets which cell, which one waits, and which is refused.
 * The queue is first come, first served, but a ticket that can be served now
 * never waits for one that cannot.  Each pass first settles the containers,
 * then serves tickets, then trims and refills the warm cells (pool.c).
 */
#include "broker/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "broker/engine.h"
#include "protocol/counters.h"

#define WAITING_MAX 1024
#define WARM_PAUSE_MS 10000 /* after a failed start */

void
policy_init(struct pool *pool, struct host *host)
{
	*pool = (struct pool){ .host = host,
		.cells = host->cells,
		.notes = xcalloc(SESSION_NOTES, sizeof(*pool->notes)),
		.counters = counters_open(host->config, COUNTERS_OF_BROKER),
		.pause.most_ms = PAUSE_MOST_MS };
	TAILQ_INIT(&pool->tickets);
}

void
policy_release(struct pool *pool)
{
	free(pool->notes);
}

/* ---- backoff ---- */

void
pause_note_failure(struct pause *pause, enum refusal code, const char *text,
    int64_t now_ms)
{
	pause->until_ms = now_ms +
	    clock_backoff_ms(PAUSE_FIRST_MS, pause->most_ms, pause->failures);
	pause->failures++;
	pause->code = code;
	(void)snprintf(pause->text, sizeof(pause->text), "%s", text);
}

void
pause_note_success(struct pause *pause)
{
	*pause = (struct pause){ .most_ms = pause->most_ms };
}

bool
pause_holds(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 0 && now_ms < pause->until_ms;
}

bool
pause_refuses(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 1 && pause_holds(pause, now_ms);
}

/* ---- tickets ---- */

/* The ticket has its answer, or needs none: count it and take it out of the
 * queue. */
static void
ticket_leave_queue(struct pool *pool, struct ticket *ticket, enum lease_way way)
{
	size_t class = class_index(ticket->class);

	pool->counters->leases_total[class][way]++;
	if (way < LEASE_WAY_GONE)
		histogram_observe(&pool->counters->lease_wait_seconds[class],
		    (clock_monotonic_ms() - ticket->since_ms) * 1000);
	TAILQ_REMOVE(&pool->tickets, ticket, link);
	ticket->waiting = false;
	pool->waiting--;
}

static void
ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text)
{
	ticket_leave_queue(pool, ticket, LEASE_WAY_REFUSED + code);
	client_refuse(ticket->client, code, text);
}

/* Are the volumes of the ticket there?  Only pip's CREATE makes missing
 * packages. */
static bool
has_volumes(const struct pool *pool, const struct ticket *ticket)
{
	int base = pool->host->base;

	return ticket->class->in_memory ||
	    ((ticket->class->installs ||
		 workspace_has(base, ticket->sandbox, WORKSPACE_VOLUME)) &&
		(!ticket->class->network ||
		    workspace_has(base, ticket->sandbox, ticket->packages)));
}

enum refusal
policy_request(struct pool *pool, struct ticket *ticket)
{
	const struct container *c = pool_container_of(pool, ticket);
	enum refusal code = REFUSAL_NONE;

	if (!has_volumes(pool, ticket))
		code = REFUSAL_NO_WORKSPACE;
	else if (pool->waiting >= WAITING_MAX &&
	    (c == NULL || !pool_serves(c, ticket)))
		code = REFUSAL_FULL;
	if (code != REFUSAL_NONE) {
		pool->counters->leases_total[class_index(ticket->class)]
					    [LEASE_WAY_REFUSED + code]++;
		return code;
	}
	ticket->since_ms = clock_monotonic_ms();
	ticket->waiting = true;
	pool->waiting++;
	TAILQ_INSERT_TAIL(&pool->tickets, ticket, link);
	host_schedule(pool->host, 0);
	return REFUSAL_NONE;
}

void
policy_withdraw(struct pool *pool, struct ticket *ticket)
{
	struct container *c = ticket->container;

	if (ticket->waiting)
		ticket_leave_queue(pool, ticket, LEASE_WAY_GONE);
	if (c == NULL)
		return;
	c->ticket = NULL;
	ticket->container = NULL;
	container_release(c);
}

/* ---- serving tickets ---- */

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
	    ticket->cold		   ? LEASE_WAY_COLD :
		c->adopted && c->runs == 0 ? LEASE_WAY_STANDBY :
					     LEASE_WAY_WARM);
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
	ticket_leave_queue(pool, ticket, LEASE_WAY_LOOK);
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

/* Do the next step for the first ticket whose sandbox has a container.  True:
 * something was done. */
static bool
policy_serve_one(struct pool *pool)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		struct container *c = pool_container_of(pool, ticket);

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

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (pool_is_coming(c) && !c->claimed &&
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
		container_new(pool->host, ticket, warm_imports(pool, ticket),
		    writable, grows);
	return true;
}

/* Find a standby cell for the ticket; NULL: none. */
static struct container *
standby_find(const struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	if (ticket->no_standby)
		return NULL;
	TAILQ_FOREACH(c, &pool->cells->all, link) {
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

	if (!pause_refuses(pause, now))
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
	TAILQ_FOREACH(c, &pool->cells->all, link)
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
		c = pool_oldest_idle(pool, class->budget, false);
		if (c != NULL) {
			log_debug("making room cell=%s", c->name);
			cell_end_idle(c, KEPT_GAVE_WAY);
			return true;
		}
		slots->full = true;
		/* All cells are leased for as long as their clients like. */
		if (class->lasting && slots->leased >= slots->taken) {
			if (parked_evict(ticket))
				return true;
			ticket_refuse(pool, ticket, REFUSAL_FULL,
			    "all of them are leased");
			return true;
		}
	}
	return false;
}

/* Call docker run for the containers whose volumes are ready. */
static void
run_prepared(struct pool *pool)
{
	const int most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;
	struct container *c;

	TAILQ_FOREACH(c, &pool->cells->all, link) {
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
	TAILQ_FOREACH(c, &pool->cells->all, link) {
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
static void
policy_serve(struct pool *pool)
{
	warm_end_worn(pool);
	while (policy_serve_one(pool) || adopt_one(pool) || start_one(pool))
		;
	warm_trim(pool);
	warm_refill(pool);
	run_prepared(pool);
}

/* ---- one pass over everything ---- */

/* A start failed: hold up the next ones. */
static void
policy_note_failure(struct pool *pool, const struct container *c)
{
	int64_t now = clock_monotonic_ms();
	struct container *other;

	pool->warm_not_ms = now + WARM_PAUSE_MS;
	/* A failure of this sandbox's file system or image, or before docker
	 * was called, says nothing of the engine.  It must not slow down
	 * others. */
	if (!c->called || c->repaired || c->failure == REFUSAL_IMAGE)
		return;
	pause_note_failure(&pool->pause, c->failure, c->failure_text, now);
	pool->host->publish(pool->host);
	if (pool->pause.until_ms > pool->warm_not_ms)
		pool->warm_not_ms = pool->pause.until_ms;
	log_warn("%d starts in a row have failed: the next one in %" PRId64
		 " s",
	    pool->pause.failures, (pool->pause.until_ms - now) / 1000);
	/* Clients of the starts that were about to begin are refused, too. */
	if (!pause_refuses(&pool->pause, now))
		return;
	TAILQ_FOREACH(other, &pool->cells->all, link) {
		if (other->state == CONTAINER_PREPARED)
			container_end(other, false);
	}
}

/* The standby cell failed on its way to this sandbox: its tickets get a cell
 * that is started as usual. */
static void
forgo_standby(struct pool *pool, const struct container *c)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		if (pool_matches(c, ticket))
			ticket->no_standby = true;
	}
}

/* Report a failed start to the first ticket that waits for such a cell; the
 * others get a new try. */
static void
policy_report_failure(struct pool *pool, struct container *c)
{
	struct ticket *ticket;

	c->reported = true;
	pool->counters
	    ->cell_starts_total[class_index(c->class)][COUNTED_FAILED]++;
	if (c->adopting) {
		forgo_standby(pool, c);
		return;
	}
	/* The cell may have died of imports that no client asked for: the next
	 * ones start without them. */
	if (c->imports != 0 && preload_is_auto(pool->host->config->preload)) {
		preload_note_absent(&pool->preload, c->imports,
		    clock_monotonic_ms());
		return;
	}
	policy_note_failure(pool, c);
	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		if (pool_matches(c, ticket)) {
			ticket_refuse(pool, ticket, c->failure,
			    c->failure_text);
			return;
		}
	}
}

/* The status has the version of Python as soon as a cell has reported it. */
static void
note_python(struct pool *pool, const struct container *c)
{
	if (strcmp(c->interpreter.image, pool->host->config->sandbox_image) !=
		0 ||
	    strcmp(pool->python, c->python) == 0)
		return;
	memcpy(pool->python, c->python, sizeof(pool->python));
	pool->host->publish(pool->host);
}

/* Act on a container's state. */
static void
policy_settle(struct pool *pool, struct container *c)
{
	struct ticket *ticket = c->ticket;
	size_t class = class_index(c->class);

	if (c->state == CONTAINER_IDLE)
		note_python(pool, c);
	if (c->state == CONTAINER_IDLE && !c->came_up) {
		c->came_up = true;
		pool->came_up_ms = clock_monotonic_ms();
		pool->counters->cell_starts_total[class][COUNTED_UP]++;
		histogram_observe(&pool->counters->cell_start_seconds[class],
		    (c->since_ms - c->run_ms) * 1000);
		if (pool->pause.failures > 0) {
			pause_note_success(&pool->pause);
			pool->host->publish(pool->host);
		}
	}
	if (c->absent != 0 && preload_is_auto(pool->host->config->preload)) {
		preload_note_absent(&pool->preload, c->absent,
		    clock_monotonic_ms());
		c->imports &= ~c->absent;
		c->absent = 0;
	}
	if (c->isolation != 0) {
		pool->isolation = c->isolation;
		memcpy(pool->isolation_reason, c->isolation_reason,
		    sizeof(pool->isolation_reason));
	}
	/* The cell of a lease has ended by itself. */
	if (c->state >= CONTAINER_ENDING && ticket != NULL) {
		c->ticket = NULL;
		ticket->container = NULL;
		pool->counters
		    ->cell_memory_ends_total[0][class] += c->out_of_memory;
		ticket_lost(ticket, c->out_of_memory);
	}
	if (c->state >= CONTAINER_ENDING)
		session_note_end(pool, c);
	if (c->failure != 0 && !c->reported)
		policy_report_failure(pool, c);
	if (c->state == CONTAINER_GONE) {
		TAILQ_REMOVE(&pool->cells->all, c, link);
		container_free(c);
	}
}

/* The order matters: a container that is gone must be settled before its
 * sandbox gets another one. */
void
policy_pass(struct pool *pool)
{
	struct container *c;
	struct container *next;

	for (c = TAILQ_FIRST(&pool->cells->mounters); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		mounter_settle(c);
	}
	for (c = TAILQ_FIRST(&pool->cells->all); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		policy_settle(pool, c);
	}
	if (pool->host->phase == PHASE_SERVING)
		policy_serve(pool);
}

bool
policy_end(struct pool *pool, bool leases)
{
	struct container *c;
	bool more = leases &&
	    !(TAILQ_EMPTY(&pool->cells->all) &&
		TAILQ_EMPTY(&pool->cells->mounters));

	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (leases || c->state < CONTAINER_LEASED)
			container_end(c, false);
		more = more ||
		    (c->state == CONTAINER_LEASED && !c->class->lasting);
	}
	return more;
}

void
policy_end_sandbox(struct pool *pool, const char *sandbox)
{
	struct container *c;

	(void)session_recall(pool, sandbox);
	TAILQ_FOREACH(c, &pool->cells->all, link) {
		if (strcmp(c->sandbox, sandbox) == 0) {
			c->has_session = false;
			container_end(c, true);
		}
	}
}
