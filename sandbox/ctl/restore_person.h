/* SPDX-License-Identifier: MIT */
#ifndef RESTORE_PERSON_H
#define RESTORE_PERSON_H

#include <stdint.h>

struct config;
struct err;
struct manifest;

/* One person out of a backup's folder, while the service runs: onto this host,
 * or onto the node of that name (NULL: here).  Their sandbox has its whole time
 * again.  1: they were there. */
int restore_person(const struct config *config, int folder,
    const struct manifest *m, int64_t user_id, const char *to, struct err *err);

#endif
