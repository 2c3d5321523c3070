/* SPDX-License-Identifier: MIT */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The supervisor's children: a jail's init, its run, the one that sends files;
 * and, as PID 1, whoever has lost its parent.
 */
struct supervisor;
struct run_state;

/* fork(), with what the interpreter wants to do before and after. */
pid_t children_clone(const struct supervisor *k);

/* PID 1 only: what ends from here on interrupts ppoll() with an empty mask, and
 * all that is in the container is ours to end. */
void children_take_all(struct run_state *state);

/* Wait for whoever comes first; how: 0, or WNOHANG.  Who it was; 0: nobody yet;
 * -1: there is no child. */
pid_t children_reap(struct run_state *state, int how);

/* Reap all that have ended. */
void children_reap_ended(struct run_state *state);

/* End the jail: with its init, the kernel ends all that is in it; or, as PID 1,
 * every process.  Returns when there is no child any more. */
void children_kill_all(struct run_state *state);

/* Clone a child for one task, and wait for its end: 0 in the child, else 1, or
 * -1 when it has failed.  A task that waits for a client ends with the broker.
 */
int children_do(const struct supervisor *k);

#endif
