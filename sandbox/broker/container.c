/* SPDX-License-Identifier: MIT */
/*
 * A container's life after its volumes were prepared (prepare.c). docker run is
 * called, the cell connects to the socket that was made for it and sends READY.
 * A failure until then is reported to the waiting ticket, and volumes that
 * cannot be mounted are checked once.  Control frames, leases and the end
 * follow.  Every state has at most one timer, which limits its length.
 */
#include "broker/container.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/loop.h"
#include "broker/engine.h"

#define RUN_MORE_MS \
	5000 /* over IL_TUNE_START_SECONDS until docker run is killed */
#define WATCH_MS 1000	/* without a connection until docker is asked */
#define RELEASE_MS 2000 /* for IDLE after a lease */
#define EXIT_MS 2000	/* to exit by itself; between two kills */
#define CONTROL_MAX 4096

/* Set a name that no container of this broker ever had. */
static void
container_rename(struct container *c)
{
	c->number = ++c->host->serial;
	(void)snprintf(c->name, sizeof(c->name), "il-%.16s-%" PRIx64 "-%u",
	    c->host->instance, (uint64_t)c->host->started_s, c->number);
}

struct container *
container_alloc(struct host *host, const struct cell_class *class)
{
	struct container *c = xcalloc(1, sizeof(*c));

	c->host = host;
	c->class = class;
	c->listen_fd = -1;
	c->control_fd = -1;
	c->pidfd = -1;
	c->ooms_fd = -1;
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		c->volumes[i] = (struct attachment){ -1, -1, -1 };
	c->api_packages = (struct attachment){ -1, -1, -1 };
	container_rename(c);
	return c;
}

/* The pool learns of each change of the state from the loop. */
void
container_set(struct container *c, enum container_state state)
{
	c->state = state;
	c->since_ms = clock_monotonic_ms();
	host_schedule(c->host, 0);
}

void
container_timer(struct container *c, int64_t ms, void (*fn)(void *))
{
	if (ms < 0)
		loop_timer_clear(c->host->loop, &c->timer);
	else
		loop_timer_set(c->host->loop, &c->timer, ms, fn, c);
}

/* The cell has connected, or never will. */
static void
stop_waiting(struct container *c)
{
	subprocess_cancel(&c->tool);
	loop_timer_clear(c->host->loop, &c->watch);
	if (c->listen_fd < 0)
		return;
	loop_close(c->host->loop, &c->listen_fd);
	folder_remove(c->host->cells_dir, c->name, true);
}

void
container_release_volumes(struct container *c)
{
	lock_wait_stop(&c->wait);
	for (size_t i = 0; i < CLASS_VOLUMES; i++)
		attachment_release(&c->volumes[i]);
	attachment_release(&c->api_packages);
}

/* ---- the end ---- */

/* The container is gone: release all that it held, from any state. */
static void
container_gone(struct container *c)
{
	container_timer(c, -1, NULL);
	loop_close(c->host->loop, &c->control_fd);
	loop_close(c->host->loop, &c->pidfd);
	cleanup_close(&c->ooms_fd);
	subprocess_cancel(&c->run);
	subprocess_cancel(&c->remove);
	mounter_end(c);
	stop_waiting(c);
	container_release_volumes(c);
	folder_remove(c->host->cells_dir, c->name, false);
	/* A volume that was never mounted frees its reservation at once.  The
	 * kernel may still have to write to one that was. */
	for (size_t i = 0; i < CLASS_VOLUMES; i++) {
		if (c->called)
			reservation_leave(c->reserved[i]);
		else
			reservation_free(c->reserved[i]);
		c->reserved[i] = NULL;
	}
	log_debug("gone cell=%s", c->name);
	container_set(c, CONTAINER_GONE);
}

void
container_free(struct container *c)
{
	if (c->state != CONTAINER_GONE)
		container_gone(c);
	free(c);
}

static void container_remove(void *arg);

/* With a pidfd, only the death of the first process counts.  Without one,
 * docker's answer has to do. */
static void
remove_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	bool absent = process_succeeded(result) ||
	    docker_classify(result) == DOCKER_ABSENT;
	struct process_end end;

	if (absent && c->pidfd < 0) {
		container_gone(c);
		return;
	}
	if (!absent) {
		end = process_describe(result);
		log_warn("docker rm: %s cell=%s", end.text, c->name);
		if (docker_classify(result) == DOCKER_ENGINE)
			engine_report(c->host->engine, ENGINE_DOWN, end.text);
	}
	container_timer(c, EXIT_MS, container_remove);
}

