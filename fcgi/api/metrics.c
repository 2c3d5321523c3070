/* SPDX-License-Identifier: MIT */
#include "api/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "base/shared_file.h"

/* Elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PROCESSES 8192 /* with gauges, at one time */

/* Statuses with a counter; the last one, 0, stands for all others. */
static const int statuses[] = { 101, 200, 201, 202, 204, 307, 400, 401, 403,
	404, 405, 408, 411, 413, 415, 422, 429, 499, 500, 501, 502, 503, 507,
	0 };

static const char *const kinds[API_KINDS] = {
	[API_EVAL] = "eval",
	[API_EXECUTE] = "execute",
	[API_STREAM] = "stream",
	[API_BASH] = "bash",
	[API_PISTON] = "piston",
	[API_CONNECT] = "connect",
	[API_LIBRECHAT] = "librechat",
	[API_MCP] = "mcp",
};

/* Ends, and behind them the reasons of results, which begin at 1. */
static const char *const outcomes[] = {
	[RUN_REFUSED] = "refused",
	[RUN_BROKEN] = "lost",
	[RUN_STOPPED] = "gone",
	[RUN_CANCELLED + REASON_EXIT] = "exit",
	[RUN_CANCELLED + REASON_SIGNAL] = "signal",
	[RUN_CANCELLED + REASON_TIME] = "time",
	[RUN_CANCELLED + REASON_MEMORY] = "memory",
	[RUN_CANCELLED + REASON_OUTPUT] = "output",
	[RUN_CANCELLED + REASON_ERROR] = "error",
};

/* The answers of the broker. */
static const char *const leases[] = {
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

/* Gauges of a process; pid 0: an unused row, -1: one that is being cleared. */
struct process {
	_Atomic pid_t pid;
	_Atomic int64_t gauges[METRICS_GAUGES];
};

struct metrics_shared {
	_Atomic int64_t requests[METRICS_ROUTES_MAX][COUNT(statuses)];
	struct histogram latency[METRICS_ROUTES_MAX];
	struct histogram queued;
	_Atomic int64_t runs[API_KINDS][COUNT(outcomes)];
	struct histogram duration[API_KINDS];
	struct histogram waited[API_KINDS];
	_Atomic int64_t leases[COUNT(leases)];
	_Atomic int64_t bytes[2]; /* in and out */
	struct process processes[PROCESSES];
};

int
metrics_open(struct metrics *m, const char *const *routes, struct err *err)
{
	*m = (struct metrics){ .shared = shared_file_open(NULL,
				   sizeof(*m->shared), err),
		.routes = routes };
	return m->shared != NULL ? 0 : -1;
}

/* ---- counting ---- */

void
metrics_request(struct metrics *m, size_t route, int status,
    int64_t duration_us, int64_t bytes_in, int64_t bytes_out)
{
	size_t i = 0;

	assert(route < METRICS_ROUTES_MAX);
	if (status == 0)
		status = 499;
	while (i < COUNT(statuses) - 1 && statuses[i] != status)
		i++;
	m->shared->requests[route][i]++;
	histogram_observe(&m->shared->latency[route], duration_us);
	m->shared->bytes[0] += bytes_in;
	m->shared->bytes[1] += bytes_out;
}

void
metrics_queued(struct metrics *m, int64_t waited_us)
{
	histogram_observe(&m->shared->queued, waited_us);
}

void
metrics_lease(struct metrics *m, enum refusal outcome)
{
	assert(outcome < COUNT(leases));
	m->shared->leases[outcome]++;
}

void
metrics_run(struct metrics *m, enum api_kind kind, enum run_end end,
    enum run_reason reason, int64_t duration_us, int64_t waited_us)
{
	size_t outcome = end;

	assert(kind < API_KINDS);
	if (end == RUN_RESULT) {
		outcome = (size_t)RUN_CANCELLED + reason;
		assert(outcome < COUNT(outcomes));
		histogram_observe(&m->shared->duration[kind], duration_us);
		histogram_observe(&m->shared->waited[kind], waited_us);
	}
	m->shared->runs[kind][outcome]++;
}

/* ---- gauges ---- */

/* The process of a row; 0: none.  A dead process's row is cleared. */
static pid_t
metrics_row_owner(struct process *row)
{
	pid_t pid = row->pid;

	if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH ||
	    !atomic_compare_exchange_strong(&row->pid, &pid, -1))
		return pid;
	for (size_t i = 0; i < METRICS_GAUGES; i++)
		row->gauges[i] = 0;
	row->pid = 0;
	return 0;
}

void
metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by)
{
	static struct process *own; /* a parent's, after a fork */
	pid_t pid = getpid();

	/* A process takes a row of its own when it first counts. */
	for (size_t i = 0; i < PROCESSES && (own == NULL || own->pid != pid);
	     i++) {
		struct process *row = &m->shared->processes[i];
		pid_t nobody = metrics_row_owner(row);

		/* Another process may be faster. */
		if (nobody == 0 &&
		    atomic_compare_exchange_strong(&row->pid, &nobody, pid))
			own = row;
	}
	if (own != NULL && own->pid == pid) /* else there is no row left */
		own->gauges[gauge] += by;
}

