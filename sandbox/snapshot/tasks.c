/* SPDX-License-Identifier: MIT */
/*
 * Each save, restore and removal is a process, forked from us, that works on
 * one sandbox and tells by shared memory what came of it.  No two of them work
 * on the same one.  While the place of the snapshots fails, saves pause.  So is
 * what is done for files of the HTTP APIs, with places of its own.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/shared_file.h"
#include "../protocol/snapshot.h"
#include "snapshotter.h"
#include "store.h"

/* The lock of a volume is free a moment after its close was told, and who comes
 * back soon is not met by us. */
#define REST_MS 1000
#define BUSY_MS 3000 /* then once more: who has it lets go of it some time */
#define PAUSE_FIRST_MS 5000
#define PAUSE_MOST_MS 900000

struct task {
	pid_t pid; /* 0: none */
	enum task_kind kind;
	char id[TASK_ID_SIZE];
	char to[TASK_ID_SIZE];	 /* of a restore */
	struct request *request; /* of ASKED, COPY */
};

/* ---- in the process of its own ---- */

static int
work(const struct snapshotter *s, const struct task *task,
    struct outcome *outcome)
{
	struct err *err = &outcome->err;
	auto_store struct store *store = store_open(s->config, err);

	if (task->kind == TASK_COPY)
		return copy_serve(store, task->request->fd, task->request->file,
		    s->config->api_files_ms, &outcome->begun, err);
	if (store == NULL)
		return -1;
	if (task->kind == TASK_PASS)
		return copy_pass(store, &outcome->copying, err);
	if (task->kind == TASK_SAVE) {
		outcome->saving.store = store;
		outcome->saving.base = s->base;
		return save_sandbox(&outcome->saving, task->id, err);
	}
	if (task->request->kind == REQUEST_FORGET)
		return forget_sandbox(store, task->id, err);
	return restore_sandbox(store, s->base, task->id, task->to,
	    &outcome->seconds, err);
}

static void __attribute__((noreturn)) child_main(const struct snapshotter *s,
    const struct task *task, struct outcome *outcome, pid_t parent)
{
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	outcome->rc = work(s, task, outcome);
	outcome->over = true;
	_exit(0);
}

/* ---- beginning ---- */

static bool
is_worked_on(const struct snapshotter *s, const char *id)
{
	for (size_t i = 0; i < TASKS; i++)
		if (s->tasks[i].pid != 0 &&
		    (strcmp(s->tasks[i].id, id) == 0 ||
			strcmp(s->tasks[i].to, id) == 0))
			return true;
	return false;
}

/* NULL: there are as many as there may be. */
static struct task *
free_task(const struct snapshotter *s, enum task_kind kind)
{
	static const size_t most[] = { SAVES, SANDBOX_TASKS, COPIES, PASSES };
	struct task *found = NULL;
	size_t counts[TASK_PASS + 1] = { 0 };

	for (size_t i = 0; i < TASKS; i++) {
		struct task *task = &s->tasks[i];

		if (task->pid == 0)
			found = task;
		else
			counts[task->kind]++;
	}
	if (counts[kind] >= most[kind] ||
	    ((kind == TASK_SAVE || kind == TASK_ASKED) &&
		counts[TASK_SAVE] + counts[TASK_ASKED] >= SANDBOX_TASKS))
		return NULL;
	return found;
}

/* What it finds, until begin(). */
static struct outcome *
prepare(const struct snapshotter *s, struct task *task, enum task_kind kind)
{
	struct outcome *outcome = &s->outcomes[task - s->tasks];

	memset(outcome, 0, sizeof(*outcome));
	outcome->rc = -1;
	memset(task, 0, sizeof(*task));
	task->kind = kind;
	return outcome;
}

static bool
begin(const struct snapshotter *s, struct task *task)
{
	struct outcome *outcome = &s->outcomes[task - s->tasks];
	pid_t parent = getpid();

	task->pid = fork();
	if (task->pid == 0)
		child_main(s, task, outcome, parent);
	if (task->pid > 0)
		return true;
	log_err("fork fails");
	task->pid = 0;
	return false;
}

