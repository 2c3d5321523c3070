/* SPDX-License-Identifier: MIT */
/*
 * `ilctl sandboxes` and `ilctl jobs`.
 */
#include "../store/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/err.h"
#include "../base/text.h"
#include "../store/db.h"
#include "ctl.h"

#define JOBS_SHOWN 50

/* A row of `ilctl sandboxes`. */
static void
print_sandbox(void *arg, const struct sandbox *s)
{
	char expires[20] = "never";
	char used_at[20];
	char used[32];

	(void)arg;
	if (!s->pinned)
		ctl_time(s->expires_at, expires);
	ctl_time(s->used_at, used_at);
	ctl_size(s->used_bytes, used);
	printf("%s  %-20" PRId64 " %-8s  %-16s  %-16s  %9s  %6" PRId64 "\n",
	    s->id, s->user_id, sandbox_state_name(s->state), used_at, expires,
	    used, s->used_files);
}

int
ctl_sandboxes(struct ctl *ctl, int argc, char **argv)
{
	struct err err = { 0 };
	struct db *db;
	int result = -1;

	(void)argc;
	db = db_open(ctl->config.database, DB_WORKER, &err);
	if (db != NULL) {
		printf("%-32s  %-20s %-8s  %-16s  %-16s  %9s  %6s\n", "ID",
		    "USER", "STATE", "USED (UTC)", "EXPIRES (UTC)", "SIZE",
		    "FILES");
		result = list_sandboxes(db, print_sandbox, NULL, &err);
	}
	db_close(db);
	return result == 0 ? CTL_OK : ctl_fail(argv[0], &err);
}

/* A row of `ilctl jobs`. */
static void
print_job(void *arg, const struct list_job *job)
{
	char received[20];
	char took[24] = "";
	auto_buf struct buf outcome = BUF_INIT(1024);

	(void)arg;
	/* It may quote what another program said. */
	text_add_clean(&outcome, job->outcome, strlen(job->outcome));
	ctl_time(job->received_ms / 1000, received);
	if (job->took_ms >= 0)
		(void)snprintf(took, sizeof(took), "%" PRId64 " ms",
		    job->took_ms);
	printf("%-10" PRId64 " %-16s  %-20" PRId64 " %-10s  %-13s  %12s  %s\n",
	    job->id, received, job->user_id, job->kind, job->state, took,
	    buf_str(&outcome));
}

int
ctl_jobs(struct ctl *ctl, int argc, char **argv)
{
	static const char usage[] = "jobs [-u] [-n count]";
	struct err err = { 0 };
	int64_t most = JOBS_SHOWN;
	bool unfinished = false;
	struct db *db;
	int result = -1;
	int c;

	while ((c = getopt(argc, argv, "un:")) != -1) {
		if (c == 'u')
			unfinished = true;
		else if (c != 'n' ||
		    !text_parse_int(optarg, 1, INT32_MAX, &most))
			return ctl_usage(usage);
	}
	if (optind != argc)
		return ctl_usage(usage);
	db = db_open(ctl->config.database, DB_WORKER, &err);
	if (db != NULL) {
		printf("%-10s %-16s  %-20s %-10s  %-13s  %12s  %s\n", "JOB",
		    "RECEIVED (UTC)", "USER", "KIND", "STATE", "TOOK",
		    "OUTCOME");
		result = list_jobs(db, unfinished, most, print_job, NULL, &err);
	}
	db_close(db);
	return result == 0 ? CTL_OK : ctl_fail(argv[0], &err);
}