/* Over all processes that live. */
static int64_t
sum_gauge(const struct metrics *m, enum metrics_gauge gauge)
{
	int64_t sum = 0;

	for (size_t i = 0; i < PROCESSES; i++) {
		struct process *row = &m->shared->processes[i];

		if (metrics_row_owner(row) > 0)
			sum += row->gauges[gauge];
	}
	return sum;
}

/* ---- the exposition for Prometheus ---- */

/* Requests by route and status, where there were any; how long they took. */
static void
add_requests(struct buf *out, const struct metrics *m)
{
	static const char total[] = "inline_api_requests_total";
	const struct metrics_shared *shared = m->shared;
	struct exposition_label route = { "route", m->routes, 0 };

	exposition_head(out, total, "counter", "Requests answered.");
	for (size_t i = 0; m->routes[i] != NULL; i++) {
		route.count++;
		for (size_t k = 0; k < COUNT(statuses); k++) {
			int64_t n = shared->requests[i][k];
			char status[16] = "other";

			if (n == 0)
				continue;
			if (statuses[k] != 0)
				(void)snprintf(status, sizeof(status), "%d",
				    statuses[k]);
			buf_addf(out,
			    "%s{route=\"%s\",status=\"%s\"} %" PRId64 "\n",
			    total, m->routes[i], status, n);
		}
	}
	exposition_histograms(out, "inline_api_request_duration_seconds",
	    "From request to answer.", &route, shared->latency);
	exposition_histograms(out, "inline_api_queue_seconds",
	    "How long requests waited to be taken.", NULL, &shared->queued);
}

/* Runs by their ends, then their times and leases. */
static void
add_runs(struct buf *out, const struct metrics_shared *shared)
{
	const struct exposition_label api = { "api", kinds, API_KINDS };
	const struct exposition_label outcome = { "outcome", outcomes,
		COUNT(outcomes) };
	const struct exposition_label lease = { "outcome", leases,
		COUNT(leases) };

	exposition_table(out, "inline_api_runs_total", "counter",
	    "Runs, by how they ended.", &api, &outcome, &shared->runs[0][0]);
	exposition_histograms(out, "inline_api_run_duration_seconds",
	    "How long code ran.", &api, shared->duration);
	exposition_histograms(out, "inline_api_run_wait_seconds",
	    "How long runs waited for a cell.", &api, shared->waited);
	exposition_table(out, "inline_api_leases_total", "counter",
	    "Cells asked for, by the answer.", NULL, &lease, shared->leases);
}

/* Does the text hold nothing but whole lines of Inline's metrics?  il-fcgi,
 * which reads the internet, could write any file. */
static bool
is_exposition(const char *text)
{
	while (*text != '\0') {
		const char *end = strchr(text, '\n');

		if (strncmp(text, "# HELP ", 7) == 0 ||
		    strncmp(text, "# TYPE ", 7) == 0)
			text += 7;
		if (strncmp(text, "inline_", 7) != 0 || end == NULL)
			return false;
		text = end + 1;
	}
	return true;
}

/* The metrics that another program has given; NULL: it gave none. */
static void
metrics_add_other(struct buf *out, const char *name, const char *help,
    const struct buf *said)
{
	bool good = said != NULL && is_exposition(buf_str(said));

	exposition_gauge(out, name, help, good);
	if (good)
		buf_adds(out, buf_str(said));
}

void
metrics_add(struct buf *out, const struct metrics *m,
    const struct metrics_others *others, int64_t bytes, int64_t files,
    int64_t quota)
{
	static const char *const ways[] = { "in", "out" };
	const struct exposition_label direction = { "direction", ways, 2 };

	add_requests(out, m);
	add_runs(out, m->shared);
	exposition_table(out, "inline_api_bytes_total", "counter",
	    "Bytes of bodies.", NULL, &direction, m->shared->bytes);
	exposition_gauge(out, "inline_api_requests", "Requests being answered.",
	    sum_gauge(m, METRICS_REQUESTS));
	exposition_gauge(out, "inline_api_running", "Runs that have a cell.",
	    sum_gauge(m, METRICS_RUNNING));
	exposition_gauge(out, "inline_api_waiting",
	    "Requests that wait for a cell.", sum_gauge(m, METRICS_WAITING));
	exposition_gauge(out, "inline_api_stored_files", "Files in the store.",
	    files);
	exposition_gauge(out, "inline_api_stored_bytes",
	    "Bytes of these files.", bytes);
	exposition_gauge(out, "inline_api_stored_bytes_max",
	    "What they may take.", quota);
	metrics_add_other(out, "inline_broker_up",
	    "Whether il-sandboxd answers.", others->broker);
	metrics_add_other(out, "inline_front_up",
	    "Whether il-fcgi tells of itself.", others->front);
}
