/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is.  The queue is first come, first served, but one who can be
 * served now never waits for one who cannot.
 */
#include <stdio.h>

#include "../base/clock.h"
#include "../base/log.h"
#include "admission.h"
#include "engine.h"
#include "pool.h"

#define BUSY_MS 1000 /* the same sandbox may just be coming back */

/* A lease is cold when the ticket waited for the start of its cell. */
static void
grant(struct container *c, struct ticket *ticket, struct pool *pool,
    enum access access)
{
	int64_t ready_ms = c->since_ms;
	int client_end = container_lease(c, ticket->lease_ms, access);

	if (client_end < 0)
		return; /* the container ends, the ticket keeps its place */
	ticket_leave_queue(pool, ticket);
	ticket->cold = c->runs == 0 && ready_ms > ticket->since_ms;
	ticket->container = c;
	c->ticket = ticket;
	ticket_granted(ticket, client_end, access);
}

/* Its sandbox is leased: the lease may end in a moment; if it does not, say
 * so.  True when the ticket was refused. */
static bool
refuse_busy(struct pool *pool, struct ticket *ticket, const struct container *c)
{
	int64_t since = c->since_ms > ticket->since_ms ? c->since_ms :
							 ticket->since_ms;
	int64_t due = since + BUSY_MS;

	if (c->state != CONTAINER_LEASED)
		return false;
	if (clock_monotonic_ms() >= due) {
		ticket_refuse(pool, ticket, REFUSAL_BUSY,
		    "the sandbox is leased to another");
		return true;
	}
	host_look(pool->host, due);
	return false;
}

/* The engine is not ready: true when the ticket was refused for it. */
static bool
refuse_engine(struct pool *pool, struct ticket *ticket)
{
	struct engine *engine = pool->host->engine;
	enum engine_state state = engine_state(engine);
	bool down = state == ENGINE_DOWN;
	char text[256];

	if (state == ENGINE_READY || state == ENGINE_WAIT)
		return false;
	(void)snprintf(text, sizeof(text), "%s: %s%s",
	    down ? "the Docker engine does not answer" : "the image is missing",
	    engine->trouble,
	    engine->pull.running ? " (it is being pulled)" : "");
	ticket_refuse(pool, ticket, down ? REFUSAL_ENGINE : REFUSAL_IMAGE,
	    text);
	return true;
}

/* It is not admitted: true when it was refused, else it waits. */
static bool
refuse_disk(struct pool *pool, struct ticket *ticket, enum admission admission)
{
	if (admission != ADMIT_NEVER)
		return false;
	ticket_refuse(pool, ticket, REFUSAL_DISK,
	    "the disk is too full to write");
	return true;
}

/* An idle container is there for it: true when something was done. */
static bool
serve_by(struct pool *pool, struct ticket *ticket, struct container *c)
{
	enum access access;
	enum admission admission = admission_to(pool, ticket, c, &access);

	if (admission == ADMIT)
		grant(c, ticket, pool, access);
	else if (admission == ADMIT_OTHERWISE)
		container_end(c, false);
	else
		return refuse_disk(pool, ticket, admission);
	return true;
}

/* The first ticket whose sandbox has a container, or that is refused: do the
 * next thing for it.  True when something was done. */
static bool
serve_one(struct pool *pool)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link)
	{
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
		/* An idle cell of another class is in the way. */
		if (c->state == CONTAINER_IDLE) {
			container_end(c, false);
			return true;
		}
		if (refuse_busy(pool, ticket, c))
			return true;
		/* Without the engine it will not get out of there. */
		if ((c->state == CONTAINER_PREPARING ||
			c->state == CONTAINER_ENDING) &&
		    refuse_engine(pool, ticket))
			return true;
	}
	return false;
}

/* One that is coming up anyway, for each ticket another one. */
static bool
is_promised(struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (pool_is_coming(c) && !c->promised &&
		    pool_matches(c, ticket)) {
			c->promised = true;
			return true;
		}
	}
	return false;
}

