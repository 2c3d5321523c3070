/* SPDX-License-Identifier: MIT */
/*
 * The commands that work on the database: `ilctl migrate`, `sandboxes`, `jobs`,
 * `abuse` and `expire`.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config_database.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/text.h"
#include "../protocol/lease.h"
#include "../protocol/snapshot.h"
#include "../store/db.h"
#include "../store/sandbox.h"
#include "ctl.h"
#include "migrations.h"

#define JOBS_SHOWN 50
/* The broker ends the sandbox's cells first, which may take a while. */
#define REMOVE_MS 30000

int
ctl_migrate_database(const struct config *config, struct err *err)
{
	auto_free char *copy = xstrdup(config->database);
	auto_db struct db *db = NULL;

	/* On a fresh machine its folder may be missing, too. */
	if (!config_database_is_server(config->database) &&
	    fd_make_dirs(dirname(copy), 0770, err) != 0)
		return -1;
	db = db_open(config->database, DB_ADMIN, err);
	return db != NULL ? db_migrate(db, err) : -1;
}

int
ctl_migrate(struct ctl *ctl)
{
	auto_free char *shown = config_database_shown(ctl->config.database);
	struct err err = { 0 };
	int applied = ctl_migrate_database(&ctl->config, &err);

	if (applied < 0)
		return ctl_fail(ctl->argv[0], &err);
	printf("%s: version %d, %d migration%s applied\n", shown,
	    migration_count, applied, applied == 1 ? "" : "s");
	return CTL_OK;
}

int
ctl_sandboxes(struct ctl *ctl)
{
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_READER, &err);
	struct stmt *s;
	int result;

	if (db == NULL)
		return ctl_fail(ctl->argv[0], &err);
	printf("%-32s  %-20s %-8s  %-16s  %-16s  %9s  %6s\n", "ID", "USER",
	    "STATE", "USED (UTC)", "EXPIRES (UTC)", "SIZE", "FILES");
	s = db_statement(db, STATEMENT_LIST_SANDBOXES);
	while ((result = db_step(db, s, &err)) == 1)
		printf("%s  %-20" PRId64 " %-8s  %-16s  %-16s  %9s  %6" PRId64
		       "\n",
		    db_column_text(s, 0), db_column_int(s, 1),
		    db_column_text(s, 2), text_time(db_column_int(s, 5)).text,
		    db_column_int(s, 7) != 0 ?
			"never" :
			text_time(db_column_int(s, 6)).text,
		    text_size(db_column_int(s, 8)).text, db_column_int(s, 9));
	if (result == 0)
		return CTL_OK;
	(void)err_wrap(&err, "list sandboxes");
	return ctl_fail(ctl->argv[0], &err);
}

/* A row of `ilctl jobs`: nothing that anybody wrote. */
static void
print_job(struct stmt *s)
{
	const char *said = db_column_text(s, 4);
	const int64_t took_ms = db_column_int(s, 6); /* -1: not yet */
	auto_free char *took = took_ms < 0 ? xstrdup("") :
					     xprintf("%" PRId64 " ms", took_ms);
	auto_buf struct buf outcome = BUF_INIT(1024);

	/* It may quote what another program said. */
	text_add_clean(&outcome, said, strlen(said));
	printf("%-10" PRId64 " %-16s  %-20" PRId64 " %-10s  %-13s  %12s  %s\n",
	    db_column_int(s, 0), text_time(db_column_int(s, 5) / 1000).text,
	    db_column_int(s, 1), db_column_text(s, 2), db_column_text(s, 3),
	    took, buf_str(&outcome));
}

int
ctl_jobs(struct ctl *ctl)
{
	struct err err = { 0 };
	int64_t most = JOBS_SHOWN;
	bool unfinished = false;
	auto_db struct db *db = NULL;
	struct stmt *s;
	int result;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "un:")) != -1) {
		if (c == 'u')
			unfinished = true;
		else if (c != 'n' ||
		    !text_parse_int(optarg, 1, INT32_MAX, &most))
			return CTL_MISUSED;
	}
	if (optind != ctl->argc)
		return CTL_MISUSED;
	db = db_open(ctl->config.database, DB_READER, &err);
	if (db == NULL)
		return ctl_fail(ctl->argv[0], &err);
	printf("%-10s %-16s  %-20s %-10s  %-13s  %12s  %s\n", "JOB",
	    "RECEIVED (UTC)", "USER", "KIND", "STATE", "TOOK", "OUTCOME");
	s = db_statement(db,
	    unfinished ? STATEMENT_LIST_JOBS_UNFINISHED : STATEMENT_LIST_JOBS);
	db_bind_int(s, ":most", most);
	while ((result = db_step(db, s, &err)) == 1)
		print_job(s);
	if (result == 0)
		return CTL_OK;
	(void)err_wrap(&err, "list jobs");
	return ctl_fail(ctl->argv[0], &err);
}

