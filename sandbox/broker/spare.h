/* SPDX-License-Identifier: MIT */
#ifndef SPARE_H
#define SPARE_H

#include <stdbool.h>
#include <stdint.h>

struct container;
struct pool;
struct ticket;

/*
 * Spare cells: up, warm and nobody's yet.  One is a container like any other of
 * its class, but what a sandbox mounts is empty in it, and its user is one that
 * no sandbox has.  Loop devices for the volumes are its own already, since its
 * container is limited by their numbers.  The first sandbox that needs a cell
 * gets it, for good: its volumes are attached to these devices and mounted in
 * the cell (attach.h), and from then on it is that sandbox's cell as if it had
 * been started for it.  What fails on this way ends the cell, and a cell is
 * started as ever.
 *
 *	IDLE, spare ─ spare_adopt() ─▶ PREPARING ─▶ PREPARED ─ spare_run() ─▶
 *	STARTING ─ spare_done() ─▶ IDLE
 */

/* Prepare one before docker run: devices that hold nothing yet, and a mounter
 * for these. */
void spare_prepare(struct container *c);
/* One that this ticket may have; NULL: none. */
struct container *spare_find(const struct pool *pool,
    const struct ticket *ticket);
/* It becomes the ticket's sandbox's; as container_new(). */
void spare_adopt(struct container *c, const struct ticket *ticket,
    bool writable, bool grows);
/* One that was adopted is PREPARED: have its volumes mounted. */
void spare_run(struct container *c);
/* Begin another one where there are fewer than IL_SPARE_CELLS and nobody waits
 * for a start. */
void spare_refill(struct pool *pool);

#endif
