/* SPDX-License-Identifier: MIT */
/*
 * Containers and tickets: changes of their state, and questions about them.
 * Each pass settles the containers first, then runs the scheduler.
 */
#include "broker/pool.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "broker/folder.h"
#include "broker/workspace.h"

#define WAITING_MAX 1024
#define WARM_PAUSE_MS 10000 /* after a failed start */

void
host_schedule(struct host *host, int64_t at_ms)
{
	if (host->pass != NULL && host->pass_ms <= at_ms)
		return;
	host->pass_ms = at_ms;
	loop_timer_set(host->loop, &host->pass, at_ms - clock_monotonic_ms(),
	    host->run_pass, host);
}

void
pool_init(struct pool *pool, struct host *host)
{
	*pool = (struct pool){ .host = host,
		.pause.most_ms = PAUSE_MOST_MS,
		.mount_pause.most_ms = PAUSE_MOUNTS_MS };
	TAILQ_INIT(&pool->containers);
	TAILQ_INIT(&pool->mounters);
	TAILQ_INIT(&pool->tickets);
	TAILQ_INIT(&pool->removals);
	TAILQ_INIT(&pool->sessions.list);
}

/* The client of a removal is answered; the folder is swept at the next start.
 */
void
pool_release(struct pool *pool)
{
	struct removal *removal;
	struct container *c;

	while ((removal = TAILQ_FIRST(&pool->removals)) != NULL) {
		TAILQ_REMOVE(&pool->removals, removal, link);
		removal_done(removal, "removal cut short");
	}
	TAILQ_CONCAT(&pool->containers, &pool->mounters, link);
	while ((c = TAILQ_FIRST(&pool->containers)) != NULL) {
		TAILQ_REMOVE(&pool->containers, c, link);
		container_free(c);
	}
	session_notes_release(&pool->sessions);
}

/* ---- tickets ---- */

void
ticket_leave_queue(struct pool *pool, struct ticket *ticket, enum lease_way way)
{
	size_t class = class_index(ticket->class);

	pool->metrics.leases[class][way]++;
	if (way < WAY_GONE)
		histogram_observe(&pool->metrics.waited[class],
		    (clock_monotonic_ms() - ticket->since_ms) * 1000);
	TAILQ_REMOVE(&pool->tickets, ticket, link);
	ticket->waiting = false;
	pool->waiting--;
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

/* The answer comes from the loop, even when it is known at once. */
void
pool_request(struct pool *pool, struct ticket *ticket)
{
	const struct container *c = pool_container_of(pool, ticket);

	ticket->refusal = REFUSAL_NONE;
	if (!has_volumes(pool, ticket))
		ticket->refusal = REFUSAL_NO_WORKSPACE;
	else if (pool->waiting >= WAITING_MAX &&
	    (c == NULL || !pool_serves(c, ticket)))
		ticket->refusal = REFUSAL_FULL;
	ticket->since_ms = clock_monotonic_ms();
	ticket->container = NULL;
	ticket->waiting = true;
	pool->waiting++;
	TAILQ_INSERT_TAIL(&pool->tickets, ticket, link);
	host_schedule(pool->host, 0);
}

void
pool_withdraw(struct pool *pool, struct ticket *ticket)
{
	struct container *c = ticket->container;

	if (ticket->waiting)
		ticket_leave_queue(pool, ticket, WAY_GONE);
	if (c == NULL)
		return;
	c->ticket = NULL;
	ticket->container = NULL;
	container_release(c);
}

/* ---- one pass over everything ---- */

/* A start failed: hold up the next ones. */
static void
pool_note_failure(struct pool *pool, const struct container *c)
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
	status_publish(pool->host);
	if (pool->pause.until_ms > pool->warm_not_ms)
		pool->warm_not_ms = pool->pause.until_ms;
	log_warn("%d starts in a row have failed: the next one in %" PRId64
		 " s",
	    pool->pause.failures, (pool->pause.until_ms - now) / 1000);
	/* Clients of the starts that were about to begin are refused, too. */
	if (!pause_is_told(&pool->pause, now))
		return;
	TAILQ_FOREACH(other, &pool->containers, link) {
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
pool_report_failure(struct pool *pool, struct container *c)
{
	struct ticket *ticket;

	c->reported = true;
	pool->metrics.starts[class_index(c->class)][1]++;
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
	pool_note_failure(pool, c);
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
	status_publish(pool->host);
}

/* Act on a container's state. */
static void
pool_settle(struct pool *pool, struct container *c)
{
	struct ticket *ticket = c->ticket;
	size_t class = class_index(c->class);

	if (c->state == CONTAINER_IDLE)
		note_python(pool, c);
	if (c->state == CONTAINER_IDLE && !c->came_up) {
		c->came_up = true;
		pool->came_up_ms = clock_monotonic_ms();
		pool->metrics.starts[class][0]++;
		histogram_observe(&pool->metrics.start[class],
		    (c->since_ms - c->run_ms) * 1000);
		if (pool->pause.failures > 0) {
			pause_note_success(&pool->pause);
			status_publish(pool->host);
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
		pool->metrics.out_of_memory[class] += c->out_of_memory;
		ticket_lost(ticket, c->out_of_memory);
	}
	if (c->state >= CONTAINER_ENDING)
		session_note_end(&pool->sessions, c);
	if (c->failure != 0 && !c->reported)
		pool_report_failure(pool, c);
	if (c->state == CONTAINER_GONE) {
		TAILQ_REMOVE(&pool->containers, c, link);
		container_free(c);
	}
}

/* Delete the files of a sandbox when nothing uses them any more.  Its
 * containers from before the removal may still have the volumes; newer ones
 * have none of them. */
static void
settle_removal(struct pool *pool, struct removal *removal)
{
	const struct container *c;
	struct err err;
	int rc;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->number <= removal->number &&
		    strcmp(c->sandbox, removal->sandbox) == 0)
			return;
	}
	TAILQ_REMOVE(&pool->removals, removal, link);
	rc = folder_delete(pool->host->base, removal->retired, 0, &err);
	removal_done(removal, rc == 0 ? NULL : err.text);
}

/* The order matters: a container that is gone must be settled before its
 * sandbox gets another one. */
void
pool_pass(struct pool *pool)
{
	struct removal *removal;
	struct removal *removal_next;
	struct container *c;
	struct container *next;

	for (c = TAILQ_FIRST(&pool->mounters); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		mounter_settle(c);
	}
	for (c = TAILQ_FIRST(&pool->containers); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		pool_settle(pool, c);
	}
	for (removal = TAILQ_FIRST(&pool->removals); removal != NULL;
	     removal = removal_next) {
		removal_next = TAILQ_NEXT(removal, link);
		settle_removal(pool, removal);
	}
	if (pool->host->phase == PHASE_SERVING)
		scheduler_run(pool);
}

bool
pool_end(struct pool *pool, bool leases)
{
	struct container *c;
	bool more = leases &&
	    !(TAILQ_EMPTY(&pool->containers) && TAILQ_EMPTY(&pool->mounters));

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (leases || c->state < CONTAINER_LEASED)
			container_end(c, false);
		more = more ||
		    (c->state == CONTAINER_LEASED && !c->class->lasting);
	}
	return more;
}

