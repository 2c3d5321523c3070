/* SPDX-License-Identifier: MIT */
/*
 * `ilctl doctor`: all that can be wrong with an installation, each with what
 * mends it.
 */
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/text.h"
#include "../protocol/condition.h"
#include "../protocol/lease.h"
#include "../protocol/tokens.h"
#include "../store/db.h"
#include "../store/job.h"
#include "../store/rule.h"
#include "ctl.h"
#include "isolation.h"
#include "status.h"
#include "table.h"

#define LINE_MAX_BYTES 16384

static json_t *lines; /* of --json; NULL: they are printed as they come */

void
doctor_say(struct doctor *d, const char *mark, const char *mend,
    const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(LINE_MAX_BYTES);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	if (d != NULL)
		d->failed++;
	if (lines != NULL)
		(void)json_array_append_new(lines,
		    json_pack("{s:o, s:o, s:o}", "result",
			table_text_to_json(mark), "text",
			table_text_to_json(buf_str(&text)), "mend",
			table_text_to_json(mend != NULL ? mend : "")));
	else
		printf("%-4s  %s\n", mark, buf_str(&text));
	if (lines == NULL && mend != NULL)
		printf("      %s: %s\n", d != NULL ? "mend" : "better", mend);
}

/* What is said in the developer portal, and whether it is here. */
static void
check_keys(struct doctor *d)
{
	const struct config *c = d->config;

	if (*c->discord_public_key == '\0') {
		doctor_note("keys: no DISCORD_PUBLIC_KEY: `ilctl run` starts "
			    "the stand-in for Discord");
		return;
	}
	if (c->discord_application_id == 0)
		doctor_bad(d,
		    "set DISCORD_APPLICATION_ID (developer portal, "
		    "General Information)",
		    "keys: no DISCORD_APPLICATION_ID");
	else if (*c->discord_token == '\0')
		doctor_note("keys: no DISCORD_TOKEN: everything works but "
			    "`ilctl register`");
	else
		doctor_good("keys: public key, application and token");
}

/* One file of each kind stands for all. */
static void
check_library(struct doctor *d)
{
	static const char *const files[] = { "cell/cell.py", "seccomp.json",
		"nginx.conf.in", "commands.json" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		auto_free char *path = xprintf("%s/%s", d->config->lib_dir,
		    files[i]);

		if (access(path, R_OK) == 0)
			continue;
		doctor_bad(d,
		    "make, make install, or apt-get install --reinstall "
		    "inline",
		    "library: %s is missing", path);
		return;
	}
	doctor_good("library: %s", d->config->lib_dir);
	/* Beside the package, what `make install` has left. */
	if (strcmp(d->config->lib_dir, "/usr/lib/inline") == 0 &&
	    access("/usr/local/bin/ilctl", F_OK) == 0)
		doctor_bad(d,
		    "/usr/share/doc/inline/systemd/debian/README.md, \"From "
		    "make install\"",
		    "library: another Inline is in /usr/local, which systemd "
		    "and the shell prefer");
}

/* May we, as whoever runs this, write there? */
static void
check_folders(struct doctor *d)
{
	const struct {
		const char *name;
		const char *path;
	} folders[] = { { "state", d->config->state_dir },
		{ "sandboxes", d->config->base_dir } };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *name = folders[i].name;
		const char *path = folders[i].path;
		auto_free char *mend = xprintf("mkdir -p %s", path);
		struct stat st;

		if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
			doctor_bad(d, mend, "%s: no folder %s", name, path);
		else if (access(path, R_OK | W_OK | X_OK) != 0)
			doctor_bad(d,
			    "run this as root, or as the service's user",
			    "%s: %s is not writable for you", name, path);
		else
			doctor_good("%s: %s", name, path);
	}
}

