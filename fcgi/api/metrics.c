#include "metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/lease/lease.h"

#define BUCKETS 14
#define REASONS 7 /* enum run_reason begins at 1; 0: refused */

/* Upper ends in milliseconds; the last bucket has none. */
static const int64_t bucket_ms[BUCKETS - 1] = { 1, 2, 5, 10, 20, 50, 100, 200,
	500, 1000, 5000, 20000, 60000 };

static const int statuses[] = { 200, 201, 204, 307, 400, 401, 403, 404, 405,
	411, 413, 415, 422, 429, 499, 500, 501, 503, 507, 0 };
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static const char *const reasons[REASONS] = { "refused", "exit", "signal",
	"time", "memory", "output", "error" };

struct histogram {
	int64_t buckets[BUCKETS];
	int64_t sum_us;
};

struct metrics_shared {
	int64_t requests[METRICS_ROUTES_MAX + 1][STATUSES];
	struct histogram latency[METRICS_ROUTES_MAX + 1];
	int64_t runs[METRICS_APIS_MAX][REASONS];
	struct histogram duration[METRICS_APIS_MAX];
	struct histogram waited[METRICS_APIS_MAX];
	int64_t bytes_in;
	int64_t bytes_out;
	int64_t gauges[METRICS_GAUGES];
};

static size_t
count_names(const char *const *names, size_t max)
{
	size_t count = 0;

	while (count < max && names[count] != NULL)
		count++;
	return count;
}

