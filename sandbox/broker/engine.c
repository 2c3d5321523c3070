/* SPDX-License-Identifier: MIT */
/*
 * Probe, pull and sweep are three programs that never run twice at a time. All
 * that they find out goes through engine_learn() and sweep_end(), which tell
 * the pool.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "docker.h"

#define PROBE_LEAST_MS 3000
#define REMOVE_LEAST_MS 20000
#define PULL_MS (30 * 60 * 1000)
#define PULL_AGAIN_MS (5 * 60 * 1000)
#define RECHECK_MS 30000 /* when nobody has asked before */
#define BAD_NEWS_MS 1000 /* what is bad is believed for so long */
#define SWEEP_BATCH 64
#define SWEEP_ROUNDS 100
#define SWEEP_PAUSE_MS 100

static void engine_probe(struct engine *e);
static void sweep_list(struct engine *e);

/* A look takes docker a small part of what a start takes. */
static int
probe_ms(const struct engine *e)
{
	const int64_t part_ms = e->config->start_ms * 3 / 20;

	return part_ms > PROBE_LEAST_MS ? (int)part_ms : PROBE_LEAST_MS;
}

int
engine_remove_ms(const struct config *config)
{
	return config->start_ms > REMOVE_LEAST_MS ? (int)config->start_ms :
						    REMOVE_LEAST_MS;
}

/* ---- the pull ---- */

/* However it ended: what there is now, the probe says. */
static void
pull_on_end(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		log_info("the image %s was pulled", e->config->sandbox_image);
	else
		log_err("docker pull %s: %s", e->config->sandbox_image, text);
	engine_probe(e);
}

/* A failed pull is tried again, but not at once: the registry may be down. */
static void
pull_maybe(struct engine *e)
{
	int64_t now = clock_monotonic_ms();

	if (!e->config->pull_on_startup || !e->up || e->image || e->ending ||
	    e->pull.running ||
	    (e->pulled_ms >= 0 && now - e->pulled_ms < PULL_AGAIN_MS))
		return;
	e->pulled_ms = now;
	log_info("pulling the image %s", e->config->sandbox_image);
	docker_start(&e->pull, e->config, DOCKER_PULL, e->config->sandbox_image,
	    PULL_MS, pull_on_end, e);
}

/* ---- it is looked after ---- */

static void
recheck_on_timer(void *arg)
{
	engine_probe(arg);
}

/* Look after it again in a while, counted from now. */
static void
recheck_plan(struct engine *e)
{
	if (e->ending)
		loop_timer_clear(e->loop, &e->recheck);
	else
		loop_timer_set(e->loop, &e->recheck, RECHECK_MS,
		    recheck_on_timer, e);
}

/* ---- the sweep ---- */

/* The containers of an earlier life are gone, or cannot be removed; without a
 * clean engine nothing is started. */
static void
sweep_end(struct engine *e, bool clean)
{
	e->sweeping = false;
	e->clean = clean;
	if (e->ending) {
		e->on_swept(e->arg);
		return;
	}
	e->swept = clean;
	if (!clean)
		e->up = false;
	e->probed_ms = clock_monotonic_ms();
	recheck_plan(e);
	e->on_change(e->arg);
}

/* What docker said is what people are told. */
static void
sweep_failed(struct engine *e, const struct process_result *result)
{
	char text[160];

	process_describe(result, text, sizeof(text));
	log_err("sweep: docker %s", text);
	(void)snprintf(e->trouble, sizeof(e->trouble), "%s", text);
	sweep_end(e, false);
}

static void
sweep_volumes_on_removed(void *arg, const struct process_result *result)
{
	(void)result; /* one that is in use belongs to a container still */
	sweep_end(arg, true);
}

/* Add the ids of an answer to a command; how many there were. */
static size_t
sweep_add_ids(struct argv *argv, const char *answer)
{
	char id[65];
	size_t n = 0;

	for (size_t pos = 0;
	     n < SWEEP_BATCH && docker_next_id(answer, &pos, id); n++)
		argv_add(argv, id);
	return n;
}

/* Volumes that the engine did not remove with their containers. */
static void
sweep_volumes_on_list(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	auto_argv struct argv argv;

	docker_argv(&argv, e->config->docker_binary, DOCKER_REMOVE_VOLUMES,
	    NULL);
	if (process_succeeded(result) &&
	    sweep_add_ids(&argv, buf_str(&result->out)) > 0)
		subprocess_start(&e->sweep, &argv, engine_remove_ms(e->config),
		    sweep_volumes_on_removed, e);
	else
		sweep_end(e, true);
}

static void
sweep_on_pause(void *arg)
{
	sweep_list(arg);
}

/* One that another is removing at this moment is an error of `docker rm`: only
 * an empty list is the end. */
static void
sweep_on_removed(void *arg, const struct process_result *result)
{
	struct engine *e = arg;

	if (process_succeeded(result))
		sweep_list(e);
	else if (e->sweep_rounds >= SWEEP_ROUNDS)
		sweep_failed(e, result);
	else
		loop_timer_set(e->loop, &e->again, SWEEP_PAUSE_MS,
		    sweep_on_pause, e);
}

