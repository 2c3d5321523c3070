/* SPDX-License-Identifier: MIT */
/*
 * A mounter's life: its socket, docker run (and docker import where its image
 * is not there yet), READY, one request, its end.  It sees the end of its
 * socket and goes; one that hangs is removed.
 */
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/process.h"
#include "../protocol/frame.h"
#include "container.h"
#include "docker.h"
#include "engine.h"
#include "folder.h"
#include "images.h"
#include "mounter_image.h"
#include "pool.h"

#define LAPSE_MS 600000	 /* the longest pause after failures */
#define REMOVE_MS 10000	 /* before docker rm is tried again */
#define EXIT_MS 2000	 /* to end by itself */
#define RUN_MORE_MS 5000 /* over IL_START_SECONDS: docker run */
#define ANSWER_MAX 1024

struct mounter {
	TAILQ_ENTRY(mounter) link;
	struct attach *attach;
	struct container *cell; /* NULL: it is ending */
	char name[64];
	bool called;   /* docker run was begun: there may be one */
	bool imported; /* its image; once */
	bool ready;
	struct subprocess docker; /* run, import, rm: one after the other */
	int listen_fd, control_fd;
	int pidfd; /* -1: not known */
	struct loop_timer *timer;
};

/* ---- its end ---- */

static void
mounter_free(struct mounter *m)
{
	struct host *host = m->attach->host;

	if (m->cell != NULL)
		m->cell->mounter = NULL;
	loop_timer_clear(host->loop, &m->timer);
	subprocess_cancel(&m->docker);
	loop_close(host->loop, &m->listen_fd);
	loop_close(host->loop, &m->control_fd);
	loop_close(host->loop, &m->pidfd);
	folder_remove(host->cells_dir, m->name, false);
	TAILQ_REMOVE(&m->attach->mounters, m, link);
	free(m);
	host_look(host, 0);
}

static void mounter_remove(void *arg);

static void
remove_on_end(void *arg, const struct process_result *result)
{
	struct mounter *m = arg;
	char text[160];

	if (process_succeeded(result) ||
	    docker_classify(result) == DOCKER_ABSENT) {
		mounter_free(m);
		return;
	}
	process_describe(result, text, sizeof(text));
	log_warn("docker rm: %s cell=%s", text, m->name);
	loop_timer_set(m->attach->host->loop, &m->timer, REMOVE_MS,
	    mounter_remove, m);
}

/* This is repeated until it is gone; no mounter is started meanwhile. */
static void
mounter_remove(void *arg)
{
	struct mounter *m = arg;
	struct host *host = m->attach->host;

	docker_start(&m->docker, host, DOCKER_REMOVE, m->name,
	    engine_remove_ms(host->config), remove_on_end, m);
}

/* The kernel has ended it, and the engine removes it.  Its last word has been
 * read by now: events come in their order. */
static void
pidfd_on_end(void *arg, int fd, uint32_t events)
{
	struct mounter *m = arg;

	(void)fd;
	(void)events;
	loop_close(m->attach->host->loop, &m->pidfd);
	if (m->cell == NULL)
		mounter_free(m);
	else
		attach_fail(m->cell, "its container went away");
}

/* The caller sees to it that docker does nothing for it now. */
static void
mounter_reap(struct mounter *m)
{
	if (!m->called)
		mounter_free(m);
	else
		loop_timer_set(m->attach->host->loop, &m->timer,
		    m->pidfd >= 0 ? EXIT_MS : 0, mounter_remove, m);
}

void
attach_end(struct container *c)
{
	struct mounter *m = c->mounter;
	struct loop *loop = c->host->loop;

	c->mounter = NULL;
	if (m == NULL)
		return;
	m->cell = NULL;
	loop_timer_clear(loop, &m->timer);
	loop_close(loop, &m->listen_fd);
	loop_close(loop, &m->control_fd);
	if (!m->docker.running)
		mounter_reap(m);
}

/* ---- what went wrong ---- */

/* The host could not do it, or we could not: cells start as ever meanwhile.  A
 * mounter that fails in a pause was begun before it, and failed by its cause:
 * one restart of the engine is one failure, however many cells were spare. */
static void
note_failure(struct attach *a, const char *what)
{
	int64_t now_ms = clock_monotonic_ms();

	if (!pause_holds(&a->pause, now_ms))
		pause_note_failure(&a->pause, REFUSAL_START, what, now_ms);
	log_warn("no volume is mounted in a cell that is up: %s; next try in "
		 "%" PRId64 " s (IL_SPARE_CELLS=0: none)",
	    what, (a->pause.until_ms - now_ms + 999) / 1000);
}

