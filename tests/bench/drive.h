/* SPDX-License-Identifier: MIT */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include <stddef.h>
#include <stdint.h>

#include "target.h"

/*
 * The ways to do what is measured.  Each returns when all that it began is
 * over.  An error is counted, and too many of them end it.
 */

/* count times: block times the first, block times the second, and so on, one
 * after another, gap_ms between any two. */
void drive_alternate(struct bench *bench, struct target *targets, size_t n,
    int64_t count, int64_t block, int64_t gap_ms);

/* In turns, each for slice_ms: `lanes` of them at any time.  rounds times. */
void drive_sustain(struct bench *bench, struct target *targets, size_t n,
    int64_t lanes, const int64_t *slice_ms, int64_t rounds);

/* All at once, on connections that are there. */
void drive_burst(struct bench *bench, struct target *target, int64_t lanes);

/* The first target one after another for phase_ms; then again, into the second,
 * while one of each of the others runs, which take longer than that; after
 * times_ms[0], by which these run, and with a pause of times_ms[1] after each.
 * rounds times. */
void drive_beside(struct bench *bench, struct target *targets, size_t n,
    int64_t rounds, int64_t phase_ms, const int64_t *times_ms);

/* Many people: in each every_ms each lane does it once, at a random moment, the
 * same moments in each call; one that is busy then leaves it out.  rounds
 * times. */
void drive_people(struct bench *bench, struct target *target, int64_t lanes,
    int64_t every_ms, int64_t rounds);

/* Until one is right, since since_us on the monotonic clock. */
void drive_first(struct bench *bench, struct target *target, int64_t since_us,
    int64_t most_ms);

#endif
