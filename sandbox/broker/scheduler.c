/* SPDX-License-Identifier: MIT */
/*
 * The scheduler decides whose turn it is.  The queue is first come, first
 * served, but a ticket that can be served now never waits for one that cannot.
 * It also decides which cells stay warm meanwhile, and when they are replaced.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/engine.h"
#include "broker/pool.h"

/* docker run at one time: more only slows each down. */
#define POOL_RUNS_MAX 2

/* The cell will be idle in a while: it starts, or comes back from a lease of
 * which nothing stays. */
static bool
is_coming(const struct container *c)
{
	return c->state <= CONTAINER_STARTING ||
	    (c->state == CONTAINER_RELEASING &&
		c->class->reuse == REUSE_ANYONE &&
		c->isolation == ISOLATION_RUN && !c->retire);
}

/* Spare ones come last: whoever's cell has ended can have one of these. */
static bool
ends_before(const struct container *c, const struct container *other)
{
	return other == NULL || c->spare < other->spare ||
	    (c->spare == other->spare && kept_goes_before(c, other));
}

/* The idle cell that nobody has used for the longest time; one that keeps
 * something only where there is no other.  NULL: none. */
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
	ticket->cold = c->runs == 0 && ready_ms > ticket->since_ms &&
	    !c->adopted;
	ticket_leave_queue(pool, ticket,
	    ticket->cold		   ? WAY_COLD :
		c->adopted && c->runs == 0 ? WAY_SPARE :
					     WAY_WARM);
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
	ticket_leave_queue(pool, ticket, WAY_LOOK);
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
		if (is_coming(c) && !c->promised &&
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

/* A spare cell that this ticket may have; NULL: none. */
static struct container *
spare_find(const struct pool *pool, const struct ticket *ticket)
{
	struct container *c;

	if (ticket->as_ever)
		return NULL;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (c->spare && c->state == CONTAINER_IDLE && c->pidfd >= 0 &&
		    c->class == ticket->class &&
		    strcmp(c->interpreter.name, ticket->interpreter.name) == 0)
			return c;
	}
	return NULL;
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
		c = oldest_idle(pool, class->budget);
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

/* ---- what stays warm, and when it is replaced ---- */

/* The modules that a cell kept ready for them shall have imported.  Where there
 * is but one place, it is for modules that the operator has named, and else for
 * all. */
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

/* The number of cells of the kind that are kept ready. */
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

/* Is the cell one of those that are kept ready?  The ones used last are. */
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

/* End cells that keep an interpreter, beyond IL_SESSIONS: those unused for the
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

static void
trim(struct pool *pool)
{
	const struct config *config = pool->host->config;
	int64_t idle = 0;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link) {
		int64_t rest_s = c->kept ? config->session_seconds :
					   config->warm_seconds;
		int64_t due_ms = c->since_ms + rest_s * 1000;
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
		container_end(oldest_idle(pool, BUDGET_SANDBOXES), false);
}

/* The cell has met as many runs as it may, or has not imported what is wanted
 * by now: another one is to take its place. */
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

/* The number of cells that are there or coming, beside those that somebody
 * waits for. */
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

/* May one more mounter be started now?  The end of a mounter has all looked
 * over. */
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
	host_look(pool->host, pool->mount_pause.until_ms);
	return false;
}

/* The kind of cell that is kept spare. */
static void
spare_kind(const struct pool *pool, struct ticket *kind)
{
	*kind = (struct ticket){ .class = class_find("user") };
	(void)images_find(pool->host->config->chat_images, "",
	    &kind->interpreter);
}

/* Begin another spare cell where there are fewer than IL_SPARE_CELLS and nobody
 * waits for a start. */
static void
spare_refill(struct pool *pool)
{
	const struct config *config = pool->host->config;
	const struct container *c;
	struct pool_count count;
	struct ticket kind;
	int64_t spares = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
		spares += c->spare && c->state <= CONTAINER_IDLE;
	pool_count(pool, &count);
	if (spares >= config->spare_cells || pool->waiting > 0 ||
	    count.starting > 0 ||
	    count.places[BUDGET_SANDBOXES].taken >= config->cells ||
	    !mounter_may_start(pool))
		return;
	spare_kind(pool, &kind);
	container_new(pool, &kind, true, false);
}

/* Waiting tickets come first: nothing is begun beside as many starts as the
 * engine bears, after failures one at a time. */
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
		host_look(pool->host, pool->warm_not_ms);
		return;
	}
	if (config->api_warm > 0 &&
	    count.places[BUDGET_RUNS].taken < config->api_cells &&
	    (refill_kind(pool, false) || refill_kind(pool, true)))
		return;
	spare_refill(pool);
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
	end_worn(pool);
	while (serve_one(pool) || adopt_one(pool) || start_one(pool))
		;
	trim(pool);
	refill(pool);
	run_prepared(pool);
}
