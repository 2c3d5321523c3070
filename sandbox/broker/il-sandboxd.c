/* SPDX-License-Identifier: MIT */
/*
 * il-sandboxd: the broker.  It starts, warms, leases and ends cells, and it
 * owns the workspaces.  One process, one thread, one event loop; whatever takes
 * time is a program that it starts and waits for in the loop: the Docker CLI,
 * mkfs.ext4, debugfs, e2fsck, itself with -u.
 *
 * It may: call Docker, use loop devices, make and remove the volume files under
 * IL_BASE_DIR.  It may never: read a byte that came from the internet, touch
 * the network or the database, look into a workspace.
 *
 * Who speaks with it
 *	il-worker, il-api, ilctl	STATE/broker/<program>/lease.sock
 *	cells (cell.py)			STATE/cells/<name>/socket/cell.sock
 * in packets of sandbox/protocol/frame.h; what either says is checked as if it
 * came from an enemy.
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
 * Client and cell then talk without us.  The client's end of its connection
 * with us is the lease: when that closes, for whatever reason, the cell has two
 * seconds to report IDLE, or it is killed.  When we die, every cell sees the
 * end of its control socket and exits, and --rm removes it; the next start
 * sweeps what is left, found by its label.
 *
 * broker.c opens and ends everything; client.c is who may ask, request.c what
 * for; pool.c and scheduler.c decide who gets which cell; container.c
 * and prepare.c are a container's life; uid.c and owner.c are who it
 * runs as; volume.c holds a volume on a loop device; folder.c is what else a
 * container mounts; workspace.c is the folders of sandboxes; engine.c knows how
 * Docker fares, images.c what cells start from; docker_run.c and docker.c spell
 * its command lines; subprocess.c runs programs.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/docker_cli.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/priority.h"
#include "../base/process.h"
#include "../volume/owner.h"
#include "../volume/uid.h"
#include "broker.h"

#define EXIT_USAGE 64
#define EXIT_CONFIG 78

static const char usage[] = "usage: il-sandboxd [-tVv] [-e envfile]\n"
			    "       il-sandboxd -u uid volume\n";

static void __attribute__((noreturn)) usage_exit(void)
{
	(void)fputs(usage, stderr);
	exit(EXIT_USAGE);
}

/* The broker calls itself so, for what would keep its loop from turning. */
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

/* Can this Docker client start sandboxes?  One that loses a limit on the way is
 * told of, and used. */
static int
check_docker(const struct config *config, struct err *err)
{
	bool forgets_rates;

	if (docker_cli_check(config->docker_binary, &forgets_rates, err) != 0)
		return -1;
	if (forgets_rates && (config->disk_rate > 0 || config->disk_ops > 0))
		log_warn("this Docker client forgets IL_DISK_RATE and "
			 "IL_DISK_OPS: see ilctl doctor");
	return 0;
}

int
main(int argc, char **argv)
{
	const char *env_file = NULL;
	enum log_level level = LOG_LEVEL_INFO;
	bool test = false;
	auto_config struct config config = { 0 };
	struct err err;
	int rc;
	int c;

	log_init("il-sandboxd", level);
	if (argc == 4 && strcmp(argv[1], "-u") == 0)
		return give_volume(argv[2], argv[3]);
	while ((c = getopt(argc, argv, "e:tVv")) != -1) {
		if (c == 'e') {
			env_file = optarg;
		} else if (c == 't') {
			test = true;
		} else if (c == 'v') {
			level = LOG_LEVEL_DEBUG;
		} else if (c == 'V') {
			(void)printf("il-sandboxd %s\n", INLINE_VERSION);
			return 0;
		} else {
			usage_exit();
		}
	}
	if (optind != argc)
		usage_exit();
	log_init("il-sandboxd", level);
	if (config_load(&config, env_file, &err) != 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	if (test)
		return 0;
	priority_take_short_slices();
	process_extend_path();
	rc = check_docker(&config, &err);
	if (rc == 0)
		rc = broker_serve(&config, &err);
	if (rc == 0)
		return 0;
	log_err("%s", err.text);
	return err.code == ERR_CONFIG ? EXIT_CONFIG : 1;
}
