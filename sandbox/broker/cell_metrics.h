/* SPDX-License-Identifier: MIT */
#ifndef CELL_METRICS_H
#define CELL_METRICS_H

#include <stdint.h>

#include "base/exposition.h"
#include "broker/class.h"
#include "protocol/frame.h"

/*
 * The counters of il-sandboxd, by class and never by sandbox, for METRICS. They
 * begin at 0 with each start, as counters may.
 */

/* Outcome of a lease request. */
enum lease_way {
	WAY_WARM,
	WAY_STANDBY, /* by a standby cell */
	WAY_COLD,    /* the cell was started for it */
	WAY_LOOK,    /* read access while a run goes on */
	WAY_GONE,    /* the client hung up first */
	WAY_REFUSED, /* and enum refusal */
};
#define WAYS (WAY_REFUSED + REFUSAL_SANDBOXES + 1)

struct cell_metrics {
	_Atomic int64_t leases[CLASS_MAX][WAYS];
	struct histogram waited[CLASS_MAX];   /* until the lease was granted */
	_Atomic int64_t starts[CLASS_MAX][2]; /* succeeded, failed */
	struct histogram start[CLASS_MAX];    /* from docker run to READY */
	_Atomic int64_t out_of_memory[CLASS_MAX];
};

#endif
