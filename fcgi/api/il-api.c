/*
 * il-api: answers programs over HTTP.
 *
 *	programs ──HTTP──▶ nginx ─┬─api.sock─────▶ 2 children: health, …
 *	                          ├─files.sock───▶ 2 children: /v1/files
 *	                          ├─run.sock─────▶ IL_API_CELLS children ─┐
 *	                          └─session.sock─▶ IL_API_SESSIONS children
 *	                             il-sandboxd, a cell each ◀──lease────┘
 *
 * A pool for each kind of work, with a queue of its own: what takes long in one
 * holds up nobody in another.
 *
 * It is a program of its own, with sockets of its own, so that nothing that it
 * does can delay the answers that il-fcgi owes to Discord within three seconds.
 *
 * It may: listen on its sockets, ask the broker for cells of the APIs, keep
 * uploaded files.  It may not and need not: touch Docker, the jobs' database, a
 * sandbox, the network.  What /health says of the jobs, il-fcgi has told it
 * (report.h).
 *
 * A child answers one request at a time.  Every wait has a bound, and a client
 * that hangs up ends its run.
 *
 * Files: routes.c the table, gate.c who may, limits.c how much, run.c a run in
 * a leased cell, reply.c the answers that several routes need.  Beside this
 * folder: server/ processes, sockets and FastCGI, contract/ the bytes of the
 * contracts, files/ the file store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "routes.h"
#include "run.h"
#include "session_holder.h"
#include "../server/master.h"
#include "../server/serve.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/config_images.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/priority.h"
#include "../../sandbox/protocol/lease.h"
#include "../../sandbox/protocol/sockets.h"

static const char usage[] = "usage: il-api [-ltv] [-e envfile]\n";

/* The longest a client may ask for; MAX_EXEC_TIMEOUT_MS of the contract. */
#define TIMEOUT_MAX_MS 60000
#define STORE_COUNT 100000
/* Idle cells that make room on the disk are gone by then. */
#define SPACE_MS 6000
/* That answer what takes no time. */
#define QUICK_CHILDREN 2
/* That take and give files: 16 of them may wait for slow readers
 * (nginx/api.conf). */
#define FILES_CHILDREN 18
#define STOP_MS 2000
#define SWEEP_EVERY_MS 60000

static void
name_interpreters(struct api_app *app)
{
	struct image_entry entry;
	size_t count = 0;
	size_t pos = 0;

	while (count < API_INTERPRETERS_MAX &&
	    images_next(app->config->sandbox_images, &pos, &entry))
		app->interpreters[count++] = xstrdup(entry.name);
}

/* The broker keeps count of what the disk has promised to whom. */
static int
keep_space(void *arg, int64_t bytes, struct err *err)
{
	const struct api_app *app = arg;
	int fd = -1;
	enum refusal outcome = lease_reserve(&fd, app->lease_socket, bytes,
	    SPACE_MS, err);

	if (outcome != REFUSAL_NONE)
		err->code = outcome == REFUSAL_DISK ? ERR_LIMIT :
						      ERR_UNAVAILABLE;
	return fd;
}

static int
open_store(struct api_app *app, struct err *err)
{
	const struct config *config = app->config;
	auto_free char *path = config->api_files[0] != '\0' ?
	    xstrdup(config->api_files) :
	    config_state_path(config, "files");
	struct filestore_limits limits = { config->api_files_ms,
		config->api_files_quota, STORE_COUNT };

	if (filestore_open(&app->store, path, &limits, err) != 0)
		return -1;
	app->store.owner = app->owner;
	app->store.keep_space = keep_space;
	app->store.keep_arg = app;
	return 0;
}

static int
open_tokens(struct api_app *app, struct err *err)
{
	const char *path = app->config->api_tokens_file;

	if (path[0] == '\0')
		return 0;
	if (limits_open(&app->limits, err) != 0)
		return -1;
	if (tokens_open(&app->tokens, path, err) == 0)
		return 0;
	limits_close(&app->limits);
	return -1;
}

static int
app_open(struct api_app *app, const struct config *config, struct err *err)
{
	*app = (struct api_app){ .config = config };
	if (metrics_open(&app->metrics, api_route_names(), api_kinds, err) != 0)
		return -1;
	if (open_store(app, err) != 0) {
		metrics_close(&app->metrics);
		return -1;
	}
	if (open_tokens(app, err) != 0) {
		filestore_close(&app->store);
		metrics_close(&app->metrics);
		return -1;
	}
	app->sessions = config_state_path(config, "sessions");
	session_holder_sweep(app->sessions);
	app->master = getpid();
	app->lease_socket = config_state_path(config, SOCKET_BROKER_API);
	name_interpreters(app);
	app->eval_terms = (struct eval_terms){ app->interpreters,
		TIMEOUT_MAX_MS };
	return 0;
}

static void
sweep(void *arg)
{
	struct api_app *app = arg;

	(void)filestore_sweep(&app->store);
}

static void
app_release(struct api_app *app)
{
	for (size_t i = 0; i < API_INTERPRETERS_MAX; i++)
		free((void *)(uintptr_t)app->interpreters[i]);
	free(app->sessions);
	free(app->lease_socket);
	if (app->tokens.path != NULL)
		tokens_close(&app->tokens);
	limits_close(&app->limits);
	filestore_close(&app->store);
	metrics_close(&app->metrics);
}

/* Its answers take long: each request is answered as it is taken. */
static bool
answer(void *arg, struct http_request *req, size_t index)
{
	(void)index;
	api_answer(arg, req);
	return false;
}

/* A child: returns when it was told to end. */
static int
work(void *arg, struct serve *serve, size_t index)
{
	struct serve_calls calls = { .take = answer, .arg = arg };
	struct err err;

	(void)index;
	serve->path = NULL; /* who still waits for a run waits in vain */
	if (serve_run(serve, &calls, &err) == 0)
		return 0;
	log_err("%s", err.text);
	return 1;
}

/* Returns when it was told to end. */
static int
run(struct config *config, bool linger, struct err *err)
{
	const struct master_socket sockets[] = {
		{ "api.sock", SERVE_BACKLOG, QUICK_CHILDREN },
		/* The kernel lets one more wait than it is told. */
		{ "run.sock", (int)config->api_queue - 1,
		    (size_t)config->api_cells },
		{ "files.sock", SERVE_BACKLOG, FILES_CHILDREN },
		{ "session.sock", (int)config->api_queue - 1,
		    (size_t)config->api_sessions },
	};
	struct api_app app;
	struct master master;
	int result;

	priority_take_short_slices();
	if (app_open(&app, config, err) != 0)
		return -1;
	if (master_open(&master, config, sockets,
		sizeof(sockets) / sizeof(sockets[0]), err) != 0) {
		app_release(&app);
		return -1;
	}
	master.work = work;
	master.tick = sweep;
	master.tick_ms = SWEEP_EVERY_MS;
	master.stop_ms = STOP_MS;
	master.linger = linger;
	master.arg = &app;
	log_info("ready");
	result = master_run(&master, err);
	master_close(&master);
	app_release(&app);
	return result;
}

int
main(int argc, char **argv)
{
	struct serve_options options;
	struct config config;
	struct err err;

	if (!serve_options_parse(&options, "e:ltv", argc, argv)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	log_init("il-api", options.level);
	if (config_load(&config, options.env_file, &err) < 0)
		log_fatal(78, "%s", err.text);
	if (!options.test) {
		if (run(&config, options.linger, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	}
	config_release(&config);
	return 0;
}
