/* SPDX-License-Identifier: MIT */
#include "warm.h"

#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "engine.h"
#include "images.h"
#include "pool.h"
#include "spare.h"

/* What a cell shall have imported that is kept ready for it.  Where there is
 * but one place, it is for what the operator has named, and else for all. */
static uint32_t
wanted(const struct pool *pool)
{
	const struct config *config = pool->host->config;

	if (preload_is_auto(config->preload) &&
	    (config->api_warm == 0 || config->api_cells == 1))
		return 0;
	return preload_wanted(&pool->preload, config, clock_monotonic_ms());
}

/* The class and the interpreter that are kept ready, with those imports and
 * without. */
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

/* How many of the kind are. */
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

/* Is it one of those that are kept ready?  The ones used last are. */
static bool
is_kept(const struct pool *pool, const struct container *c)
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

/* Is there something better to start from by now?  A cell for anybody is worth
 * replacing, since it serves many runs. */
static bool
is_outdated(const struct pool *pool, const struct container *c)
{
	return (c->class->reuse == REUSE_ANYONE || c->spare) &&
	    c->state >= CONTAINER_IDLE && !c->derived &&
	    strcmp(images_name(pool->host->images, c->interpreter.image),
		c->interpreter.image) != 0;
}

/* Of those that keep an interpreter, beyond IL_SESSIONS those unused for the
 * longest time. */
static void
trim_kept(struct pool *pool)
{
	int64_t count = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
		count += c->state == CONTAINER_IDLE && c->kept;
	for (; count > pool->host->config->sessions; count--) {
		struct container *oldest = NULL;

		TAILQ_FOREACH(c, &pool->containers, link) {
			if (c->state == CONTAINER_IDLE && c->kept &&
			    kept_goes_before(c, oldest))
				oldest = c;
		}
		kept_end(oldest, KEPT_GAVE_WAY);
	}
}

void
warm_trim(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t idle = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		int64_t due_ms = c->since_ms + kept_rest_ms(c);
		bool outdated = is_outdated(pool, c);
		bool kept = c->spare || is_kept(pool, c);

		c->retire = c->retire || outdated; /* after its lease */
		if (c->state != CONTAINER_IDLE)
			continue;
		if (c->class->reuse == REUSE_NEVER || outdated ||
		    (!kept && clock_monotonic_ms() >= due_ms)) {
			kept_end(c, KEPT_RESTED);
			continue;
		}
		if (!kept)
			host_look(pool->host, due_ms);
		else if (c->imports != 0 && preload_is_auto(config->preload))
			host_look(pool->host,
			    clock_monotonic_ms() + config->warm_seconds * 1000);
		idle += c->class->reuse == REUSE_SANDBOX && !c->kept &&
		    !c->spare;
	}
	trim_kept(pool);
	for (; idle > config->warm_cells; idle--)
		container_end(pool_oldest_idle(pool, BUDGET_SANDBOXES), false);
}

/* It has met as many runs as it may, or has not imported what is wanted by now:
 * another one is to take its place. */
static bool
is_worn(const struct pool *pool, const struct container *c)
{
	return c->class->reuse == REUSE_ANYONE &&
	    (c->runs >= c->host->config->api_runs ||
		(c->imports != 0 && (wanted(pool) & ~c->imports) != 0));
}

/* One of a kind that is kept ready: is another one there or coming, or may it
 * come? */
static bool
may_wait(const struct pool *pool, const struct container *worn,
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
		room = room || pool_is_coming(c);
	}
	return room;
}

void
warm_end_worn(struct pool *pool)
{
	const struct config *config = pool->host->config;
	struct pool_count count;
	struct ticket kind;
	struct container *c;
	bool room;

	pool_count(pool, &count);
	room = count.places[BUDGET_RUNS].taken < config->api_cells;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->state != CONTAINER_IDLE || !is_worn(pool, c))
			continue;
		warm_kind(pool, &kind, c->imports != 0);
		if (warm_count(pool, c->imports != 0) == 0 ||
		    !pool_matches(c, &kind) ||
		    c->runs >= 2 * config->api_runs ||
		    !may_wait(pool, c, &kind, room))
			container_end(c, false);
	}
}

/* How many are there or coming, beside those that somebody waits for. */
static int64_t
count_ready(const struct pool *pool, const struct ticket *kind, bool imports)
{
	const struct container *c;
	const struct ticket *ticket;
	int64_t n = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
		n += (c->state == CONTAINER_IDLE || pool_is_coming(c)) &&
		    (!is_worn(pool, c) || c->state <= CONTAINER_STARTING) &&
		    (c->imports != 0) == imports && pool_matches(c, kind);
	/* who waits takes one that starts sooner */
	TAILQ_FOREACH(ticket, &pool->tickets, link)
		n -= !imports && ticket->class == kind->class &&
		    strcmp(ticket->interpreter.name, kind->interpreter.name) ==
			0;
	return n;
}

/* True when one was begun. */
static bool
refill_kind(struct pool *pool, bool imports)
{
	struct ticket kind;

	warm_kind(pool, &kind, imports);
	if (count_ready(pool, &kind, imports) >= warm_count(pool, imports))
		return false;
	container_new(pool, &kind, false, false);
	host_look(pool->host, 0); /* one more? */
	return true;
}

/* Those who wait come first: nothing is begun beside as many starts as the
 * engine bears, after failures one at a time. */
void
warm_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t most = pool->pause.failures > 0 ? 1 : POOL_RUNS_MAX;
	struct pool_count count;

	pool_count(pool, &count);
	if (count.starting >= most || !images_are_known(pool->host->images) ||
	    engine_state(pool->host->engine) != ENGINE_READY)
		return;
	if (clock_monotonic_ms() < pool->warm_not_ms) {
		host_look(pool->host, pool->warm_not_ms);
		return;
	}
	if (config->api_warm > 0 &&
	    count.places[BUDGET_RUNS].taken < config->api_cells &&
	    (refill_kind(pool, false) || refill_kind(pool, true)))
		return;
	spare_refill(pool);
}
