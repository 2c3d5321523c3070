/*
 * Counting: in shared memory, without a lock.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "metrics_parts.h"

#include "../../sandbox/base/err.h"

const int64_t metrics_bucket_ms[METRICS_BUCKETS - 1] = { 1, 2, 5, 10, 20, 50,
	100, 200, 500, 1000, 5000, 20000, 60000 };

const int metrics_statuses[METRICS_STATUSES] = { 200, 201, 204, 307, 400, 401,
	403, 404, 405, 408, 411, 413, 415, 422, 429, 499, 500, 501, 502, 503,
	507, 0 };

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

int64_t
metrics_value(const int64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
observe(struct metrics_histogram *h, int64_t us)
{
	size_t bucket = 0;

	while (bucket < METRICS_BUCKETS - 1 &&
	    us > metrics_bucket_ms[bucket] * 1000)
		bucket++;
	add(&h->buckets[bucket], 1);
	add(&h->sum_us, us);
}

static size_t
status_index(int status)
{
	size_t i = 0;

	if (status == 0)
		status = 499;
	while (i < METRICS_STATUSES - 1 && metrics_statuses[i] != status)
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
metrics_queued(struct metrics *m, int64_t waited_us)
{
	observe(&m->shared->queued, waited_us);
}

void
metrics_lease(struct metrics *m, enum refusal outcome)
{
	if ((int)outcome < METRICS_LEASES)
		add(&m->shared->leases[outcome], 1);
}

void
metrics_run(struct metrics *m, size_t api, enum run_reason reason,
    int64_t duration_us, int64_t waited_us)
{
	if (api >= m->api_count || reason > REASON_ERROR)
		return;
	add(&m->shared->runs[api][METRICS_FAILURES + (int)reason - 1], 1);
	observe(&m->shared->duration[api], duration_us);
	observe(&m->shared->waited[api], waited_us);
}

void
metrics_failed(struct metrics *m, size_t api, enum metrics_failure failure)
{
	if (api < m->api_count)
		add(&m->shared->runs[api][failure], 1);
}

/* ---- what goes up and down ---- */

static bool
take_slot(struct metrics_process *slot, pid_t *expected, pid_t pid)
{
	return __atomic_compare_exchange_n(&slot->pid, expected, pid, false,
	    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Of a process that died: nothing of it goes on. */
static void
forget_dead(struct metrics_process *slot)
{
	pid_t pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);

	if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH ||
	    !take_slot(slot, &pid, -1))
		return;
	for (size_t i = 0; i < METRICS_GAUGES; i++)
		__atomic_store_n(&slot->gauges[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
}

static struct metrics_process *
find_slot(struct metrics *m, pid_t pid, bool tidy)
{
	for (size_t i = 0; i < METRICS_PROCESSES; i++) {
		struct metrics_process *slot = &m->shared->processes[i];
		pid_t nobody = 0;

		if (tidy)
			forget_dead(slot);
		if (take_slot(slot, &nobody, pid))
			return slot;
	}
	return NULL;
}

/* Where this process counts; NULL: there are too many of us. */
static struct metrics_process *
own_slot(struct metrics *m)
{
	static struct metrics_process *own;
	static const struct metrics_shared *own_shared;
	pid_t pid = getpid();

	if (own != NULL && own_shared == m->shared && own->pid == pid)
		return own;
	own_shared = m->shared;
	own = find_slot(m, pid, false);
	if (own == NULL)
		own = find_slot(m, pid, true);
	return own;
}

void
metrics_change(struct metrics *m, enum metrics_gauge gauge, int64_t by)
{
	struct metrics_process *own = own_slot(m);

	if (own != NULL)
		add(&own->gauges[gauge], by);
}

int64_t
metrics_gauge(const struct metrics *m, enum metrics_gauge gauge)
{
	int64_t sum = 0;

	for (size_t i = 0; i < METRICS_PROCESSES; i++) {
		struct metrics_process *slot = &m->shared->processes[i];

		forget_dead(slot);
		if (__atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE) > 0)
			sum += metrics_value(&slot->gauges[gauge]);
	}
	return sum;
}
