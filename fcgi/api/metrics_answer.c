/*
 * What has been counted, as Prometheus reads it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "metrics_parts.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"

static const char *const failures[METRICS_FAILURES] = {
	[METRICS_REFUSED] = "refused",
	[METRICS_LOST] = "lost",
	[METRICS_GONE] = "gone",
};

static const char *const reasons[] = {
	[REASON_EXIT - 1] = "exit",
	[REASON_SIGNAL - 1] = "signal",
	[REASON_TIME - 1] = "time",
	[REASON_MEMORY - 1] = "memory",
	[REASON_OUTPUT - 1] = "output",
	[REASON_ERROR - 1] = "error",
};

static const char *const leases[METRICS_LEASES] = {
	[REFUSAL_NONE] = "granted",
	[REFUSAL_INPUT] = "input",
	[REFUSAL_BUSY] = "busy",
	[REFUSAL_FULL] = "full",
	[REFUSAL_ENGINE] = "engine",
	[REFUSAL_IMAGE] = "image",
	[REFUSAL_NO_WORKSPACE] = "workspace",
	[REFUSAL_DISK] = "disk",
	[REFUSAL_START] = "start",
	[REFUSAL_INTERPRETER] = "interpreter",
	[REFUSAL_SANDBOXES] = "sandboxes",
	[REFUSAL_UNREACHABLE] = "unreachable",
	[REFUSAL_TIME] = "time",
};

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

/* One histogram of a family; label "": it has none.  Nothing was observed:
 * nothing is said. */
static void
add_histogram(struct buf *out, const char *name, const char *label,
    const char *of, const struct metrics_histogram *h)
{
	auto_buf struct buf labels = BUF_INIT(256);
	int64_t sum = metrics_value(&h->sum_us);
	int64_t count = 0;
	size_t before = out->len;

	if (label[0] != '\0')
		buf_addf(&labels, "%s=\"%s\"", label, of);
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		char end[32] = "+Inf";

		count += metrics_value(&h->buckets[i]);
		if (i < METRICS_BUCKETS - 1)
			(void)snprintf(end, sizeof(end), "%g",
			    (double)metrics_bucket_ms[i] / 1000);
		buf_addf(out, "%s_bucket{%s%sle=\"%s\"} %" PRId64 "\n", name,
		    buf_str(&labels), labels.len > 0 ? "," : "", end, count);
	}
	if (labels.len > 0) {
		buf_addc(&labels, '}');
		buf_addf(out, "%s_sum{%s", name, buf_str(&labels));
	} else {
		buf_addf(out, "%s_sum", name);
	}
	buf_addf(out, " %" PRId64 ".%06" PRId64 "\n%s_count%s%s %" PRId64 "\n",
	    sum / 1000000, sum % 1000000, name, labels.len > 0 ? "{" : "",
	    buf_str(&labels), count);
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
add_count(struct buf *out, const char *name, const char *route, int status,
    int64_t count)
{
	char text[16] = "other";

	if (status != 0)
		(void)snprintf(text, sizeof(text), "%d", status);
	buf_addf(out, "%s{route=\"%s\",status=\"%s\"} %" PRId64 "\n", name,
	    route, text, count);
}

static void
add_requests(struct buf *out, const struct metrics *m)
{
	static const char total[] = "inline_api_requests_total";
	static const char seconds[] = "inline_api_request_duration_seconds";
	static const char queued[] = "inline_api_queue_seconds";

	add_head(out, total, "counter", "Requests answered.");
	for (size_t i = 0; i <= METRICS_ROUTES_MAX; i++) {
		for (size_t k = 0; k < METRICS_STATUSES && is_route(m, i);
		     k++) {
			int64_t n = metrics_value(&m->shared->requests[i][k]);

			if (n > 0)
				add_count(out, total, route_name(m, i),
				    metrics_statuses[k], n);
		}
	}
	add_head(out, seconds, "histogram", "From request to answer.");
	for (size_t i = 0; i <= METRICS_ROUTES_MAX; i++)
		if (is_route(m, i))
			add_histogram(out, seconds, "route", route_name(m, i),
			    &m->shared->latency[i]);
	add_head(out, queued, "histogram",
	    "How long requests waited to be taken.");
	add_histogram(out, queued, "", "", &m->shared->queued);
}

static void
add_runs(struct buf *out, const struct metrics *m)
{
	static const char total[] = "inline_api_runs_total";
	static const char seconds[] = "inline_api_run_duration_seconds";
	static const char waited[] = "inline_api_run_wait_seconds";

	add_head(out, total, "counter", "Runs, by how they ended.");
	for (size_t i = 0; i < m->api_count; i++)
		for (int k = 0; k < METRICS_OUTCOMES; k++)
			buf_addf(out,
			    "%s{api=\"%s\",outcome=\"%s\"} %" PRId64 "\n",
			    total, m->apis[i],
			    k < METRICS_FAILURES ?
				failures[k] :
				reasons[k - METRICS_FAILURES],
			    metrics_value(&m->shared->runs[i][k]));
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
add_leases(struct buf *out, const struct metrics *m)
{
	static const char name[] = "inline_api_leases_total";

	add_head(out, name, "counter", "Cells asked for, by the answer.");
	for (int i = 0; i < METRICS_LEASES; i++)
		buf_addf(out, "%s{outcome=\"%s\"} %" PRId64 "\n", name,
		    leases[i], metrics_value(&m->shared->leases[i]));
}

static void
add_bytes(struct buf *out, const struct metrics *m)
{
	static const char name[] = "inline_api_bytes_total";

	add_head(out, name, "counter", "Bytes of bodies.");
	buf_addf(out,
	    "%s{direction=\"in\"} %" PRId64 "\n%s{direction=\"out\"} %" PRId64
	    "\n",
	    name, metrics_value(&m->shared->bytes_in), name,
	    metrics_value(&m->shared->bytes_out));
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
	    status->leased, status->cells - status->leased - status->starting,
	    status->starting);
	add_gauge(out, "inline_lease_queue", "Lease requests that wait.",
	    status->waiting);
	add_gauge(out, "inline_free_bytes", "Free bytes of the workspaces.",
	    status->free_bytes);
}

void
metrics_add_stored(struct buf *out, int64_t bytes, int64_t files, int64_t quota)
{
	add_gauge(out, "inline_api_stored_files", "Files in the store.", files);
	add_gauge(out, "inline_api_stored_bytes", "Bytes of these files.",
	    bytes);
	add_gauge(out, "inline_api_stored_bytes_max", "What they may take.",
	    quota);
}

void
metrics_add(struct buf *out, const struct metrics *m,
    const struct lease_status *status)
{
	add_requests(out, m);
	add_runs(out, m);
	add_leases(out, m);
	add_bytes(out, m);
	add_gauge(out, "inline_api_requests", "Requests being answered.",
	    metrics_gauge(m, METRICS_REQUESTS));
	add_gauge(out, "inline_api_running", "Runs that have a cell.",
	    metrics_gauge(m, METRICS_RUNNING));
	add_gauge(out, "inline_api_waiting", "Requests that wait for a cell.",
	    metrics_gauge(m, METRICS_WAITING));
	add_gauge(out, "inline_api_sessions", "Sessions.",
	    metrics_gauge(m, METRICS_SESSIONS));
	add_broker(out, status);
}