/* What an operator may have forgotten. */
static void
check_rules(struct db *db)
{
	struct rules rules;
	struct err err = { 0 };
	const struct rule *all = &rules.of[RULE_SERVICE];

	if (rules_find(db, 0, 0, &rules, &err) != 0)
		return; /* the database has been complained of */
	if (all->blocked)
		doctor_note("paused: who sends a command is told that there is "
			    "maintenance; ilctl service resume ends it");
	if (all->banner[0] != '\0')
		doctor_note("banner: it stands below all answers; ilctl "
			    "service shows it");
}

/* Open it as a worker does, take the write lock, and let go. */
static void
check_database(struct doctor *d)
{
	struct err err = { 0 };
	struct job_counts counts = { 0 };
	auto_db struct db *db = db_open(d->config->database, DB_WORKER, &err);

	if (db == NULL || db_begin(db, &err) != 0) {
		doctor_bad(d, "ilctl migrate", "database: %s", err.text);
		return;
	}
	db_rollback(db);
	if (job_count(db, &counts, &err) != 0)
		doctor_bad(d, NULL, "database: %s", err.text);
	else
		doctor_good("database: %s, %" PRId64 " queued, %" PRId64
			    " running, %" PRId64 " not delivered",
		    d->config->database, counts.queued, counts.running,
		    counts.untold);
	check_rules(db);
}

static void
check_fronts(struct doctor *d)
{
	static const char *const fronts[] = { "il-fcgi", "il-api" };

	if (d->nothing) {
		doctor_bad(d, CONDITION_START_ALL,
		    "nothing runs in %s (ilctl -e names another env file)",
		    d->config->state_dir);
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		struct err err = { 0 };

		if (status_front_answers(d->config, fronts[i], &err))
			doctor_good("%s: answers", fronts[i]);
		else
			doctor_bad(d, CONDITION_START_ALL, "%s: %s", fronts[i],
			    err.text);
	}
}

/* What il-sandboxd says of itself and of the engine. */
static void
check_broker(struct doctor *d)
{
	const struct lease_status *s = &d->status;

	if (d->nothing)
		return;
	if (!d->broker) {
		doctor_bad(d, CONDITION_START_ALL, "il-sandboxd: %s",
		    d->refusal.text);
		return;
	}
	doctor_good("il-sandboxd: %" PRId64 " cells, %" PRId64 " leased%s%s",
	    s->cells, s->leased, *s->python != '\0' ? ", Python " : "",
	    s->python);
	if (s->engine_age_ms < 0)
		doctor_note("il-sandboxd: has just begun to ask the engine");
	else if (!s->engine)
		doctor_bad(d, "look at il-sandboxd's log",
		    "il-sandboxd: cannot reach the engine (asked %" PRId64
		    " s ago): %s",
		    s->engine_age_ms / 1000, s->trouble);
}

/* Not what is free counts for who wants to write, but what is left of it. */
static void
check_ledger(struct doctor *d)
{
	const int64_t left = lease_status_room(&d->status);
	const struct text_short promised = text_size(d->status.promised);
	const struct text_short more = text_size(left);

	if (!d->broker)
		return;
	if (left < d->config->quota)
		doctor_bad(d, "free some space, or ilctl expire",
		    "ledger: %s promised, %s for more: not enough for one "
		    "sandbox more to be written to; others only read",
		    promised.text, more.text);
	else
		doctor_good("ledger: %s promised, %s for more", promised.text,
		    more.text);
}

/* Why there are no namespaces for each run, or what they lack, and what would
 * bring it. */
static void
explain_isolation(struct doctor *d)
{
	struct isolation_facts facts;
	struct isolation_verdict verdict;
	const char *how = d->status.isolation_reason;

	isolation_look(&facts, d->config->api_apparmor,
	    d->config->sandbox_runtime);
	isolation_judge(&facts, how, &verdict);
	if (d->status.isolation == ISOLATION_CELL &&
	    strcmp(d->config->api_isolation, "run") == 0) {
		doctor_bad(d, *verdict.mend != '\0' ? verdict.mend : NULL,
		    "isolation: IL_API_ISOLATION=run, and no run can have "
		    "namespaces (%s): %s",
		    how, verdict.cause);
		return;
	}
	doctor_say(NULL, "note", *verdict.mend != '\0' ? verdict.mend : NULL,
	    "isolation: each run of the APIs has %s (%s): %s",
	    d->status.isolation == ISOLATION_CELL ?
		"a container of its own, which is slower than namespaces" :
		isolation_is_of_locks(how) ?
		"namespaces of its own, and sees others' locks on files of "
		"installed packages" :
		"namespaces of its own, and none a /proc or /dev/stdin",
	    how, verdict.cause);
}