/* Kill and remove the container; repeated until it is gone. */
static void
container_remove(void *arg)
{
	struct container *c = arg;

	if (!c->remove.running)
		docker_start(&c->remove, c->host, DOCKER_REMOVE, c->name,
		    remove_on_end, c);
}

/* With the pidfd its death is seen, so it may exit by itself first. */
static void
container_reap(struct container *c, bool kill)
{
	container_timer(c, kill || c->pidfd < 0 ? 0 : EXIT_MS,
	    container_remove);
}

/* A container that was never started is gone at once.  All others see the end
 * of their control socket, and are removed if they do not exit. */
void
container_end(struct container *c, bool kill)
{
	if (c->state >= CONTAINER_ENDING)
		return;
	mounter_end(c);
	stop_waiting(c);
	lock_wait_stop(&c->wait);
	loop_close(c->host->loop, &c->control_fd);
	container_timer(c, -1, NULL);
	if (!c->called) {
		container_gone(c);
		return;
	}
	container_set(c, CONTAINER_ENDING);
	/* While docker run goes on there may be nothing to remove yet.  Its
	 * end, within its deadline, continues in run_on_end(). */
	if (!c->run.running)
		container_reap(c, kill);
}

void
container_fail(struct container *c, enum refusal failure, const char *text)
{
	log_warn("%s cell=%s sandbox=%s", text, c->name, c->sandbox);
	c->failure = failure;
	(void)snprintf(c->failure_text, sizeof(c->failure_text), "%s", text);
	container_end(c, true);
}

/* The cell misbehaves: an untrusted process is killed without time to exit. */
static void
container_broken(struct container *c, const char *what)
{
	if (c->state == CONTAINER_STARTING) {
		container_fail(c, REFUSAL_START, what);
		return;
	}
	log_warn("%s cell=%s sandbox=%s", what, c->name, c->sandbox);
	container_end(c, true);
}

/* ---- out-of-memory kills ---- */

/* The line `oom_kill N` of a file of the container's memory cgroup (v2:
 * memory.events, v1: memory.oom_control).  The cell opens the file before any
 * code runs and sends it with READY, so the broker needs neither the path nor
 * the right to open it.  The number is 0 when there is no descriptor, or when
 * the engine has removed the cgroup, which it does soon after the container's
 * end. */
static const char oom_kills[] = "\noom_kill ";

/* The descriptor came from the cell: only a file of a cgroup is accepted, since
 * reading it never blocks. */
static void
ooms_accept(struct container *c, int *attached)
{
	struct statfs fs;

	if (c->ooms_fd < 0 && *attached >= 0 && fstatfs(*attached, &fs) == 0 &&
	    (fs.f_type == CGROUP2_SUPER_MAGIC ||
		fs.f_type == CGROUP_SUPER_MAGIC))
		c->ooms_fd = steal_fd(attached);
}

/* Note an out-of-memory kill, at once: the cgroup of a cell that has ended is
 * removed soon. */
static void
container_note_oom(struct container *c)
{
	if (c->state != CONTAINER_LEASED ||
	    host_read_number(c->ooms_fd, oom_kills) <= c->ooms)
		return;
	c->out_of_memory = true;
	log_info("out of memory cell=%s", c->name);
}

/* ---- READY ---- */

/* Read the fields of READY.  The version ("3.11.2") goes into logs and to
 * people.  Only cells that serve several clients report an isolation. */
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

/* The kernel's paths must be hidden from runs, by the cell's namespaces or by
 * docker's masks.  False: neither hides them, or namespaces are demanded, and
 * the cell ends. */
static bool
ready_is_allowed(struct container *c)
{
	bool covers = c->isolation == ISOLATION_RUN;
	char why[200];

	if (c->class->reuse != REUSE_ANYONE)
		return true;
	if (!covers && strcmp(c->host->config->api_isolation, "run") == 0) {
		(void)snprintf(why, sizeof(why),
		    "runs cannot have namespaces of their own here: %s",
		    c->isolation_reason);
		container_fail(c, REFUSAL_START, why);
		return false;
	}
	c->host->needs_masks = !covers;
	/* namespaces work after all, but masks forbid to mount /proc */
	c->retire = c->retire || (covers && c->masked);
	if (covers || c->masked)
		return true;
	log_info("no namespaces for its runs: the next one has the engine's "
		 "masks cell=%s",
	    c->name);
	container_end(c, false);
	return false;
}

