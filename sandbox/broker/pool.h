/* SPDX-License-Identifier: MIT */
#ifndef POOL_H
#define POOL_H

#include <stdint.h>

#include "pool_state.h"

/*
 * All containers and all who wait for one.  Whatever changes only marks the
 * pool; it is looked over once, from the loop: so no callback ever runs inside
 * another, and nothing is freed under the feet of its user.
 */

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