/* The first cell of the APIs has tried it.  The broker tells what it found. */
static void
check_isolation(struct doctor *d)
{
	if (!d->broker)
		return; /* told by its own check */
	if (d->status.isolation == ISOLATION_CELL ||
	    *d->status.isolation_reason != '\0')
		explain_isolation(d);
	else if (d->status.isolation == ISOLATION_RUN)
		doctor_good(
		    "isolation: each run of the APIs has namespaces of its "
		    "own");
	else
		doctor_note(
		    "isolation: not known before the first run of the APIs");
}

/* Whom the APIs serve. */
static void
check_tokens(struct doctor *d)
{
	const char *path = d->config->api_tokens_file;
	auto_tokens struct tokens tokens = { 0 };
	struct err err;

	if (*path == '\0') {
		doctor_note("tokens: none are asked for; the APIs are for this "
			    "machine alone");
		return;
	}
	if (tokens_open(&tokens, path, &err) < 0) {
		doctor_bad(d, "ilctl token -f FILE add NAME", "tokens: %s",
		    err.text);
		return;
	}
	doctor_good("tokens: %zu in %s", tokens.count, path);
}

/* It gives the answer that all others give.  A check above may have found its
 * cause. */
static void
check_condition(struct doctor *d)
{
	struct condition_facts facts;
	struct condition_verdict verdict;
	struct job_counts counts = { 0 };
	struct err err = { 0 };
	auto_db struct db *db = db_open(d->config->database, DB_READER, &err);

	if (d->nothing)
		return;
	status_look(d->config, db, &facts, &counts);
	condition_judge(&facts, &verdict);
	if (verdict.what == CONDITION_WELL)
		doctor_good("condition: a command can be answered now");
	else
		doctor_bad(d, verdict.mend,
		    "condition: a command cannot be answered now: %s",
		    verdict.text);
}

/* They are told in this order. */
static void (*const checks[])(struct doctor *d) = { check_keys, check_library,
	check_folders, check_database, doctor_engine, doctor_images,
	doctor_loop, doctor_nginx, doctor_disk, check_fronts, check_broker,
	check_ledger, doctor_http, check_isolation, check_tokens,
	doctor_discord, doctor_application, check_condition };

static int
finish(const struct doctor *d, int code)
{
	if (lines != NULL)
		return table_print_json(json_pack("{s:i, s:o}", "failed",
			   d->failed, "checks", lines)) == CTL_OK ?
		    code :
		    CTL_FAILED;
	if (code == CTL_OK)
		printf("\nNothing is wrong.\n");
	else if (code == CTL_FAILED)
		printf("\n%d thing%s wrong.\n", d->failed,
		    d->failed == 1 ? " is" : "s are");
	return code;
}

/* With a wrong configuration nothing else can be checked. */
int
ctl_doctor(struct ctl *ctl)
{
	struct doctor d = { .config = &ctl->config };
	struct err err = { 0 };

	lines = ctl->json ? json_array() : NULL;
	if (config_load(&ctl->config, ctl->env_file, &err) != 0) {
		doctor_bad(&d, "correct it; `ilctl config` shows all settings",
		    "configuration: %s", err.text);
		return finish(&d, CTL_CONFIG);
	}
	doctor_good("configuration");
	d.nothing = status_nothing_runs(d.config);
	d.broker = status_ask_broker(d.config, &d.status, &d.refusal);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i](&d);
	return finish(&d, d.failed == 0 ? CTL_OK : CTL_FAILED);
}
