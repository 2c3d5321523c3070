/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "subprocess.h"

/*
 * What is known of the Docker engine and the image, and what keeps it known: a
 * probe (one `docker image inspect`, which tells of both), at the start, when
 * somebody asks, when a call failed, and every 30 s.
 * After the engine was found, and before the first container is started, all
 * containers and volumes of an earlier life of this broker are swept; at the
 * end what is left of ours.
 */
enum engine_state {
	ENGINE_READY, /* containers can be started */
	ENGINE_WAIT,  /* being found out or swept */
	ENGINE_DOWN,  /* the engine does not answer */
	ENGINE_NO_IMAGE,
};

struct engine {
	struct host *host;
	bool up;
	bool image;
	bool swept;
	bool sweeping;
	bool clean; /* the last sweep left nothing */
	int sweep_rounds;
	int64_t probed_ms; /* monotonic; when up and image were found out */
	int64_t pulled_ms; /* when a pull was last begun; -1: never */
	struct subprocess probe;
	struct subprocess sweep;
	struct subprocess pull;
	struct loop_timer *recheck;
	struct loop_timer *again; /* next round of the sweep */
	char trouble[160];	  /* what the last failed call said */
};

void engine_init(struct engine *e, struct host *host);
/* Cancels what runs. */
void engine_release(struct engine *e);

/* How long docker may take to remove something. */
int engine_remove_ms(const struct config *config);

/* Can a container be started now?  Begins a probe when what is known is old
 * and bad. */
enum engine_state engine_state(struct engine *e);
/* Probe, unless what is known is younger than max_age_ms; true when there will
 * be news. */
bool engine_refresh(struct engine *e, int64_t max_age_ms);
/* What is so now, as the probe says or a call that failed: ENGINE_READY (both
 * are there), ENGINE_NO_IMAGE or ENGINE_DOWN. */
void engine_report(struct engine *e, enum engine_state state,
    const char *trouble);
/* At the end (PHASE_SWEEPING): remove every container of ours, while
 * `sweeping`. */
void engine_sweep_last(struct engine *e);

#endif
