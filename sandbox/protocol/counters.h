/* SPDX-License-Identifier: MIT */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/condition.h"
#include "protocol/cell.h"
#include "protocol/frame.h"

struct config;
struct err;

/*
 * Counters for Prometheus: the rows of counters.def.  No code decides by them.
 *
 * Each program counts in a file of its own, which all of its processes map and
 * il-api reads.  So no process needs a lock, a number outlives the process that
 * has counted it, and no program can change the numbers of another one, or cut
 * off a file that another one has mapped.  A file holds numbers alone: all text
 * of /metrics stands in the code.
 */

/* Ways to a lease's answer. */
enum lease_way {
	LEASE_WAY_WARM,
	LEASE_WAY_STANDBY, /* by a standby cell */
	LEASE_WAY_COLD,	   /* the cell was started for it */
	LEASE_WAY_LOOK,	   /* read access while a run goes on */
	LEASE_WAY_GONE,	   /* the client hung up first */
	LEASE_WAY_REFUSED, /* and enum refusal */
};
#define LEASE_WAYS (LEASE_WAY_REFUSED + REFUSAL_SANDBOXES + 1)

#define JOB_STATES 5

/* The labels: enum api_kind, enum chat_outcome and so on, … */
#define WORD(name, word) name,
#define LABEL(set, COUNT, key, words) enum set { words COUNT };
#include "protocol/counters.def"
#undef WORD

/* … their sizes, … */
enum {
#define LABEL(set, COUNT, key, words) COUNTERS_##set = COUNT,
#define LIST(set, count, key, ...) COUNTERS_##set = (count),
#include "protocol/counters.def"
	COUNTERS_none = 1,
	COUNTERS_route = 64, /* at most */
	COUNTERS_kind = 64,
};

/* … and their words, each list ended by NULL. */
#define LABEL(set, COUNT, key, words) \
	extern const char *const set##_words[COUNTERS_##set + 1];
#define LIST LABEL_OF_LIST
#define LABEL_OF_LIST(set, ...) \
	extern const char *const set##_words[COUNTERS_##set + 1];
#include "protocol/counters.def"
#undef LABEL_OF_LIST

/* Durations: buckets by their upper ends, and one without an end. */
#define HISTOGRAM_ENDS 14
struct histogram {
	_Atomic int64_t buckets[HISTOGRAM_ENDS + 1];
	_Atomic int64_t sum_us;
};
/* Upper ends in milliseconds. */
extern const int64_t histogram_ends_ms[HISTOGRAM_ENDS];

struct counters {
#define OF_COUNTER(name, rows, columns) \
	_Atomic int64_t name[COUNTERS_##rows][COUNTERS_##columns];
#define OF_SPARSE OF_COUNTER
#define OF_GAUGE OF_COUNTER
#define OF_SECONDS OF_COUNTER
#define OF_HISTOGRAM(name, rows, columns) \
	struct histogram name[COUNTERS_##rows];
#define FAMILY(whose, kind, name, rows, columns, help) \
	OF_##kind(name, rows, columns)
#include "protocol/counters.def"
#undef OF_COUNTER
#undef OF_SPARSE
#undef OF_GAUGE
#undef OF_SECONDS
#undef OF_HISTOGRAM
};

/* Programs with a file. */
enum counters_of {
	COUNTERS_OF_API,
	COUNTERS_OF_BROKER,
	COUNTERS_OF_FRONT,
	COUNTERS_OF_WORKER,
	COUNTERS_PROGRAMS,
};

/* Map a program's own file, for the life of the process and of those that it
 * forks.  Never NULL: where that fails, a warning says so, and nobody sees what
 * this process counts. */
struct counters *counters_open(const struct config *config,
    enum counters_of program);
/* Copy a program's file.  -1: it has counted nothing, or is of another
 * version. */
int counters_read(const struct config *config, enum counters_of program,
    struct counters *copy, struct err *err);

/* One more. */
void histogram_observe(struct histogram *h, int64_t us);
/* The index of a status in its list; that of "other" if it is missing there. */
size_t counters_status(const char *const *words, int status);

#endif
