/* SPDX-License-Identifier: MIT */
/*
 * Questions about the pool that several of its files ask.
 */
#include "pool_state.h"

#include <string.h>

#include "class.h"
#include "container.h"

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

/* Class and subject are the same; whether it is free is another question. */
bool
pool_matches(const struct container *c, const struct ticket *ticket)
{
	return c->class == ticket->class &&
	    strcmp(c->sandbox, ticket->sandbox) == 0 &&
	    strcmp(c->interpreter, ticket->interpreter.name) == 0;
}

/* Idle, and not one that may be used only once and was. */
bool
pool_serves(const struct container *c, const struct ticket *ticket)
{
	return c->state == CONTAINER_IDLE && pool_matches(c, ticket) &&
	    (c->class->reuse != REUSE_NEVER || !c->used);
}

/* It will be idle in a while: it starts, or comes back from a lease of which
 * nothing stays. */
bool
pool_is_coming(const struct container *c)
{
	return c->state <= CONTAINER_STARTING ||
	    (c->state == CONTAINER_RELEASING &&
		c->class->reuse == REUSE_ANYONE &&
		c->isolation == ISOLATION_RUN && !c->retire);
}

/* Among several, the one that was used last. */
struct container *
pool_container_of(const struct pool *pool, const struct ticket *ticket)
{
	struct container *found = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (!ticket->class->in_memory) {
			if (strcmp(c->sandbox, ticket->sandbox) == 0)
				return c;
		} else if (pool_serves(c, ticket) &&
		    (found == NULL || c->since_ms > found->since_ms)) {
			found = c;
		}
	}
	return found;
}

/* A cell in memory holds nothing that its successor needs: its place is free as
 * soon as it ends. */
void
pool_count_places(const struct pool *pool, struct pool_places places[BUDGETS])
{
	const struct container *c;

	memset(places, 0, BUDGETS * sizeof(places[0]));
	TAILQ_FOREACH(c, &pool->containers, link)
	{
		struct pool_places *p = &places[c->class->budget];
		bool ending = c->state == CONTAINER_ENDING;

		if (c->state == CONTAINER_GONE ||
		    (ending && c->class->in_memory))
			continue;
		p->taken++;
		p->leased += c->state == CONTAINER_LEASED ? 1 : 0;
		p->ending += ending ? 1 : 0;
	}
}

struct container *
pool_start(struct pool *pool, const struct cell_class *class,
    const char *sandbox, const struct image_entry *interpreter, bool writable,
    bool grows)
{
	struct container *c = container_new(&pool->host, class, sandbox,
	    interpreter, writable, grows);

	TAILQ_INSERT_TAIL(&pool->containers, c, link);
	return c;
}

/* The one to end when a place is needed. */
struct container *
pool_oldest_idle(const struct pool *pool, enum cell_budget budget)
{
	struct container *oldest = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c->state == CONTAINER_IDLE && c->class->budget == budget &&
		    (oldest == NULL || c->since_ms < oldest->since_ms))
			oldest = c;
	}
	return oldest;
}

void
pool_due(struct pool *pool, int64_t due_ms)
{
	if (pool->next_due_ms < 0 || due_ms < pool->next_due_ms)
		pool->next_due_ms = due_ms;
}
