/*
 * How a container comes up once its volumes are there (prepare.c): docker run
 * is called, the cell connects to the socket that was made for it and says
 * READY. What fails here is told to the one who waits; volumes that cannot be
 * mounted are checked once, and then it is tried again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/apparmor.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "class.h"
#include "container.h"
#include "container_parts.h"
#include "derive.h"
#include "docker.h"
#include "engine.h"
#include "folder.h"

#define RUN_MORE_MS 5000 /* over IL_START_SECONDS; then docker run is killed */
#define WATCH_MS 1000	 /* not connected by then: has it died? */
#define OUTPUT_MAX 4096

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
	loop_remove(c->host->loop, c->listen_fd);
	(void)close(c->listen_fd);
	c->listen_fd = -1;
	folder_remove_socket(c->host->cells_dir, c->name);
}

void
launch_stop(struct container *c)
{
	socket_close(c);
	if (c->watch != NULL)
		loop_timer_cancel(c->host->loop, c->watch);
	c->watch = NULL;
}

void
launch_release(struct container *c)
{
	for (size_t i = 0; i < CONTAINER_VOLUMES; i++)
		attachment_release(&c->volumes[i]);
}

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

/* Once, when a file system could not be mounted: remove what is left of this
 * try, check both volumes, and begin anew with a new name. */
static void
repair_on_removed(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	(void)result;
	folder_remove(c->host->cells_dir, c->name);
	c->called = false;
	c->repaired = true;
	container_set(c, CONTAINER_PREPARING);
	prepare_begin(c);
}

static void
repair(struct container *c)
{
	auto_argv struct argv argv;
	struct process_spec spec;
	struct err err;

	container_timer(c, -1, NULL);
	launch_stop(c);
	argv_init(&argv);
	docker_argv_remove(&argv, c->host->config->docker_binary, c->name);
	spec = (struct process_spec){ .argv = argv.words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = run_ms(c) };
	if (subprocess_start(&c->tool, &spec, repair_on_removed, c, &err) != 0)
		container_fail(c, REFUSAL_START, err.text);
}

/* What was derived from the image has been removed: from the image itself. */
static void
run_from_image(struct container *c)
{
	container_timer(c, -1, NULL);
	launch_stop(c);
	folder_remove(c->host->cells_dir, c->name);
	c->called = false;
	derive_forget(c->host->derive, c->image);
	container_set(c, CONTAINER_PREPARED);
}

static void
run_failed(struct container *c, const struct process_result *result)
{
	enum docker_failure why = docker_classify(result);
	char text[180];
	char line[160];

	process_describe(result, line, sizeof(line));
	(void)snprintf(text, sizeof(text), "docker run %s", line);
	if (why == DOCKER_MOUNT && !c->repaired) {
		log_warn("%s cell=%s sandbox=%s", text, c->name, c->sandbox);
		repair(c);
	} else if (why == DOCKER_ENGINE) {
		container_fail(c, REFUSAL_ENGINE, text);
		engine_report(c->host->engine, ENGINE_DOWN, line);
	} else if (why == DOCKER_IMAGE && c->derived) {
		run_from_image(c);
	} else if (why == DOCKER_IMAGE) {
		container_fail(c, REFUSAL_IMAGE, text);
		/* The engine's state is about the one image. */
		if (strcmp(c->image, c->host->config->sandbox_image) == 0)
			engine_report(c->host->engine, ENGINE_NO_IMAGE, line);
	} else {
		container_fail(c, REFUSAL_START, text);
	}
}

static void
run_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	if (c->state == CONTAINER_ENDING) {
		container_reap(c, true); /* it has waited for this */
	} else if (c->state == CONTAINER_STARTING &&
	    !process_succeeded(result)) {
		run_failed(c, result);
	} else {
		c->host->changed(c->host->arg);
	}
}

static void
wait_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	(void)result;
	if (c->state == CONTAINER_STARTING && c->control_fd < 0)
		container_fail(c, REFUSAL_START,
		    "the cell ended before it connected");
}

/* It should have connected: docker wait tells at once when it has died. */
static void
watch_on_timer(void *arg)
{
	struct container *c = arg;
	auto_argv struct argv argv = { 0 };
	struct process_spec spec;
	struct err err;

	c->watch = NULL;
	if (c->control_fd >= 0)
		return;
	if (c->run.running) {
		c->watch = loop_timer_add(c->host->loop,
		    clock_monotonic_ms() + WATCH_MS, watch_on_timer, c);
		return;
	}
	argv_init(&argv);
	docker_argv_wait(&argv, c->host->config->docker_binary, c->name);
	spec = (struct process_spec){ .argv = argv.words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = (int)c->host->config->start_ms };
	if (subprocess_start(&c->tool, &spec, wait_on_end, c, &err) != 0)
		log_warn("%s cell=%s", err.text, c->name);
}