static bool
container_ready(struct container *c, const struct frame_view *view)
{
	char trouble[160];

	if (!ready_read(c, view))
		return false;
	if (!ready_is_allowed(c))
		return true;
	if (frame_get_text(view, TAG_TROUBLE, trouble, sizeof(trouble)))
		log_at(preload_is_auto(c->host->config->preload) ?
			LOG_LEVEL_DEBUG :
			LOG_LEVEL_WARN,
		    "IL_PRELOAD: %s image=%s cell=%s", trouble,
		    c->interpreter.image, c->name);
	/* A standby cell's devices are not mounted yet. */
	if (!c->standby)
		container_release_volumes(c);
	log_debug("ready after %" PRId64 " ms cell=%s",
	    clock_monotonic_ms() - c->since_ms, c->name);
	return true;
}

/* ---- frames on the control socket ---- */

/* The pool decides how long the cell stays: a ticket may be waiting for
 * exactly this cell. */
void
container_idle(struct container *c)
{
	if (c->class->reuse == REUSE_ANYONE && c->runs > 0 &&
	    (c->isolation != ISOLATION_RUN || c->retire)) {
		container_end(c, false);
		return;
	}
	container_timer(c, -1, NULL);
	container_set(c, CONTAINER_IDLE);
}

/* attached: the descriptor that came with the frame, or -1; ownership may move
 * from there. */
static bool
container_handle(struct container *c, const struct frame_view *view,
    int *attached)
{
	int64_t retire;
	int64_t kept = 0;

	if (c->class->mounts_for_another)
		return mounter_handle(c, view);
	if (view->kind == FRAME_READY) {
		ooms_accept(c, attached);
		if (c->state != CONTAINER_STARTING || c->adopting ||
		    !container_ready(c, view))
			return false;
		if (c->state == CONTAINER_STARTING)
			container_idle(c);
		return true;
	}
	if (view->kind != FRAME_IDLE)
		return false;
	if (frame_get_int(view, TAG_RETIRE, &retire) && retire != 0)
		c->retire = true;
	/* the cell may only say so where its client has asked for it */
	(void)frame_get_int(view, TAG_KEPT, &kept);
	c->has_session = kept != 0 && (c->has_session || c->keep_session);
	if (c->state == CONTAINER_RELEASING) {
		container_idle(c);
		return true;
	}
	/* The cell may see the end of its lease before the broker does. */
	if (c->state != CONTAINER_LEASED || c->idle_seen)
		return false;
	c->idle_seen = true;
	return true;
}

/* Read a frame of the cell.  The end of its control socket is its end. */
static void
control_on_packet(void *arg, int fd, uint32_t events)
{
	struct container *c = arg;
	char packet[CONTROL_MAX];
	struct frame_view view;
	auto_close int attached = -1;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), &attached,
	    0, &err);

	(void)events;
	if (len > 0) {
		if (!frame_parse(&view, packet, (size_t)len) ||
		    !container_handle(c, &view, &attached))
			container_broken(c, "the cell broke the protocol");
		return;
	}
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	if (c->state == CONTAINER_STARTING) {
		container_fail(c, REFUSAL_START, "the cell died at its start");
		return;
	}
	container_note_oom(c);
	log_info("the cell went away cell=%s sandbox=%s", c->name, c->sandbox);
	container_end(c, false);
}

/* The first process of the container is dead. */
static void
pidfd_on_death(void *arg, int fd, uint32_t events)
{
	struct container *c = arg;

	(void)fd;
	(void)events;
	if (c->state == CONTAINER_STARTING) {
		c->failure = REFUSAL_START;
		(void)snprintf(c->failure_text, sizeof(c->failure_text),
		    "the cell died at its start");
	}
	container_note_oom(c);
	if (c->state != CONTAINER_ENDING)
		log_info("the cell died cell=%s sandbox=%s", c->name,
		    c->sandbox);
	container_gone(c);
}

/* ---- the start ---- */

/* The cell has connected; READY follows.  When its first process dies, the
 * kernel has killed all others in the container.  (A broker in a pid namespace
 * of its own cannot see that process, and asks docker.) */