int
metrics_open(struct metrics *m, const char *const *routes,
    const char *const *apis, struct err *err)
{
	void *memory = mmap(NULL, sizeof(*m->shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return err_system(err, "memory for counters");
	m->shared = memory;
	m->routes = routes;
	m->route_count = count_names(routes, METRICS_ROUTES_MAX);
	m->apis = apis;
	m->api_count = count_names(apis, METRICS_APIS_MAX);
	return 0;
}

void
metrics_close(struct metrics *m)
{
	if (m->shared != NULL)
		(void)munmap(m->shared, sizeof(*m->shared));
	m->shared = NULL;
}

/* ---- counting ---- */

static void
add(int64_t *counter, int64_t by)
{
	(void)__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static int64_t
value_of(const int64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
observe(struct histogram *h, int64_t us)
{
	size_t bucket = 0;

	while (bucket < BUCKETS - 1 && us > bucket_ms[bucket] * 1000)
		bucket++;
	add(&h->buckets[bucket], 1);
	add(&h->sum_us, us);
}

static size_t
status_index(int status)
{
	size_t i = 0;

	while (i < STATUSES - 1 && statuses[i] != status)
		i++;
	return i;
}

void
metrics_request(struct metrics *m, size_t route, int status,
    int64_t duration_us, int64_t bytes_in, int64_t bytes_out)
{
	size_t index = route < m->route_count ? route : METRICS_ROUTES_MAX;

	add(&m->shared->requests[index][status_index(status)], 1);
	observe(&m->shared->latency[index], duration_us);
	add(&m->shared->bytes_in, bytes_in);
	add(&m->shared->bytes_out, bytes_out);
}

void
metrics_run(struct metrics *m, size_t api, enum run_reason reason,
    int64_t duration_us, int64_t waited_us)
{
	if (api >= m->api_count || (size_t)reason >= REASONS)
		return;
	add(&m->shared->runs[api][reason], 1);
	observe(&m->shared->duration[api], duration_us);
	observe(&m->shared->waited[api], waited_us);
}

void
metrics_refused(struct metrics *m, size_t api)
{
	if (api < m->api_count)
		add(&m->shared->runs[api][0], 1);
}

void
metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by)
{
	add(&m->shared->gauges[gauge], by);
}

/* ---- telling ---- */

static void
add_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
add_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
	add_head(out, name, "gauge", help);
	buf_addf(out, "%s %" PRId64 "\n", name, value);
}

/* One histogram of a family; nothing was observed: nothing is said. */
static void
add_histogram(struct buf *out, const char *name, const char *label,
    const char *of, const struct histogram *h)
{
	int64_t count = 0;
	int64_t sum = value_of(&h->sum_us);
	size_t before = out->len;

	for (size_t i = 0; i < BUCKETS; i++) {
		char end[32] = "+Inf";

		count += value_of(&h->buckets[i]);
		if (i < BUCKETS - 1)
			(void)snprintf(end, sizeof(end), "%g",
			    (double)bucket_ms[i] / 1000);
		buf_addf(out, "%s_bucket{%s=\"%s\",le=\"%s\"} %" PRId64 "\n",
		    name, label, of, end, count);
	}
	buf_addf(out,
	    "%s_sum{%s=\"%s\"} %" PRId64 ".%06" PRId64
	    "\n%s_count{%s=\"%s\"} %" PRId64 "\n",
	    name, label, of, sum / 1000000, sum % 1000000, name, label, of,
	    count);
	if (count == 0)
		buf_cut(out, before);
}

static const char *
route_name(const struct metrics *m, size_t index)
{
	return index < m->route_count ? m->routes[index] : "other";
}

/* Is it in the table, or what stands for all others? */
static bool
is_route(const struct metrics *m, size_t index)
{
	return index < m->route_count || index == METRICS_ROUTES_MAX;
}

static void
add_requests(struct buf *out, const struct metrics *m)
{
	static const char total[] = "inline_api_requests_total";
	static const char seconds[] = "inline_api_request_duration_seconds";

	add_head(out, total, "counter", "Requests answered.");
	for (size_t i = 0; i <= METRICS_ROUTES_MAX; i++) {
		for (size_t k = 0; k < STATUSES && is_route(m, i); k++) {
			int64_t n = value_of(&m->shared->requests[i][k]);

			if (n > 0)
				buf_addf(out,
				    "%s{route=\"%s\",status=\"%d\"} %" PRId64
				    "\n",
				    total, route_name(m, i), statuses[k], n);
		}
	}
	add_head(out, seconds, "histogram", "From request to answer.");
	for (size_t i = 0; i <= METRICS_ROUTES_MAX; i++)
		if (is_route(m, i))
			add_histogram(out, seconds, "route", route_name(m, i),
			    &m->shared->latency[i]);
}

static void
add_runs(struct buf *out, const struct metrics *m)
{
	static const char total[] = "inline_api_runs_total";
	static const char seconds[] = "inline_api_run_duration_seconds";
	static const char waited[] = "inline_api_run_wait_seconds";

	add_head(out, total, "counter", "Runs, by how they ended.");
	for (size_t i = 0; i < m->api_count; i++)
		for (size_t k = 0; k < REASONS; k++)
			buf_addf(out,
			    "%s{api=\"%s\",outcome=\"%s\"} %" PRId64 "\n",
			    total, m->apis[i], reasons[k],
			    value_of(&m->shared->runs[i][k]));
	add_head(out, seconds, "histogram", "How long code ran.");
	for (size_t i = 0; i < m->api_count; i++)
		add_histogram(out, seconds, "api", m->apis[i],
		    &m->shared->duration[i]);
	add_head(out, waited, "histogram", "How long runs waited for a cell.");
	for (size_t i = 0; i < m->api_count; i++)
		add_histogram(out, waited, "api", m->apis[i],
		    &m->shared->waited[i]);
}

static void
add_bytes(struct buf *out, const struct metrics *m)
{
	static const char name[] = "inline_api_bytes_total";

	add_head(out, name, "counter", "Bytes of bodies.");
	buf_addf(out,
	    "%s{direction=\"in\"} %" PRId64 "\n%s{direction=\"out\"} %" PRId64
	    "\n",
	    name, value_of(&m->shared->bytes_in), name,
	    value_of(&m->shared->bytes_out));
}

static void
add_broker(struct buf *out, const struct lease_status *status)
{
	add_gauge(out, "inline_broker_up", "Whether il-sandboxd answers.",
	    status != NULL);
	if (status == NULL)
		return;
	add_gauge(out, "inline_engine_up", "Whether the Docker engine answers.",
	    status->engine);
	add_gauge(out, "inline_image_present", "Whether the image is there.",
	    status->image);
	add_head(out, "inline_cells", "gauge", "Cells, by state.");
	buf_addf(out,
	    "inline_cells{state=\"leased\"} %" PRId64
	    "\ninline_cells{state=\"idle\"} %" PRId64
	    "\ninline_cells{state=\"starting\"} %" PRId64 "\n",
	    status->leased, status->cells - status->leased, status->starting);
	add_gauge(out, "inline_lease_queue", "Lease requests that wait.",
	    status->waiting);
	add_gauge(out, "inline_free_bytes", "Free bytes of the workspaces.",
	    status->free_bytes);
}

void
metrics_add(struct buf *out, const struct metrics *m,
    const struct lease_status *status)
{
	const int64_t *gauges = m->shared->gauges;

	add_requests(out, m);
	add_runs(out, m);
	add_bytes(out, m);
	add_gauge(out, "inline_api_requests", "Requests being answered.",
	    value_of(&gauges[METRICS_REQUESTS]));
	add_gauge(out, "inline_api_running", "Runs going on.",
	    value_of(&gauges[METRICS_RUNNING]));
	add_gauge(out, "inline_api_waiting", "Requests that wait for a cell.",
	    value_of(&gauges[METRICS_WAITING]));
	add_gauge(out, "inline_api_sessions", "Sessions.",
	    value_of(&gauges[METRICS_SESSIONS]));
	add_broker(out, status);
}
