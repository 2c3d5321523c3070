#ifndef POOL_H
#define POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../base/config_images.h"
#include "class.h"
#include "container.h"
#include "engine.h"
#include "pause.h"

/*
 * All containers and all who wait for one.  Whatever changes only marks the
 * pool; it is looked over once, from the loop: so no callback ever runs inside
 * another, and nothing is freed under the feet of its user.
 */
struct pool;
struct ticket;

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
	char hindrance[128];
	int64_t warm_not_ms; /* a start failed: keep none warm before this */
	struct pause pause;  /* after failed starts */
};

struct pool_count {
	int64_t cells; /* all that exist, ending ones included */
	int64_t leased;
	int64_t starting;
	int64_t waiting;
};

/* host is copied (but for changed, which is the pool's). */
void pool_init(struct pool *pool, const struct container_host *host,
    struct engine *engine);
void pool_release(struct pool *pool);

void pool_request(struct pool *pool, struct ticket *ticket);
/* The owner does not want it any more: out of the queue, or the lease ends. */
void pool_withdraw(struct pool *pool, struct ticket *ticket);
/* The folder has been renamed to removal->retired: end the cells that use it,
 * delete it, call done. */
void pool_remove(struct pool *pool, struct removal *removal);
void pool_forget_removal(struct pool *pool, struct removal *removal);
/* Look everything over soon. */
void pool_poke(void *pool);
/* What cells start from has changed: those that are kept for anybody and began
 * with something else are replaced, the leased ones after their lease. */
void pool_images_changed(struct pool *pool);
void pool_count(const struct pool *pool, struct pool_count *count);
/* Begin nothing, end what is idle, and let leases go on to their end; those of
 * a lasting class are not waited for.  Then call drained.  Who asks for a lease
 * meanwhile waits. */
void pool_drain(struct pool *pool, void (*drained)(void *arg), void *arg);
/* End everything; then call empty. */
void pool_stop(struct pool *pool, void (*empty)(void *arg), void *arg);

#endif
