#include "pool.h"

#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "class.h"
#include "workspace.h"

#define WAITING_MAX 1024

static void pool_look(void *arg);

void
pool_poke(void *arg)
{
	struct pool *pool = arg;

	if (pool->wake == NULL)
		pool->wake = loop_timer_add(pool->host.loop,
		    clock_monotonic_ms(), pool_look, pool);
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
	TAILQ_INIT(&pool->containers);
	TAILQ_INIT(&pool->tickets);
	TAILQ_INIT(&pool->removals);
}

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
	if (pool->wake != NULL)
		loop_timer_cancel(pool->host.loop, pool->wake);
	if (pool->tick != NULL)
		loop_timer_cancel(pool->host.loop, pool->tick);
	pool->wake = NULL;
	pool->tick = NULL;
}

/* ---- tickets ---- */

void
ticket_leave_queue(struct pool *pool, struct ticket *ticket)
{
	TAILQ_REMOVE(&pool->tickets, ticket, link);
	ticket->waiting = false;
	pool->waiting--;
}

void
ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text)
{
	ticket_leave_queue(pool, ticket);
	ticket->refused(ticket, code, text);
}

struct container *
pool_container_of(const struct pool *pool, const char *sandbox)
{
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (strcmp(c->sandbox, sandbox) == 0)
			return c;
	}
	return NULL;
}

bool
pool_serves(const struct container *c, const struct ticket *ticket)
{
	return c->state == CONTAINER_IDLE && c->class == ticket->class &&
	    (c->class->warm || !c->used);
}

/* What can be said at once: 0 when it has to wait for its turn. */
static enum refusal
ticket_judge(const struct pool *pool, const struct ticket *ticket)
{
	const struct container *c = pool_container_of(pool, ticket->sandbox);
	int64_t free_bytes;
	struct err err;
	bool low;

	if (!workspace_exists(pool->host.base, ticket->sandbox))
		return REFUSAL_NO_WORKSPACE;
	if (workspace_space(pool->host.base, &free_bytes, &low, &err) != 0 ||
	    low)
		return REFUSAL_DISK;
	if (pool->waiting >= pool->waiting_max &&
	    (c == NULL || !pool_serves(c, ticket)))
		return REFUSAL_FULL;
	return 0;
}

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

/* ---- counting ---- */

void
pool_count_states(const struct pool *pool, int64_t counts[CONTAINER_GONE + 1])
{
	const struct container *c;

	memset(counts, 0, (CONTAINER_GONE + 1) * sizeof(counts[0]));
	TAILQ_FOREACH(c, &pool->containers, link)
	counts[c->state]++;
}

int64_t
pool_count_living(const int64_t counts[CONTAINER_GONE + 1])
{
	int64_t n = 0;

	for (int state = 0; state < CONTAINER_GONE; state++)
		n += counts[state];
	return n;
}

/* ---- one look over everything ---- */

/* Tell of a start that failed: the first who waits for such a cell hears it,
 * the others get a new try. */
static void
tell_failure(struct pool *pool, struct container *c)
{
	struct ticket *ticket;

	c->told = true;
	TAILQ_FOREACH(ticket, &pool->tickets, link)
	{
		if (ticket->class == c->class &&
		    strcmp(ticket->sandbox, c->sandbox) == 0) {
			ticket_refuse(pool, ticket, c->failure,
			    c->failure_text);
			return;
		}
	}
}

static void
tell_lost(struct container *c)
{
	struct ticket *ticket = c->ticket;

	c->ticket = NULL;
	ticket->container = NULL;
	ticket->lost(ticket);
}

/* What became of the containers. */
static void
settle_containers(struct pool *pool)
{
	struct container *c;
	struct container *next;

	for (c = TAILQ_FIRST(&pool->containers); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->state == CONTAINER_IDLE)
			memcpy(pool->python, c->python, sizeof(pool->python));
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

static void
tick_on_timer(void *arg)
{
	struct pool *pool = arg;

	pool->tick = NULL;
	pool_poke(pool);
}

static void
tick_plan(struct pool *pool)
{
	if (pool->tick != NULL)
		loop_timer_cancel(pool->host.loop, pool->tick);
	pool->tick = pool->next_due_ms < 0 ?
	    NULL :
	    loop_timer_add(pool->host.loop, pool->next_due_ms, tick_on_timer,
		pool);
}

static void
pool_look(void *arg)
{
	struct pool *pool = arg;

	pool->wake = NULL;
	settle_containers(pool);
	settle_removals(pool);
	if (pool->stopping) {
		if (TAILQ_EMPTY(&pool->containers))
			pool->empty(pool->arg);
		return;
	}
	pool->next_due_ms = -1;
	turn_take(pool);
	tick_plan(pool);
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

void
pool_forget_removal(struct pool *pool, struct removal *removal)
{
	TAILQ_REMOVE(&pool->removals, removal, link);
}

void
pool_count(const struct pool *pool, struct pool_count *count)
{
	int64_t counts[CONTAINER_GONE + 1];

	pool_count_states(pool, counts);
	count->cells = pool_count_living(counts);
	count->leased = counts[CONTAINER_LEASED];
	count->starting = counts[CONTAINER_PREPARING] +
	    counts[CONTAINER_PREPARED] + counts[CONTAINER_STARTING];
	count->waiting = (int64_t)pool->waiting;
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
