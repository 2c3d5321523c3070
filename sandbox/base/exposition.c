/* SPDX-License-Identifier: MIT */
#include "base/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

/* Upper ends in milliseconds. */
static const int64_t ends_ms[HISTOGRAM_ENDS] = { 1, 2, 5, 10, 20, 50, 100, 200,
	500, 1000, 2000, 5000, 20000, 60000 };

#define LABELS_MAX 128

/* In the first bucket that is large enough. */
void
histogram_observe(struct histogram *h, int64_t us)
{
	size_t bucket = 0;

	if (us < 0)
		us = 0; /* the clock was set back */
	while (bucket < HISTOGRAM_ENDS && us > ends_ms[bucket] * 1000)
		bucket++;
	h->buckets[bucket]++;
	h->sum_us += us;
}

void
exposition_head(struct buf *out, const char *name, const char *type,
    const char *help)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Appends a whole line or nothing. */
static void __attribute__((format(printf, 5, 6)))
exposition_line(struct buf *out, const char *name, const char *suffix,
    const char *labels, const char *fmt, ...)
{
	char number[64];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(number, sizeof(number), fmt, ap);
	va_end(ap);
	buf_addf(out, labels[0] == '\0' ? "%s%s%s %s\n" : "%s%s{%s} %s\n", name,
	    suffix, labels, number);
}

void
exposition_number(struct buf *out, const char *name, const char *labels,
    int64_t number)
{
	exposition_line(out, name, "", labels, "%" PRId64, number);
}

static void
add_seconds(struct buf *out, const char *name, const char *suffix,
    const char *labels, int64_t us)
{
	exposition_line(out, name, suffix, labels, "%" PRId64 ".%06" PRId64,
	    us / 1000000, us % 1000000);
}

void
exposition_seconds(struct buf *out, const char *name, int64_t us)
{
	add_seconds(out, name, "", "", us);
}

void
exposition_gauge(struct buf *out, const char *name, const char *help,
    int64_t number)
{
	exposition_head(out, name, "gauge", help);
	exposition_number(out, name, "", number);
}

void
exposition_table(struct buf *out, const char *name, const char *type,
    const char *help, const struct exposition_label *rows,
    const struct exposition_label *columns, const _Atomic int64_t *numbers)
{
	char labels[LABELS_MAX] = "";

	exposition_head(out, name, type, help);
	for (size_t i = 0; i < (rows != NULL ? rows->count : 1); i++)
		for (size_t k = 0; k < columns->count; k++) {
			size_t len = 0;

			if (columns->values[k] == NULL)
				continue;
			if (rows != NULL)
				len = (size_t)snprintf(labels, sizeof(labels),
				    "%s=\"%s\",", rows->key, rows->values[i]);
			if (len < sizeof(labels))
				(void)snprintf(labels + len,
				    sizeof(labels) - len, "%s=\"%s\"",
				    columns->key, columns->values[k]);
			exposition_number(out, name, labels,
			    numbers[i * columns->count + k]);
		}
}

/* Nothing was observed: nothing is said. */
static void
add_histogram(struct buf *out, const char *name, const char *labels,
    const struct histogram *h)
{
	int64_t sum = h->sum_us;
	int64_t count = 0;
	size_t before = out->len;

	for (size_t i = 0; i <= HISTOGRAM_ENDS; i++) {
		char end[32] = "+Inf";

		count += h->buckets[i];
		if (i < HISTOGRAM_ENDS)
			(void)snprintf(end, sizeof(end), "%g",
			    (double)ends_ms[i] / 1000);
		buf_addf(out, "%s_bucket{%s%sle=\"%s\"} %" PRId64 "\n", name,
		    labels, labels[0] == '\0' ? "" : ",", end, count);
	}
	add_seconds(out, name, "_sum", labels, sum);
	exposition_line(out, name, "_count", labels, "%" PRId64, count);
	if (count == 0)
		buf_cut(out, before);
}

void
exposition_histograms(struct buf *out, const char *name, const char *help,
    const struct exposition_label *label, const struct histogram *h)
{
	char text[LABELS_MAX] = "";

	exposition_head(out, name, "histogram", help);
	for (size_t i = 0; i < (label != NULL ? label->count : 1); i++) {
		if (label != NULL)
			(void)snprintf(text, sizeof(text), "%s=\"%s\"",
			    label->key, label->values[i]);
		add_histogram(out, name, text, &h[i]);
	}
}
