/* SPDX-License-Identifier: MIT */
#ifndef CELL_METRICS_H
#define CELL_METRICS_H

#include <stdint.h>

#include "base/exposition.h"
#include "broker/class.h"
#include "protocol/frame.h"

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

#endif
