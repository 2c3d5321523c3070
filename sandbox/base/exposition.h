/* SPDX-License-Identifier: MIT */
#ifndef EXPOSITION_H
#define EXPOSITION_H

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

/* Durations: buckets by their upper ends, and one without an end. */
#define HISTOGRAM_ENDS 14
struct histogram {
	_Atomic int64_t buckets[HISTOGRAM_ENDS + 1];
	_Atomic int64_t sum_us;
};

/* One more. */
void histogram_observe(struct histogram *h, int64_t us);

/* Head of a family; type: "counter", "gauge" or "histogram". */
void exposition_head(struct buf *out, const char *name, const char *type,
    const char *help);
/* One number of a family; labels: 'state="idle"', or "". */
void exposition_number(struct buf *out, const char *name, const char *labels,
    int64_t number);
/* The same in seconds, without labels. */
void exposition_seconds(struct buf *out, const char *name, int64_t us);
/* A family with one number. */
void exposition_gauge(struct buf *out, const char *name, const char *help,
    int64_t number);

/* A label and its values. */
struct exposition_label {
	const char *key;
	const char *const *values;
	size_t count;
};
/* A family with a number for each value of the label `columns`, and that for
 * each value of `rows`; rows NULL: it has one label.  A column whose value is
 * NULL is left out, not a row.  Numbers are told even if they are zero, as one
 * that appears with its first event has not grown for Prometheus. */
void exposition_table(struct buf *out, const char *name, const char *type,
    const char *help, const struct exposition_label *rows,
    const struct exposition_label *columns, const _Atomic int64_t *numbers);
/* A family of histograms, one for each value; label NULL: there is one.  A
 * histogram that has observed nothing is left out. */
void exposition_histograms(struct buf *out, const char *name, const char *help,
    const struct exposition_label *label, const struct histogram *h);

#endif
