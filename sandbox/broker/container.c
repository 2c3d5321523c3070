/* SPDX-License-Identifier: MIT */
/*
 * The middle and the end of a container's life: the conversation on its
 * control socket, its leases, and how it goes. How it comes up is in prepare.c
 * and launch.c. Every state has at most one timer, which says how long it may
 * last.
 */
#include "container.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/process.h"
#include "docker.h"
#include "engine.h"
#include "folder.h"

#define RELEASE_MS 2000 /* to come back clean after a lease */
#define EXIT_MS 2000	/* to end by itself; and between two kills */
#define CONTROL_MAX 4096

/* Each change of the state is told, from the loop. */
void
container_set(struct container *c, enum container_state state)
{
	c->state = state;
	c->since_ms = clock_monotonic_ms();
	host_look(c->host, 0);
}

void
container_timer(struct container *c, int64_t ms, void (*fn)(void *))
{
	if (ms < 0)
		loop_timer_clear(c->host->loop, &c->timer);
	else
		loop_timer_set(c->host->loop, &c->timer, ms, fn, c);
}

/* ---- the end ---- */

/* Nothing of it is left: let go of all that it held. From any state. */
static void
container_gone(struct container *c)
{
	container_timer(c, -1, NULL);
	loop_close(c->host->loop, &c->control_fd);
	loop_close(c->host->loop, &c->pidfd);
	cleanup_close(&c->ooms_fd);
	subprocess_cancel(&c->run);
	subprocess_cancel(&c->remove);
	subprocess_cancel(&c->tool);
	attach_end(c);
	launch_stop(c);
	launch_release(c);
	folder_remove(c->host->cells_dir, c->name, false);
	prepare_let_go(c);
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

/* With its first process known, only its death counts; without, what docker
 * says has to do. */
static void
remove_on_end(void *arg, const struct process_result *result)
{
	struct container *c = arg;
	bool absent = process_succeeded(result) ||
	    docker_classify(result) == DOCKER_ABSENT;
	char text[160];

	if (absent && c->pidfd < 0) {
		container_gone(c);
		return;
	}
	if (!absent) {
		process_describe(result, text, sizeof(text));
		log_warn("docker rm: %s cell=%s", text, c->name);
		if (docker_classify(result) == DOCKER_ENGINE)
			engine_report(c->host->engine, ENGINE_DOWN, text);
	}
	container_timer(c, EXIT_MS, container_remove);
}

/* Kill and remove; repeated until it is gone. */
static void
container_remove(void *arg)
{
	struct container *c = arg;

	if (!c->remove.running)
		docker_start(&c->remove, c->host, DOCKER_REMOVE, c->name,
		    engine_remove_ms(c->host->config), remove_on_end, c);
}

/* With the pidfd its death is seen, so it may end by itself first. */
void
container_reap(struct container *c, bool kill)
{
	container_timer(c, kill || c->pidfd < 0 ? 0 : EXIT_MS,
	    container_remove);
}

/* What was never started is gone at once. All others see the end of their
 * control socket, and are removed if that does not help. */
void
container_end(struct container *c, bool kill)
{
	if (c->state >= CONTAINER_ENDING)
		return;
	attach_end(c);
	launch_stop(c);
	lock_wait_stop(&c->wait);
	subprocess_cancel(&c->tool);
	loop_close(c->host->loop, &c->control_fd);
	container_timer(c, -1, NULL);
	if (!c->called) {
		container_gone(c);
		return;
	}
	container_set(c, CONTAINER_ENDING);
	/* While docker run goes on there may be nothing to remove yet: its end
	 * is waited for (launch.c), it has a deadline. */
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

/* It is not what it should be: an untrusted process is killed, not asked. */
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

/* ---- kills for want of memory ---- */

/* The line `oom_kill N` of a file of the container's memory cgroup (v2:
 * memory.events, v1: memory.oom_control), which the cell opens before any code
 * runs and hands over with READY: so nothing need be known of where the host
 * keeps its cgroups, and no right is needed there.  0 where it cannot be told:
 * no descriptor, or the engine has removed the cgroup, soon after the
 * container's end. */
static int64_t
ooms_count(int fd)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	const char *at;

	if (fd < 0 || pread(fd, text + 1, sizeof(text) - 2, 0) <= 0)
		return 0;
	at = strstr(text, key);
	return at == NULL ? 0 : strtoll(at + sizeof(key) - 1, NULL, 10);
}

/* The descriptor came from the cell: only a file of the kernel's own is taken,
 * since reading it never blocks. */
static void
ooms_take(struct container *c, int *attached)
{
	struct statfs fs;

	if (c->ooms_fd < 0 && *attached >= 0 && fstatfs(*attached, &fs) == 0 &&
	    (fs.f_type == CGROUP2_SUPER_MAGIC ||
		fs.f_type == CGROUP_SUPER_MAGIC))
		c->ooms_fd = steal_fd(attached);
}

/* It has ended by itself, and its cgroup is gone in a moment. */
static void
container_ask_why(struct container *c)
{
	if (c->state != CONTAINER_LEASED || ooms_count(c->ooms_fd) <= c->ooms)
		return;
	c->out_of_memory = true;
	log_info("out of memory cell=%s", c->name);
}

/* ---- the conversation on the control socket ---- */

/* Unless nobody may get it again.  How long it stays warm is the pool's affair:
 * somebody may be waiting for exactly this cell. */
static void
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

/* attached: a descriptor that came with it, which may be taken over, or -1. */
static bool
container_take(struct container *c, const void *packet, size_t len,
    int *attached)
{
	struct frame_view view;
	int64_t retire;
	int64_t kept = 0;

	if (!frame_parse(&view, packet, len))
		return false;
	if (view.kind == FRAME_READY) {
		ooms_take(c, attached);
		if (c->state != CONTAINER_STARTING || c->adopting ||
		    !launch_ready(c, &view))
			return false;
		if (c->state == CONTAINER_STARTING)
			container_idle(c);
		return true;
	}
	if (view.kind != FRAME_IDLE)
		return false;
	if (frame_get_int(&view, TAG_RETIRE, &retire) && retire != 0)
		c->retire = true;
	/* the cell alone cannot say so: its client must have asked for it */
	(void)frame_get_int(&view, TAG_KEPT, &kept);
	c->kept = kept != 0 && (c->kept || c->keep);
	if (c->state == CONTAINER_RELEASING) {
		container_idle(c);
		return true;
	}
	/* The cell may see the end of its lease before we do. */
	if (c->state != CONTAINER_LEASED || c->idle_told)
		return false;
	c->idle_told = true;
	return true;
}

/* A frame of the cell's, or the end of its control socket, which is its end. */
static void
control_on_packet(void *arg, int fd, uint32_t events)
{
	struct container *c = arg;
	char packet[CONTROL_MAX];
	auto_close int attached = -1;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), &attached,
	    0, &err);

	(void)events;
	if (len > 0) {
		if (!container_take(c, packet, (size_t)len, &attached))
			container_broken(c, "the cell broke the protocol");
		return;
	}
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	if (c->state == CONTAINER_STARTING) {
		container_fail(c, REFUSAL_START, "the cell died at its start");
		return;
	}
	container_ask_why(c);
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
	container_ask_why(c);
	if (c->state != CONTAINER_ENDING)
		log_info("the cell died cell=%s sandbox=%s", c->name,
		    c->sandbox);
	container_gone(c);
}

