/* SPDX-License-Identifier: MIT */
#ifndef RESULT_H
#define RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "watch.h"

struct supervisor;

/*
 * How a run has ended, as the client is told: supervisor.state->watch.frame.
 */

/* Why and with what: begins the frame.  wall_ns: how long it has run. */
void result_begin(struct supervisor *k, enum watch_end end, int64_t wall_ns);

/* What is used of a folder's file system. */
void result_add_disk(struct supervisor *k, int folder);

/* How many names there are in it: each, also a link, takes one of its inodes.
 */
uint64_t result_used_files(const struct supervisor *k, int folder);

/* The whole frame for a process that was killed before it became the run. */
void result_of_nothing(struct supervisor *k);

#endif
