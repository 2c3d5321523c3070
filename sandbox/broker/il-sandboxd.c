/* SPDX-License-Identifier: MIT */
/*
 * il-sandboxd: the broker.  It starts, warms, leases and ends cells, and it
 * owns the workspaces.  It is one process with one thread and one event loop.
 * Slow work is done by programs that it starts and whose end the loop reports:
 * the Docker CLI, mkfs.ext4, debugfs, e2fsck, itself with -u.
 *
 * It may: call Docker, use loop devices, make and remove the volume files under
 * IL_BASE_DIR.  It may never: read a byte that came from the internet, touch
 * the network or the database, look into a workspace.
 *
 * Its sockets:
 *
 *	STATE/broker/<program>/lease.sock	il-worker, il-api, ilctl
 *	STATE/cells/<name>/socket/cell.sock	cells (cell.py)
 *
 * The packets are those of sandbox/protocol/frame.h, and each field is checked
 * as if an enemy had sent it.
 *
 * A lease, from left to right:
 *
 *	client ──LEASE──▶ queue ─▶ an idle cell of this sandbox? ───────┐
 *	                   │ no                                         │
 *	                   ├─ room?  else the oldest idle cell ends     │
 *	                   ▼                                            │
 *	        lock + attach the volumes ─▶ docker run ─▶ cell: READY ──┤
 *	                                                                ▼
 *	client ◀──GRANTED + one end── socketpair ──other end + SERVE──▶ cell
 *
 * Client and cell then talk without the broker.  The client's connection to the
 * broker is the lease: when it closes, for whatever reason, the cell has two
 * seconds to report IDLE, or it is killed.  When the broker dies, every cell
 * sees the end of its control socket and exits, and --rm removes it.  The next
 * start sweeps the rest, which it finds by a label.
 *
 * This file opens, connects and ends the parts in the right order: leases end
 * first, then cells, then the remaining containers.  The parts are three
 * floors.  Each calls only down; the policy's answers go up to the clients.
 *
 *	clients	client.c (connections, leases), requests.c, status.c,
 *		api_packages.c
 *	policy	policy.c (which ticket gets which cell), pool.c (idle cells)
 *	cells	container.c (a container's life), prepare.c (its volumes)
 *
 * Below the cells, engine.c runs programs and knows the state of Docker and of
 * the images; docker.c has the classes of cells and docker's command lines;
 * volume.c has loop devices, locks and the reservations of the disk;
 * workspace.c has the folders of sandboxes and containers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/text.h"
#include "broker/client.h"
#include "broker/engine.h"
#include "protocol/lease.h"
#include "volume/owner.h"

#define EXIT_USAGE 64
#define EXIT_CONFIG 78
#define INSTANCE_LEN 16
#define GRACE_MS 3000 /* for the cells to go by themselves */
/* Time for everything to end, besides the starts that are under way. */
#define STOP_MS 20000
#define NOTIFY_MS 1000

struct broker {
	struct host host; /* first: it is what the parts have of us */
	int instance_fd;  /* locked: one broker for each state folder */
	int signals;
	int64_t signalled_ms; /* the last time; 0: not yet */
	struct uids uids;
	struct engine engine;
	struct images images;
	struct ledger ledger;
	struct cells cells;
	struct pool pool;
	struct clients clients;
};

/* ---- opening ---- */

/*
 * The containers of this broker have the id in this file as a label, so that
 * its next life finds them and no other broker touches them.  The lock on the
 * file keeps a second broker from serving the same state folder.
 */
static int
instance_open(struct broker *b, struct err *err)
{
	struct host *host = &b->host;
	auto_free char *path = config_state_path(host->config, "instance");
	char id[INSTANCE_LEN + 1] = "";

	b->instance_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (b->instance_fd < 0)
		return err_system(err, "open %s", path);
	if (flock(b->instance_fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno == EWOULDBLOCK)
			return err_set(err, ERR_BUSY,
			    "another il-sandboxd serves %s",
			    host->config->state_dir);
		return err_system(err, "lock %s", path);
	}
	if (pread(b->instance_fd, id, INSTANCE_LEN, 0) == INSTANCE_LEN &&
	    strspn(id, "0123456789abcdef") == INSTANCE_LEN) {
		memcpy(host->instance, id, sizeof(id));
		return 0;
	}
	/* The id is on the disk before any container has it. */
	text_random_hex(host->instance, INSTANCE_LEN);
	if (ftruncate(b->instance_fd, 0) != 0 ||
	    pwrite(b->instance_fd, host->instance, INSTANCE_LEN, 0) !=
		INSTANCE_LEN ||
	    fsync(b->instance_fd) != 0)
		return err_system(err, "write the instance's id");
	return 0;
}