/* A sandbox that is to be forgotten is not saved any more. */
static void
kill_save(const struct snapshotter *s, const char *id)
{
	for (size_t i = 0; i < TASKS; i++)
		if (s->tasks[i].pid != 0 && s->tasks[i].kind == TASK_SAVE &&
		    strcmp(s->tasks[i].id, id) == 0)
			(void)kill(s->tasks[i].pid, SIGKILL);
}

static bool
begin_request(struct snapshotter *s, struct task *task, struct request *request,
    enum task_kind kind)
{
	(void)prepare(s, task, kind);
	memcpy(task->id, request->from, TASK_ID_LEN);
	memcpy(task->to, request->to, TASK_ID_LEN);
	task->request = request;
	return begin(s, task);
}

static void
begin_requests(struct snapshotter *s)
{
	struct request *request;

	TAILQ_FOREACH(request, &s->requests, link) {
		bool copy = request->kind == REQUEST_COPY;
		enum task_kind kind = copy ? TASK_COPY : TASK_ASKED;
		struct task *task = free_task(s, kind);

		if (request->running || request->kind == REQUEST_NEW)
			continue;
		if (request->kind == REQUEST_FORGET)
			kill_save(s, request->from);
		if (task == NULL ||
		    (!copy &&
			(is_worked_on(s, request->from) ||
			    is_worked_on(s, request->to))))
			continue;
		request->running = begin_request(s, task, request, kind);
	}
}

static bool
is_wanted(const struct snapshotter *s, const struct sandbox *sandbox)
{
	const struct request *request;

	TAILQ_FOREACH(request, &s->requests, link)
		if (strcmp(request->from, sandbox->id) == 0 ||
		    strcmp(request->to, sandbox->id) == 0)
			return true;
	return false;
}

static bool
begin_save(struct snapshotter *s, struct task *task,
    const struct sandbox *sandbox)
{
	prepare(s, task, TASK_SAVE)->saving.sweep = sandbox->sweep;
	memcpy(task->id, sandbox->id, TASK_ID_LEN);
	memcpy(task->to, sandbox->id, TASK_ID_LEN);
	return begin(s, task);
}

static void
begin_saves(struct snapshotter *s, int64_t now_ms)
{
	struct sandbox *sandbox;

	TAILQ_FOREACH(sandbox, &s->waiting, wait) {
		struct task *task = free_task(s, TASK_SAVE);

		if (task == NULL || now_ms < s->pause_until_ms)
			return;
		if (sandbox->due_ms == 0 ||
		    (sandbox->due_ms > now_ms && s->stopping_ms == 0) ||
		    is_wanted(s, sandbox) || is_worked_on(s, sandbox->id))
			continue;
		if (begin_save(s, task, sandbox)) {
			sandbox->due_ms = 0;
			sandbox->again = false;
		}
	}
}

bool
tasks_begin_pass(struct snapshotter *s, const struct copying *copying)
{
	struct task *task = free_task(s, TASK_PASS);

	if (task == NULL)
		return false;
	prepare(s, task, TASK_PASS)->copying = *copying;
	return begin(s, task);
}

static void
on_timer(void *arg)
{
	snapshotter_look(arg);
}

/* What others are told; when the next save is due.  At least every 20 s, so
 * that it is seen that we live. */