static void
socket_on_connection(void *arg, int fd, uint32_t events)
{
	struct container *c = arg;
	int control = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (control < 0)
		return;
	/* The cell connects once, before any code runs; the socket goes. */
	stop_waiting(c);
	c->control_fd = control;
	loop_add(c->host->loop, control, EPOLLIN, control_on_packet, c);
	c->pidfd = process_of_peer(control);
	if (c->pidfd >= 0)
		loop_add(c->host->loop, c->pidfd, EPOLLIN, pidfd_on_death, c);
	else if (errno == EXDEV && c->class->mounts_for_another)
		mounter_forbid(c);
}

/* The cell's user in the container must be able to connect. */
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

void
container_undo_run(struct container *c)
{
	container_timer(c, -1, NULL);
	stop_waiting(c);
	folder_remove(c->host->cells_dir, c->name, false);
	c->called = false;
	container_rename(c);
}

/* The first container could not mount a file system and has been removed: check
 * both volumes and begin again under a new name. */
static void
repair_on_removed(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	(void)result;
	container_undo_run(c);
	c->repaired = true;
	container_set(c, CONTAINER_PREPARING);
	prepare_begin(c);
}

/* docker run failed before the cell connected: find the cause, and try again
 * where that may help. */
static void
run_failed(struct container *c, const struct process_result *result)
{
	enum docker_failure why = docker_classify(result);
	bool mounter = c->class->mounts_for_another;
	struct process_end end = process_describe(result);
	char text[180];

	(void)snprintf(text, sizeof(text), "docker run %s", end.text);
	if (mounter && why == DOCKER_IMAGE && !c->repaired) {
		mounter_import(c);
	} else if (why == DOCKER_MOUNT && !c->repaired && !c->standby &&
	    !mounter) {
		log_warn("%s cell=%s sandbox=%s", text, c->name, c->sandbox);
		container_timer(c, -1, NULL);
		stop_waiting(c);
		/* Docker may have created the container without starting it. */
		docker_start(&c->tool, c->host, DOCKER_REMOVE, c->name,
		    repair_on_removed, c);
	} else if (why == DOCKER_ENGINE) {
		container_fail(c, REFUSAL_ENGINE, text);
		engine_report(c->host->engine, ENGINE_DOWN, end.text);
	} else if (why == DOCKER_IMAGE && c->derived) {
		/* The derived image has been removed: start from the original.
		 */
		container_undo_run(c);
		images_forget(c->host->images, c->interpreter.image);
		container_set(c, CONTAINER_PREPARED);
	} else if (why == DOCKER_IMAGE) {
		container_fail(c, REFUSAL_IMAGE, text);
		/* The engine's state is about SANDBOX_IMAGE alone. */
		if (strcmp(c->interpreter.image,
			c->host->config->sandbox_image) == 0)
			engine_report(c->host->engine, ENGINE_NO_IMAGE,
			    end.text);
	} else {
		container_fail(c, REFUSAL_START, text);
	}
}

/* docker run --detach ends when the container runs.  In ENDING the removal has
 * waited for it, since there may have been nothing to remove before. */
static void
run_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	if (result->outcome == PROCESS_NOT_STARTED)
		c->called = false;
	if (c->state == CONTAINER_ENDING) {
		container_reap(c, true);
	} else if (c->state == CONTAINER_STARTING &&
	    !process_succeeded(result)) {
		run_failed(c, result);
	} else {
		host_schedule(c->host, 0);
	}
}

/* docker wait has ended: the container ended before it connected. */
static void
wait_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;

	/* Without docker wait the start's timer reports it. */
	if (result->outcome == PROCESS_NOT_STARTED)
		return;
	if (c->state == CONTAINER_STARTING)
		container_fail(c, REFUSAL_START,
		    "the cell ended before it connected");
}

/* The cell should have connected by now: docker wait returns when it has died.
 */
static void
watch_on_timer(void *arg)
{
	struct container *c = arg;

	if (c->run.running)
		loop_timer_set(c->host->loop, &c->watch, WATCH_MS,
		    watch_on_timer, c);
	else
		docker_start(&c->tool, c->host, DOCKER_WAIT, c->name,
		    wait_on_end, c);
}

