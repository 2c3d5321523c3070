/* SPDX-License-Identifier: MIT */
/*
 * The commands that work on the database: `ilctl migrate`, `expire`, and those
 * that list: `sandboxes`, `jobs`, `abuse`, `usage` and `slow`.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "../protocol/lease.h"
#include "../store/db.h"
#include "../store/sandbox.h"
#include "ctl.h"
#include "migrations.h"
#include "table.h"

#define JOBS_SHOWN 50
#define DAY ((int64_t)86400)
/* The broker ends the sandbox's cells first, which may take a while. */
#define REMOVE_MS 30000

int
ctl_migrate_database(const struct config *config, struct err *err)
{
	auto_free char *copy = xstrdup(config->database);
	auto_db struct db *db = NULL;

	/* On a fresh machine its folder may be missing, too. */
	if (fd_make_dirs(dirname(copy), 0770, err) != 0)
		return -1;
	db = db_open(config->database, DB_ADMIN, err);
	return db != NULL ? db_migrate(db, err) : -1;
}

int
ctl_migrate(struct ctl *ctl)
{
	struct err err = { 0 };
	int applied = ctl_migrate_database(&ctl->config, &err);

	if (applied < 0)
		return ctl_fail(ctl->argv[0], &err);
	printf("%s: version %d, %d migration%s applied\n", ctl->config.database,
	    migration_count, applied, applied == 1 ? "" : "s");
	return CTL_OK;
}

/* ---- lists ---- */

