/* SPDX-License-Identifier: MIT */
#include "api/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "files/filestore.h"
#include "server/health.h"

#include "base/basics.h"
#include "base/file.h"

#define CHILDREN 8192 /* with gauges; others have none */

int
metrics_open(struct metrics *m, const struct config *config,
    const char *const *routes, struct err *err)
{
	*m = (struct metrics){
		.counters = counters_open(config, COUNTERS_OF_API),
		.gauges = shared_file_open(NULL, CHILDREN * sizeof(*m->gauges),
		    err),
		.routes = routes,
	};
	return m->gauges != NULL ? 0 : -1;
}

/* ---- counting ---- */

void
metrics_request(struct metrics *m, size_t route, int status,
    int64_t duration_us, int64_t bytes_in, int64_t bytes_out)
{
	struct counters *c = m->counters;

	assert(route < COUNTERS_route);
	c->api_requests_total[route][counters_status(api_status_words,
	    status == 0 ? 499 : status)]++;
	histogram_observe(&c->api_request_duration_seconds[route], duration_us);
	c->api_bytes_total[0][API_IN] += bytes_in;
	c->api_bytes_total[0][API_OUT] += bytes_out;
}

void
metrics_queued(struct metrics *m, int64_t waited_us)
{
	histogram_observe(&m->counters->api_queue_seconds[0], waited_us);
}

void
metrics_lease(struct metrics *m, enum refusal outcome)
{
	assert((size_t)outcome < COUNTERS_refusal);
	m->counters->api_leases_total[0][outcome]++;
}

void
metrics_run(struct metrics *m, enum api_kind kind, enum run_end end,
    enum run_reason reason, int64_t duration_us, int64_t waited_us)
{
	struct counters *c = m->counters;
	size_t outcome = end;

	assert(kind < API_KINDS);
	if (end == RUN_RESULT) {
		outcome = (size_t)RUN_CANCELLED + reason;
		assert(outcome < COUNTERS_api_outcome);
		histogram_observe(&c->api_run_duration_seconds[kind],
		    duration_us);
		histogram_observe(&c->api_run_wait_seconds[kind], waited_us);
	}
	c->api_runs_total[kind][outcome]++;
}

/* ---- gauges ---- */

void
metrics_begin(struct metrics *m, size_t index)
{
	m->own = index < CHILDREN ? &m->gauges[index] : NULL;
	for (size_t i = 0; m->own != NULL && i < METRICS_GAUGES; i++)
		m->own->of[i] = 0;
}

void
metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by)
{
	if (m->own != NULL)
		m->own->of[gauge] += by;
}

static int64_t
sum_gauge(const struct metrics *m, enum metrics_gauge gauge)
{
	int64_t sum = 0;

	for (size_t i = 0; i < CHILDREN; i++)
		sum += m->gauges[i].of[gauge];
	return sum;
}

/* ---- the numbers of all programs ---- */

/* A family's program; DISK is BROKER's, and DATABASE is FRONT's. */
enum whose { API, BROKER, FRONT, WORKER, DISK, DATABASE, WHOSE };
static const enum counters_of files[WHOSE] = {
	[API] = COUNTERS_OF_API,
	[BROKER] = COUNTERS_OF_BROKER,
	[FRONT] = COUNTERS_OF_FRONT,
	[WORKER] = COUNTERS_OF_WORKER,
	[DISK] = COUNTERS_OF_BROKER,
	[DATABASE] = COUNTERS_OF_FRONT,
};

/* Copies of the programs' counters, and which of them are to be printed. */
struct metrics_all {
	struct counters of[COUNTERS_PROGRAMS];
	bool known[WHOSE];
};

static void
fill_api(struct counters *c, const struct metrics *m,
    const struct health *health, const struct filestore *store)
{
	c->api_requests[0][0] = sum_gauge(m, METRICS_REQUESTS);
	c->api_running[0][0] = sum_gauge(m, METRICS_RUNNING);
	c->api_waiting[0][0] = sum_gauge(m, METRICS_WAITING);
	c->api_stored_files[0][0] = store->usage->files;
	c->api_stored_bytes[0][0] = store->usage->bytes;
	c->api_stored_bytes_max[0][0] = store->limits.quota;
	c->broker_up[0][0] = health->facts.broker;
	c->front_up[0][0] = health->facts.front;
	for (size_t i = 0; i < CONDITIONS; i++)
		c->condition[0][i] = i == health->verdict.what;
}

/* The broker counted its cells when it answered with this status. */
static void
fill_broker(struct counters *c, const struct lease_status *status)
{
	c->engine_up[0][0] = status->engine;
	c->image_present[0][0] = status->image;
	c->lease_queue[0][0] = status->waiting;
	c->cell_start_failures[0][0] = status->start_failures;
	c->disk_free_bytes[0][0] = status->free_bytes;
	c->disk_promised_bytes[0][0] = status->promised;
	c->disk_floor_bytes[0][0] = status->floor;
}

static void
read_all(struct metrics_all *all, const struct metrics *m,
    const struct config *config, const struct health *health,
    const struct filestore *store)
{
	const struct condition_facts *facts = &health->facts;
	bool read[COUNTERS_PROGRAMS];
	struct err err;

	for (size_t i = 0; i < COUNTERS_PROGRAMS; i++) {
		read[i] = counters_read(config, (enum counters_of)i,
			      &all->of[i], &err) == 0;
		if (!read[i])
			log_debug("metrics: %s", err.text);
	}
	fill_api(&all->of[COUNTERS_OF_API], m, health, store);
	fill_broker(&all->of[COUNTERS_OF_BROKER], &facts->status);
	all->of[COUNTERS_OF_WORKER]
	    .discord_blocked_seconds[0][0] -= clock_wall_ms();
	all->known[API] = true;
	all->known[BROKER] = facts->broker && read[COUNTERS_OF_BROKER];
	all->known[FRONT] = facts->front && read[COUNTERS_OF_FRONT];
	all->known[WORKER] = read[COUNTERS_OF_WORKER];
	all->known[DISK] = facts->broker && facts->status.floor > 0;
	all->known[DATABASE] = all->known[FRONT] &&
	    all->of[COUNTERS_OF_FRONT].database_up[0][0] != 0;
}

