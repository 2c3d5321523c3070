/* SPDX-License-Identifier: MIT */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "container_state.h"

/* What may be done with a container: for the pool and those around it. */

/* interpreter: for a class in memory; NULL: SANDBOX_IMAGE.  writable: it mounts
 * what its class writes to for writing; grows: room for that is reserved. */
struct container *container_new(struct container_host *host,
    const struct cell_class *class, const char *sandbox,
    const struct image_entry *interpreter, bool writable, bool grows);
/* Frees all; whatever it still holds is let go. */
void container_free(struct container *c);

/* PREPARED → STARTING. */
void container_run(struct container *c);
/* IDLE → LEASED; the client's end of the lease, or -1 (and the cell ends). */
int container_lease(struct container *c, int64_t lease_ms, enum access access);
/* The client is gone: LEASED → RELEASING or IDLE. */
void container_release(struct container *c);
/* End it from any state; kill: do not even ask it to go by itself. */
void container_end(struct container *c, bool kill);

#endif
