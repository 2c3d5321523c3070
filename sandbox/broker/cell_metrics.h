/* SPDX-License-Identifier: MIT */
#ifndef CELL_METRICS_H
#define CELL_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/exposition.h"
#include "../protocol/frame.h"
#include "class.h"

struct buf;

/*
 * What il-sandboxd counts, by class and never by sandbox, for who asks with
 * METRICS.  It is gone with its end, as a counter may be.
 */

/* What came of a question for a cell. */
enum lease_way {
	WAY_WARM,
	WAY_SPARE,   /* by a cell that was nobody's */
	WAY_COLD,    /* it was started for this */
	WAY_LOOK,    /* beside a run */
	WAY_GONE,    /* who asked did not wait */
	WAY_REFUSED, /* and enum refusal */
};
#define WAYS (WAY_REFUSED + REFUSAL_SANDBOXES + 1)

struct cell_metrics {
	_Atomic int64_t leases[CLASS_MAX][WAYS];
	struct histogram waited[CLASS_MAX];   /* for one that was granted */
	_Atomic int64_t starts[CLASS_MAX][2]; /* it came up; it did not */
	struct histogram start[CLASS_MAX];    /* from docker run until then */
	_Atomic int64_t out_of_memory[CLASS_MAX];
};

/* since_ms: when it was asked for. */
void cell_metrics_lease(struct cell_metrics *m, const struct cell_class *class,
    enum lease_way way, int64_t since_ms);
/* A container is up for the first time, or will never be. */
void cell_metrics_start(struct cell_metrics *m, const struct cell_class *class,
    bool up, int64_t took_ms);
/* Its memory has ended one in a lease. */
void cell_metrics_out_of_memory(struct cell_metrics *m,
    const struct cell_class *class);

/* The classes as a label; their names go into the array. */
struct exposition_label cell_metrics_classes(const char *names[CLASS_MAX]);
/* Append all of it. */
void cell_metrics_add(struct buf *out, const struct cell_metrics *m);

#endif