static const struct table_column sandboxes[] = {
	{ "ID", "id", TABLE_TEXT, 32, 0 },
	{ "USER", "user", TABLE_ID, 20, 1 },
	{ "STATE", "state", TABLE_TEXT, 8, 2 },
	{ "USED (UTC)", "used_at", TABLE_TIME, 16, 3 },
	{ "EXPIRES (UTC)", "expires_at", TABLE_EXPIRY, 16, 4 },
	{ "SIZE", "bytes", TABLE_SIZE, 9, 5 },
	{ "FILES", "files", TABLE_NUMBER, 6, 6 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

static const struct table_column jobs[] = {
	{ "JOB", "id", TABLE_ID, 20, 0 },
	{ "RECEIVED (UTC)", "received_ms", TABLE_TIME_MS, 16, 5 },
	{ "USER", "user", TABLE_ID, 20, 1 },
	{ "KIND", "kind", TABLE_TEXT, 12, 2 },
	{ "STATE", "state", TABLE_TEXT, 13, 3 },
	{ "TOOK", "took_ms", TABLE_MS, 12, 6 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0, 4 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

static const struct table_column abuse[] = {
	{ "JOB", "id", TABLE_ID, 20, 0 },
	{ "RECEIVED (UTC)", "received_ms", TABLE_TIME_MS, 16, 1 },
	{ "USER", "user", TABLE_ID, 20, 2 },
	{ "GUILD", "guild", TABLE_ID, 20, 3 },
	{ "KIND", "kind", TABLE_TEXT, 12, 4 },
	{ "WALL s", "wall_ms", TABLE_SECONDS, 7, 7 },
	{ "CPU s", "cpu_ms", TABLE_SECONDS, 7, 8 },
	{ "STATE", "state", TABLE_TEXT, 13, 5 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0, 6 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

static const struct table_column usage[] = {
	{ "USER", "user", TABLE_ID, 20, 0 },
	{ "SANDBOX", "sandbox", TABLE_TEXT, 32, 1 },
	{ "SIZE", "bytes", TABLE_SIZE, 9, 2 },
	{ "FILES", "files", TABLE_NUMBER, 6, 3 },
	{ "COMMANDS", "commands", TABLE_NUMBER, 8, 4 },
	{ "USED (UTC)", "used_at", TABLE_TIME, 16, 5 },
	{ "EXPIRES (UTC)", "expires_at", TABLE_EXPIRY, 16, 6 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

static const struct table_column slow[] = {
	{ "KIND", "kind", TABLE_TEXT, 12, 0 },
	{ "STATE", "state", TABLE_TEXT, 13, 1 },
	{ "JOBS", "jobs", TABLE_NUMBER, 8, 3 },
	{ "RAN, MEAN", "ran_mean_ms", TABLE_MS, 12, 4 },
	{ "TOLD, HALF", "told_p50_ms", TABLE_MS, 12, 5 },
	{ "TOLD, 95 %", "told_p95_ms", TABLE_MS, 12, 6 },
	{ "LONGEST", "told_max_ms", TABLE_MS, 12, 7 },
	{ "OUTCOME", "outcome", TABLE_TEXT, 0, 2 },
	{ NULL, NULL, TABLE_TEXT, 0, 0 },
};

/* What the options of a list have said; 0 is all. */
struct filter {
	int64_t most;
	int64_t ago; /* seconds */
	int64_t user;
	int64_t guild;
};

/* "90m", "12h", "7d": seconds. */
static bool
parse_ago(const char *word, int64_t *seconds)
{
	static const char units[] = "mhd";
	static const int64_t of[] = { 60, 3600, 86400 };
	size_t len = strlen(word);
	const char *unit = len > 1 ? strchr(units, word[len - 1]) : NULL;
	auto_free char *digits = xstrdup(word);

	if (unit == NULL)
		return false;
	digits[len - 1] = '\0';
	if (!text_parse_int(digits, 1, 100000, seconds))
		return false;
	*seconds *= of[unit - units];
	return true;
}

static bool
parse_filter(const struct ctl *ctl, const char *options, struct filter *f)
{
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, options)) != -1) {
		bool good = c != '?';

		if (c == 'n')
			good = text_parse_int(optarg, 1, INT32_MAX, &f->most);
		else if (c == 's')
			good = parse_ago(optarg, &f->ago);
		else if (good)
			good = text_parse_snowflake(optarg, strlen(optarg),
			    c == 'u' ? &f->user : &f->guild);
		if (!good)
			return false;
	}
	return optind == ctl->argc;
}

/* The statement that is named, with the parameters that are. */
static int
print_list(const struct ctl *ctl, enum statement name, const char *parameters,
    const struct filter *f, const struct table_column *columns)
{
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_READER, &err);
	struct stmt *s;

	if (db == NULL)
		return ctl_fail(ctl->argv[0], &err);
	s = db_statement(db, name);
	for (const char *p = parameters; *p != '\0'; p++) {
		if (*p == 'n')
			db_bind_int(s, ":most", f->most);
		else if (*p == 's')
			db_bind_int(s, ":since_ms",
			    clock_wall_ms() - f->ago * 1000);
		else
			db_bind_int(s, *p == 'u' ? ":user_id" : ":guild_id",
			    *p == 'u' ? f->user : f->guild);
	}
	if (table_print(db, s, columns, ctl->json, &err) == 0)
		return CTL_OK;
	(void)err_wrap(&err, "list %s", ctl->argv[0]);
	return ctl_fail(ctl->argv[0], &err);
}

int
ctl_sandboxes(struct ctl *ctl)
{
	return print_list(ctl, STATEMENT_LIST_SANDBOXES, "", NULL, sandboxes);
}

/* Nothing that anybody wrote is in the rows of jobs. */
int
ctl_jobs(struct ctl *ctl)
{
	struct filter f = { .most = JOBS_SHOWN };
	bool unfinished = false;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "un:")) != -1) {
		if (c == 'u')
			unfinished = true;
		else if (c != 'n' ||
		    !text_parse_int(optarg, 1, INT32_MAX, &f.most))
			return CTL_MISUSED;
	}
	if (optind != ctl->argc)
		return CTL_MISUSED;
	return print_list(ctl,
	    unfinished ? STATEMENT_LIST_JOBS_UNFINISHED : STATEMENT_LIST_JOBS,
	    "n", &f, jobs);
}

int
ctl_abuse(struct ctl *ctl)
{
	struct filter f = { .most = JOBS_SHOWN, .ago = 30 * DAY };

	if (!parse_filter(ctl, "u:g:s:n:", &f))
		return CTL_MISUSED;
	return print_list(ctl, STATEMENT_LIST_ABUSE, "nsug", &f, abuse);
}

int
ctl_usage(struct ctl *ctl)
{
	struct filter f = { .most = JOBS_SHOWN, .ago = 7 * DAY };

	if (!parse_filter(ctl, "s:n:", &f))
		return CTL_MISUSED;
	return print_list(ctl, STATEMENT_LIST_USAGE, "ns", &f, usage);
}

int
ctl_slow(struct ctl *ctl)
{
	struct filter f = { .ago = DAY / 24 };

	if (!parse_filter(ctl, "s:", &f))
		return CTL_MISUSED;
	return print_list(ctl, STATEMENT_LIST_SLOW, "s", &f, slow);
}

/* ---- what has expired ---- */

/*
 * What a worker would remove later is removed now.  The sandboxes are marked
 * already; what cannot be removed stays marked, and a worker tries again.
 */
static int
expire(struct db *db, const char *socket_path, int *failed, struct err *err)
{
	struct sandbox sandbox;
	int removed = 0;
	int result;

	/* What could not be removed before is tried again, too. */
	if (sandbox_retry(db, err) < 0)
		return -1;
	while ((result = sandbox_take_expired(db, &sandbox, err)) == 0) {
		enum refusal outcome = lease_command(NULL, socket_path,
		    &(struct lease_command){
			.kind = FRAME_REMOVE, .sandbox = sandbox.id },
		    REMOVE_MS, err);

		if (outcome != REFUSAL_NONE) {
			++*failed;
			(void)fprintf(stderr, "ilctl expire: sandbox %s: %s\n",
			    sandbox.id, err->text);
			if (outcome == REFUSAL_UNREACHABLE)
				break;
		} else if (sandbox_gone(db, sandbox.id, err) < 0) {
			++*failed;
			(void)fprintf(stderr, "ilctl expire: %s\n", err->text);
			break;
		} else {
			removed++;
			printf("removed %s of user %" PRId64 "\n", sandbox.id,
			    sandbox.user_id);
		}
	}
	return result < 0 ? -1 : removed;
}

int
ctl_expire(struct ctl *ctl)
{
	auto_free char *path = config_state_path(&ctl->config,
	    SOCKET_BROKER_CTL);
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_WORKER, &err);
	int failed = 0;
	int removed = db != NULL ? expire(db, path, &failed, &err) : -1;

	if (removed < 0)
		return ctl_fail(ctl->argv[0], &err);
	printf("%d removed, %d left for later\n", removed, failed);
	return failed == 0 ? CTL_OK : CTL_FAILED;
}
