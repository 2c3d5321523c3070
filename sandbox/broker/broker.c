/* SPDX-License-Identifier: MIT */
/*
 * Opens all parts of il-sandboxd, connects what one of them has to tell to
 * another, and ends them in the right order: leases first, then cells, then
 * what the engine still has.
 */
#include "broker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "client.h"
#include "derive.h"
#include "folder.h"
#include "ledger.h"
#include "provide.h"
#include "uid.h"
#include "workspace.h"

#define INSTANCE_LEN 16
#define GRACE_MS 3000 /* for the cells to go by themselves */
/* For everything to be gone, beside the starts that are under way. */
#define STOP_MS 20000

struct broker {
	const struct config *config;
	struct loop *loop;
	char instance[INSTANCE_LEN + 1];
	int instance_fd; /* locked: one broker for each state folder */
	char *cells_dir;
	int base;
	struct uids uids;
	int signals;
	bool draining;
	bool stopping;
	bool sweeping;
	bool empty; /* no container is left */
	struct engine engine;
	struct provider provider;
	struct ledger ledger;
	struct derive derive;
	struct pool pool;
	struct clients clients;
};

/* ---- opening ---- */

/* A random id, written down before any container bears it. */
static int
instance_make(int fd, char *instance, struct err *err)
{
	unsigned char bytes[INSTANCE_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_system(err, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(instance + 2 * i, 3, "%02x", bytes[i]);
	if (ftruncate(fd, 0) != 0 ||
	    pwrite(fd, instance, INSTANCE_LEN, 0) != INSTANCE_LEN ||
	    fsync(fd) != 0)
		return err_system(err, "write the instance's id");
	return 0;
}

/*
 * Our containers bear the id in this file, so that the next life of this broker
 * finds them, and no other broker of this engine takes them for its own.  The
 * lock on it keeps a second broker from serving the same state folder.
 */
static int
instance_open(struct broker *b, struct err *err)
{
	auto_free char *path = config_state_path(b->config, "instance");
	char id[INSTANCE_LEN + 1] = "";

	b->instance_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (b->instance_fd < 0)
		return err_system(err, "open %s", path);
	if (flock(b->instance_fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno == EWOULDBLOCK)
			return err_set(err, ERR_BUSY,
			    "another il-sandboxd serves %s",
			    b->config->state_dir);
		return err_system(err, "lock %s", path);
	}
	if (pread(b->instance_fd, id, INSTANCE_LEN, 0) == INSTANCE_LEN &&
	    strspn(id, "0123456789abcdef") == INSTANCE_LEN) {
		memcpy(b->instance, id, sizeof(id));
		return 0;
	}
	return instance_make(b->instance_fd, b->instance, err);
}

/* Descriptors: two for each client, a few for each cell and each program. */
static void
raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_cur > 65536)
		limit.rlim_cur = 65536;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* All that can fail before anything runs. */
static int
broker_open(struct broker *b, struct err *err)
{
	if (fd_make_dirs(b->config->state_dir, 0750, err) != 0 ||
	    instance_open(b, err) != 0)
		return -1;
	b->base = workspace_base_open(b->config->base_dir, err);
	b->cells_dir = config_state_path(b->config, "cells");
	if (b->base < 0 || uids_open(&b->uids, b->base, err) != 0 ||
	    folder_sweep(b->cells_dir, err) != 0)
		return -1;
	b->signals = fd_signals(0, err);
	if (b->signals < 0)
		return -1;
	return clients_listen(&b->clients, b->config, err);
}

/* ---- the end ---- */

/* The last sweep is over.  A start that is under way has yet to be ended, which
 * the engine does only when it answers. */
static void
broker_finished(void *arg)
{
	struct broker *b = arg;

	b->sweeping = false;
	if (b->empty || !b->engine.clean)
		loop_stop(b->loop);
}

/* Neither cells nor engine came to an end: the next start sweeps. */
static void
broker_on_stop_timer(void *arg)
{
	struct broker *b = arg;

	log_err("not everything ended in time");
	loop_stop(b->loop);
}

/* The cells are dead, or late: what the engine still has is removed. */
static void
broker_sweep(void *arg)
{
	struct broker *b = arg;

	if (b->sweeping)
		return;
	b->sweeping = true;
	if (b->engine.up)
		engine_sweep_last(&b->engine, broker_finished);
	else
		loop_stop(b->loop);
}

/* All cells have gone by themselves: nothing needs to be waited for. */
static void
broker_on_empty(void *arg)
{
	struct broker *b = arg;

	b->empty = true;
	broker_sweep(b);
}

/* Leases have ended, or have had their time: all that is left ends. */
static void
broker_stop(void *arg)
{
	struct broker *b = arg;

	if (b->stopping)
		return;
	b->stopping = true;
	log_info("ending");
	provider_release(&b->provider);
	derive_release(&b->derive);
	clients_close(&b->clients);
	loop_timer_set(b->loop, NULL, b->config->start_ms + STOP_MS,
	    broker_on_stop_timer, b);
	loop_timer_set(b->loop, NULL, GRACE_MS, broker_sweep, b);
	pool_stop(&b->pool, broker_on_empty, b);
}

/* The sockets stay until the leases are over: who comes meanwhile waits, is let
 * go at the end, and asks whoever is started next. */
static void
broker_drain(struct broker *b)
{
	if (b->draining) {
		broker_stop(b); /* told a second time */
		return;
	}
	b->draining = true;
	log_info("letting leases end");
	loop_timer_set(b->loop, NULL, b->config->stop_ms, broker_stop, b);
	pool_drain(&b->pool, broker_stop, b);
}

static void
broker_on_signal(void *arg, int fd, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	if (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		broker_drain(arg);
}

/* ---- all together ---- */

/* The engine's state changed. Images are looked after only once the sweep is
 * over, which has the engine for itself. */
static void
broker_on_engine(void *arg)
{
	struct broker *b = arg;

	pool_poke(&b->pool);
	if (b->engine.up && b->engine.swept) {
		provider_begin(&b->provider);
		derive_look(&b->derive);
	}
}

/* An image that was pulled may have something derived from it. */
static void
broker_on_provided(void *arg)
{
	struct broker *b = arg;

	derive_look(&b->derive);
}

/* Cells may start from something better now. */
static void
broker_on_derived(void *arg)
{
	struct broker *b = arg;

	pool_images_changed(&b->pool);
}

/* Connect the parts: who tells whom. Nothing can fail from here on. */
static void
broker_begin(struct broker *b)
{
	struct container_host host = { .loop = b->loop,
		.config = b->config,
		.engine = &b->engine,
		.derive = &b->derive,
		.instance = b->instance,
		.cells_dir = b->cells_dir,
		.base = b->base,
		.ledger = &b->ledger,
		.uids = &b->uids,
		.started_s = clock_wall_ms() / 1000 };

	engine_init(&b->engine, b->loop, b->config, b->instance,
	    broker_on_engine, b);
	provider_init(&b->provider, b->loop, b->config, broker_on_provided, b);
	derive_init(&b->derive, b->loop, b->config, b->instance,
	    broker_on_derived, b);
	pool_init(&b->pool, &host, &b->engine);
	b->pool.looked = space_look;
	b->pool.looked_arg = &b->clients;
	ledger_init(&b->ledger, b->loop, b->config->cells, pool_poke, &b->pool);
	clients_open(&b->clients, b->loop, &b->pool);
	ledger_find(&b->ledger, b->base);
	ledger_add_spool(&b->ledger, b->config);
	loop_add(b->loop, b->signals, EPOLLIN, broker_on_signal, b);
	(void)engine_refresh(&b->engine, 0);
	log_info("serving %s instance=%s", b->config->state_dir, b->instance);
}

int
broker_serve(const struct config *config, struct err *err)
{
	struct broker b = { .config = config,
		.instance_fd = -1,
		.base = -1,
		.uids.fd = -1,
		.signals = -1 };
	int rc;

	raise_file_limit();
	rc = broker_open(&b, err);
	if (rc == 0) {
		b.loop = loop_new();
		broker_begin(&b);
		loop_run(b.loop);
		provider_release(&b.provider);
		derive_release(&b.derive);
		pool_release(&b.pool);
		ledger_release(&b.ledger);
		engine_release(&b.engine);
		loop_free(b.loop);
		(void)rmdir(b.cells_dir);
	}
	cleanup_close(&b.signals);
	cleanup_close(&b.uids.fd);
	cleanup_close(&b.base);
	cleanup_close(&b.instance_fd);
	free(b.cells_dir);
	return rc;
}