/* The broker needs two descriptors for each client, a few for each cell and
 * each program. */
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

/* Do every step that can fail before anything runs. */
static int
broker_open(struct broker *b, struct err *err)
{
	struct host *host = &b->host;
	struct image_entry usual;

	if (fd_make_dirs(host->config->state_dir, 0750, err) != 0 ||
	    instance_open(b, err) != 0)
		return -1;
	(void)images_find(host->config->chat_images, "", &usual);
	host->base = workspace_base_open(host->config->base_dir, usual.name,
	    err);
	host->cells_dir = config_state_path(host->config, "cells");
	if (host->base < 0 || uids_open(&b->uids, host->base, err) != 0 ||
	    folder_sweep(host->cells_dir, host->config->lib_dir, err) != 0)
		return -1;
	b->signals = fd_signals(false, err);
	if (b->signals < 0)
		return -1;
	return clients_listen(&b->clients, host, err);
}

/* ---- the end ---- */

/* Not all cells have ended in time: the next start sweeps them. */
static void
broker_on_stop_timer(void *arg)
{
	struct broker *b = arg;

	log_err("not all cells ended in time");
	loop_stop(b->host.loop);
}

/* The cells are dead, or late: remove the remaining containers. */
static void
broker_sweep(void *arg)
{
	struct broker *b = arg;

	if (b->host.phase == PHASE_SWEEPING)
		return;
	b->host.phase = PHASE_SWEEPING;
	if (b->engine.up)
		engine_sweep_last(&b->engine);
	else
		loop_stop(b->host.loop);
}

/* Leases have ended, or have had their time: end everything. */
static void
broker_stop(void *arg)
{
	struct broker *b = arg;
	struct host *host = &b->host;

	if (host->phase >= PHASE_STOPPING)
		return;
	host->phase = PHASE_STOPPING;
	log_info("ending");
	images_release(&b->images);
	clients_close(&b->clients);
	loop_timer_set(host->loop, NULL, host->config->start_ms + STOP_MS,
	    broker_on_stop_timer, b);
	loop_timer_set(host->loop, NULL, GRACE_MS, broker_sweep, b);
	(void)policy_end(&b->pool, true);
	host_schedule(host, 0);
}

/* The sockets stay until the leases are over.  A client that comes meanwhile
 * waits, is disconnected at the end, and asks the next broker. */
static void
broker_on_signal(void *arg, int fd, uint32_t events)
{
	struct broker *b = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
	    fd_signal_is_echo(&b->signalled_ms))
		return;
	if (b->host.phase != PHASE_SERVING) {
		broker_stop(b); /* the second signal */
		return;
	}
	b->host.phase = PHASE_DRAINING;
	log_info("letting leases end");
	loop_timer_set(b->host.loop, NULL, b->host.config->stop_ms, broker_stop,
	    b);
	host_schedule(&b->host, 0);
}

/* ---- one pass over everything ---- */

static void
broker_pass(void *arg)
{
	struct broker *b = arg;

	policy_pass(&b->pool);
	clients_pass(&b->clients);
	switch (b->host.phase) {
	case PHASE_SERVING:
		images_update(&b->images);
		break;
	case PHASE_DRAINING:
		/* The remaining leases do not end by themselves. */
		if (!policy_end(&b->pool, false))
			broker_stop(b);
		break;
	case PHASE_STOPPING:
		/* All cells and mounters have ended by themselves. */
		if (!policy_end(&b->pool, true))
			broker_sweep(b);
		break;
	case PHASE_SWEEPING:
		if (b->engine.sweeping)
			break;
		/* A start that is under way can be ended only when the engine
		 * answers: then there is another sweep. */
		if (!policy_end(&b->pool, true) || !b->engine.clean)
			loop_stop(b->host.loop);
		else
			b->host.phase = PHASE_STOPPING;
		break;
	}
}

/* ---- the whole ---- */

/* sd_notify(3): units that are ordered after this one start now and find its
 * sockets. */