void
pool_remove(struct pool *pool, struct removal *removal)
{
	struct container *c;

	removal->number = pool->host->serial;
	(void)session_recall(&pool->sessions, removal->sandbox);
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (strcmp(c->sandbox, removal->sandbox) == 0) {
			c->has_session = false;
			container_end(c, true);
		}
	}
	TAILQ_INSERT_TAIL(&pool->removals, removal, link);
	host_schedule(pool->host, 0);
}

/* ---- questions ---- */

/* It need not be free. */
bool
pool_matches(const struct container *c, const struct ticket *ticket)
{
	return c->class == ticket->class &&
	    strcmp(c->sandbox, ticket->sandbox) == 0 &&
	    (!ticket->no_imports || c->imports == 0) &&
	    (ticket->any_interpreter ||
		strcmp(c->interpreter.name, ticket->interpreter.name) == 0);
}

/* It must be idle, and unused where its class allows one lease. */
bool
pool_serves(const struct container *c, const struct ticket *ticket)
{
	return c->state == CONTAINER_IDLE && pool_matches(c, ticket) &&
	    (c->class->reuse != REUSE_NEVER || c->runs == 0);
}

/* A cell fits better with more of the run's imports, then with fewer other
 * imports, which make it slower. */
static int
fit(const struct container *c, const struct ticket *ticket)
{
	return PRELOAD_BITS * __builtin_popcount(c->imports & ticket->imports) -
	    __builtin_popcount(c->imports & ~ticket->imports);
}

/* Of two cells that fit alike, the one used last is better. */
static bool
is_better(const struct container *c, const struct container *other,
    const struct ticket *ticket)
{
	if (other == NULL || fit(c, ticket) != fit(other, ticket))
		return other == NULL || fit(c, ticket) > fit(other, ticket);
	return c->since_ms > other->since_ms;
}

struct container *
pool_container_of(const struct pool *pool, const struct ticket *ticket)
{
	struct container *found = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (!ticket->class->in_memory) {
			if (strcmp(c->sandbox, ticket->sandbox) == 0)
				return c;
		} else if (pool_serves(c, ticket) &&
		    is_better(c, found, ticket)) {
			found = c;
		}
	}
	return found;
}

/* A cell in memory holds nothing that its successor needs: its slot is free as
 * soon as it is ending. */
void
pool_count(const struct pool *pool, struct pool_count *count)
{
	const struct container *c;

	*count = (struct pool_count){ 0 };
	TAILQ_FOREACH(c, &pool->containers, link) {
		struct pool_slots *p = &count->slots[c->class->budget];
		bool ending = c->state == CONTAINER_ENDING;

		if (c->state == CONTAINER_GONE)
			continue;
		count->cells++;
		count->leased += c->state == CONTAINER_LEASED;
		count->starting += c->state <= CONTAINER_STARTING;
		count->runs += c->run.running;
		count->runs_in_memory += c->run.running && c->class->in_memory;
		if (ending && c->class->in_memory)
			continue;
		p->taken++;
		p->leased += c->state == CONTAINER_LEASED;
		p->ending += ending;
	}
}
