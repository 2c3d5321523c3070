/* SPDX-License-Identifier: MIT */
/*
 * `ilctl status`: what runs now, in a few lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../protocol/lease.h"
#include "../protocol/sockets.h"
#include "../store/db.h"
#include "../store/job.h"
#include "ctl.h"

#define STATUS_MS 3000

/* Whoever accepts connections runs. */
static bool
print_front(const struct config *config, const char *program, const char *name)
{
	auto_free char *path = config_state_path(config, name);
	struct err err = { 0 };
	auto_close int fd = fd_connect_unix(path, SOCK_STREAM, &err);

	printf("%-12s %s\n", program, fd >= 0 ? "running" : "not running");
	return fd >= 0;
}

static void
print_engine(const struct lease_status *s)
{
	if (s->engine_age_ms < 0) {
		printf("%-12s not asked yet\n", "engine");
		return;
	}
	printf("%-12s %s (asked %" PRId64 " s ago)%s%s\n", "engine",
	    s->engine ? "answers" : "does not answer", s->engine_age_ms / 1000,
	    *s->trouble != '\0' ? ": " : "", s->trouble);
}

/* What the ledger says: who asks to write now finds what is left of it. */
static void
print_disk(const struct lease_status *s)
{
	int64_t left = s->free_bytes - s->floor - s->promised;
	char free_bytes[32];
	char promised[32];
	char floor[32];
	char more[32];

	ctl_size(s->free_bytes, free_bytes);
	ctl_size(s->promised, promised);
	ctl_size(s->floor, floor);
	ctl_size(left > 0 ? left : 0, more);
	printf("%-12s %s free: %s promised to who may write, %s kept free, "
	       "%s for more\n",
	    "disk", free_bytes, promised, floor, more);
	printf("%-12s %" PRId64 "\n", "sandboxes", s->sandboxes);
}

/* True: runs could be started now. */
static bool
print_broker(const struct config *config)
{
	auto_free char *path = config_state_path(config, SOCKET_BROKER_CTL);
	struct lease_status s = { 0 };
	struct err err = { 0 };

	if (lease_status(path, &s, STATUS_MS, &err) != REFUSAL_NONE) {
		printf("%-12s not running\n", "il-sandboxd");
		return false;
	}
	printf("%-12s running\n", "il-sandboxd");
	print_engine(&s);
	printf("%-12s %s%s%s%s\n", "image", s.image_name,
	    s.image ? "" : " (missing)", *s.python != '\0' ? ", Python " : "",
	    s.python);
	printf("%-12s %" PRId64 " running, %" PRId64 " leased, %" PRId64
	       " starting, %" PRId64 " waited for\n",
	    "cells", s.cells, s.leased, s.starting, s.waiting);
	print_disk(&s);
	return s.engine && s.image;
}

/* From the database, which is there whether anything runs or not. */
static int
print_jobs(const struct config *config, struct err *err)
{
	struct job_counts counts;
	struct db *db = db_open(config->database, DB_READER, err);
	int result = db != NULL ? job_count(db, &counts, err) : -1;

	db_close(db);
	if (result < 0)
		return -1;
	printf("%-12s %" PRId64 " queued (oldest %" PRId64 " ms), %" PRId64
	       " running, %" PRId64 " to be told\n",
	    "jobs", counts.queued, counts.oldest_ms, counts.running,
	    counts.untold);
	return 0;
}

int
ctl_status(struct ctl *ctl)
{
	struct err err = { 0 };
	bool good;

	good = print_front(&ctl->config, "il-fcgi", "fcgi.sock");
	good = print_front(&ctl->config, "il-api", "api.sock") && good;
	good = print_broker(&ctl->config) && good;
	if (print_jobs(&ctl->config, &err) != 0)
		return ctl_fail(ctl->argv[0], &err);
	return good ? CTL_OK : CTL_FAILED;
}
