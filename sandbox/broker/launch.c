/* SPDX-License-Identifier: MIT */
/*
 * How a container comes up once its volumes are there (prepare.c): docker run
 * is called, the cell connects to the socket that was made for it and says
 * READY. What fails here is told to the one who waits; volumes that cannot be
 * mounted are checked once, and then it is tried again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../base/apparmor.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/preload.h"
#include "api_packages.h"
#include "container.h"
#include "docker.h"
#include "engine.h"
#include "folder.h"
#include "images.h"

#define RUN_MORE_MS 5000 /* over IL_START_SECONDS; then docker run is killed */
#define WATCH_MS 1000	 /* not connected by then: has it died? */

/* docker run itself gets longer than the cell: what it says at its end is
 * better than a timeout. */
static int
run_ms(const struct container *c)
{
	return (int)c->host->config->start_ms + RUN_MORE_MS;
}

/* ---- the socket ---- */

static void
socket_close(struct container *c)
{
	if (c->listen_fd < 0)
		return;
	loop_close(c->host->loop, &c->listen_fd);
	folder_remove(c->host->cells_dir, c->name, true);
}

/* Also when it has come up: what was needed for that goes. */
void
launch_stop(struct container *c)
{
	socket_close(c);
	loop_timer_clear(c->host->loop, &c->watch);
}

void
launch_release(struct container *c)
{
	lock_wait_stop(&c->wait);
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		attachment_release(&c->volumes[i]);
	attachment_release(&c->api_packages);
}

/* The cell is there; it has yet to say READY. */
static void
socket_on_connection(void *arg, int fd, uint32_t events)
{
	struct container *c = arg;
	int control = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (control < 0)
		return;
	/* Only the cell's one connection, made before any code runs. */
	socket_close(c);
	container_connected(c, control);
}

/* Inside the container another user, the cell's, must be able to connect. */
static int
socket_open(struct container *c, struct err *err)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s/socket/cell.sock",
	    c->host->cells_dir, c->name);
	c->listen_fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK,
	    0666, err);
	if (c->listen_fd < 0)
		return -1;
	loop_add(c->host->loop, c->listen_fd, EPOLLIN, socket_on_connection, c);
	return 0;
}

/* ---- docker run ---- */

/* This try is over, and its name with it. */
static void
run_undo(struct container *c)
{
	container_timer(c, -1, NULL);
	launch_stop(c);
	folder_remove(c->host->cells_dir, c->name, false);
	c->called = false;
}

/* Once, when a file system could not be mounted: what is left of this try has
 * been removed; check both volumes, and begin anew with a new name. */
static void
repair_on_removed(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	(void)result;
	run_undo(c);
	c->repaired = true;
	container_set(c, CONTAINER_PREPARING);
	prepare_begin(c);
}

/* docker run failed before the cell connected: whose fault is it, and may
 * another try help? */
static void
run_failed(struct container *c, const struct process_result *result)
{
	enum docker_failure why = docker_classify(result);
	char text[180];
	char line[160];

	process_describe(result, line, sizeof(line));
	(void)snprintf(text, sizeof(text), "docker run %s", line);
	if (why == DOCKER_MOUNT && !c->repaired && !c->spare) {
		log_warn("%s cell=%s sandbox=%s", text, c->name, c->sandbox);
		container_timer(c, -1, NULL);
		launch_stop(c);
		/* Docker may have created it without starting it. */
		docker_start(&c->tool, c->host, DOCKER_REMOVE, c->name,
		    run_ms(c), repair_on_removed, c);
	} else if (why == DOCKER_ENGINE) {
		container_fail(c, REFUSAL_ENGINE, text);
		engine_report(c->host->engine, ENGINE_DOWN, line);
	} else if (why == DOCKER_IMAGE && c->derived) {
		/* That has been removed: from the image itself. */
		run_undo(c);
		images_forget(c->host->images, c->interpreter.image);
		container_set(c, CONTAINER_PREPARED);
	} else if (why == DOCKER_IMAGE) {
		container_fail(c, REFUSAL_IMAGE, text);
		/* The engine's state is about the one image. */
		if (strcmp(c->interpreter.image,
			c->host->config->sandbox_image) == 0)
			engine_report(c->host->engine, ENGINE_NO_IMAGE, line);
	} else {
		container_fail(c, REFUSAL_START, text);
	}
}

/* docker run --detach ends when the container runs; in ENDING its end was
 * waited for, since before it there may be nothing to remove. */
static void
run_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	if (result->outcome == PROCESS_NOT_STARTED)
		c->called = false;
	if (c->state == CONTAINER_ENDING) {
		container_reap(c, true); /* it has waited for this */
	} else if (c->state == CONTAINER_STARTING &&
	    !process_succeeded(result)) {
		run_failed(c, result);
	} else {
		host_look(c->host, 0);
	}
}

/* The container ended and nobody connected. */
static void
wait_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	/* Without it the start's own time tells. */
	if (result->outcome == PROCESS_NOT_STARTED)
		return;
	if (c->state == CONTAINER_STARTING && c->control_fd < 0)
		container_fail(c, REFUSAL_START,
		    "the cell ended before it connected");
}

