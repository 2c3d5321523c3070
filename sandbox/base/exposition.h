/* SPDX-License-Identifier: MIT */
#ifndef EXPOSITION_H
#define EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * Numbers as Prometheus reads them: its text format, version 0.0.4.  Each
 * program writes families of its own, and il-api hands all of them out.  A name
 * says its unit and ends with _total where it counts; a label has one of a few
 * values that stand in the code: never a number or a word of somebody else's.
 */
#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* How long something took: buckets by their upper ends, and one without. */
#define HISTOGRAM_ENDS 14
struct histogram {
	_Atomic int64_t buckets[HISTOGRAM_ENDS + 1];
	_Atomic int64_t sum_us;
};

/* One more. */
void histogram_observe(struct histogram *h, int64_t us);

/* What a family begins with; type: "counter", "gauge" or "histogram". */
void exposition_head(struct buf *out, const char *name, const char *type,
    const char *help);
/* One number of a family; labels: 'state="idle"', or "". */
void exposition_number(struct buf *out, const char *name, const char *labels,
    int64_t number);
/* The same in seconds, without labels. */
void exposition_seconds(struct buf *out, const char *name, int64_t us);
/* One histogram of a family.  Nothing was observed: nothing is said. */
void exposition_histogram(struct buf *out, const char *name, const char *labels,
    const struct histogram *h);
/* A family with one number. */
void exposition_gauge(struct buf *out, const char *name, const char *help,
    int64_t number);

/* Append what another program of ours has written; a line that is not of the
 * format, or not about "inline_…", is left out, as one such line would cost all
 * of them.  False: there was one. */
bool exposition_pass(struct buf *out, const char *text);

#endif
