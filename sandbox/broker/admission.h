/* SPDX-License-Identifier: MIT */
#ifndef ADMISSION_H
#define ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "../protocol/frame.h"

struct container;
struct pool;
struct ticket;

/*
 * Who may write: the ledger (ledger.h) asked on behalf of somebody, and idle
 * cells ended where that makes the room.  Code that may write needs all that
 * its volume can still grow; without that it gets its files to read, from a
 * container that has mounted them so.  Looking, getting and removing need no
 * room: they are done by the cell itself, in blocks that are there.
 */
enum admission {
	ADMIT,		 /* now */
	ADMIT_OTHERWISE, /* by a container that is mounted the other way */
	ADMIT_LATER,	 /* cells that were idle are ending: ask again */
	ADMIT_NEVER,	 /* the disk is too full for what it wants */
};

/* For so many bytes on the file system of fd, asked for since since_ms.
 * except: a container that is not to be ended for it; NULL: none.  Never
 * ADMIT_OTHERWISE. */
enum admission room_for(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms);

/* To an idle container of its sandbox: *granted is what it may do there, and
 * the room for that is reserved. */
enum admission admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted);
/* To one that has yet to be started: how, and does its volume grow? */
enum admission admission_to_new(struct pool *pool, const struct ticket *ticket,
    bool *writable, bool *grows);

#endif
