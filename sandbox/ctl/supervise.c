/* SPDX-License-Identifier: MIT */
/*
 * The loop of `ilctl run`. The programs are ended stage by stage (enum
 * child_stage): each gets SIGTERM, and SIGKILL when its time is over.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "ctl/ctl.h"
#include "ctl/ilctl_run.h"
#include "protocol/lease.h"
#include "protocol/node_ask.h"

#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS 5000
/* A program that ran for so long did start well. */
#define STEADY_MS 10000

static void supervise_start(void *arg);

/* ---- ready ---- */

/* Files in the state folder that appear when the programs accept requests. */
static const char *const signs[] = { SOCKET_BROKER_WORKER, SOCKET_BROKER_API,
	SOCKET_BROKER_CTL, "fcgi.sock", "api.sock", "run.sock", "files.sock",
	"session.sock", "connect.sock", "mcp.sock", "front/jobs",
	"nginx/nginx.pid", "wake", NODES_SOCKET, "node.sock" };

#define FILES (sizeof(signs) / sizeof(signs[0]))
#define SIGNS (FILES - 3) /* the last ones tell nothing, and are removed, too */

static void
supervise_remove(const struct config *config, const char *name)
{
	auto_free char *path = config_state_path(config, name);

	if (unlink(path) != 0 && errno != ENOENT)
		log_warn("%s: %m", path);
}

void
supervise_clear(const struct config *config)
{
	for (size_t i = 0; i < FILES; i++)
		supervise_remove(config, signs[i]);
}

/* The end of a start: where to go now. */
static void
supervise_announce(const struct run *run)
{
	long port = (long)run->config->http_port;

	printf("\nInline is ready.  Ctrl-C ends everything.\n\n");
	if (run->standin.port != 0)
		printf("  chat page     http://127.0.0.1:%ld/\n", port);
	printf("  interactions  http://127.0.0.1:%ld/interactions\n", port);
	printf("  HTTP APIs     http://127.0.0.1:%ld/docs\n", port);
	printf("  health        http://127.0.0.1:%ld/health\n", port);
	printf("  state         %s\n\n", run->config->state_dir);
	if (run->standin.port != 0)
		printf("DISCORD_PUBLIC_KEY is not set: a stand-in on this "
		       "machine plays Discord.\nOpen the chat page and type "
		       "/il create, then /il py print(1).\n\n");
	(void)fflush(stdout);
}

/* Something was made in one of the folders.  The first time that all accept
 * requests, it is announced. */
static void
supervise_on_news(void *arg, int fd, uint32_t events)
{
	struct run *run = arg;
	char buffer[4096];

	(void)events;
	(void)!read(fd, buffer, sizeof(buffer));
	if (run->stage >= 0)
		return;
	for (size_t i = 0; i < SIGNS; i++) {
		auto_free char *path = config_state_path(run->config, signs[i]);

		if (access(path, F_OK) != 0)
			return;
	}
	loop_close(run->loop, &run->inotify_fd);
	supervise_announce(run);
}

/* ---- the end ---- */

/* The time that a stage has to end by itself.  nginx closes requests that take
 * longer than IL_STOP_SECONDS.  A worker's run has the same time; then the
 * worker reports it as interrupted, as there may be no next start.  The broker
 * waits for starts that are under way, and for the engine to remove its
 * containers. */
static int64_t
stage_ms(const struct run *run)
{
	static const int64_t least[STAGE_COUNT] = {
		[STAGE_DRAIN] = 15000,
		[STAGE_FRONT] = 3000,
		[STAGE_STANDIN] = 2000,
		[STAGE_BROKER] = 25000,
	};
	int64_t more = run->stage == STAGE_DRAIN ? run->config->stop_ms :
	    run->stage == STAGE_BROKER		 ? run->config->start_ms :
						   0;

	return least[run->stage] + more;
}

/* Send a signal to all of a stage.  Returns how many are left of it; 0 is no
 * signal, and only counts.  SIGTERM would cut nginx's answers. */
static size_t
signal_stage(const struct run *run, int stage, int number)
{
	size_t left = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct child *child = &run->children[i];

		/* A pid that was not reaped is never another's. */
		if ((int)child->stage != stage || child->pid == 0)
			continue;
		left++;
		if (number == SIGKILL)
			log_warn("%s did not end in time: killed", child->name);
		(void)kill(child->pid,
		    number == SIGTERM && child->account == ACCOUNT_NGINX ?
			SIGQUIT :
			number);
	}
	return left;
}

static void
supervise_on_deadline(void *arg)
{
	const struct run *run = arg;

	(void)signal_stage(run, run->stage, SIGKILL);
}

/* Ask all of this stage to end, or of the first one after it that has any left,
 * and set the time for it. */
static void
end_stage(struct run *run)
{
	bool hurry;

	while (run->stage < STAGE_COUNT &&
	    signal_stage(run, run->stage, 0) == 0)
		run->stage++;
	if (run->stage == STAGE_COUNT) {
		loop_stop(run->loop);
		return;
	}
	/* The second signal kills all but the broker: without it the cells
	 * would have to find out that they are alone. */
	hurry = run->asked > (run->stage == STAGE_BROKER ? 2 : 1);
	loop_timer_set(run->loop, &run->deadline, stage_ms(run),
	    supervise_on_deadline, run);
	(void)signal_stage(run, run->stage, hurry ? SIGKILL : SIGTERM);
}