static void
start_on_timer(void *arg)
{
	struct container *c = arg;

	c->timer = NULL;
	if (!c->run.running) {
		container_fail(c, REFUSAL_START, "the cell did not connect");
		return;
	}
	/* Slow, or does it not answer at all?  Asked, not guessed. */
	container_fail(c, REFUSAL_ENGINE,
	    "docker run takes longer than IL_START_SECONDS");
	(void)engine_refresh(c->host->engine, WATCH_MS);
}

/* Those whose runs are to have namespaces. */
static bool
is_jailer(const struct container *c)
{
	return c->class->reuse == REUSE_ANYONE;
}

static const char *
isolation_forced(const struct container *c)
{
	return is_jailer(c) &&
		strcmp(c->host->config->api_isolation, "cell") == 0 ?
	    "1" :
	    NULL;
}

static void
run_build(struct container *c, struct argv *argv)
{
	const struct config *config = c->host->config;
	const struct cell_class *class = c->class;
	auto_free char *folder = NULL;
	auto_free char *seccomp = NULL;
	char devices[CONTAINER_VOLUMES][32];
	struct docker_run run = { .binary = config->docker_binary,
		.runtime = config->sandbox_runtime,
		.image = derive_name(c->host->derive, c->image),
		.name = c->name,
		.instance = c->host->instance,
		.class = class->name,
		.sandbox = c->sandbox,
		.network = class_network(class, config),
		.ca_bundle = class_ca_bundle(class, config),
		.argument = class->argument,
		.isolation = isolation_forced(c),
		.preload = is_jailer(c) ? config->preload : "",
		.apparmor = is_jailer(c) ?
		    apparmor_choose(config->api_apparmor) :
		    "",
		.sysctl = class->sysctl,
		.mount_count = c->volume_count,
		.uid = c->uid,
		.code = !class->in_memory,
		.memory = class_memory(class, config),
		.pids = config->pids,
		.disk_rate = config->disk_rate,
		.disk_ops = config->disk_ops,
		.file_max = class_file_max(class, config),
		.cpus = config->cpus };

	if (asprintf(&folder, "%s/%s", c->host->cells_dir, c->name) < 0 ||
	    asprintf(&seccomp, "%s/%s", config->lib_dir, class->seccomp) < 0)
		log_fatal(1, "out of memory");
	run.folder = folder;
	run.seccomp = seccomp;
	run.folder_count = class_folders(class, config, run.folders);
	for (size_t i = 0; i < c->volume_count; i++) {
		(void)snprintf(devices[i], sizeof(devices[i]), "/dev/loop%d",
		    c->volumes[i].device);
		run.mounts[i].device = devices[i];
		run.mounts[i].target = prepare_target(c, i);
		run.mounts[i].read_only = i > 0 || !c->writable;
	}
	c->derived = strcmp(run.image, c->image) != 0;
	docker_argv_run(argv, &run);
}

static int
launch_make_folder(const struct container *c, struct err *err)
{
	auto_free char *program = NULL;

	if (asprintf(&program, "%s/cell", c->host->config->lib_dir) < 0)
		log_fatal(1, "out of memory");
	return folder_make(c->host->cells_dir, c->name, program, c->uid, err);
}

void
container_run(struct container *c)
{
	auto_argv struct argv argv;
	struct process_spec spec;
	struct err err;

	argv_init(&argv);
	if (launch_make_folder(c, &err) != 0 || socket_open(c, &err) != 0) {
		container_fail(c, REFUSAL_START, err.text);
		return;
	}
	run_build(c, &argv);
	spec = (struct process_spec){ .argv = argv.words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = run_ms(c) };
	container_set(c, CONTAINER_STARTING);
	if (subprocess_start(&c->run, &spec, run_on_end, c, &err) != 0) {
		container_fail(c, REFUSAL_ENGINE, err.text);
		return;
	}
	c->called = true;
	container_timer(c, c->host->config->start_ms, start_on_timer);
	c->watch = loop_timer_add(c->host->loop,
	    clock_monotonic_ms() + WATCH_MS, watch_on_timer, c);
}
