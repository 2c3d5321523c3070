/* SPDX-License-Identifier: MIT */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;

/*
 * What il-fcgi tells il-api of the jobs' database, on which il-api has no
 * right: the file STATE/front/jobs, replaced whole every REPORT_EVERY_MS.
 */
#define REPORT_EVERY_MS 5000
/* One that is older tells of a teller that is gone. */
#define REPORT_OLD_MS 60000

struct report {
	int64_t written_ms; /* wall clock */
	int64_t database;   /* 1: it opened and answered; else the rest is 0 */
	int64_t queued;	    /* as in struct job_counts */
	int64_t running;
	int64_t untold;
	int64_t oldest_ms;
};

int report_write(const struct config *config, const struct report *report,
    struct err *err);
/* ERR_NOT_FOUND: there is none yet.  ERR_INPUT: it is none. */
int report_read(const struct config *config, struct report *report,
    struct err *err);

#endif