static void
count(struct snapshotter *s, int64_t now_ms, int64_t copies_ms)
{
	int64_t next_ms = now_ms + SNAPSHOT_SILENCE_MS / 3;
	int64_t waiting = 0;
	int64_t oldest_ms = 0;
	const struct sandbox *sandbox;

	TAILQ_FOREACH(sandbox, &s->waiting, wait) {
		int64_t at_ms = sandbox->due_ms > s->pause_until_ms ?
		    sandbox->due_ms :
		    s->pause_until_ms;

		waiting++;
		if (oldest_ms == 0 || sandbox->since_ms < oldest_ms)
			oldest_ms = sandbox->since_ms;
		if (sandbox->due_ms != 0 && at_ms > now_ms && at_ms < next_ms)
			next_ms = at_ms;
	}
	s->state->told_ms = clock_wall_ms();
	s->state->sandboxes = (int64_t)s->sandbox_count;
	s->state->waiting = waiting;
	s->state->oldest_ms = oldest_ms;
	if (copies_ms < next_ms)
		next_ms = copies_ms;
	loop_timer_set(s->loop, &s->timer, next_ms - now_ms, on_timer, s);
	if (s->stopping_ms != 0 &&
	    (waiting == 0 || now_ms < s->pause_until_ms) &&
	    !copies_wait(s, now_ms))
		loop_stop(s->loop);
}

void
snapshotter_look(struct snapshotter *s)
{
	int64_t now_ms = clock_monotonic_ms();

	if (s->stopping_ms == 0)
		begin_requests(s);
	begin_saves(s, now_ms);
	count(s, now_ms, copies_look(s, now_ms));
}

void
snapshotter_free_again(struct snapshotter *s, struct sandbox *sandbox)
{
	sandbox->tries = 0;
	sandbox->again = is_worked_on(s, sandbox->id);
	if (sandbox->since_ms == 0) {
		sandbox->since_ms = clock_wall_ms();
		TAILQ_INSERT_TAIL(&s->waiting, sandbox, wait);
	}
	sandbox->due_ms = clock_monotonic_ms() + REST_MS;
}

void
snapshotter_leave(struct snapshotter *s, struct sandbox *sandbox)
{
	if (sandbox->since_ms != 0)
		TAILQ_REMOVE(&s->waiting, sandbox, wait);
	sandbox->since_ms = 0;
	sandbox->due_ms = 0;
}

/* ---- what came of it ---- */

static void
save_failed(struct snapshotter *s, struct sandbox *sandbox,
    const struct err *err)
{
	int64_t now_ms = clock_monotonic_ms();

	s->state->failures++;
	if (s->state->failing_ms == 0)
		s->state->failing_ms = clock_wall_ms();
	s->pause_ms = s->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * s->pause_ms;
	if (s->pause_ms > PAUSE_MOST_MS)
		s->pause_ms = PAUSE_MOST_MS;
	log_err("not saved: %s; again in %d s sandbox=%s", err->text,
	    (int)(s->pause_ms / 1000), sandbox->id);
	sandbox->due_ms = now_ms + s->pause_ms;
	/* what is wrong with this one alone holds up nobody else */
	if (err->code != ERR_SYSTEM && err->code != ERR_LIMIT)
		s->pause_until_ms = sandbox->due_ms;
	/* the others go first */
	TAILQ_REMOVE(&s->waiting, sandbox, wait);
	TAILQ_INSERT_TAIL(&s->waiting, sandbox, wait);
}

static void
save_ended(struct snapshotter *s, const char *id, const struct outcome *outcome)
{
	struct sandbox *sandbox = watch_find(s, id);

	s->state->bytes += outcome->saving.bytes;
	if (outcome->rc == 0) {
		s->pause_ms = 0;
		s->pause_until_ms = 0;
		s->state->failing_ms = 0;
		s->state->saved += outcome->saving.saved;
		log_debug("saved, %lld bytes sandbox=%s",
		    (long long)outcome->saving.bytes, id);
	}
	if (sandbox == NULL)
		return;
	if (outcome->rc != 0 && outcome->err.code == ERR_NOT_FOUND) {
		/* what takes its place is told */
		if (!sandbox->again)
			snapshotter_leave(s, sandbox);
		return;
	}
	sandbox->sweep = outcome->rc != 0 || outcome->saving.sweep;
	if (outcome->rc == 0 && !sandbox->again) {
		snapshotter_leave(s, sandbox);
	} else if (outcome->rc != 0 && outcome->err.code == ERR_BUSY) {
		if (sandbox->again)
			return;
		/* whoever has it lets go of it some time, and that is told */
		if (sandbox->tries++ == 0)
			sandbox->due_ms = clock_monotonic_ms() + BUSY_MS;
		else
			snapshotter_leave(s, sandbox);
	} else if (outcome->rc != 0) {
		save_failed(s, sandbox, &outcome->err);
	}
}

