/* SPDX-License-Identifier: MIT */
#ifndef ARRIVAL_H
#define ARRIVAL_H

#include <stdint.h>

struct db;
struct err;
struct parcel;

/*
 * A person who comes here, as a parcel (parcel.h).  The files are written into
 * a folder of IL_BASE_DIR that nobody takes for a sandbox, ARRIVAL_PREFIX and
 * the sandbox's id, each block compared with its hash.  When all of it is there
 * and on the disk the folder gets the sandbox's name, and then the rows are
 * inserted: so the person is here wholly, or not at all, whatever dies.
 *
 * A parcel may be anything, and is checked.  A wrong parcel is ERR_INPUT, a
 * disk without room ERR_LIMIT, a person who is here otherwise, or just arrives
 * by another stream, ERR_CONFLICT.  With all errors but ERR_UNKNOWN the person
 * is not here.
 */
#define ARRIVAL_PREFIX ".arriving-"

/* base: the folder IL_BASE_DIR.  1: they were here before. */
int arrival_take(struct db *db, int base, int64_t user_id,
    const struct parcel *p, struct err *err);

/* Remove what arrivals have left that were killed; those that are under way
 * stay. */
void arrival_sweep(int base);

#endif
