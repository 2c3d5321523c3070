/* SPDX-License-Identifier: MIT */
/*
 * il-api: answers programs over HTTP.
 *
 *	programs ──HTTP──▶ nginx ─┬─api.sock─────▶ 2 children: health, …
 *	                          ├─files.sock───▶ 18 children: /v1/files
 *	                          ├─run.sock─────▶ IL_API_CELLS children ─┐
 *	                          ├─session.sock─▶ IL_API_SESSIONS children
 *	                          ├─connect.sock─▶ IL_API_CELLS children, which
 *	                          │  speak HTTP and WebSocket: piston.c
 *	                          └─mcp.sock─────▶ as many as runs and sessions,
 *	                             │             and 12 children: /mcp
 *	                             il-sandboxd, a cell each ◀──lease────┘
 *
 * Each kind of work has a pool of processes and a queue of its own, so slow
 * work of one kind does not hold up another.
 *
 * il-api is a program of its own, with sockets of its own, so it cannot delay
 * the answers that il-fcgi owes to Discord within three seconds.
 *
 * It may: listen on its sockets, ask the broker for cells of the APIs, store
 * uploaded files.  It may not and need not: touch Docker, the jobs' database, a
 * sandbox, the network.  /health has the state of the jobs from il-fcgi
 * (health.h).
 *
 * A child answers one request at a time.  Every wait has a bound, and a client
 * that hangs up ends its run.
 *
 * Files: routes.c the table of routes, gate.c permission, limits and answers,
 * run.c a run in a leased cell.  Other folders:
 * server/ processes, sockets and FastCGI, contract/ the bytes of the contracts,
 * files/ the file store.
 */
#include <unistd.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/librechat_who.h"
#include "api/mcp.h"
#include "contract/mcp/mcp_tools.h"
#include "api/routes.h"
#include "server/master.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/process.h"
#include "protocol/lease.h"

#define STORE_COUNT 100000
/* The broker needs less to remove idle cells that make room on the disk. */
#define SPACE_MS 6000
/* Children for answers that take no time. */
#define QUICK_CHILDREN 2
/* Children for uploads and downloads: 16 of them may wait for slow readers
 * (nginx/api.conf.in). */
#define FILES_CHILDREN 18
/* Connections that wait for a WebSocket's process. */
#define CONNECT_QUEUE 16
#define STOP_MS 2000
#define SWEEP_EVERY_MS 60000

/* The broker counts the disk space that is reserved. */
static int
keep_space(void *arg, int64_t bytes, struct err *err)
{
	const struct api_app *app = arg;
	int fd = -1;
	enum refusal outcome = lease_command(&fd, app->lease_socket,
	    &(struct lease_request){ .kind = FRAME_RESERVE, .bytes = bytes },
	    SPACE_MS, err);

	if (outcome != REFUSAL_NONE)
		err->code = outcome == REFUSAL_DISK ? ERR_LIMIT :
						      ERR_UNAVAILABLE;
	return fd;
}

/* It lives as long as the process. */
static int
app_open(struct api_app *app, const struct config *config, struct err *err)
{
	const char *tokens = config->api_tokens_file;
	const struct filestore_limits limits = { config->api_files_ms,
		config->api_files_quota, STORE_COUNT };
	static struct limits claimed;
	struct image_entry entry;
	size_t count = 0;
	size_t pos = 0;

	*app = (struct api_app){
		.config = config,
		.lease_socket = config_state_path(config, SOCKET_BROKER_API),
		.sessions = config_state_path(config, "sessions"),
		.limits = &claimed,
	};
	while (count < API_INTERPRETERS_MAX &&
	    images_next(config->sandbox_images, &pos, &entry))
		app->interpreters[count++] = xstrdup(entry.name);
	app->mcp_list = mcp_list_read(app->interpreters);
	if (metrics_open(&app->metrics, config, api_route_names, err) != 0 ||
	    filestore_open(&app->store, config->api_files, &limits, err) != 0 ||
	    piston_open(app, err) != 0)
		return -1;
	if (nodes_open(app, err) != 0)
		return -1;
	app->store.owner = app->owner;
	app->store.sender = app->owner;
	app->store.keep_space = keep_space;
	app->store.keep_arg = app;
	if (librechat_open(app, err) != 0 ||
	    fd_make_dirs(app->sessions, 0700, err) != 0 ||
	    limits_open(app->limits, xprintf("%s/slots", app->sessions), err) !=
		0 ||
	    (tokens[0] != '\0' && tokens_open(&app->tokens, tokens, err) != 0))
		return -1;
	return 0;
}

static void
il_api_start(void *arg, size_t index)
{
	metrics_begin(&((struct api_app *)arg)->metrics, index);
}

static void
il_api_sweep(void *arg)
{
	(void)filestore_sweep(&((struct api_app *)arg)->store);
}

/* Returns after a signal to end. */
static int
il_api_run(const struct config *config, bool linger, struct err *err)
{
	static struct api_app app;
	/* The kernel lets one more wait than it is told. */
	const int queue = (int)config->api_queue - 1;
	const struct serve_socket sockets[] = {
		{ "api.sock", SERVE_BACKLOG, QUICK_CHILDREN, NULL },
		{ "run.sock", queue, (size_t)config->api_cells, NULL },
		{ "files.sock", SERVE_BACKLOG, FILES_CHILDREN, NULL },
		{ "session.sock", queue, (size_t)config->api_sessions, NULL },
		{ "connect.sock", CONNECT_QUEUE, (size_t)config->api_cells,
		    api_connect },
		{ "mcp.sock", SERVE_BACKLOG, mcp_children(config), NULL },
	};
	_Static_assert(sizeof(sockets) / sizeof(sockets[0]) <=
		SERVE_SOCKETS_MAX,
	    "there is room for each");
	/* No drain: a request that waits for a run at the end is dropped. */
	const struct serve serve = {
		.sockets = sockets,
		.socket_count = sizeof(sockets) / sizeof(sockets[0]),
		.arg = &app,
		.start = il_api_start,
		.answer = api_answer,
		.tick = il_api_sweep,
		.tick_ms = SWEEP_EVERY_MS,
		.stop_ms = STOP_MS,
		.linger = linger,
	};

	process_take_short_slices();
	if (app_open(&app, config, err) != 0)
		return -1;
	return master_run(&serve, config, err);
}

int
main(int argc, char **argv)
{
	auto_config struct config config = { 0 };
	const char *given[CONFIG_OPTIONS] = { NULL };
	struct err err;

	config_begin(&config, "il-api",
	    "ltve:", "usage: il-api [-ltv] [-e envfile]\n", argc, argv, given);
	if (given['t'] == NULL) {
		if (il_api_run(&config, given['l'] != NULL, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	}
	return 0;
}
