/* SPDX-License-Identifier: MIT */
#ifndef VOLUMES_H
#define VOLUMES_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* The volumes of a sandbox, for programs that copy them. */

/* Is it the name of one? */
bool volume_is(const char *name);
/* Call fn with the folder and the name of each, until it returns something else
 * than 0, which is returned.  ERR_NOT_FOUND: there is no such folder. */
typedef int (*volume_fn)(void *arg, int folder, const char *name,
    struct err *err);
int volumes_each(const char *base, const char *sandbox, volume_fn fn, void *arg,
    struct err *err);

/* Take the lock that says that a volume is mounted nowhere, on its open file;
 * the sandbox's warm cell is ended for it (by the broker at the socket), and
 * what runs is waited for.  A program that wants the sandbox meanwhile waits
 * for us, as for another cell of it.  False: it is in use still. */
bool volume_lock(const char *socket, int fd, const char *sandbox,
    int64_t wait_ms);

#endif
