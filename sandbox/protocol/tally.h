/* SPDX-License-Identifier: MIT */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"

struct config;
struct err;

/*
 * Counters of the workers, which il-fcgi reports and no code decides by: one
 * file that all of them map, STATE/worker/tally-VERSION.  So no sum is needed,
 * and the counts of a worker that is killed stay.  The file is
 * gone with the next boot, as a counter may be.
 */
#define TALLY_KINDS 64 /* more than there are kinds of jobs */

/* End of a job. */
enum tally_end {
	TALLY_DONE,	   /* the command did what it does */
	TALLY_FAILED,	   /* the program failed, or a file is not there … */
	TALLY_LIMIT,	   /* time, memory, output */
	TALLY_REFUSED,	   /* there was no cell, or they are blocked */
	TALLY_CANCELLED,   /* by its owner, or the worker had to end */
	TALLY_ERROR,	   /* our fault: the cell broke off, the database … */
	TALLY_INTERRUPTED, /* its worker died */
	TALLY_TOO_LATE,	   /* not begun: nobody could have been told */
	TALLY_ENDS,
};

/* Way of its report. */
enum tally_told {
	TALLY_FIRST, /* the answer was the first response */
	TALLY_EDIT,
	TALLY_NOBODY, /* Discord has nobody to tell, or takes no form of it */
	TALLY_TOLDS,
};

/* Route of Discord's. */
enum tally_route {
	TALLY_ROUTE_EDIT,
	TALLY_ROUTE_DELETE,
	TALLY_ROUTE_FETCH, /* of an attachment */
	TALLY_ROUTES,
};

/* Limit that Discord says is reached. */
enum tally_limit {
	TALLY_LIMIT_ROUTE,
	TALLY_LIMIT_SHARED,
	TALLY_LIMIT_GLOBAL,
	TALLY_LIMIT_BLOCK, /* Cloudflare, in its place */
	TALLY_LIMITS,
};

/* Statuses that are told by themselves; the last two: no answer, any other. */
#define TALLY_STATUSES 17

struct tally {
	_Atomic int64_t jobs[TALLY_KINDS][TALLY_ENDS];
	struct histogram waited;	    /* until a worker had it */
	struct histogram took[TALLY_KINDS]; /* until it was told */
	_Atomic int64_t told[TALLY_TOLDS];
	_Atomic int64_t requests[TALLY_ROUTES][TALLY_STATUSES];
	struct histogram answered[TALLY_ROUTES];
	_Atomic int64_t limits[TALLY_LIMITS];
	_Atomic int64_t blocked_until_ms; /* wall clock */
};

/* A worker's.  NULL: it cannot be had, and err says why. */
struct tally *tally_open(const struct config *config, struct err *err);
/* To look at; NULL: no worker of this version has counted anything. */
const struct tally *tally_read(const struct config *config, struct err *err);
void tally_close(const struct tally *tally);

/* One exchange with Discord; status 0: there was no answer. */
void tally_request(struct tally *tally, enum tally_route route, int status,
    int64_t took_us);

/* Append all of it.  kinds: the names of the kinds of jobs. */
void tally_tell(struct buf *out, const struct tally *tally,
    const char *const *kinds, size_t count, int64_t now_ms);

#endif
