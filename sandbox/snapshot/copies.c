/* SPDX-License-Identifier: MIT */
/*
 * Which files of the HTTP APIs have come and gone, and when that is told to the
 * place of the snapshots: by passes, one at a time.  What could not be told
 * stays to be told; what we cannot know, as we were not there or too much
 * happened, is found by comparing all of them, now and then and at the start.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/text.h"
#include "../protocol/snapshot.h"
#include "snapshotter.h"

/* A file is put there by a rename; its use (IN_ATTRIB) is not told. */
#define IN_FILES (IN_MOVED_TO | IN_DELETE | IN_ONLYDIR)
#define CHANGES_MAX ((size_t)10000)
#define REST_MS 200 /* what comes together goes together */
#define PAUSE_FIRST_MS 5000
#define PAUSE_MOST_MS 900000
/* Between two that compare all. */
#define FULL_LEAST_MS 60000
#define FULL_MOST_MS 3600000

struct copies {
	int inotify;
	int watch;		     /* -1: the folder cannot be watched */
	int watch_no;		     /* errno that was told of */
	struct copy_change *changes; /* CHANGES_MAX of them */
	size_t count;
	int64_t due_ms; /* of these; all of them monotonic */
	int64_t full_ms;
	int64_t pause_until_ms;
	int64_t pause_ms;
	bool left; /* one file alone, until all are compared well */
	/* what the pass is of */
	bool running;
	bool full;
	struct copy_change *taken; /* likewise */
	size_t taken_count;
};

static void
fail_since(const struct snapshotter *s)
{
	if (s->state->files_failing_ms == 0)
		s->state->files_failing_ms = clock_wall_ms();
}

/* ---- what has changed ---- */

/* There are as many as there may be: what has come is found by comparing all;
 * that a file has gone is not. */
static void
keep_gone(struct copies *c, int64_t now_ms)
{
	size_t kept = 0;

	if (c->full_ms > now_ms)
		log_warn("more files changed than are kept in mind: "
			 "all are compared");
	c->full_ms = now_ms;
	for (size_t i = 0; i < c->count; i++)
		if (c->changes[i].gone)
			c->changes[kept++] = c->changes[i];
	c->count = kept;
}

static void
add_change(struct copies *c, const char *id, bool gone)
{
	int64_t now_ms = clock_monotonic_ms();
	struct copy_change *change;

	if (c->count == CHANGES_MAX)
		keep_gone(c, now_ms);
	if (c->count == CHANGES_MAX)
		return;
	change = &c->changes[c->count];
	if (c->count++ == 0)
		c->due_ms = now_ms + REST_MS;
	*change = (struct copy_change){ .gone = gone };
	memcpy(change->id, id, SNAPSHOT_FILE_LEN);
}

static void
take_event(struct snapshotter *s, const struct inotify_event *event)
{
	const char *name = event->len > 0 ? event->name : "";

	if ((event->mask & IN_Q_OVERFLOW) != 0)
		s->copies->full_ms = clock_monotonic_ms();
	else if (text_is_uuid(name, strlen(name)))
		add_change(s->copies, name, (event->mask & IN_DELETE) != 0);
}

static void
on_events(void *arg, int fd, uint32_t events)
{
	(void)events;
	watch_read(arg, fd, take_event);
}

/* The folder may come later, or another one in its place: whatever is in it
 * then, all is compared. */
static void
watch(const struct snapshotter *s, int64_t now_ms)
{
	struct copies *c = s->copies;
	int before = c->watch;
	int error;

	c->watch = inotify_add_watch(c->inotify, s->config->api_files,
	    IN_FILES);
	error = c->watch < 0 ? errno : 0;
	if (before >= 0 && before != c->watch)
		(void)inotify_rm_watch(c->inotify, before);
	if (c->watch >= 0 && c->watch != before)
		c->full_ms = now_ms;
	/* without any file it is not there */
	if (error != 0 && error != ENOENT) {
		fail_since(s);
		if (error != c->watch_no)
			log_err("not copied: %s: %s", s->config->api_files,
			    strerror(error));
	}
	c->watch_no = error;
}

/* ---- passes ---- */

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct copy_change *)a)->id,
	    ((const struct copy_change *)b)->id);
}

/* Each id once: did it ever go? */
static size_t
unite(struct copy_change *changes, size_t count)
{
	size_t kept = 0;

	qsort(changes, count, sizeof(*changes), by_id);
	for (size_t i = 0; i < count; i++)
		if (kept > 0 && by_id(&changes[kept - 1], &changes[i]) == 0)
			changes[kept - 1].gone |= changes[i].gone;
		else
			changes[kept++] = changes[i];
	return kept;
}