/* The first asks, the second hurries, the third kills. */
static void
supervise_on_signal(void *arg, int fd, uint32_t events)
{
	struct run *run = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(fd, &info, sizeof(info)) != sizeof(info) ||
	    fd_signal_is_echo(&run->asked_ms))
		return;
	run->asked++;
	if (run->stage < 0) {
		log_info("ending: what runs has %lld s; "
			 "a second signal does not wait",
		    (long long)(run->config->stop_ms / 1000));
		run->stage = 0;
		/* The stand-in ends the event streams of its pages, which never
		 * end by themselves, so that nginx does not wait for them. */
		(void)signal_stage(run, STAGE_STANDIN, SIGWINCH);
	} else {
		log_info("hurrying");
	}
	end_stage(run);
}

/* ---- one program ---- */

/* After a pause that grows while it keeps ending soon after its start. */
static void
supervise_start_later(struct child *child)
{
	int64_t wait;

	if (clock_monotonic_ms() - child->started_ms > STEADY_MS)
		child->failures = 0;
	wait = clock_backoff_ms(BACKOFF_FIRST_MS, BACKOFF_LAST_MS,
	    child->failures++);
	log_info("%s starts again in %lld ms", child->name, (long long)wait);
	loop_timer_set(child->run->loop, NULL, wait, supervise_start, child);
}

/* End what is left of its group, then reap it: until then the number is nobody
 * else's.  Only an end that was not asked for is worth a line. */
static int
supervise_reap(struct child *child)
{
	int status = 0;

	(void)kill(-child->pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(child->pid, &status, 0));
	loop_close(child->run->loop, &child->pidfd);
	child->pid = 0;
	if (child->run->stage >= (int)child->stage)
		log_debug("%s ended", child->name);
	else if (WIFSIGNALED(status))
		log_warn("%s was ended by signal %d", child->name,
		    WTERMSIG(status));
	else
		log_warn("%s ended with status %d", child->name,
		    WEXITSTATUS(status));
	return status;
}

/* A program has ended: because its stage is being ended, for good, or to be
 * started again. */
static void
supervise_on_end(void *arg, int fd, uint32_t events)
{
	struct child *child = arg;
	struct run *run = child->run;
	int status = supervise_reap(child);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	(void)fd;
	(void)events;
	if (run->stage >= 0) {
		if (signal_stage(run, run->stage, 0) == 0)
			end_stage(run);
	} else if (code == CTL_USAGE || code == CTL_CONFIG ||
	    code == CHILD_NOT_STARTED) {
		/* It stays so, however often it is tried. */
		log_err("%s cannot run as things are: everything ends",
		    child->name);
		run->exit_code = code == CTL_USAGE ? CTL_USAGE : CTL_CONFIG;
		run->stage = 0;
		end_stage(run);
	} else {
		supervise_start_later(child);
	}
}

/* Nothing that has ended is started again once all are to end. */
static void
supervise_start(void *arg)
{
	struct child *child = arg;
	struct run *run = child->run;
	struct err err;

	if (run->stage >= 0)
		return;
	/* nginx removes none that it left when it was killed, nor starts. */
	if (child->account == ACCOUNT_NGINX)
		supervise_remove(run->config, NODES_SOCKET);
	if (child_spawn(child, &err) == 0) {
		loop_add(run->loop, child->pidfd, EPOLLIN, supervise_on_end,
		    child);
		return;
	}
	log_err("%s: %s", child->name, err.text);
	supervise_start_later(child);
}

/* ---- all ---- */

/* Watch the folders in which the signs are made. */
static int
open_inotify(struct run *run, struct err *err)
{
	run->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (size_t i = 0; i < SIGNS; i++) {
		auto_free char *path = config_state_path(run->config, signs[i]);

		*strrchr(path, '/') = '\0';
		if (inotify_add_watch(run->inotify_fd, path,
			IN_CREATE | IN_MOVED_TO) < 0)
			return err_system(err, "inotify");
	}
	return 0;
}

/* Sockets that are ours wait in the kernel from before the first start, so the
 * order of the starts does not matter to those who connect. */
int
supervise(struct run *run)
{
	struct err err;
	auto_close int signals_fd = fd_signals(SIGHUP, &err);

	if (signals_fd < 0 || open_inotify(run, &err) != 0)
		return ctl_fail("run", &err);
	run->stage = -1;
	run->loop = loop_new();
	loop_add(run->loop, signals_fd, EPOLLIN, supervise_on_signal, run);
	loop_add(run->loop, run->inotify_fd, EPOLLIN, supervise_on_news, run);
	for (size_t i = 0; i < run->count; i++)
		supervise_start(&run->children[i]);
	loop_run(run->loop);
	loop_free(run->loop);
	return run->exit_code;
}