/* A place for a container that is needed: free (true), or to be had when an
 * idle cell has ended. */
static bool
find_room(struct pool *pool, enum cell_budget budget,
    struct pool_places *places, bool *done)
{
	struct container *c;

	*done = false;
	if (places->taken < class_budget(budget, pool->host->config))
		return true;
	/* One that is on its way out makes room for one of us. */
	if (places->ending-- > 0)
		return false;
	c = pool_oldest_idle(pool, budget);
	places->full = c == NULL;
	if (c != NULL) {
		log_debug("making room cell=%s", c->name);
		container_end(c, false);
		*done = true;
	}
	return false;
}

/* All places are leased for as long as their holders like, and none is coming
 * back: true when the ticket was refused. */
static bool
refuse_lasting(struct pool *pool, struct ticket *ticket,
    const struct pool_places *places)
{
	if (!ticket->class->lasting || !places->full ||
	    places->leased < places->taken)
		return false;
	ticket_refuse(pool, ticket, REFUSAL_FULL, "all of them are leased");
	return true;
}

/* There is a place for it: true when something was done. */
static bool
start_for(struct pool *pool, struct ticket *ticket)
{
	bool writable;
	bool grows;
	enum admission admission = admission_to_new(pool, ticket, &writable,
	    &grows);

	if (admission != ADMIT)
		return refuse_disk(pool, ticket, admission);
	pool_start(pool, ticket, writable, grows);
	return true;
}

/* Starts have failed, and the next one is not due yet.  True: the ticket was
 * refused for it. */
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

/* May another container be started?  Otherwise when to look again. */
static bool
may_start(struct pool *pool, const struct pool_count *count)
{
	if (pool->pause.failures == 0)
		return true;
	if (pause_holds(&pool->pause, clock_monotonic_ms())) {
		host_look(pool->host, pool->pause.until_ms);
		return false;
	}
	return count->starting == 0 && count->runs == 0;
}

/* The first ticket that needs a new container: start one, make room, or refuse
 * it.  True when something was done. */
static bool
start_one(struct pool *pool)
{
	struct pool_count count;
	struct container *c;
	struct ticket *ticket;
	bool done;

	pool_count(pool, &count);
	TAILQ_FOREACH(c, &pool->containers, link)
	c->promised = false;
	TAILQ_FOREACH(ticket, &pool->tickets, link)
	{
		const struct cell_class *class = ticket->class;
		struct pool_places *places = &count.places[class->budget];

		if (places->full || pool_container_of(pool, ticket) != NULL ||
		    (class->in_memory && is_promised(pool, ticket)))
			continue;
		if (refuse_engine(pool, ticket) || refuse_pause(pool, ticket))
			return true;
		if (engine_state(pool->host->engine) != ENGINE_READY ||
		    !may_start(pool, &count))
			return false;
		if (find_room(pool, class->budget, places, &done)) {
			if (start_for(pool, ticket))
				return true;
			continue;
		}
		if (done || refuse_lasting(pool, ticket, places))
			return true;
	}
	return false;
}

/* Call docker run for those whose volumes are ready. */
static void
run_prepared(struct pool *pool)
{
	const int most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;
	struct container *c;

	if (pause_holds(&pool->pause, clock_monotonic_ms())) {
		host_look(pool->host, pool->pause.until_ms);
		return;
	}
	pool_count(pool, &count);
	/* In order, but the cells of the APIs leave a place to those of people,
	 * who would else wait for what is only being kept warm. */
	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->state != CONTAINER_PREPARED || count.runs >= most ||
		    (c->class->in_memory && most > 1 &&
			count.runs_in_memory >= most - 1))
			continue;
		container_run(c);
		count.runs++;
		count.runs_in_memory += c->class->in_memory;
	}
}

void
scheduler_run(struct pool *pool)
{
	while (serve_one(pool) || start_one(pool))
		;
	warm_trim(pool);
	warm_refill(pool);
	run_prepared(pool);
}
