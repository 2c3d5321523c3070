/* SPDX-License-Identifier: MIT */
#ifndef ARRIVAL_H
#define ARRIVAL_H

#include <stddef.h>
#include <stdint.h>

struct arrival;
struct db;
struct err;

/*
 * A person who comes here, as a parcel (parcel.h).  The files are written into
 * a folder of IL_BASE_DIR that nobody takes for a sandbox, ARRIVAL_PREFIX and
 * the sandbox's id, each block compared with its hash.  When all of it is there
 * and on the disk the folder gets the sandbox's name, and then the rows are
 * inserted: so the person is here wholly, or not at all, whatever dies.
 *
 * A stream may be anything, and is checked.  A stream that is wrong is
 * ERR_INPUT, a disk without room ERR_LIMIT, a person who is here otherwise, or
 * just arrives by another stream, ERR_CONFLICT, a stream for another node
 * ERR_NOT_FOUND.  With all errors but ERR_UNKNOWN the person is not here.
 */
#define ARRIVAL_PREFIX ".arriving-"

/* base: the folder IL_BASE_DIR; node: who we are, "" for no stream that names
 * one.  All is borrowed. */
struct arrival *arrival_new(struct db *db, int base, const char *node,
    int64_t user_id);
/* The next bytes of the stream. */
int arrival_take(struct arrival *a, const void *data, size_t len,
    struct err *err);
/* The stream is at its end: let the person in.  1: they were here before. */
int arrival_end(struct arrival *a, struct err *err);
/* An arrival that did not come to its end is removed. */
void arrival_free(struct arrival *a);

/* Remove what arrivals have left that were killed; those that are under way
 * stay. */
void arrival_sweep(int base);

#endif
