/* SPDX-License-Identifier: MIT */
#ifndef CONTAINER_PARTS_H
#define CONTAINER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "container_state.h"

/* What container.c, prepare.c and launch.c have of each other; nobody else
 * includes it. */

/* ---- container.c ---- */

void container_set(struct container *c, enum container_state state);
/* Replace the timer of the state; ms < 0: none. */
void container_timer(struct container *c, int64_t ms, void (*fn)(void *));
/* It did not start: why, for the one who waits for it; then it ends. */
void container_fail(struct container *c, enum refusal failure,
    const char *text);
/* The cell has connected. */
void container_connected(struct container *c, int control_fd);
/* In ENDING, and nothing is starting any more: see to it that it goes. */
void container_reap(struct container *c, bool kill);

/* ---- prepare.c ---- */

/* A new container takes its reservations; it lets go of them when it is dead
 * (and the kernel has written out what it left). */
void prepare_reserve(struct container *c, bool grows);
void prepare_let_go(struct container *c);
/* PREPARING → PREPARED. */
void prepare_begin(struct container *c);

/* ---- launch.c ---- */

/* Nobody may connect any more. */
void launch_stop(struct container *c);
/* And of the volumes: what mounts them has them now, or nothing ever will. */
void launch_release(struct container *c);

#endif