void
attach_fail(struct container *c, const char *what)
{
	struct attach *a = c->host->attach;

	attach_end(c);
	note_failure(a, what);
	if (c->adopting)
		container_fail(c, REFUSAL_START, "nobody can mount");
	else
		container_end(c, false);
}

/* ---- the conversation ---- */

static void
take_ready(struct mounter *m)
{
	struct host *host = m->attach->host;

	m->ready = true;
	loop_timer_clear(host->loop, &m->timer);
	folder_remove(host->cells_dir, m->name, true);
	container_set(m->cell, CONTAINER_PREPARED);
}

/* False: that is no answer. */
static bool
take_answer(struct mounter *m, const struct frame_view *view)
{
	struct attach *a = m->attach;
	struct container *c = m->cell;
	char at[32];
	char text[160];
	int64_t code;
	int64_t why;

	if (view->kind != FRAME_ATTACHED ||
	    !frame_get_int(view, TAG_CODE, &code) ||
	    !frame_get_int(view, TAG_WHY, &why) ||
	    !frame_get_text(view, TAG_TEXT, at, sizeof(at)) ||
	    m->ready != (c->adopting && c->state == CONTAINER_STARTING))
		return false;
	(void)snprintf(text, sizeof(text), "%s: %s", at, strerror((int)code));
	if (!m->ready) {
		attach_fail(c, text);
		return true;
	}
	attach_end(c);
	if (why == ATTACH_DONE)
		pause_note_success(&a->pause);
	spare_done(c, why == ATTACH_DONE ? NULL : text);
	if (why == ATTACH_HOST)
		note_failure(a, text);
	return true;
}

static void
control_on_packet(void *arg, int fd, uint32_t events)
{
	struct mounter *m = arg;
	char packet[ANSWER_MAX];
	struct frame_view view;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), NULL, 0,
	    &err);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	if (len <= 0)
		attach_fail(m->cell, "its container went away");
	else if (!frame_parse(&view, packet, (size_t)len))
		attach_fail(m->cell, "its container broke the protocol");
	else if (view.kind == FRAME_READY && !m->ready)
		take_ready(m);
	else if (!take_answer(m, &view))
		attach_fail(m->cell, "its container broke the protocol");
}