/* The answer of one round: containers to remove, or none any more. */
static void
sweep_on_list(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	auto_argv struct argv argv;
	size_t n;

	docker_argv(&argv, e->config->docker_binary, DOCKER_REMOVE, NULL);
	if (!process_succeeded(result)) {
		sweep_failed(e, result);
		return;
	}
	n = sweep_add_ids(&argv, buf_str(&result->out));
	/* No container is left: now what they had mounted. */
	if (n == 0) {
		docker_start(&e->sweep, e->config, DOCKER_VOLUMES, e->instance,
		    probe_ms(e), sweep_volumes_on_list, e);
		return;
	}
	if (e->sweep_rounds++ == 0)
		log_info(e->ending ? "ending %zu containers" :
				     "removing %zu containers of an earlier "
				     "il-sandboxd",
		    n);
	if (e->sweep_rounds > SWEEP_ROUNDS)
		sweep_end(e, false);
	else
		subprocess_start(&e->sweep, &argv, engine_remove_ms(e->config),
		    sweep_on_removed, e);
}

/* One round: list the containers, remove so many of them, list again. */
static void
sweep_list(struct engine *e)
{
	docker_start(&e->sweep, e->config, DOCKER_CELLS, e->instance,
	    probe_ms(e), sweep_on_list, e);
}

static void
sweep_start(struct engine *e)
{
	e->sweeping = true;
	e->sweep_rounds = 0;
	sweep_list(e);
}

/* A sweep that is under way becomes the last one. */
void
engine_sweep_last(struct engine *e, engine_fn on_swept)
{
	e->ending = true;
	e->on_swept = on_swept;
	subprocess_cancel(&e->probe);
	subprocess_cancel(&e->pull);
	if (!e->sweeping)
		sweep_start(e);
}

/* ---- the probe ---- */

/* The one place where the engine's state changes: it is logged when it is
 * news, and what follows from it is begun. */
static void
engine_learn(struct engine *e, bool up, bool image, const char *trouble)
{
	if (up && !e->up)
		log_info("the Docker engine answers");
	else if (!up && (e->up || e->probed_ms < 0))
		log_err("the Docker engine does not answer: %s", trouble);
	if (up && !image && (e->image || !e->up))
		log_warn("the image %s is missing: %s",
		    e->config->sandbox_image, trouble);
	e->up = up;
	e->image = image;
	e->probed_ms = clock_monotonic_ms();
	(void)snprintf(e->trouble, sizeof(e->trouble), "%s", trouble);
	recheck_plan(e);
	pull_maybe(e);
	if (up && !e->swept && !e->sweeping && !e->ending)
		sweep_start(e);
	e->on_change(e->arg);
}

/* An engine that answers names the image by its digest.  What is neither that
 * nor "no such image" is no engine. */
static void
probe_on_end(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	const char *id = buf_str(&result->out);
	char text[160] = "";

	if (process_succeeded(result) && strncmp(id, "sha256:", 7) == 0) {
		engine_learn(e, true, true, "");
		return;
	}
	if (process_succeeded(result))
		(void)snprintf(text, sizeof(text),
		    "%s says something that is no image id",
		    e->config->docker_binary);
	else
		process_describe(result, text, sizeof(text));
	engine_learn(e,
	    result->outcome == PROCESS_EXITED &&
		docker_classify(result) == DOCKER_IMAGE,
	    false, text);
}

/* One at a time; whoever asks meanwhile gets its answer. */
static void
engine_probe(struct engine *e)
{
	if (!e->probe.running && !e->ending)
		docker_start(&e->probe, e->config, DOCKER_PROBE,
		    e->config->sandbox_image, probe_ms(e), probe_on_end, e);
}

/* ---- for others ---- */

void
engine_init(struct engine *e, struct loop *loop, const struct config *config,
    const char *instance, engine_fn on_change, void *arg)
{
	*e = (struct engine){ .loop = loop,
		.config = config,
		.instance = instance,
		.probed_ms = -1,
		.pulled_ms = -1,
		.on_change = on_change,
		.arg = arg };
	subprocess_init(&e->probe, loop);
	subprocess_init(&e->sweep, loop);
	subprocess_init(&e->pull, loop);
}

void
engine_release(struct engine *e)
{
	subprocess_cancel(&e->probe);
	subprocess_cancel(&e->sweep);
	subprocess_cancel(&e->pull);
	loop_timer_clear(e->loop, &e->recheck);
	loop_timer_clear(e->loop, &e->again);
}

bool
engine_refresh(struct engine *e, int64_t max_age_ms)
{
	if (!e->probe.running && e->probed_ms >= 0 &&
	    clock_monotonic_ms() - e->probed_ms < max_age_ms)
		return false;
	engine_probe(e);
	return e->probe.running;
}

enum engine_state
engine_state(struct engine *e)
{
	if (e->up && e->image && e->swept)
		return ENGINE_READY;
	if (e->sweeping || engine_refresh(e, BAD_NEWS_MS))
		return ENGINE_WAIT;
	return e->up && !e->image ? ENGINE_NO_IMAGE : ENGINE_DOWN;
}

void
engine_report(struct engine *e, enum engine_state state, const char *trouble)
{
	engine_learn(e, state != ENGINE_DOWN, false, trouble);
}