/* A row of `ilctl abuse`: likewise nothing that anybody wrote. */
static void
print_abuse(struct stmt *s)
{
	const char *said = db_column_text(s, 6);
	const int64_t wall_ms = db_column_int(s, 7);
	const int64_t cpu_ms = db_column_int(s, 8);
	auto_buf struct buf outcome = BUF_INIT(1024);

	text_add_clean(&outcome, said, strlen(said));
	printf("%-10" PRId64 " %-16s  %-20" PRId64 " %-20" PRId64 " %-12s ",
	    db_column_int(s, 0), text_time(db_column_int(s, 1) / 1000).text,
	    db_column_int(s, 2), db_column_int(s, 3), db_column_text(s, 4));
	if (wall_ms >= 0)
		printf("%9.1f", (double)wall_ms / 1e3);
	else
		printf("%9s", "");
	if (cpu_ms >= 0)
		printf("%9.1f", (double)cpu_ms / 1e3);
	else
		printf("%9s", "");
	printf("  %s\n",
	    outcome.len > 0 ? buf_str(&outcome) : db_column_text(s, 5));
}

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

int
ctl_abuse(struct ctl *ctl)
{
	struct err err = { 0 };
	int64_t most = JOBS_SHOWN;
	int64_t ago = 30 * 86400;
	int64_t user = 0;
	int64_t guild = 0;
	auto_db struct db *db = NULL;
	struct stmt *s;
	int result;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "u:g:s:n:")) != -1) {
		if (c == 'u' || c == 'g' ?
			!text_parse_snowflake(optarg, strlen(optarg),
			    c == 'u' ? &user : &guild) :
			c == 's' ? !parse_ago(optarg, &ago) :
				   c != 'n' ||
			    !text_parse_int(optarg, 1, INT32_MAX, &most))
			return CTL_MISUSED;
	}
	if (optind != ctl->argc)
		return CTL_MISUSED;
	db = db_open(ctl->config.database, DB_READER, &err);
	if (db == NULL)
		return ctl_fail(ctl->argv[0], &err);
	printf("%-10s %-16s  %-20s %-20s %-12s %9s%9s  %s\n", "JOB",
	    "RECEIVED (UTC)", "USER", "GUILD", "KIND", "WALL s", "CPU s",
	    "OUTCOME");
	s = db_statement(db, STATEMENT_LIST_ABUSE);
	db_bind_int(s, ":since_ms", clock_wall_ms() - ago * 1000);
	db_bind_int(s, ":user_id", user);
	db_bind_int(s, ":guild_id", guild);
	db_bind_int(s, ":most", most);
	while ((result = db_step(db, s, &err)) == 1)
		print_abuse(s);
	return result == 0 ? CTL_OK : ctl_fail(ctl->argv[0], &err);
}

/*
 * What a worker would remove later is removed now.  The sandboxes are marked
 * already; what cannot be removed stays marked, and a worker tries again.
 */
static int
expire(const struct config *config, struct db *db, int *failed, struct err *err)
{
	auto_free char *socket_path = config_state_path(config,
	    SOCKET_BROKER_CTL);
	struct sandbox sandbox;
	int removed = 0;
	int result;

	/* What could not be removed before is tried again, too. */
	if (sandbox_retry(db, err) < 0)
		return -1;
	while ((result = sandbox_take_expired(db, &sandbox, err)) == 0) {
		enum refusal outcome = lease_remove_workspace(socket_path,
		    sandbox.id, REMOVE_MS, err);

		if (outcome != REFUSAL_NONE) {
			++*failed;
			(void)fprintf(stderr, "ilctl expire: sandbox %s: %s\n",
			    sandbox.id, err->text);
			if (outcome == REFUSAL_UNREACHABLE)
				break;
		} else if (snapshot_forget(config, true, sandbox.id,
			       sandbox.moved_from, REMOVE_MS, err) != 0 ||
		    sandbox_gone(db, sandbox.id, err) < 0) {
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
	struct err err = { 0 };
	auto_db struct db *db = db_open(ctl->config.database, DB_WORKER, &err);
	int failed = 0;
	/* those of this host: others have their folders */
	int removed = db != NULL && ctl_find_node(&ctl->config, db, &err) == 0 ?
	    expire(&ctl->config, db, &failed, &err) :
	    -1;

	if (removed < 0)
		return ctl_fail(ctl->argv[0], &err);
	printf("%d removed, %d left for later\n", removed, failed);
	return failed == 0 ? CTL_OK : CTL_FAILED;
}
