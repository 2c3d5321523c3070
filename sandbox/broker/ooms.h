/* SPDX-License-Identifier: MIT */
#ifndef OOMS_H
#define OOMS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How many processes of a container the kernel has killed for want of memory.
 * It stands in a file of the container's memory cgroup (v2: memory.events, v1:
 * memory.oom_control), which the cell opens before any code runs and hands over
 * with READY: so nothing need be known of where the host keeps its cgroups, and
 * no right is needed there.
 */

/* Is it such a file?  Then reading it never blocks. */
bool ooms_valid(int fd);
/* 0 where it cannot be told: no descriptor (-1), or the cgroup is gone, which
 * the engine removes soon after the container's end. */
int64_t ooms_count(int fd);

#endif
