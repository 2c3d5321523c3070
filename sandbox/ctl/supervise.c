/* SPDX-License-Identifier: MIT */
/*
 * The loop of `ilctl run`. The programs are ended stage by stage (enum
 * child_stage): each gets SIGTERM, and SIGKILL when its time is over.
 */
#include "supervise.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../protocol/sockets.h"
#include "child.h"
#include "ctl.h"
#include "plan.h"

struct supervisor {
	struct plan *plan;
	const struct config *config;
	struct loop *loop;
	int inotify_fd;
	int standin_fd;
	void (*ready)(void *arg);
	void *arg;
	int asked; /* how often to end */
	int stage; /* that is being ended; -1: none */
	struct loop_timer *deadline;
	int exit_code;
};

/* How long a stage may take to end by itself.  A worker lets its run go on for
 * IL_STOP_SECONDS and then tells that it was interrupted, as there may be no
 * next start that would; the broker waits for starts that are under way, and
 * for the engine to remove its containers. */
static int64_t
stage_ms(const struct supervisor *s, int stage)
{
	static const int64_t least[STAGE_COUNT] = {
		[STAGE_NGINX] = 2000,
		[STAGE_FRONT] = 3000,
		[STAGE_WORKER] = 15000,
		[STAGE_STANDIN] = 2000,
		[STAGE_BROKER] = 25000,
	};

	if (stage == STAGE_WORKER)
		return least[stage] + s->config->stop_ms;
	if (stage == STAGE_BROKER)
		return least[stage] + s->config->start_ms;
	return least[stage];
}

static void start(struct child *child);
static void end_stage(struct supervisor *s, int stage);

/* ---- ready ---- */

const char *const supervise_signs[] = { SOCKET_BROKER_WORKER, SOCKET_BROKER_API,
	SOCKET_BROKER_CTL, "fcgi.sock", "api.sock", "run.sock", "files.sock",
	"session.sock", "front/jobs", "nginx/nginx.pid", NULL };

/* Do all accept requests? */
static bool
all_there(const struct supervisor *s)
{
	for (int i = 0; supervise_signs[i] != NULL; i++) {
		auto_free char *path = config_state_path(s->config,
		    supervise_signs[i]);

		if (access(path, F_OK) != 0)
			return false;
	}
	return s->standin_fd < 0;
}

/* Say that all is ready, the first time that it is. */
static void
look(struct supervisor *s)
{
	if (s->inotify_fd < 0 || s->stage >= 0 || !all_there(s))
		return;
	loop_close(s->loop, &s->inotify_fd);
	s->ready(s->arg);
}

/* Something was made in one of the folders: what, is looked up. */
static void
on_inotify(void *arg, int fd, uint32_t events)
{
	char buffer[4096];

	(void)events;
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	look(arg);
}

/* It says so itself, and then closes its end. */
static void
on_standin(void *arg, int fd, uint32_t events)
{
	struct supervisor *s = arg;

	(void)fd;
	(void)events;
	loop_close(s->loop, &s->standin_fd);
	look(s);
}

/* ---- one program ---- */

static void
on_restart(void *arg)
{
	start(arg);
}

/* After a pause that grows while it keeps failing. */
static void
start_later(struct child *child)
{
	int64_t wait = child_next_backoff(child);

	log_info("%s starts again in %lld ms", child->name, (long long)wait);
	loop_timer_set(child->supervisor->loop, &child->restart, wait,
	    on_restart, child);
}

/* Only what was not asked for is worth a line. */
static void
log_end(const struct child *child, int status, bool expected)
{
	if (expected)
		log_debug("%s ended", child->name);
	else if (WIFSIGNALED(status))
		log_warn("%s was ended by signal %d", child->name,
		    WTERMSIG(status));
	else
		log_warn("%s ended with status %d", child->name,
		    WEXITSTATUS(status));
}

/* A usage or configuration error stays one, however often it is tried. */
static bool
is_hopeless(int status)
{
	return WIFEXITED(status) &&
	    (WEXITSTATUS(status) == CTL_USAGE ||
		WEXITSTATUS(status) == CTL_CONFIG ||
		WEXITSTATUS(status) == CHILD_NOT_STARTED);
}

/* A program has ended: because its stage is being ended, for good, or to be
 * started again. */
static void
on_end(void *arg, int fd, uint32_t events)
{
	struct child *child = arg;
	struct supervisor *s = child->supervisor;
	int status;

	(void)events;
	loop_remove(s->loop, fd);
	status = child_reap(child);
	log_end(child, status, s->stage >= (int)child->stage);
	if (s->stage >= 0) {
		end_stage(s, s->stage);
	} else if (is_hopeless(status)) {
		log_err("%s cannot run as things are: everything ends",
		    child->name);
		s->exit_code = WEXITSTATUS(status) == CTL_USAGE ? CTL_USAGE :
								  CTL_CONFIG;
		end_stage(s, 0);
	} else {
		start_later(child);
	}
}