/* It should have connected: docker wait tells at once when it has died. */
static void
watch_on_timer(void *arg)
{
	struct container *c = arg;

	if (c->control_fd >= 0)
		return;
	if (c->run.running)
		loop_timer_set(c->host->loop, &c->watch, WATCH_MS,
		    watch_on_timer, c);
	else
		docker_start(&c->tool, c->host, DOCKER_WAIT, c->name,
		    (int)c->host->config->start_ms, wait_on_end, c);
}

/* IL_START_SECONDS are over. */
static void
start_on_timer(void *arg)
{
	struct container *c = arg;

	if (!c->run.running) {
		container_fail(c, REFUSAL_START, "the cell did not connect");
		return;
	}
	/* Slow, or does it not answer at all?  Asked, not guessed. */
	container_fail(c, REFUSAL_ENGINE,
	    "docker run takes longer than IL_START_SECONDS");
	(void)engine_refresh(c->host->engine, WATCH_MS);
}

/* ---- the cell's first word ---- */

/* What READY says.  The version ("3.11.2") goes into logs and to people; there
 * is no isolation where there is none to choose. */
static bool
ready_read(struct container *c, const struct frame_view *view)
{
	int64_t imported;

	if (!frame_get_text(view, TAG_PYTHON, c->python, sizeof(c->python)) ||
	    *c->python == '\0' ||
	    c->python[strspn(c->python,
		"0123456789.abcdefghijklmnopqrstuvwxyz+")] != '\0')
		return false;
	if (c->class->reuse != REUSE_ANYONE)
		return true;
	if (c->imports != 0 && frame_get_int(view, TAG_IMPORTS, &imported))
		c->absent = preload_without(c->imports, (uint32_t)imported);
	(void)frame_get_text(view, TAG_TEXT, c->isolation_reason,
	    sizeof(c->isolation_reason));
	return frame_get_int(view, TAG_ISOLATION, &c->isolation) &&
	    (c->isolation == ISOLATION_CELL || c->isolation == ISOLATION_RUN);
}

/* Docker hides what no run is to see of the kernel's paths, where the cell's
 * namespaces cannot.  False: the cell ends, as nothing hides that there. */
static bool
ready_is_covered(struct container *c)
{
	bool covers = c->isolation == ISOLATION_RUN;

	if (c->class->reuse != REUSE_ANYONE)
		return true;
	c->host->masks = !covers;
	/* masked for want of namespaces, which are there: it has no /proc */
	if (covers && c->masked)
		c->retire = true;
	if (covers || c->masked)
		return true;
	log_info("no namespaces for its runs: the next one has the engine's "
		 "masks cell=%s",
	    c->name);
	container_end(c, false);
	return false;
}

static bool
ready_is_allowed(struct container *c)
{
	char why[200];

	if (c->isolation != ISOLATION_CELL ||
	    strcmp(c->host->config->api_isolation, "run") != 0)
		return true;
	(void)snprintf(why, sizeof(why),
	    "runs cannot have namespaces of their own here: %s",
	    c->isolation_reason);
	container_fail(c, REFUSAL_START, why);
	return false;
}

bool
launch_ready(struct container *c, const struct frame_view *view)
{
	char trouble[160];

	if (!ready_read(c, view))
		return false;
	if (!ready_is_allowed(c) || !ready_is_covered(c))
		return true;
	if (frame_get_text(view, TAG_TROUBLE, trouble, sizeof(trouble)))
		log_at(preload_is_auto(c->host->config->preload) ?
			LOG_LEVEL_DEBUG :
			LOG_LEVEL_WARN,
		    "IL_PRELOAD: %s image=%s cell=%s", trouble,
		    c->interpreter.image, c->name);
	launch_stop(c);
	/* A spare one's devices have nothing mounted yet. */
	if (!c->spare)
		launch_release(c);
	subprocess_cancel(&c->tool);
	log_debug("ready after %" PRId64 " ms cell=%s",
	    clock_monotonic_ms() - c->since_ms, c->name);
	return true;
}

/* PREPARED to STARTING: the folder, the socket, then docker run. The socket is
 * there before the container, so the cell connects once and need not wait. */
void
container_run(struct container *c)
{
	const char *image = images_name(c->host->images, c->interpreter.image);
	auto_argv struct argv argv = { .count = 0 };
	struct err err;

	if (folder_make(c->host, c->name, c->uid, &err) != 0 ||
	    socket_open(c, &err) != 0) {
		container_fail(c, REFUSAL_START, err.text);
		return;
	}
	if (c->class->in_memory)
		api_packages_attach(c->host, c->interpreter.name,
		    &c->api_packages);
	c->masked = c->host->masks ||
	    strcmp(c->host->config->api_isolation, "cell") == 0;
	c->derived = strcmp(image, c->interpreter.image) != 0;
	docker_run_argv(&argv, c, image,
	    c->class->reuse == REUSE_ANYONE ?
		apparmor_choose(c->host->config->api_apparmor) :
		"");
	container_set(c, CONTAINER_STARTING);
	subprocess_start(&c->run, c->host->loop, &argv, run_ms(c), run_on_end,
	    c);
	c->called = true;
	c->run_ms = c->since_ms;
	container_timer(c, c->host->config->start_ms, start_on_timer);
	loop_timer_set(c->host->loop, &c->watch, WATCH_MS, watch_on_timer, c);
}
