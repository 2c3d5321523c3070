/* SPDX-License-Identifier: MIT */
/*
 * Which sandboxes there are, and when one is free: the kernel tells of the last
 * close of a volume that was open for writing, also when it was a loop device
 * that had it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "snapshotter.h"

/* A volume is made elsewhere, and gets its name when it is whole. */
#define IN_FOLDER (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR)
#define IN_BASE \
	(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR)

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct sandbox *)a)->id,
	    ((const struct sandbox *)b)->id);
}

static int
by_watch(const void *a, const void *b)
{
	int one = ((const struct sandbox *)a)->watch;
	int other = ((const struct sandbox *)b)->watch;

	return (one > other) - (one < other);
}

struct sandbox *
watch_find(struct snapshotter *s, const char *id)
{
	struct sandbox key;
	struct sandbox **found;

	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	found = tfind(&key, &s->by_id, by_id);
	return found != NULL ? *found : NULL;
}

static struct sandbox *
find_watch(struct snapshotter *s, int watch)
{
	struct sandbox key = { .watch = watch };
	struct sandbox **found = tfind(&key, &s->by_watch, by_watch);

	return found != NULL ? *found : NULL;
}

/* -1: it has none any more. */
static void
set_watch(struct snapshotter *s, struct sandbox *sandbox, int watch)
{
	if (sandbox->watch >= 0)
		(void)tdelete(sandbox, &s->by_watch, by_watch);
	sandbox->watch = watch;
	if (watch >= 0 && tsearch(sandbox, &s->by_watch, by_watch) == NULL)
		log_fatal(1, "out of memory");
}

/* One that cannot be watched is saved now, and at the next start. */
static void
add(struct snapshotter *s, const char *id)
{
	auto_free char *path = xprintf("%s/%s", s->config->base_dir, id);
	struct sandbox *sandbox = watch_find(s, id);

	if (sandbox == NULL) {
		sandbox = xcalloc(1, sizeof(*sandbox));
		memcpy(sandbox->id, id, TASK_ID_LEN);
		sandbox->watch = -1;
		sandbox->sweep = true;
		TAILQ_INSERT_TAIL(&s->sandboxes, sandbox, link);
		s->sandbox_count++;
		if (tsearch(sandbox, &s->by_id, by_id) == NULL)
			log_fatal(1, "out of memory");
	}
	set_watch(s, sandbox, inotify_add_watch(s->inotify, path, IN_FOLDER));
	if (sandbox->watch < 0 && errno != ENOENT)
		log_warn("cannot watch %s: %s (fs.inotify.max_user_watches)",
		    path, strerror(errno));
	snapshotter_free_again(s, sandbox);
}

static void
drop(struct snapshotter *s, struct sandbox *sandbox)
{
	if (sandbox->watch >= 0)
		(void)inotify_rm_watch(s->inotify, sandbox->watch);
	set_watch(s, sandbox, -1);
	snapshotter_leave(s, sandbox);
	(void)tdelete(sandbox, &s->by_id, by_id);
	TAILQ_REMOVE(&s->sandboxes, sandbox, link);
	s->sandbox_count--;
	free(sandbox);
}

/* All that are there; also when so much happened that some of it was lost. */
static int
add_all(struct snapshotter *s, struct err *err)
{
	auto_dir DIR *dir = opendir(s->config->base_dir);
	const struct dirent *e;

	if (dir == NULL)
		return err_system(err, "%s", s->config->base_dir);
	while ((e = readdir(dir)) != NULL)
		if (task_is_id(e->d_name))
			add(s, e->d_name);
	return 0;
}

/* Of their end nothing was told. */
static void
drop_gone(struct snapshotter *s)
{
	struct sandbox *sandbox = TAILQ_FIRST(&s->sandboxes);

	while (sandbox != NULL) {
		struct sandbox *next = TAILQ_NEXT(sandbox, link);

		if (faccessat(s->base, sandbox->id, F_OK,
			AT_SYMLINK_NOFOLLOW) != 0 &&
		    errno == ENOENT)
			drop(s, sandbox);
		sandbox = next;
	}
}

static void
take_event(struct snapshotter *s, const struct inotify_event *event)
{
	const char *name = event->len > 0 ? event->name : "";
	struct sandbox *sandbox;
	struct err err;

	if ((event->mask & IN_Q_OVERFLOW) != 0) {
		drop_gone(s);
		if (add_all(s, &err) != 0)
			log_err("%s", err.text);
		return;
	}
	if (event->wd != s->base_watch) {
		sandbox = find_watch(s, event->wd);
		if (sandbox != NULL && (event->mask & IN_IGNORED) != 0)
			set_watch(s, sandbox, -1);
		else if (sandbox != NULL && strstr(name, ".ext4") != NULL)
			snapshotter_free_again(s, sandbox);
		return;
	}
	if (!task_is_id(name))
		return;
	sandbox = watch_find(s, name);
	if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
		add(s, name);
	else if (sandbox != NULL)
		drop(s, sandbox);
}

void
watch_read(struct snapshotter *s, int fd,
    void (*take)(struct snapshotter *s, const struct inotify_event *event))
{
	_Alignas(struct inotify_event) char data[16384];
	ssize_t len;

	while ((len = read(fd, data, sizeof(data))) > 0)
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event =
			    (const struct inotify_event *)(const void *)(data +
				at);

			at += (ssize_t)(sizeof(*event) + event->len);
			take(s, event);
		}
	snapshotter_look(s);
}

static void
on_events(void *arg, int fd, uint32_t events)
{
	(void)events;
	watch_read(arg, fd, take_event);
}

int
watch_open(struct snapshotter *s, struct err *err)
{
	s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->inotify >= 0)
		s->base_watch = inotify_add_watch(s->inotify,
		    s->config->base_dir, IN_BASE);
	if (s->inotify < 0 || s->base_watch < 0)
		return err_system(err, "watch %s", s->config->base_dir);
	loop_add(s->loop, s->inotify, EPOLLIN, on_events, s);
	return add_all(s, err);
}