static void
start(struct child *child)
{
	struct err err;

	if (child_start(child, &err) == 0) {
		loop_add(child->supervisor->loop, child->pidfd, EPOLLIN, on_end,
		    child);
		return;
	}
	log_err("%s: %s", child->name, err.text);
	start_later(child);
}

/* ---- the end ---- */

static void
signal_stage(struct supervisor *s, int stage, int number)
{
	for (size_t i = 0; i < s->plan->count; i++) {
		const struct child *child = &s->plan->children[i];

		/* A pid that was not reaped is never another's. */
		if ((int)child->stage != stage || child->pid == 0)
			continue;
		if (number == SIGKILL)
			log_warn("%s did not end in time: killed", child->name);
		(void)kill(child->pid, number);
	}
}

static bool
stage_is_over(const struct supervisor *s, int stage)
{
	for (size_t i = 0; i < s->plan->count; i++) {
		if ((int)s->plan->children[i].stage == stage &&
		    s->plan->children[i].pid != 0)
			return false;
	}
	return true;
}

static void
on_deadline(void *arg)
{
	struct supervisor *s = arg;

	signal_stage(s, s->stage, SIGKILL);
}

/* Ask all of a stage to end, and set the time for it. */
static void
begin_stage(struct supervisor *s, int stage)
{
	/* Who hurries does not wait for anybody but the broker, which would
	 * leave it to the cells to find out that they are alone. */
	bool hurry = s->asked > 1 && stage != STAGE_BROKER;

	s->stage = stage;
	loop_timer_set(s->loop, &s->deadline, stage_ms(s, stage), on_deadline,
	    s);
	signal_stage(s, stage, hurry || s->asked > 2 ? SIGKILL : SIGTERM);
}

/* End this stage, or the first one after it that is not over. */
static void
end_stage(struct supervisor *s, int stage)
{
	/* Nothing that has ended is started again from here on. */
	for (size_t i = 0; s->stage < 0 && i < s->plan->count; i++)
		loop_timer_clear(s->loop, &s->plan->children[i].restart);
	if (s->stage == stage && !stage_is_over(s, stage))
		return;
	while (stage < STAGE_COUNT && stage_is_over(s, stage))
		stage++;
	if (stage < STAGE_COUNT) {
		begin_stage(s, stage);
		return;
	}
	s->stage = STAGE_COUNT;
	loop_timer_clear(s->loop, &s->deadline);
	loop_stop(s->loop);
}

/* The first asks, the second hurries, the third kills. */
static void
on_signal(void *arg, int fd, uint32_t events)
{
	struct supervisor *s = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	s->asked++;
	if (s->stage < 0) {
		log_info("ending: what runs has %lld s; "
			 "a second signal does not wait",
		    (long long)(s->config->stop_ms / 1000));
		end_stage(s, 0);
	} else if (s->stage < STAGE_COUNT) {
		log_info("hurrying");
		begin_stage(s, s->stage);
	}
}

/* ---- all ---- */

/* The folders in which the signs are made. */
static int
open_inotify(struct supervisor *s)
{
	s->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (int i = 0; supervise_signs[i] != NULL; i++) {
		auto_free char *path = config_state_path(s->config,
		    supervise_signs[i]);

		*strrchr(path, '/') = '\0';
		if (inotify_add_watch(s->inotify_fd, path,
			IN_CREATE | IN_MOVED_TO) < 0)
			return -1;
	}
	return 0;
}

/* Sockets that are ours wait in the kernel from before the first start, so the
 * order of the starts does not matter to those who connect. */
int
supervise(struct plan *plan, const struct config *config, int signals_fd,
    int standin_fd, void (*ready)(void *arg), void *arg)
{
	struct supervisor s = { .plan = plan,
		.config = config,
		.standin_fd = standin_fd,
		.ready = ready,
		.arg = arg,
		.stage = -1 };

	if (open_inotify(&s) != 0) {
		log_err("inotify: %m");
		cleanup_close(&s.inotify_fd);
		cleanup_close(&s.standin_fd);
		return CTL_FAILED;
	}
	s.loop = loop_new();
	loop_add(s.loop, signals_fd, EPOLLIN, on_signal, &s);
	loop_add(s.loop, s.inotify_fd, EPOLLIN, on_inotify, &s);
	if (s.standin_fd >= 0)
		loop_add(s.loop, s.standin_fd, EPOLLIN, on_standin, &s);
	for (size_t i = 0; i < plan->count; i++) {
		plan->children[i].supervisor = &s;
		start(&plan->children[i]);
	}
	loop_run(s.loop);
	loop_close(s.loop, &s.inotify_fd);
	loop_close(s.loop, &s.standin_fd);
	loop_free(s.loop);
	return s.exit_code;
}
