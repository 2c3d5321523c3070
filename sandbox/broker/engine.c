/* SPDX-License-Identifier: MIT */
/*
 * Probe, pull and sweep are three programs that never run twice at a time. All
 * that they find out goes through engine_report() and sweep_end(), which have
 * everything looked over.
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

static void engine_probe(void *arg);
static void sweep_list(void *arg);

/* It only sweeps any more. */
static bool
is_ending(const struct engine *e)
{
	return e->host->phase == PHASE_SWEEPING;
}

/* A look takes docker a small part of what a start takes. */
static int
probe_ms(const struct engine *e)
{
	const int64_t part_ms = e->host->config->start_ms * 3 / 20;

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
	const char *image = e->host->config->sandbox_image;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		log_info("the image %s was pulled", image);
	else
		log_err("docker pull %s: %s", image, text);
	engine_probe(e);
}

/* A failed pull is tried again, but not at once: the registry may be down. */
static void
pull_maybe(struct engine *e)
{
	const struct config *config = e->host->config;
	int64_t now = clock_monotonic_ms();

	if (!config->pull_on_startup || !e->up || e->image || is_ending(e) ||
	    e->pull.running ||
	    (e->pulled_ms >= 0 && now - e->pulled_ms < PULL_AGAIN_MS))
		return;
	e->pulled_ms = now;
	log_info("pulling the image %s", config->sandbox_image);
	docker_start(&e->pull, e->host, DOCKER_PULL, config->sandbox_image,
	    PULL_MS, pull_on_end, e);
}

/* ---- the sweep ---- */

/* Something was found out: look after it again in a while, counted from now. */
static void
engine_news(struct engine *e)
{
	e->probed_ms = clock_monotonic_ms();
	if (!is_ending(e))
		loop_timer_set(e->host->loop, &e->recheck, RECHECK_MS,
		    engine_probe, e);
	status_tell(e->host);
	host_look(e->host, 0);
}

/* The containers of an earlier life are gone, or cannot be removed; without a
 * clean engine nothing is started. */
static void
sweep_end(struct engine *e, bool clean)
{
	e->sweeping = false;
	e->clean = clean;
	if (!is_ending(e)) {
		e->swept = clean;
		e->up = e->up && clean;
	}
	engine_news(e);
}

/* What docker said is what people are told. */
static void
sweep_failed(struct engine *e, const struct process_result *result)
{
	process_describe(result, e->trouble, sizeof(e->trouble));
	log_err("sweep: docker %s", e->trouble);
	sweep_end(e, false);
}

static void
sweep_volumes_on_removed(void *arg, const struct process_result *result)
{
	(void)result; /* one that is in use belongs to a container still */
	sweep_end(arg, true);
}

/* Remove what an answer lists; how many there were. */
static size_t
sweep_remove(struct engine *e, enum docker_call call, const char *answer,
    subprocess_fn done)
{
	const struct config *config = e->host->config;
	auto_argv struct argv argv;
	char id[128];
	size_t n = 0;

	docker_argv(&argv, config->docker_binary, call, NULL);
	for (size_t pos = 0;
	     n < SWEEP_BATCH && docker_next(answer, &pos, false, id); n++)
		argv_add(&argv, id);
	if (n > 0)
		subprocess_start(&e->sweep, e->host->loop, &argv,
		    engine_remove_ms(config), done, e);
	return n;
}

/* Volumes that the engine did not remove with their containers. */
static void
sweep_volumes_on_list(void *arg, const struct process_result *result)
{
	if (!process_succeeded(result) ||
	    sweep_remove(arg, DOCKER_REMOVE_VOLUMES, buf_str(&result->out),
		sweep_volumes_on_removed) == 0)
		sweep_end(arg, true);
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
		loop_timer_set(e->host->loop, &e->again, SWEEP_PAUSE_MS,
		    sweep_list, e);
}

