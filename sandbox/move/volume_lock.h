/* SPDX-License-Identifier: MIT */
#ifndef VOLUME_LOCK_H
#define VOLUME_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Take the lock that says that a volume is mounted nowhere, on its open file;
 * the sandbox's warm cell is ended for it (by the broker at the socket), and
 * what runs is waited for.  Whoever wants the sandbox meanwhile waits for us,
 * as for another cell of it.  False: it is in use still. */
bool volume_lock(const char *socket, int fd, const char *sandbox,
    int64_t wait_ms);

#endif