/* By whoever wants it forgotten, by a stop, by a lack of memory, by a mistake
 * of ours: one that always dies must not begin anew each second. */
static void
save_died(struct snapshotter *s, const char *id)
{
	struct sandbox *sandbox = watch_find(s, id);
	struct err err;

	if (sandbox == NULL)
		return;
	sandbox->sweep = true;
	(void)err_set(&err, ERR_SYSTEM, "its process died");
	if (s->stopping_ms != 0 || is_wanted(s, sandbox))
		snapshotter_free_again(s, sandbox);
	else
		save_failed(s, sandbox, &err);
}

static void
request_ended(struct snapshotter *s, struct request *request,
    struct outcome *outcome)
{
	bool restore = request->kind == REQUEST_RESTORE;

	if (!outcome->over)
		(void)err_set(&outcome->err, ERR_UNAVAILABLE, "%s",
		    request->late ? "no answer in time" : "it was killed");
	if (request->kind == REQUEST_COPY) {
		if (outcome->rc < 0 && !request->gone)
			log_warn("a copy is not given: %s file=%s",
			    outcome->err.text, request->file);
		request_end(request, outcome);
		return;
	}
	if (outcome->rc < 0) {
		s->state->failures++;
		log_err("not %s: %s sandbox=%s from=%s",
		    restore ? "restored" : "forgotten", outcome->err.text,
		    request->to, request->from);
	} else if (restore && outcome->rc == 0) {
		s->state->restored++;
		log_info("restored sandbox=%s from=%s", request->to,
		    request->from);
	} else if (!restore) {
		s->state->forgotten++;
	}
	request_end(request, outcome);
}

void
tasks_reap(struct snapshotter *s)
{
	for (size_t i = 0; i < TASKS; i++) {
		struct task *task = &s->tasks[i];
		struct outcome *outcome = &s->outcomes[i];

		if (task->pid == 0 ||
		    waitpid(task->pid, NULL, WNOHANG) != task->pid)
			continue;
		task->pid = 0;
		if (!outcome->over)
			outcome->rc = -1;
		if (task->kind == TASK_PASS)
			copies_ended(s, outcome);
		else if (task->request != NULL)
			request_ended(s, task->request, outcome);
		else if (outcome->over)
			save_ended(s, task->id, outcome);
		else
			save_died(s, task->id);
	}
	snapshotter_look(s);
}

static size_t
task_of(const struct snapshotter *s, const struct request *request)
{
	size_t i = 0;

	while (i < TASKS &&
	    (s->tasks[i].pid == 0 || s->tasks[i].request != request))
		i++;
	return i;
}

bool
tasks_has_begun(const struct snapshotter *s, const struct request *of)
{
	size_t i = task_of(s, of);

	return i < TASKS && s->outcomes[i].begun;
}

void
tasks_kill_request(const struct snapshotter *s, const struct request *of)
{
	size_t i = task_of(s, of);

	if (i < TASKS)
		(void)kill(s->tasks[i].pid, SIGKILL);
}

void
tasks_kill(struct snapshotter *s)
{
	for (size_t i = 0; i < TASKS; i++)
		if (s->tasks[i].pid != 0) {
			(void)kill(s->tasks[i].pid, SIGKILL);
			(void)waitpid(s->tasks[i].pid, NULL, 0);
		}
}

int
tasks_open(struct snapshotter *s, struct err *err)
{
	s->tasks = xcalloc(TASKS, sizeof(*s->tasks));
	s->outcomes = shared_file_open(NULL, TASKS * sizeof(*s->outcomes), err);
	return s->outcomes == NULL ? -1 : 0;
}