/* The answer of one round: containers to remove, or none any more. */
static void
sweep_on_list(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	size_t n;

	if (!process_succeeded(result)) {
		sweep_failed(e, result);
		return;
	}
	if (e->sweep_rounds == SWEEP_ROUNDS && *buf_str(&result->out) != '\0') {
		sweep_end(e, false);
		return;
	}
	n = sweep_remove(e, DOCKER_REMOVE, buf_str(&result->out),
	    sweep_on_removed);
	/* No container is left: now what they had mounted. */
	if (n == 0)
		docker_start(&e->sweep, e->host, DOCKER_VOLUMES,
		    e->host->instance, probe_ms(e), sweep_volumes_on_list, e);
	else if (e->sweep_rounds++ == 0)
		log_info(is_ending(e) ? "ending %zu containers" :
					"removing %zu containers of an earlier "
					"il-sandboxd",
		    n);
}

/* One round: list the containers, remove so many of them, list again. */
static void
sweep_list(void *arg)
{
	struct engine *e = arg;

	docker_start(&e->sweep, e->host, DOCKER_CELLS, e->host->instance,
	    probe_ms(e), sweep_on_list, e);
}

static void
sweep_start(struct engine *e)
{
	if (e->sweeping)
		return;
	e->sweeping = true;
	e->sweep_rounds = 0;
	sweep_list(e);
}

/* A sweep that is under way becomes the last one. */
void
engine_sweep_last(struct engine *e)
{
	subprocess_cancel(&e->probe);
	subprocess_cancel(&e->pull);
	loop_timer_clear(e->host->loop, &e->recheck);
	sweep_start(e);
}

/* ---- the probe ---- */

/* The one place where the engine's state changes: it is logged when it is
 * news, and what follows from it is begun. */
void
engine_report(struct engine *e, enum engine_state state, const char *trouble)
{
	const bool up = state != ENGINE_DOWN;
	const bool image = state == ENGINE_READY;

	if (up && !e->up)
		log_info("the Docker engine answers");
	else if (!up && (e->up || e->probed_ms < 0))
		log_err("the Docker engine does not answer: %s", trouble);
	if (up && !image && (e->image || !e->up))
		log_warn("the image %s is missing: %s",
		    e->host->config->sandbox_image, trouble);
	e->up = up;
	e->image = image;
	(void)snprintf(e->trouble, sizeof(e->trouble), "%s", trouble);
	engine_news(e);
	pull_maybe(e);
	if (up && !e->swept && !is_ending(e))
		sweep_start(e);
}

/* An engine that answers names the image by its digest.  What is neither that
 * nor "no such image" is no engine. */
static void
probe_on_end(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	bool image = strncmp(buf_str(&result->out), "sha256:", 7) == 0;
	char text[160] = "";

	/* Whoever ends us may have ended it, too: that says nothing of the
	 * engine, from which there are containers to be removed. */
	if (result->outcome == PROCESS_SIGNALED &&
	    e->host->phase != PHASE_SERVING) {
		engine_news(e);
		return;
	}
	if (!process_succeeded(result)) {
		process_describe(result, text, sizeof(text));
		engine_report(e,
		    docker_classify(result) == DOCKER_IMAGE ? ENGINE_NO_IMAGE :
							      ENGINE_DOWN,
		    text);
		return;
	}
	if (!image)
		(void)snprintf(text, sizeof(text),
		    "%s says something that is no image id",
		    e->host->config->docker_binary);
	engine_report(e, image ? ENGINE_READY : ENGINE_DOWN, text);
}

/* One at a time; whoever asks meanwhile gets its answer. */
static void
engine_probe(void *arg)
{
	struct engine *e = arg;

	if (!e->probe.running && !is_ending(e))
		docker_start(&e->probe, e->host, DOCKER_PROBE,
		    e->host->config->sandbox_image, probe_ms(e), probe_on_end,
		    e);
}

/* ---- for others ---- */

void
engine_init(struct engine *e, struct host *host)
{
	*e = (struct engine){ .host = host, .probed_ms = -1, .pulled_ms = -1 };
}

void
engine_release(struct engine *e)
{
	subprocess_cancel(&e->probe);
	subprocess_cancel(&e->sweep);
	subprocess_cancel(&e->pull);
	loop_timer_clear(e->host->loop, &e->recheck);
	loop_timer_clear(e->host->loop, &e->again);
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
