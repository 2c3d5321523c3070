/* SPDX-License-Identifier: MIT */
#ifndef POOL_STATE_H
#define POOL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/config_images.h"
#include "class.h"
#include "container_state.h"
#include "engine.h"
#include "pause.h"

/*
 * All containers and all who wait for one, and what pool.c, scheduler.c, warm.c
 * and admission.c ask about them.  What others may do with the pool is in
 * pool.h.
 */

/* Somebody who wants a cell.  The owner's, who fills in the first part. */
struct ticket {
	const struct cell_class *class;
	char sandbox[33];		/* "" for a class in memory */
	struct image_entry interpreter; /* for such a class */
	int64_t lease_ms;
	enum access access; /* for a sandbox */
	/* Exactly one of these two is called, never from within
	 * pool_request().  The ticket may be freed in each. */
	void (*granted)(struct ticket *ticket, int client_end,
	    enum access access);
	void (*refused)(struct ticket *ticket, enum refusal code,
	    const char *text);
	/* After granted: the cell has ended by itself; out_of_memory: for want
	 * of that. */
	void (*lost)(struct ticket *ticket, bool out_of_memory);

	TAILQ_ENTRY(ticket) link;
	struct container *container; /* granted */
	bool waiting;
	bool cold;
	int64_t since_ms;
	enum refusal refusal; /* decided at once, told from the loop */
};

TAILQ_HEAD(ticket_list, ticket);

/* A workspace that is being removed. */
struct removal {
	TAILQ_ENTRY(removal) link;
	char sandbox[33];
	char retired[64];
	unsigned int number; /* containers up to this one must be gone */
	void (*done)(struct removal *removal, const char *trouble);
};

TAILQ_HEAD(removal_list, removal);

struct pool {
	struct container_host host;
	struct engine *engine;
	struct container_list containers;
	struct ticket_list tickets;
	struct removal_list removals;
	size_t waiting;
	size_t waiting_max;
	int64_t next_due_ms; /* -1: nothing is waited for by time */
	struct loop_timer *wake;
	struct loop_timer *tick;
	bool draining; /* nothing begins any more; leases go on to their end */
	bool stopping;
	void (*drained)(void *arg); /* when draining: no lease is left */
	void (*empty)(void *arg);   /* when stopping: no container is left */
	void *arg;
	void (*looked)(void *arg); /* there may be more room now */
	void *looked_arg;
	char python[32];
	int64_t isolation; /* what the last api cell said; 0: none has */
	char isolation_reason[128];
	int64_t warm_not_ms; /* a start failed: keep none warm before this */
	struct pause pause;  /* after failed starts */
};

/* Out of the queue, without a word; with a word. */
void ticket_leave_queue(struct pool *pool, struct ticket *ticket);
void ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text);
/* The container of a ticket's sandbox, of which there is at most one (one that
 * is gone counts until it was settled: its failure has to be told before there
 * is another try); for a class in memory one that serves it now. */
struct container *pool_container_of(const struct pool *pool,
    const struct ticket *ticket);
/* Of the same class, for the same interpreter or sandbox. */
bool pool_matches(const struct container *c, const struct ticket *ticket);
/* It is on its way: for the first time, or back from a lease. */
bool pool_is_coming(const struct container *c);
/* It could be leased to the ticket now. */
bool pool_serves(const struct container *c, const struct ticket *ticket);
/* Begin one more, as container_new() does. */
struct container *pool_start(struct pool *pool, const struct cell_class *class,
    const char *sandbox, const struct image_entry *interpreter, bool writable,
    bool grows);
/* Look everything over at that monotonic time, if not before. */
void pool_due(struct pool *pool, int64_t due_ms);

/* docker run at one time: more only slows each down. */
#define POOL_RUNS_MAX 2

/* The places of a budget. */
struct pool_places {
	int64_t taken;
	int64_t leased; /* of those */
	int64_t ending; /* of those: on their way out */
	bool full;	/* nothing more to be had at the moment */
};
void pool_count_places(const struct pool *pool,
    struct pool_places places[BUDGETS]);

/* The idle cell that nobody has used for the longest time; NULL: none. */
struct container *pool_oldest_idle(const struct pool *pool,
    enum cell_budget budget);

#endif
