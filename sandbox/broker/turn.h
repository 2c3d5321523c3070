#ifndef TURN_H
#define TURN_H

#include "pool.h"

/* What pool.c, turn.c and warm.c have of each other. */

/* Serve and start whatever can be; end what is idle too long, or too many. */
void turn_take(struct pool *pool);
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
/* End idle cells beyond what may stay warm (those that somebody waited for have
 * been taken by now); start those that are to be ready. */
void warm_trim(struct pool *pool);
void warm_refill(struct pool *pool);

#endif