/* ---- the text for Prometheus ---- */

enum kind { COUNTER, SPARSE, GAUGE, SECONDS, HISTOGRAM };

struct label {
	const char *key;
	const char *const *words; /* NULL: routes */
	size_t size;
};

struct family {
	enum whose whose;
	enum kind kind;
	const char *name;
	const char *help;
	const struct label *rows;
	const struct label *columns;
	size_t at; /* in struct counters */
};

static const char *const none_words[] = { "", NULL };
static const char *const kind_words[] = {
#define COMMAND(kind, name, ...) name,
#include "store/commands.def"
	"unknown", NULL
};
static_assert(sizeof(kind_words) / sizeof(*kind_words) - 1 <= COUNTERS_kind,
    "each kind of job has its row");

static const struct label label_none = { NULL, none_words, 1 };
static const struct label label_route = { "route", NULL, COUNTERS_route };
static const struct label label_kind = { "kind", kind_words, COUNTERS_kind };
#define LABEL(set, COUNT, key, words) LIST(set, COUNT, key, words)
#define LIST(set, count, key, ...) \
	static const struct label label_##set = { key, set##_words, count };
#include "protocol/counters.def"

static const struct family families[] = {
#define FAMILY(whose, kind, name, rows, columns, help) \
	{ whose, kind, "inline_" #name, help, &label_##rows, &label_##columns, \
		offsetof(struct counters, name) },
#include "protocol/counters.def"
};

/* A line; labels: 'state="idle"', or "". */
static void __attribute__((format(printf, 5, 6)))
add_line(struct buf *out, const struct family *f, const char *suffix,
    const char *labels, const char *fmt, ...)
{
	va_list ap;

	buf_addf(out, *labels == '\0' ? "%s%s%s " : "%s%s{%s} ", f->name,
	    suffix, labels);
	va_start(ap, fmt);
	buf_addv(out, fmt, ap);
	va_end(ap);
	buf_addc(out, '\n');
}

/* A histogram that has observed nothing is left out. */
static void
metrics_add_histogram(struct buf *out, const struct family *f,
    const char *labels, const struct histogram *h)
{
	int64_t count = 0;
	size_t before = out->len;

	for (size_t i = 0; i <= HISTOGRAM_ENDS; i++) {
		char end[32] = "+Inf";

		count += h->buckets[i];
		if (i < HISTOGRAM_ENDS)
			(void)snprintf(end, sizeof(end), "%g",
			    (double)histogram_ends_ms[i] / 1000);
		buf_addf(out, "%s_bucket{%s%sle=\"%s\"} %" PRId64 "\n", f->name,
		    labels, *labels == '\0' ? "" : ",", end, count);
	}
	add_line(out, f, "_sum", labels, "%.6f", (double)h->sum_us / 1e6);
	add_line(out, f, "_count", labels, "%" PRId64, count);
	if (count == 0)
		buf_cut(out, before);
}

/* One number, or one histogram.  Zeros are printed, as a number that appears
 * with its first event has not grown for Prometheus. */
static void
metrics_add_value(struct buf *out, const struct family *f, const char *labels,
    const void *numbers, size_t i)
{
	int64_t number;

	if (f->kind == HISTOGRAM) {
		metrics_add_histogram(out, f, labels,
		    (const struct histogram *)numbers + i);
		return;
	}
	number = ((const _Atomic int64_t *)numbers)[i];
	if (f->kind == SECONDS)
		add_line(out, f, "", labels, "%.6f",
		    number < 0 ? 0.0 : (double)number / 1000);
	else if (f->kind != SPARSE || number != 0)
		add_line(out, f, "", labels, "%" PRId64, number);
}

static void
add_family(struct buf *out, const struct family *f,
    const char *const *row_words, const void *numbers)
{
	static const char *const types[] = { "counter", "counter", "gauge",
		"gauge", "histogram" };
	const struct label *columns = f->columns;

	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
	    types[f->kind]);
	for (size_t i = 0; i < f->rows->size && row_words[i] != NULL; i++)
		for (size_t k = 0; k < columns->size; k++) {
			auto_buf struct buf labels = BUF_INIT(128);

			if (columns->words[k] == NULL)
				continue;
			if (f->rows->key != NULL)
				buf_addf(&labels, "%s=\"%s\"", f->rows->key,
				    row_words[i]);
			if (columns->key != NULL)
				buf_addf(&labels, "%s%s=\"%s\"",
				    labels.len > 0 ? "," : "", columns->key,
				    columns->words[k]);
			metrics_add_value(out, f, buf_str(&labels), numbers,
			    i * columns->size + k);
		}
}

void
metrics_add(struct buf *out, const struct metrics *m,
    const struct config *config, const struct health *health,
    const struct filestore *store)
{
	auto_free struct metrics_all *all = xcalloc(1, sizeof(*all));

	read_all(all, m, config, health, store);
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		const struct family *f = &families[i];
		const struct counters *of = &all->of[files[f->whose]];

		if (all->known[f->whose])
			add_family(out, f,
			    f->rows->words != NULL ? f->rows->words : m->routes,
			    (const char *)of + f->at);
	}
}
