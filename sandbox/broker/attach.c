/* SPDX-License-Identifier: MIT */
#include "attach.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

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
#include "pool.h"

#define FAILURES_MAX 3	 /* in a row; then it is given up */
#define LAPSE_MS 600000	 /* after the last one they count no more */
#define PAUSE_MS 10000	 /* before it is started again */
#define RUN_MORE_MS 5000 /* over IL_START_SECONDS: docker run */
#define ANSWER_MAX 1024

/* What failed, as attach.py says. */
enum failed_part { FAILED_VOLUME = 1, FAILED_HOST = 2 };

/* ---- its end ---- */

static void old_remove(void *arg);

static void
remove_on_end(void *arg, const struct process_result *result)
{
	struct attach *a = arg;
	char text[160];

	if (process_succeeded(result) ||
	    docker_classify(result) == DOCKER_ABSENT) {
		*a->old = '\0';
		host_look(a->host, 0);
		return;
	}
	process_describe(result, text, sizeof(text));
	log_warn("docker rm: %s cell=%s", text, a->old);
	loop_timer_set(a->host->loop, &a->timer, PAUSE_MS, old_remove, a);
}

/* Repeated until it is gone; there is no other one before. */
static void
old_remove(void *arg)
{
	struct attach *a = arg;

	docker_start(&a->remove, a->host, DOCKER_REMOVE, a->old,
	    engine_remove_ms(a->host->config), remove_on_end, a);
}

/* Whatever there is of it: it sees the end of its socket, and goes; one that
 * hangs is removed. */
static void
attach_close(struct attach *a)
{
	loop_timer_clear(a->host->loop, &a->timer);
	subprocess_cancel(&a->run);
	loop_close(a->host->loop, &a->listen_fd);
	loop_close(a->host->loop, &a->control_fd);
	if (*a->name != '\0')
		folder_remove(a->host->cells_dir, a->name, false);
	if (a->called) {
		memcpy(a->old, a->name, sizeof(a->old));
		old_remove(a);
	}
	*a->name = '\0';
	a->called = false;
	a->ready = false;
}

/* What went wrong was the host's, or ours: after a few of these, cells start as
 * ever. */
static void
attach_note_failure(struct attach *a, const char *what)
{
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms - a->failed_ms > LAPSE_MS)
		a->failures = 0;
	a->failed_ms = now_ms;
	a->failures++;
	a->given_up = a->given_up || a->failures >= FAILURES_MAX;
	log_warn("no volume is mounted in a cell that is up%s: %s",
	    a->given_up ? ", and no cell is kept spare any more" : "", what);
}

void
attach_fail(struct attach *a, const char *what)
{
	attach_note_failure(a, what);
	attach_close(a);
	a->next_ms = clock_monotonic_ms() + PAUSE_MS;
	attach_lost(a->host->pool);
}

void
attach_init(struct attach *a, struct host *host)
{
	*a = (struct attach){ .host = host, .listen_fd = -1, .control_fd = -1 };
}

void
attach_release(struct attach *a)
{
	a->called = false; /* the last sweep removes it */
	attach_close(a);
	subprocess_cancel(&a->remove);
	a->given_up = true;
}

/* ---- the conversation ---- */

/* False: that is no answer. */
static bool
attach_take(struct attach *a, const struct frame_view *view)
{
	int64_t number = 0;
	int64_t code = 0;
	int64_t why = 0;
	char text[160] = "";

	if (view->kind == FRAME_READY && !a->ready) {
		loop_timer_clear(a->host->loop, &a->timer);
		folder_remove(a->host->cells_dir, a->name, true);
		a->ready = true;
		host_look(a->host, 0);
		return true;
	}
	if (view->kind != FRAME_ATTACHED ||
	    !frame_get_int(view, TAG_COUNT, &number) ||
	    !frame_get_int(view, TAG_CODE, &code) ||
	    !frame_get_int(view, TAG_WHY, &why))
		return false;
	(void)frame_get_text(view, TAG_TEXT, text, sizeof(text));
	if (why == 0)
		a->failures = 0;
	if (attach_done(a->host->pool, number, why == 0 ? NULL : text) &&
	    why == FAILED_HOST)
		attach_note_failure(a, text);
	if (a->given_up) {
		attach_close(a);
		attach_lost(a->host->pool);
	}
	return true;
}