static void
notify_ready(void)
{
	static const char ready[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	auto_close int fd = -1;
	struct err err;

	if (path == NULL)
		return;
	fd = fd_connect_unix(path, SOCK_DGRAM, &err);
	if (fd < 0 ||
	    fd_send_packet(fd, ready, sizeof(ready) - 1, -1, NOTIFY_MS, &err) !=
		0)
		log_warn("%s", err.text);
	(void)unsetenv("NOTIFY_SOCKET"); /* not for docker */
}

/* Start the parts; nothing can fail from here on. */
static void
broker_begin(struct broker *b)
{
	struct host *host = &b->host;
	struct err err;

	images_init(&b->images, host);
	cells_init(&b->cells);
	policy_init(&b->pool, host);
	clients_open(&b->clients);
	/* A volume that a cell may still write to counts, even after its name
	 * is removed. */
	ledger_find(&b->ledger);
	api_packages_sweep(host->base);
	ledger_add_spool(&b->ledger);
	loop_add(host->loop, b->signals, EPOLLIN, broker_on_signal, b);
	host->status = lease_status_open(host->config, &err);
	if (host->status == NULL)
		log_warn("no status for il-fcgi: %s", err.text);
	status_publish(host);
	(void)engine_refresh(&b->engine, 0);
	log_info("serving %s instance=%s", host->config->state_dir,
	    host->instance);
	notify_ready();
}

/* Serve until SIGTERM or SIGINT, then end every container. -1: the start
 * failed. */
static int
broker_serve(const struct config *config, struct err *err)
{
	struct broker b = { .host = { .config = config,
				.base = -1,
				.started_s = clock_wall_ms() / 1000,
				.run_pass = broker_pass,
				.publish = status_publish,
				.engine = &b.engine,
				.images = &b.images,
				.ledger = &b.ledger,
				.cells = &b.cells,
				.pool = &b.pool,
				.uids = &b.uids },
		.engine = { .host = &b.host, .probed_ms = -1 },
		.ledger.host = &b.host,
		.instance_fd = -1,
		.uids.fd = -1,
		.signals = -1 };
	int rc;

	raise_file_limit();
	rc = broker_open(&b, err);
	if (rc == 0) {
		b.host.loop = loop_new();
		broker_begin(&b);
		loop_run(b.host.loop);
		images_release(&b.images);
		clients_release(&b.clients);
		policy_release(&b.pool);
		cells_release(&b.cells);
		ledger_release(&b.ledger);
		engine_release(&b.engine);
		loop_free(b.host.loop);
		folder_close(b.host.cells_dir);
		lease_status_close(b.host.status, config);
	}
	cleanup_close(&b.signals);
	cleanup_close(&b.uids.fd);
	cleanup_close(&b.host.base);
	cleanup_close(&b.instance_fd);
	free(b.host.cells_dir);
	return rc;
}

/* ---- the command line ---- */

static const char usage[] = "usage: il-sandboxd [-tVv] [-e envfile]\n"
			    "       il-sandboxd -u uid volume\n";

static void __attribute__((noreturn)) usage_exit(void)
{
	(void)fputs(usage, stderr);
	exit(EXIT_USAGE);
}

/* Serve `il-sandboxd -u`: the broker starts itself so, since this would block
 * its loop. */
static int
give_volume(const char *uid, const char *path)
{
	auto_close int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	char *end;
	unsigned long number = strtoul(uid, &end, 10);
	struct err err;

	if (*end != '\0' || number > UINT32_MAX ||
	    !uid_is_sandboxs((uint32_t)number))
		usage_exit();
	if (fd < 0)
		(void)err_system(&err, "open");
	else if (owner_change(fd, (uint32_t)number, &err) == 0)
		return 0;
	log_err("%s: %s", path, err.text);
	return 1;
}

/* Can this Docker client start sandboxes?  A client that loses a limit is used,
 * with a warning. */
static int
check_docker(const struct config *config, struct err *err)
{
	bool forgets_rates;

	if (docker_cli_check(config->docker_binary, &forgets_rates, err) != 0)
		return -1;
	if (forgets_rates && (config->disk_rate > 0 || config->disk_ops > 0))
		log_warn("this Docker client forgets IL_TUNE_DISK_RATE and "
			 "IL_TUNE_DISK_OPS: see ilctl doctor");
	return 0;
}

int
main(int argc, char **argv)
{
	const char *given[CONFIG_OPTIONS] = { NULL };
	auto_config struct config config = { 0 };
	struct err err;
	int rc;

	log_init("il-sandboxd", LOG_LEVEL_INFO);
	if (argc == 4 && strcmp(argv[1], "-u") == 0)
		return give_volume(argv[2], argv[3]);
	config_begin(&config, "il-sandboxd", "e:tVv", usage, argc, argv, given);
	if (given['t'] != NULL)
		return 0;
	process_take_short_slices();
	process_extend_path();
	rc = check_docker(&config, &err);
	if (rc == 0)
		rc = broker_serve(&config, &err);
	if (rc == 0)
		return 0;
	log_err("%s", err.text);
	return err.code == ERR_CONFIG ? EXIT_CONFIG : 1;
}
