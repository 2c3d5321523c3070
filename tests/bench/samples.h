/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdio.h>

/* Durations in milliseconds, and what is said of them. */
struct samples {
	double *ms;
	size_t count;
	size_t cap;
};

void samples_add(struct samples *samples, double ms);
/* Nearest rank; share 0.5 is the median.  Sorts.  0 of none. */
double samples_at(struct samples *samples, double share);
/* {"n":…,"p50":…,"p95":…,"p99":…,"max":…,"mean":…} */
void samples_print(struct samples *samples, FILE *out);
void samples_release(struct samples *samples);

#endif
