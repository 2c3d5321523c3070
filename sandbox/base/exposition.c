/* SPDX-License-Identifier: MIT */
#include "exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"

/* Upper ends in milliseconds. */
static const int64_t ends_ms[HISTOGRAM_ENDS] = { 1, 2, 5, 10, 20, 50, 100, 200,
	500, 1000, 2000, 5000, 20000, 60000 };

#define LINE_MAX_BYTES 512

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

/* Up to the blank before the number. */
static void
add_name(struct buf *out, const char *name, const char *suffix,
    const char *labels)
{
	buf_addf(out, labels[0] == '\0' ? "%s%s%s " : "%s%s{%s} ", name, suffix,
	    labels);
}

static void
add_seconds(struct buf *out, int64_t us)
{
	buf_addf(out, "%" PRId64 ".%06" PRId64 "\n", us / 1000000,
	    us % 1000000);
}

void
exposition_number(struct buf *out, const char *name, const char *labels,
    int64_t number)
{
	add_name(out, name, "", labels);
	buf_addf(out, "%" PRId64 "\n", number);
}

void
exposition_seconds(struct buf *out, const char *name, int64_t us)
{
	add_name(out, name, "", "");
	add_seconds(out, us);
}

void
exposition_histogram(struct buf *out, const char *name, const char *labels,
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
	add_name(out, name, "_sum", labels);
	add_seconds(out, sum);
	add_name(out, name, "_count", labels);
	buf_addf(out, "%" PRId64 "\n", count);
	if (count == 0)
		buf_cut(out, before);
}

void
exposition_gauge(struct buf *out, const char *name, const char *help,
    int64_t number)
{
	exposition_head(out, name, "gauge", help);
	exposition_number(out, name, "", number);
}

/* ---- what others have written ---- */

static bool
begins(const char *line, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && memcmp(line, with, n) == 0;
}

/* Lower-case letters, digits and '_'. */
static size_t
skip_name(const char *line, size_t len, size_t at)
{
	while (at < len &&
	    ((line[at] >= 'a' && line[at] <= 'z') || line[at] == '_' ||
		(line[at] >= '0' && line[at] <= '9')))
		at++;
	return at;
}

/* inline_name{labels} number: past the labels, of which each is key="value"
 * with nothing that needs an escape.  0: it is something else. */
static size_t
skip_labels(const char *line, size_t len, size_t at)
{
	do {
		size_t key = ++at; /* '{' or ',' */

		at = skip_name(line, len, at);
		if (at == key || len - at < 2 ||
		    memcmp(line + at, "=\"", 2) != 0)
			return 0;
		for (at += 2; at < len && line[at] != '"'; at++)
			if (line[at] == '\\')
				return 0;
		at++;
	} while (at < len && line[at] == ',');
	return at < len && line[at] == '}' ? at + 1 : 0;
}

static bool
is_sample(const char *line, size_t len)
{
	size_t at = skip_name(line, len, 0);
	size_t number;

	if (at < len && line[at] == '{')
		at = skip_labels(line, len, at);
	if (at == 0 || at >= len || line[at] != ' ')
		return false;
	number = ++at;
	if (at < len && line[at] == '-')
		at++;
	at += strspn(line + at, "0123456789.");
	return at == len && len > number;
}

static bool
is_line(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			return false;
	return len < LINE_MAX_BYTES &&
	    (begins(line, len, "# HELP inline_") ||
		begins(line, len, "# TYPE inline_") ||
		(begins(line, len, "inline_") && is_sample(line, len)));
}

bool
exposition_pass(struct buf *out, const char *text)
{
	bool good = true;

	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		bool whole = text[len] == '\n' && is_line(text, len);

		if (whole)
			buf_add(out, text, len + 1);
		good = good && whole;
		text += len + (text[len] == '\n');
	}
	return good;
}
