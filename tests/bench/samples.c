/* SPDX-License-Identifier: MIT */
#include "samples.h"

#include <stdlib.h>

#include "base/basics.h"

void
samples_add(struct samples *samples, double ms)
{
	if (samples->count == samples->cap) {
		samples->cap = samples->cap == 0 ? 1024 : samples->cap * 2;
		samples->ms = xrealloc(samples->ms,
		    samples->cap * sizeof(*samples->ms));
	}
	samples->ms[samples->count++] = ms;
}

static int
compare(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;

	return (*x > *y) - (*x < *y);
}

static double
at(const struct samples *samples, double share)
{
	size_t rank = (size_t)(share * (double)samples->count + 0.999999);

	if (samples->count == 0)
		return 0;
	rank = rank < 1 ? 1 : rank;
	rank = rank > samples->count ? samples->count : rank;
	return samples->ms[rank - 1];
}

static void
sort(struct samples *samples)
{
	if (samples->count > 0)
		qsort(samples->ms, samples->count, sizeof(*samples->ms),
		    compare);
}

double
samples_at(struct samples *samples, double share)
{
	sort(samples);
	return at(samples, share);
}

void
samples_print(struct samples *samples, FILE *out)
{
	double sum = 0;

	sort(samples);
	for (size_t i = 0; i < samples->count; i++)
		sum += samples->ms[i];
	fprintf(out,
	    "{\"n\":%zu,\"p50\":%.4f,\"p95\":%.4f,\"p99\":%.4f,"
	    "\"max\":%.4f,\"mean\":%.4f}",
	    samples->count, at(samples, 0.5), at(samples, 0.95),
	    at(samples, 0.99), at(samples, 1.0),
	    samples->count > 0 ? sum / (double)samples->count : 0);
}

void
samples_release(struct samples *samples)
{
	free(samples->ms);
	*samples = (struct samples){ 0 };
}