/* The cell did not connect within IL_TUNE_START_SECONDS. */
static void
start_on_timer(void *arg)
{
	struct container *c = arg;

	if (!c->run.running) {
		container_fail(c, REFUSAL_START, "the cell did not connect");
		return;
	}
	/* A probe finds out whether the engine is slow or does not answer. */
	container_fail(c, REFUSAL_ENGINE,
	    "docker run takes longer than IL_TUNE_START_SECONDS");
	(void)engine_refresh(c->host->engine, WATCH_MS);
}

/* The socket is made before the container, so the cell connects once and need
 * not wait. */
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
	c->masked = c->host->needs_masks ||
	    strcmp(c->host->config->api_isolation, "cell") == 0;
	c->derived = strcmp(image, c->interpreter.image) != 0;
	docker_run_argv(&argv, c, image,
	    c->class->reuse == REUSE_ANYONE ?
		apparmor_choose(c->host->config->api_apparmor) :
		"");
	container_set(c, CONTAINER_STARTING);
	/* docker run has more time than the cell, since its own error says more
	 * than a timeout. */
	subprocess_start(&c->run, c->host->loop, &argv,
	    (int)c->host->config->start_ms + RUN_MORE_MS, run_on_end, c);
	c->called = true;
	c->run_ms = c->since_ms;
	container_timer(c, c->host->config->start_ms, start_on_timer);
	loop_timer_set(c->host->loop, &c->watch, WATCH_MS, watch_on_timer, c);
}

/* ---- leases ---- */

static void
lease_on_timer(void *arg)
{
	const struct container *c = arg;

	container_broken(arg,
	    c->state == CONTAINER_LEASED ?
		"the lease lasted too long" :
		"the cell did not come back from its lease");
}

/* Send the cell the frame with one end of a new socket pair.  Returns the other
 * end, for the client, or -1. */
static int
send_end(struct container *c, const struct frame *frame, struct err *err)
{
	auto_close int client_end = -1;
	auto_close int cell_end = -1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_system(err, "socketpair");
	client_end = ends[0];
	cell_end = ends[1];
	if (fd_send_packet(c->control_fd, frame->data, frame->len, cell_end, 0,
		err) != 0)
		return -1;
	return steal_fd(&client_end);
}

int
container_lease(struct container *c, int64_t lease_ms, enum access access,
    bool keep_session, const char *folder)
{
	const struct config *config = c->host->config;
	struct frame frame;
	struct err err;
	int client_end;

	c->ooms = host_read_number(c->ooms_fd, oom_kills);
	frame_start(&frame, FRAME_SERVE);
	/* What the operator lets pip do: the container's environment and argv
	 * would show an index's password. */
	if (c->class->network) {
		if (*config->pip_index_url != '\0')
			frame_add_text(&frame, TAG_INDEX_URL,
			    config->pip_index_url);
		frame_add_int(&frame, TAG_SDIST, config->pip_allow_sdist);
		frame_add_int(&frame, TAG_CA, *config->pip_ca_bundle != '\0');
	}
	frame_add_int(&frame, TAG_ACCESS, access);
	if (*folder != '\0')
		frame_add_text(&frame, TAG_FOLDER, folder);
	c->keep_session = keep_session && c->class->has_sessions &&
	    config->sessions > 0;
	if (c->keep_session)
		frame_add_int(&frame, TAG_KEEP, 1);
	client_end = send_end(c, &frame, &err);
	if (client_end < 0) {
		container_broken(c, err.text);
		return -1;
	}
	c->idle_seen = false;
	c->access = access;
	container_timer(c, lease_ms, lease_on_timer);
	container_set(c, CONTAINER_LEASED);
	return client_end;
}

bool
container_is_running(const struct container *c)
{
	return c->state == CONTAINER_LEASED && c->class->concurrent_reads &&
	    !c->idle_seen && c->access != ACCESS_TIDY;
}

int
container_open_reader(struct container *c)
{
	struct frame frame;
	struct err err;
	int client_end;

	frame_start(&frame, FRAME_BESIDE);
	client_end = send_end(c, &frame, &err);
	if (client_end < 0)
		log_warn("no reader during its run: %s cell=%s", err.text,
		    c->name);
	return client_end;
}

/* IDLE may have come before the client's end was seen. */
void
container_release(struct container *c)
{
	if (c->state != CONTAINER_LEASED)
		return;
	c->runs++;
	if (c->idle_seen) {
		container_idle(c);
		return;
	}
	container_timer(c, RELEASE_MS, lease_on_timer);
	container_set(c, CONTAINER_RELEASING);
}
