#ifndef METRICS_PARTS_H
#define METRICS_PARTS_H

#include <sys/types.h>

#include "metrics.h"

/* What metrics_count.c counts and metrics_answer.c tells; for no other file. */

#define METRICS_BUCKETS 14
/* Upper ends in milliseconds; the last bucket has none. */
extern const int64_t metrics_bucket_ms[METRICS_BUCKETS - 1];

/* Those that are told; the last one, 0, stands for all others. */
#define METRICS_STATUSES 22
extern const int metrics_statuses[METRICS_STATUSES];

/* The failures, then enum run_reason, which begins at 1. */
#define METRICS_OUTCOMES (METRICS_FAILURES + (int)REASON_ERROR)
#define METRICS_LEASES ((int)REFUSAL_TIME + 1)
#define METRICS_PROCESSES 4096

struct metrics_histogram {
	int64_t buckets[METRICS_BUCKETS];
	int64_t sum_us;
};

/* A process's own; pid 0: nobody's, -1: being tidied up. */
struct metrics_process {
	pid_t pid;
	int64_t gauges[METRICS_GAUGES];
};

struct metrics_shared {
	int64_t requests[METRICS_ROUTES_MAX + 1][METRICS_STATUSES];
	struct metrics_histogram latency[METRICS_ROUTES_MAX + 1];
	struct metrics_histogram queued;
	int64_t runs[METRICS_APIS_MAX][METRICS_OUTCOMES];
	struct metrics_histogram duration[METRICS_APIS_MAX];
	struct metrics_histogram waited[METRICS_APIS_MAX];
	int64_t leases[METRICS_LEASES];
	int64_t bytes_in;
	int64_t bytes_out;
	struct metrics_process processes[METRICS_PROCESSES];
};

int64_t metrics_value(const int64_t *counter);
/* The sum of the living; the dead are forgotten. */
int64_t metrics_gauge(const struct metrics *m, enum metrics_gauge gauge);

#endif
