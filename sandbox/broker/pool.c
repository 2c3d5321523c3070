/* SPDX-License-Identifier: MIT */
/*
 * What happens to containers and tickets, looked over from the loop: first
 * what became of the containers is told, then the scheduler runs.
 */
#include "pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "class.h"
#include "container.h"
#include "derive.h"
#include "scheduler.h"
#include "workspace.h"

#define WAITING_MAX 1024
#define WARM_PAUSE_MS 10000 /* after a start that failed */

static void pool_look(void *arg);

/* However often, it is one look. */
void
pool_poke(void *arg)
{
	struct pool *pool = arg;

	if (pool->wake == NULL)
		loop_timer_set(pool->host.loop, &pool->wake, 0, pool_look,
		    pool);
}

void
pool_init(struct pool *pool, const struct container_host *host,
    struct engine *engine)
{
	*pool = (struct pool){
		.host = *host, .engine = engine, .waiting_max = WAITING_MAX
	};
	pool->host.changed = pool_poke;
	pool->host.arg = pool;
	pool->host.all = &pool->containers;
	TAILQ_INIT(&pool->containers);
	TAILQ_INIT(&pool->tickets);
	TAILQ_INIT(&pool->removals);
}

/* Who waits for a removal is told; its folder is swept at the next start. */
void
pool_release(struct pool *pool)
{
	struct removal *removal;
	struct container *c;

	/* Their folders are swept at the next start. */
	while ((removal = TAILQ_FIRST(&pool->removals)) != NULL) {
		TAILQ_REMOVE(&pool->removals, removal, link);
		removal->done(removal, "removal cut short");
	}
	while ((c = TAILQ_FIRST(&pool->containers)) != NULL) {
		TAILQ_REMOVE(&pool->containers, c, link);
		container_free(c);
	}
	loop_timer_clear(pool->host.loop, &pool->wake);
	loop_timer_clear(pool->host.loop, &pool->tick);
}

/* ---- tickets ---- */

/* What can be said at once: 0 when it has to wait for its turn. */
static enum refusal
ticket_judge(const struct pool *pool, const struct ticket *ticket)
{
	const struct container *c = pool_container_of(pool, ticket);

	if (!ticket->class->in_memory &&
	    !workspace_exists(pool->host.base, ticket->sandbox))
		return REFUSAL_NO_WORKSPACE;
	if (pool->waiting >= pool->waiting_max &&
	    (c == NULL || !pool_serves(c, ticket)))
		return REFUSAL_FULL;
	return 0;
}

/* The answer comes from the loop, also when it is known at once. */
void
pool_request(struct pool *pool, struct ticket *ticket)
{
	ticket->refusal = ticket_judge(pool, ticket);
	ticket->since_ms = clock_monotonic_ms();
	ticket->container = NULL;
	ticket->waiting = true;
	pool->waiting++;
	TAILQ_INSERT_TAIL(&pool->tickets, ticket, link);
	pool_poke(pool);
}

void
pool_withdraw(struct pool *pool, struct ticket *ticket)
{
	struct container *c = ticket->container;

	if (ticket->waiting)
		ticket_leave_queue(pool, ticket);
	if (c == NULL)
		return;
	c->ticket = NULL;
	ticket->container = NULL;
	container_release(c);
}

/* ---- one look over everything ---- */

/* A start failed: what that means to the next ones. */
static void
note_failure(struct pool *pool, const struct container *c)
{
	int64_t now = clock_monotonic_ms();
	struct container *other;

	pool->warm_not_ms = now + WARM_PAUSE_MS;
	/* It says nothing of the engine when it is about this one's file system
	 * or image, or when docker was not even called: nobody may slow others
	 * down by what is his. */
	if (!c->called || c->repaired || c->failure == REFUSAL_IMAGE)
		return;
	pause_note_failure(&pool->pause, c->failure, c->failure_text, now);
	if (pool->pause.until_ms > pool->warm_not_ms)
		pool->warm_not_ms = pool->pause.until_ms;
	log_warn("%d starts in a row have failed: the next one in %" PRId64
		 " s",
	    pool->pause.failures, (pool->pause.until_ms - now) / 1000);
	/* Who waits for what was about to be started is told, too. */
	if (!pause_is_told(&pool->pause, now))
		return;
	TAILQ_FOREACH(other, &pool->containers, link)
	{
		if (other->state == CONTAINER_PREPARED)
			container_end(other, false);
	}
}

/* Tell of a start that failed: the first who waits for such a cell hears it,
 * the others get a new try. */
static void
tell_failure(struct pool *pool, struct container *c)
{
	struct ticket *ticket;

	c->told = true;
	note_failure(pool, c);
	TAILQ_FOREACH(ticket, &pool->tickets, link)
	{
		if (pool_matches(c, ticket)) {
			ticket_refuse(pool, ticket, c->failure,
			    c->failure_text);
			return;
		}
	}
}

/* The cell of a lease has ended by itself. */
static void
tell_lost(struct container *c)
{
	struct ticket *ticket = c->ticket;

	c->ticket = NULL;
	ticket->container = NULL;
	ticket->lost(ticket, c->out_of_memory);
}