/* It sends the cell, then its volumes; one that is not there has no device. */
int
attach_send(struct container *c, struct err *err)
{
	const struct mounter *m = c->mounter;
	struct frame frame;

	if (m == NULL || !m->ready || c->pidfd < 0)
		return err_set(err, ERR_UNAVAILABLE, "nobody can mount");
	frame_start(&frame, FRAME_ATTACH);
	frame_add_int(&frame, TAG_PART, 0);
	frame_add_int(&frame, TAG_OWNER, c->owner);
	frame_add_int(&frame, TAG_USER, c->uid);
	frame_add_int(&frame, TAG_ACCESS,
	    c->writable ? ACCESS_WRITE : ACCESS_READ);
	if (fd_send_packet(m->control_fd, frame.data, frame.len, c->pidfd, 0,
		err) != 0)
		return -1;
	for (int i = 0; i < CLASS_VOLUMES; i++) {
		frame_start(&frame, FRAME_ATTACH);
		frame_add_int(&frame, TAG_PART, i + 1);
		if (fd_send_packet(m->control_fd, frame.data, frame.len,
			c->volumes[i].device_fd, 0, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- its beginning ---- */

static void
socket_on_connection(void *arg, int fd, uint32_t events)
{
	struct mounter *m = arg;
	struct attach *a = m->attach;
	int control = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (control < 0)
		return;
	loop_close(a->host->loop, &m->listen_fd);
	m->control_fd = control;
	loop_add(a->host->loop, control, EPOLLIN, control_on_packet, m);
	m->pidfd = process_of_peer(control);
	if (m->pidfd >= 0) {
		loop_add(a->host->loop, m->pidfd, EPOLLIN, pidfd_on_end, m);
		return;
	}
	/* It has ended: its last word is read, or the end of its socket. */
	if (errno != EXDEV)
		return;
	/* A broker in a pid namespace of its own knows no cell's, either. */
	a->unavailable = true;
	log_warn("no cell is kept spare: no process of a container's is known "
		 "here");
	container_end(m->cell, false);
}

static void run_start(struct mounter *m);

static void
import_on_end(void *arg, const struct process_result *result)
{
	struct mounter *m = arg;
	char text[160];

	if (m->cell == NULL) {
		mounter_reap(m);
	} else if (process_succeeded(result)) {
		run_start(m);
	} else {
		process_describe(result, text, sizeof(text));
		attach_fail(m->cell, text);
	}
}

/* No registry has its image: it is made of the bytes in this program. */
static int
import_start(struct mounter *m, struct err *err)
{
	const struct host *host = m->attach->host;
	auto_argv struct argv argv = { .count = 0 };
	auto_free char *path = xprintf("%s/%s/image.tar", host->cells_dir,
	    m->name);
	auto_close int fd = open(path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_system(err, "make %s", path);
	if (fd_write_all(fd, mounter_image, mounter_image_len, err) != 0)
		return -1;
	m->imported = true;
	docker_argv_import(&argv, host->config->docker_binary, host->instance,
	    path, host->images->mounter);
	subprocess_start(&m->docker, host->loop, &argv,
	    (int)host->config->start_ms, import_on_end, m);
	return 0;
}

static void
run_on_end(void *arg, const struct process_result *result)
{
	struct mounter *m = arg;
	struct err err;
	char text[sizeof(err.text)];

	if (result->outcome == PROCESS_NOT_STARTED)
		m->called = false;
	if (m->cell == NULL) {
		mounter_reap(m);
		return;
	}
	if (process_succeeded(result))
		return;
	process_describe(result, text, sizeof(text));
	if (docker_classify(result) == DOCKER_ENGINE)
		engine_report(m->attach->host->engine, ENGINE_DOWN, text);
	if (docker_classify(result) == DOCKER_IMAGE && !m->imported) {
		m->called = false;
		if (import_start(m, &err) == 0)
			return;
		(void)snprintf(text, sizeof(text), "%s", err.text);
	}
	attach_fail(m->cell, text);
}

static void
start_on_timer(void *arg)
{
	struct mounter *m = arg;

	attach_fail(m->cell, "its container did not come up");
}

static void
run_start(struct mounter *m)
{
	struct host *host = m->attach->host;
	auto_argv struct argv argv = { .count = 0 };
	int ms = (int)host->config->start_ms;

	docker_run_mounter_argv(&argv, m->cell, m->name, host->images->mounter);
	subprocess_start(&m->docker, host->loop, &argv, ms + RUN_MORE_MS,
	    run_on_end, m);
	m->called = true;
	loop_timer_set(host->loop, &m->timer, ms, start_on_timer, m);
}

static int
mounter_listen(struct mounter *m, struct err *err)
{
	struct host *host = m->attach->host;
	auto_free char *path = xprintf("%s/%s/socket/cell.sock",
	    host->cells_dir, m->name);

	if (folder_make(host, m->name, 0, err) != 0)
		return -1;
	m->listen_fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK,
	    0666, err);
	if (m->listen_fd < 0)
		return -1;
	loop_add(host->loop, m->listen_fd, EPOLLIN, socket_on_connection, m);
	return 0;
}

void
attach_start(struct attach *a, struct container *c)
{
	struct host *host = a->host;
	struct mounter *m = xcalloc(1, sizeof(*m));
	struct err err;

	m->attach = a;
	m->cell = c;
	m->listen_fd = -1;
	m->control_fd = -1;
	m->pidfd = -1;
	(void)snprintf(m->name, sizeof(m->name), "il-%.16s-%llx-%u",
	    host->instance, (unsigned long long)host->pool->started_s,
	    ++host->pool->serial);
	TAILQ_INSERT_TAIL(&a->mounters, m, link);
	c->mounter = m;
	if (mounter_listen(m, &err) == 0)
		run_start(m);
	else
		attach_fail(c, err.text);
}

bool
attach_may_start(struct attach *a)
{
	const struct mounter *m;

	if (a->unavailable)
		return false;
	TAILQ_FOREACH(m, &a->mounters, link) {
		if (m->cell == NULL) /* its end has us looked over */
			return false;
	}
	if (!pause_holds(&a->pause, clock_monotonic_ms()))
		return true;
	host_look(a->host, a->pause.until_ms);
	return false;
}

bool
attach_is_idle(const struct attach *a)
{
	return TAILQ_EMPTY(&a->mounters);
}

void
attach_init(struct attach *a, struct host *host)
{
	*a = (struct attach){ .host = host, .pause.most_ms = LAPSE_MS };
	TAILQ_INIT(&a->mounters);
}

void
attach_release(struct attach *a)
{
	while (!TAILQ_EMPTY(&a->mounters))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		mounter_free(TAILQ_FIRST(&a->mounters));
	a->unavailable = true;
}
