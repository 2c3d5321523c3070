/* SPDX-License-Identifier: MIT */
/*
 * What stays warm: the cells of people who were here just now, and a few that
 * are ready for whoever comes next.
 */
#include "warm.h"

#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/log.h"
#include "class.h"
#include "container.h"
#include "derive.h"
#include "pool_state.h"

static bool
is_idle_for(const struct container *c, enum cell_reuse reuse)
{
	return c->state == CONTAINER_IDLE && c->class->reuse == reuse;
}

/* The class and the interpreter that are kept ready. */
static void
warm_kind(const struct pool *pool, struct ticket *kind)
{
	*kind = (struct ticket){ .class = class_find("api") };
	(void)images_find(pool->host.config->sandbox_images, "",
	    &kind->interpreter);
}

/* Is it one of those that are kept ready?  The ones used last are. */
static bool
is_kept(const struct pool *pool, const struct container *c,
    const struct ticket *kind)
{
	const struct container *other;
	int64_t before = 0;

	if (!pool_matches(c, kind))
		return false;
	TAILQ_FOREACH(other, &pool->containers, link)
	{
		if (other != c && pool_serves(other, kind) &&
		    (other->since_ms > c->since_ms ||
			(other->since_ms == c->since_ms &&
			    other->number < c->number)))
			before++;
	}
	return before < pool->host.config->api_warm;
}

/* Cells that anybody may get: beyond those kept ready they go after a while. */
static void
trim_anyones(struct pool *pool)
{
	int64_t warm_ms = pool->host.config->warm_seconds * 1000;
	int64_t now = clock_monotonic_ms();
	struct ticket kind;
	struct container *c;

	warm_kind(pool, &kind);
	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (!is_idle_for(c, REUSE_ANYONE) || is_kept(pool, c, &kind))
			continue;
		if (now >= c->since_ms + warm_ms)
			container_end(c, false);
		else
			pool_due(pool, c->since_ms + warm_ms);
	}
}

/* Those that nobody may get, and beyond IL_WARM_CELLS those unused for the
 * longest time. */
void
warm_trim(struct pool *pool)
{
	const struct config *config = pool->host.config;
	struct container *c;
	int64_t idle = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (is_idle_for(c, REUSE_NEVER) ||
		    (is_idle_for(c, REUSE_SANDBOX) &&
			config->warm_seconds == 0))
			container_end(c, false);
		else if (is_idle_for(c, REUSE_SANDBOX))
			idle++;
	}
	for (; idle > config->warm_cells; idle--)
		container_end(pool_oldest_idle(pool, BUDGET_SANDBOXES), false);
	trim_anyones(pool);
}

/* How many are there or coming, beside those that somebody waits for. */
static int64_t
count_ready(const struct pool *pool, const struct ticket *kind)
{
	const struct container *c;
	const struct ticket *ticket;
	int64_t n = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
	n += (c->state == CONTAINER_IDLE || pool_is_coming(c)) &&
		pool_matches(c, kind) ?
	    1 :
	    0;
	TAILQ_FOREACH(ticket, &pool->tickets, link)
	n -= ticket->class == kind->class &&
		strcmp(ticket->interpreter.name, kind->interpreter.name) == 0 ?
	    1 :
	    0;
	return n;
}

/* After failures it is one start at a time. */
static bool
is_starting_enough(const struct pool *pool)
{
	const struct container *c;
	int n = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
	n += c->state <= CONTAINER_STARTING ? 1 : 0;
	return n >= (pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX);
}

/* Those who wait come first: nothing is begun beside as many starts as the
 * engine bears. */
void
warm_refill(struct pool *pool)
{
	const struct config *config = pool->host.config;
	struct pool_places places[BUDGETS];
	struct ticket kind;

	if (config->api_warm == 0 || is_starting_enough(pool) ||
	    !derive_is_known(pool->host.derive) ||
	    engine_state(pool->engine) != ENGINE_READY)
		return;
	if (clock_monotonic_ms() < pool->warm_not_ms) {
		pool_due(pool, pool->warm_not_ms);
		return;
	}
	warm_kind(pool, &kind);
	pool_count_places(pool, places);
	if (count_ready(pool, &kind) >= config->api_warm ||
	    places[BUDGET_RUNS].taken >= config->api_cells)
		return;
	pool_start(pool, kind.class, "", &kind.interpreter, false, false);
	pool_due(pool, clock_monotonic_ms()); /* one more? */
}
