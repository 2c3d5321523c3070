/* SPDX-License-Identifier: MIT */
#ifndef WARM_H
#define WARM_H

struct pool;

/* End idle cells beyond what may stay warm (those that somebody waited for have
 * been taken by now); start those that are to be ready. */
void warm_trim(struct pool *pool);
void warm_refill(struct pool *pool);

#endif