static bool
is_due(const struct snapshotter *s, int64_t now_ms)
{
	const struct copies *c = s->copies;

	if (c->running || now_ms < c->pause_until_ms)
		return false;
	return now_ms >= c->full_ms ||
	    (c->count > 0 && (now_ms >= c->due_ms || s->stopping_ms != 0));
}

static int64_t
full_after_ms(const struct snapshotter *s)
{
	int64_t ms = s->config->api_files_ms / 4;

	if (ms < FULL_LEAST_MS)
		return FULL_LEAST_MS;
	return ms > FULL_MOST_MS ? FULL_MOST_MS : ms;
}

static void
begin(struct snapshotter *s, int64_t now_ms)
{
	struct copies *c = s->copies;
	struct copy_change *changes = c->taken;
	struct copying copying = { .folder = s->config->api_files,
		.ttl_ms = s->config->api_files_ms,
		.changes = c->changes,
		.full = now_ms >= c->full_ms };

	copying.count = unite(c->changes, c->count);
	c->count = copying.count;
	if (!tasks_begin_pass(s, &copying)) {
		c->pause_until_ms = now_ms + PAUSE_FIRST_MS;
		return;
	}
	c->running = true;
	c->full = copying.full;
	if (c->full)
		c->full_ms = now_ms + full_after_ms(s);
	c->taken = c->changes;
	c->taken_count = c->count;
	c->changes = changes;
	c->count = 0;
}

int64_t
copies_look(struct snapshotter *s, int64_t now_ms)
{
	struct copies *c = s->copies;
	int64_t next_ms;

	if (c == NULL)
		return INT64_MAX;
	watch(s, now_ms);
	if (is_due(s, now_ms))
		begin(s, now_ms);
	if (c->running)
		return INT64_MAX;
	next_ms = c->count > 0 && c->due_ms < c->full_ms ? c->due_ms :
							   c->full_ms;
	return next_ms < c->pause_until_ms ? c->pause_until_ms : next_ms;
}

/* To compare all of them can wait for the next start. */
bool
copies_wait(const struct snapshotter *s, int64_t now_ms)
{
	const struct copies *c = s->copies;

	if (c == NULL)
		return false;
	/* a pass of none may be followed by one of what has come meanwhile */
	return c->running ? c->taken_count + c->count > 0 :
			    c->count > 0 && now_ms >= c->pause_until_ms;
}

/* What of it was not done is to be done again. */
static void
failed(struct snapshotter *s, const struct copying *done, const struct err *err)
{
	struct copies *c = s->copies;
	int64_t now_ms = clock_monotonic_ms();

	fail_since(s);
	c->pause_ms = c->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * c->pause_ms;
	if (c->pause_ms > PAUSE_MOST_MS)
		c->pause_ms = PAUSE_MOST_MS;
	log_err("not copied: %s; again in %d s", err->text,
	    (int)(c->pause_ms / 1000));
	for (size_t i = done->done; i < c->taken_count; i++)
		add_change(c, c->taken[i].id, c->taken[i].gone);
	/* what is wrong with one file alone holds up no other */
	if (done->through)
		c->left = true;
	else
		c->pause_until_ms = now_ms + c->pause_ms;
	if (c->full || done->through)
		c->full_ms = now_ms + c->pause_ms;
}

void
copies_ended(struct snapshotter *s, const struct outcome *outcome)
{
	struct copies *c = s->copies;
	struct err died;

	s->state->files += outcome->copying.copied;
	c->running = false;
	if (!outcome->over)
		(void)err_set(&died, ERR_SYSTEM, "its process died");
	if (outcome->rc != 0) {
		failed(s, &outcome->copying,
		    outcome->over ? &outcome->err : &died);
		return;
	}
	if (c->full)
		c->left = false;
	if (!c->left)
		c->pause_ms = 0;
	if (!c->left && (c->watch_no == 0 || c->watch_no == ENOENT))
		s->state->files_failing_ms = 0;
	log_debug("copied, %lld files%s", (long long)outcome->copying.copied,
	    c->full ? ", all compared" : "");
}

int
copies_open(struct snapshotter *s, struct err *err)
{
	struct copies *c;

	if (*s->config->nodes == '\0')
		return 0;
	c = xcalloc(1, sizeof(*c));
	c->watch = -1;
	c->changes = xcalloc(CHANGES_MAX, sizeof(*c->changes));
	c->taken = xcalloc(CHANGES_MAX, sizeof(*c->taken));
	c->full_ms = clock_monotonic_ms();
	c->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->inotify < 0)
		return err_system(err, "inotify");
	s->copies = c;
	loop_add(s->loop, c->inotify, EPOLLIN, on_events, s);
	return 0;
}