/* What became of the containers. */
static void
settle_containers(struct pool *pool)
{
	struct container *c;
	struct container *next;

	for (c = TAILQ_FIRST(&pool->containers); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->state == CONTAINER_IDLE && !c->class->in_memory)
			memcpy(pool->python, c->python, sizeof(pool->python));
		if (c->state == CONTAINER_IDLE && !c->came_up) {
			c->came_up = true;
			pause_note_success(&pool->pause);
		}
		if (c->isolation != 0) {
			pool->isolation = c->isolation;
			memcpy(pool->isolation_reason, c->isolation_reason,
			    sizeof(pool->isolation_reason));
		}
		if (c->state >= CONTAINER_ENDING && c->ticket != NULL)
			tell_lost(c);
		if (c->failure != 0 && !c->told)
			tell_failure(pool, c);
		if (c->state == CONTAINER_GONE) {
			TAILQ_REMOVE(&pool->containers, c, link);
			container_free(c);
		}
	}
}

/* Containers of the sandbox that began before the removal may still have its
 * volumes; those that began later have none of them. */
static bool
removal_can_go(const struct pool *pool, const struct removal *removal)
{
	const struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->number <= removal->number &&
		    strcmp(c->sandbox, removal->sandbox) == 0)
			return false;
	}
	return true;
}

/* Delete the files of sandboxes that nothing uses any more. */
static void
settle_removals(struct pool *pool)
{
	struct removal *removal;
	struct removal *next;
	struct err err;

	for (removal = TAILQ_FIRST(&pool->removals); removal != NULL;
	     removal = next) {
		next = TAILQ_NEXT(removal, link);
		if (!removal_can_go(pool, removal))
			continue;
		TAILQ_REMOVE(&pool->removals, removal, link);
		if (workspace_discard(pool->host.base, removal->retired,
			&err) == 0)
			removal->done(removal, NULL);
		else
			removal->done(removal, err.text);
	}
}

/* Nobody will get them any more. */
static void
end_unleased(struct pool *pool)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->state < CONTAINER_LEASED)
			container_end(c, false);
	}
}

/* Is there a lease that ends by itself? */
static bool
is_waited_for(const struct pool *pool)
{
	const struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->state == CONTAINER_LEASED && !c->class->lasting)
			return true;
	}
	return false;
}

/* One look over everything: tell what happened, then begin what can be begun.
 * The order matters: a container that is gone has to be settled before its
 * sandbox gets another. */
static void
pool_look(void *arg)
{
	struct pool *pool = arg;

	loop_timer_clear(pool->host.loop, &pool->wake);
	loop_timer_clear(pool->host.loop, &pool->tick);
	settle_containers(pool);
	settle_removals(pool);
	if (pool->stopping) {
		if (TAILQ_EMPTY(&pool->containers))
			pool->empty(pool->arg);
		return;
	}
	if (pool->draining) {
		end_unleased(pool);
		if (!is_waited_for(pool))
			pool->drained(pool->arg);
		return;
	}
	pool->next_due_ms = -1;
	scheduler_run(pool);
	if (pool->looked != NULL)
		pool->looked(pool->looked_arg);
	if (pool->next_due_ms >= 0)
		loop_timer_set(pool->host.loop, &pool->tick,
		    pool->next_due_ms - clock_monotonic_ms(), pool_look, pool);
}

/* ---- for others ---- */

void
pool_remove(struct pool *pool, struct removal *removal)
{
	struct container *c;

	removal->number = pool->host.serial;
	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (strcmp(c->sandbox, removal->sandbox) == 0)
			container_end(c, true);
	}
	TAILQ_INSERT_TAIL(&pool->removals, removal, link);
	pool_poke(pool);
}

/* Cells for anybody are worth replacing, since they serve many runs. */
void
pool_images_changed(struct pool *pool)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->state < CONTAINER_IDLE || c->derived ||
		    c->class->reuse != REUSE_ANYONE ||
		    strcmp(derive_name(pool->host.derive, c->image),
			c->image) == 0)
			continue;
		c->retire = true;
		if (c->state == CONTAINER_IDLE)
			container_end(c, false);
	}
	pool_poke(pool);
}

void
pool_count(const struct pool *pool, struct pool_count *count)
{
	const struct container *c;

	*count = (struct pool_count){ .waiting = (int64_t)pool->waiting };
	TAILQ_FOREACH(c, &pool->containers, link)
	{
		count->cells += c->state < CONTAINER_GONE ? 1 : 0;
		count->leased += c->state == CONTAINER_LEASED ? 1 : 0;
		count->starting += c->state <= CONTAINER_STARTING ? 1 : 0;
	}
}

void
pool_drain(struct pool *pool, void (*drained)(void *arg), void *arg)
{
	pool->draining = true;
	pool->drained = drained;
	pool->arg = arg;
	pool_poke(pool);
}

void
pool_stop(struct pool *pool, void (*empty)(void *arg), void *arg)
{
	struct container *c;

	pool->stopping = true;
	pool->empty = empty;
	pool->arg = arg;
	TAILQ_FOREACH(c, &pool->containers, link)
	container_end(c, false);
	pool_poke(pool);
}