static void
control_on_packet(void *arg, int fd, uint32_t events)
{
	struct attach *a = arg;
	char packet[ANSWER_MAX];
	struct frame_view view;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), NULL, 0,
	    &err);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	if (len <= 0)
		attach_fail(a, "its container went away");
	else if (!frame_parse(&view, packet, (size_t)len) ||
	    !attach_take(a, &view))
		attach_fail(a, "its container broke the protocol");
}

/* A piece of a request, with a descriptor. */
static int
attach_send_part(struct attach *a, const struct container *c, int64_t part,
    int fd, struct err *err)
{
	struct frame frame;

	frame_start(&frame, FRAME_ATTACH);
	frame_add_int(&frame, TAG_PART, part);
	frame_add_int(&frame, TAG_COUNT, c->number);
	frame_add_int(&frame, TAG_OWNER, c->owner);
	frame_add_int(&frame, TAG_USER, c->uid);
	frame_add_int(&frame, TAG_ACCESS,
	    c->writable ? ACCESS_WRITE : ACCESS_READ);
	return fd_send_packet(a->control_fd, frame.data, frame.len, fd, 0, err);
}

/* The cell, then its volumes; one that is not there has no device. */
int
attach_send(struct attach *a, struct container *c, struct err *err)
{
	if (!a->ready || c->pidfd < 0)
		return err_set(err, ERR_UNAVAILABLE, "nobody can mount");
	if (attach_send_part(a, c, 0, c->pidfd, err) != 0)
		return -1;
	for (int i = 0; i < CLASS_VOLUMES; i++) {
		if (attach_send_part(a, c, i + 1, c->volumes[i].device_fd,
			err) != 0) {
			attach_fail(a, err->text); /* it waits for the rest */
			return -1;
		}
	}
	return 0;
}

/* ---- its beginning ---- */

static void
socket_on_connection(void *arg, int fd, uint32_t events)
{
	struct attach *a = arg;
	int control = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	auto_close int pidfd = -1;

	(void)events;
	if (control < 0)
		return;
	loop_close(a->host->loop, &a->listen_fd);
	a->control_fd = control;
	loop_add(a->host->loop, control, EPOLLIN, control_on_packet, a);
	/* A broker in a pid namespace of its own knows no cell's, either. */
	pidfd = process_of_peer(control);
	if (pidfd < 0) {
		attach_fail(a, "no process of a container's is known here");
		a->given_up = true;
	}
}

static void
run_on_end(void *arg, const struct process_result *result)
{
	struct attach *a = arg;
	char text[160];

	if (process_succeeded(result))
		return;
	if (result->outcome == PROCESS_NOT_STARTED)
		a->called = false;
	process_describe(result, text, sizeof(text));
	attach_fail(a, text);
}

static void
start_on_timer(void *arg)
{
	attach_fail(arg, "its container did not come up");
}

static int
attach_listen(struct attach *a, struct err *err)
{
	auto_free char *path = NULL;

	if (folder_make(a->host, a->name, 0, err) != 0)
		return -1;
	path = xprintf("%s/%s/socket/cell.sock", a->host->cells_dir, a->name);
	a->listen_fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK,
	    0600, err);
	if (a->listen_fd < 0)
		return -1;
	loop_add(a->host->loop, a->listen_fd, EPOLLIN, socket_on_connection, a);
	return 0;
}

static void
attach_start(struct attach *a)
{
	struct host *host = a->host;
	int ms = (int)host->config->start_ms;
	auto_argv struct argv argv = { .count = 0 };
	struct image_entry usual;
	struct err err;

	(void)images_find(host->config->chat_images, "", &usual);
	(void)snprintf(a->name, sizeof(a->name), "il-%.16s-%llx-%u",
	    host->instance, (unsigned long long)host->pool->started_s,
	    ++host->pool->serial);
	if (attach_listen(a, &err) != 0) {
		attach_fail(a, err.text);
		return;
	}
	docker_run_attach_argv(&argv, host, a->name,
	    images_name(host->images, usual.image));
	subprocess_start(&a->run, host->loop, &argv, ms + RUN_MORE_MS,
	    run_on_end, a);
	a->called = true;
	loop_timer_set(host->loop, &a->timer, ms, start_on_timer, a);
}

bool
attach_ready(struct attach *a)
{
	if (a->ready || a->given_up || *a->name != '\0' || *a->old != '\0')
		return a->ready;
	if (clock_monotonic_ms() < a->next_ms)
		host_look(a->host, a->next_ms);
	else
		attach_start(a);
	return false;
}