/* When its first process is dead the kernel has killed all others there.  (A
 * broker in a pid namespace of its own does not see it, and asks docker.) */
void
container_connected(struct container *c, int control_fd)
{
	c->control_fd = control_fd;
	loop_add(c->host->loop, control_fd, EPOLLIN, control_on_packet, c);
	c->pidfd = process_of_peer(control_fd);
	if (c->pidfd >= 0)
		loop_add(c->host->loop, c->pidfd, EPOLLIN, pidfd_on_death, c);
}

/* ---- leases ---- */

static void
lease_on_timer(void *arg)
{
	container_broken(arg, "the lease lasted too long");
}

static void
release_on_timer(void *arg)
{
	container_broken(arg, "the cell did not come back from its lease");
}

/* What the operator lets pip do, told by us and by nobody else.  Not in the
 * container's environment or argv: an index may be asked with a password. */
static void
serve_add_policy(struct frame *frame, const struct container *c)
{
	const struct config *config = c->host->config;

	if (!c->class->network)
		return;
	if (*config->pip_index_url != '\0')
		frame_add_text(frame, TAG_INDEX_URL, config->pip_index_url);
	frame_add_int(frame, TAG_SDIST, config->pip_allow_sdist ? 1 : 0);
	frame_add_int(frame, TAG_CA,
	    *class_ca_bundle(c->class, config) != '\0' ? 1 : 0);
}

/* The cell gets one end of a new socket pair with the frame, the client will
 * get the other: that, or -1. */
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
    bool keep, const char *folder)
{
	struct frame frame;
	struct err err;
	int client_end;

	c->ooms = ooms_count(c->ooms_fd);
	frame_start(&frame, FRAME_SERVE);
	serve_add_policy(&frame, c);
	frame_add_int(&frame, TAG_ACCESS, access);
	if (*folder != '\0')
		frame_add_text(&frame, TAG_FOLDER, folder);
	c->keep = keep && c->class->keeps && c->host->config->sessions > 0;
	if (c->keep)
		frame_add_int(&frame, TAG_KEEP, 1);
	client_end = send_end(c, &frame, &err);
	if (client_end < 0) {
		container_broken(c, err.text);
		return -1;
	}
	c->idle_told = false;
	c->access = access;
	container_timer(c, lease_ms, lease_on_timer);
	container_set(c, CONTAINER_LEASED);
	return client_end;
}

bool
container_is_running(const struct container *c)
{
	return c->state == CONTAINER_LEASED && c->class->looked_beside &&
	    !c->idle_told && c->access != ACCESS_TIDY;
}

int
container_look(struct container *c)
{
	struct frame frame;
	struct err err;
	int client_end;

	frame_start(&frame, FRAME_BESIDE);
	client_end = send_end(c, &frame, &err);
	if (client_end < 0)
		log_warn("no look beside its run: %s cell=%s", err.text,
		    c->name);
	return client_end;
}

/* The cell may have said IDLE before we saw the client go. */
void
container_release(struct container *c)
{
	if (c->state != CONTAINER_LEASED)
		return;
	c->runs++;
	if (c->idle_told) {
		container_idle(c);
		return;
	}
	container_timer(c, RELEASE_MS, release_on_timer);
	container_set(c, CONTAINER_RELEASING);
}
