/* SPDX-License-Identifier: MIT */
/*
 * The programs of `ilctl run` as children (base/children.h): their stages, the
 * end of all when one cannot run, and the announcement that all are ready.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/ilctl_run.h"
#include "protocol/lease.h"
#include "protocol/node_ask.h"

#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS 5000
/* A program that ran for so long did start well. */
#define STEADY_MS 10000
#define READY_MS 100 /* between two checks whether all accept requests */

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

/* The first time that all accept requests, it is announced. */
static void
supervise_check_ready(void *arg)
{
	struct run *run = arg;

	for (size_t i = 0; i < SIGNS; i++) {
		auto_free char *path = config_state_path(run->config, signs[i]);

		if (access(path, F_OK) != 0)
			return;
	}
	run->children.tick_ms = 0;
	supervise_announce(run);
}

/* ---- the children ---- */

/* nginx neither removes a socket that it left when it was killed, nor starts
 * beside it. */
static void
supervise_become(void *arg, size_t index, pid_t parent)
{
	const struct run *run = arg;

	if (run->programs[index].account == ACCOUNT_NGINX)
		supervise_remove(run->config, NODES_SOCKET);
	program_become(run, &run->programs[index], parent);
}

/* A program that cannot run as things are ends everything, as it would end
 * again, however often it is tried. */
static void
supervise_on_end(void *arg, size_t index, const siginfo_t *end)
{
	struct run *run = arg;
	int code = end->si_code == CLD_EXITED ? end->si_status : 0;

	if (run->children.asked > 0 ||
	    (code != CTL_USAGE && code != CTL_CONFIG &&
		code != CHILD_NOT_STARTED))
		return;
	log_err("%s cannot run as things are: everything ends",
	    run->programs[index].name);
	run->exit_code = code == CTL_USAGE ? CTL_USAGE : CTL_CONFIG;
	children_end(&run->children);
}

/* The first signal asks, the second hurries, the third kills. */
static void
supervise_on_signal(void *arg)
{
	const struct run *run = arg;
	const struct child *of = run->children.of;

	if (run->children.asked > 0) {
		log_info("hurrying");
		return;
	}
	log_info("ending: what runs has %lld s; a second signal does not wait",
	    (long long)(run->config->stop_ms / 1000));
	/* The stand-in ends the event streams of its pages, which never end by
	 * themselves, so that nginx does not wait for them. */
	for (size_t i = 0; i < run->children.count; i++)
		if (of[i].stage == STAGE_STANDIN && of[i].pid != 0)
			(void)kill(of[i].pid, SIGWINCH);
}

/* Sockets that are ours wait in the kernel from before the first start, so the
 * order of the starts does not matter to those who connect. */
int
supervise(struct run *run)
{
	/* nginx closes requests that take longer than IL_STOP_SECONDS.  A
	 * worker's run has the same time; then the worker reports it as
	 * interrupted, as there may be no next start.  The broker waits for
	 * starts that are under way, and for the engine to remove its
	 * containers.  The second signal does not kill it: without it the cells
	 * would have to find out that they are alone. */
	const struct children_stage stages[STAGE_COUNT] = {
		[STAGE_DRAIN] = { 15000 + run->config->stop_ms, 1 },
		[STAGE_FRONT] = { 3000, 1 },
		[STAGE_STANDIN] = { 2000, 1 },
		[STAGE_BROKER] = { 25000 + run->config->start_ms, 2 },
	};
	struct err err;

	run->children = (struct children){
		.of = run->children.of,
		.count = run->children.count,
		.stages = stages,
		.stage_count = STAGE_COUNT,
		.first_ms = BACKOFF_FIRST_MS,
		.most_ms = BACKOFF_LAST_MS,
		.steady_ms = STEADY_MS,
		.again_ms = BACKOFF_FIRST_MS,
		.arg = run,
		.become = supervise_become,
		.ended = supervise_on_end,
		.tick = supervise_check_ready,
		.tick_ms = READY_MS,
		.signalled = supervise_on_signal,
	};
	return children_run(&run->children, &err) != 0 ? ctl_fail("run", &err) :
							 run->exit_code;
}
