/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is.  The queue is first come, first served, but one who can be
 * served now never waits for one who cannot.
 */
#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/log.h"
#include "admission.h"
#include "engine.h"
#include "images.h"
#include "pool.h"
#include "spare.h"
#include "warm.h"

/* A lease is cold when the ticket waited for the start of its cell. */
static void
grant(struct container *c, struct ticket *ticket, struct pool *pool,
    enum access access)
{
	int64_t ready_ms = c->since_ms;
	int client_end = container_lease(c, ticket->lease_ms, access,
	    ticket->keep, ticket->folder);

	if (client_end < 0)
		return; /* the container ends, the ticket keeps its place */
	ticket_leave_queue(pool, ticket);
	ticket->cold = c->runs == 0 && ready_ms > ticket->since_ms &&
	    !c->adopted;
	ticket->container = c;
	c->ticket = ticket;
	ticket_granted(ticket, c->name, client_end, access);
}

/* Who only wants to look does so beside the run that goes on.  True when the
 * ticket has its answer. */
static bool
look_beside(struct pool *pool, struct ticket *ticket, struct container *c)
{
	int client_end;

	if (ticket->access != ACCESS_LOOK || !container_is_running(c))
		return false;
	client_end = container_look(c);
	if (client_end < 0) {
		ticket_refuse(pool, ticket, REFUSAL_BUSY,
		    "the cell takes no more who look");
		return true;
	}
	ticket_leave_queue(pool, ticket);
	ticket_granted(ticket, c->name, client_end, ACCESS_LOOK);
	return true;
}

/* Its sandbox is leased: the lease may end in a moment; if it does not, say
 * so.  True when the ticket was refused. */
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
		kept_end(c, KEPT_REPLACED);
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
		/* An idle cell of another class or version is in the way. */
		if (c->state == CONTAINER_IDLE) {
			kept_end(c,
			    ticket->class->keeps ? KEPT_REPLACED :
						   KEPT_PACKAGES);
			return true;
		}
		if (look_beside(pool, ticket, c) ||
		    refuse_busy(pool, ticket, c))
			return true;
		/* Without the engine it will not get out of there. */
		if ((c->state == CONTAINER_PREPARING ||
			c->state == CONTAINER_ENDING) &&
		    refuse_engine(pool, ticket))
			return true;
	}
	return false;
}

/* One that is coming up anyway, for each ticket another one.  Not one that has
 * much to import first, where it would not be started for this ticket. */
static bool
is_promised(struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (pool_is_coming(c) && !c->promised &&
		    (c->imports == 0 || c->state > CONTAINER_STARTING ||
			warm_imports(pool, ticket) != 0) &&
		    pool_matches(c, ticket)) {
			c->promised = true;
			return true;
		}
	}
	return false;
}

/* There is a place for it, or a spare cell: true when something was done. */
static bool
start_for(struct pool *pool, struct ticket *ticket, struct container *spare)
{
	bool writable;
	bool grows;
	enum admission admission = admission_to_new(pool, ticket, &writable,
	    &grows);

	if (admission != ADMIT)
		return refuse_disk(pool, ticket, admission);
	if (spare != NULL)
		spare_adopt(spare, ticket, writable, grows);
	else
		container_new(pool, ticket, writable, grows);
	return true;
}

/* The first ticket that a spare cell can serve gets it.  True when something
 * was done. */
static bool
adopt_one(struct pool *pool)
{
	struct ticket *ticket;

	TAILQ_FOREACH(ticket, &pool->tickets, link) {
		struct container *spare = spare_find(pool, ticket);

		if (spare != NULL && pool_container_of(pool, ticket) == NULL &&
		    start_for(pool, ticket, spare))
			return true;
	}
	return false;
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

	pool_count(pool, &count);
	TAILQ_FOREACH(c, &pool->containers, link)
		c->promised = false;
	TAILQ_FOREACH(ticket, &pool->tickets, link) {
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
		if (places->taken <
		    class_budget(class->budget, pool->host->config)) {
			if (start_for(pool, ticket, NULL))
				return true;
			continue;
		}
		/* One that is on its way out makes room for one of us. */
		if (places->ending-- > 0)
			continue;
		c = pool_oldest_idle(pool, class->budget);
		if (c != NULL) {
			log_debug("making room cell=%s", c->name);
			kept_end(c, KEPT_GAVE_WAY);
			return true;
		}
		places->full = true;
		/* Leased for as long as their holders like, and none is coming
		 * back. */
		if (class->lasting && places->leased >= places->taken) {
			ticket_refuse(pool, ticket, REFUSAL_FULL,
			    "all of them are leased");
			return true;
		}
	}
	return false;
}

/* ---- all of it ---- */

/* Call docker run for those whose volumes are ready. */
static void
run_prepared(struct pool *pool)
{
	const int most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state == CONTAINER_PREPARED && c->adopting)
			spare_run(c);
	}
	if (pause_holds(&pool->pause, clock_monotonic_ms())) {
		host_look(pool->host, pool->pause.until_ms);
		return;
	}
	pool_count(pool, &count);
	/* In order, but the cells of the APIs leave a place to those of people,
	 * who would else wait for what is only being kept warm. */
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

/* Those who wait come first, as long as anything can be done for them. */
void
scheduler_run(struct pool *pool)
{
	warm_end_worn(pool);
	while (serve_one(pool) || adopt_one(pool) || start_one(pool))
		;
	warm_trim(pool);
	warm_refill(pool);
	run_prepared(pool);
}
