/* SPDX-License-Identifier: MIT */
/*
 * il-fcgi: answers Discord.
 *
 * 	Discord ──HTTPS──▶ nginx ──FastCGI──▶ 2 children ──commit──▶ SQLite
 * 	                                         │                    │ claim
 * 	                                         └──a byte──▶ il-worker
 *
 * Discord sends each slash command, button and editor as a signed request and
 * wants an answer within three seconds.  This program verifies the signature
 * over the raw body before it parses the JSON into a typed interaction and
 * commits a job.  It refuses at once where it can (no sandbox, already running,
 * another person's button, …).  Nothing is answered before the commit: an
 * acknowledged command is done even if this program is killed right then.
 * After the commit a byte in the FIFO STATE/wake wakes a worker.  If the worker
 * has the answer in time, that is the response (pending.h); a longer command is
 * answered "thinking…".
 *
 * It may: listen on its socket, read the sandboxes, insert jobs and views (the
 * database enforces that), and, before it serves, bring an older database up to
 * date.  It may not and need not: touch Docker, the network,
 * a user's files, or wait for anything but the database.  Its first process
 * reports to il-api how many jobs there are (condition.h).
 *
 * The first process holds the socket, starts two that serve it, and restarts a
 * process that ends.  An idle process accepts all requests that have come: it
 * checks them one after another, commits them in one transaction and then
 * answers them, while the other process accepts the next ones.  A single
 * request takes about a millisecond, most of it the commit.  Everything about a
 * request is freed with it.  The key and the database stay, and, in memory that
 * both processes share, the wake-ups that they still owe.
 *
 * Files: server/ the processes, their loop and FastCGI; here front.c has the
 * order of checks, interaction.c the signature and the JSON, route.c and
 * actions.c the commands, job or refusal, chat_answer.c the JSON back,
 * texts.def the words.
 */
#include <sodium.h>
#include <sys/stat.h>

#include "discord/front.h"
#include "server/master.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/process.h"
#include "protocol/condition.h"
#include "protocol/counters.h"
#include "store/db.h"
#include "store/job.h"
#include "store/sandbox.h"

/* Longer than serve.c needs to answer waiting requests, with a stalled peer. */
#define STOP_MS 8000

/* Read all numbers of rows; *jobs gets some of them, too. */
static int
count_rows(struct counters *c, struct db *db, struct condition_jobs *jobs,
    struct err *err)
{
	static int64_t kinds[JOB_UNKNOWN + 1][JOB_STATES];
	struct job_counts counts;
	struct sandbox_counts people;
	struct rules rules;

	if (job_count(db, &counts, err) < 0)
		return -1;
	*jobs = (struct condition_jobs){ clock_wall_ms(), 1, counts.queued,
		counts.running, counts.untold, counts.oldest_ms };
	if (job_count_kinds(db, kinds, err) < 0 ||
	    sandbox_count(db, &people, err) < 0 ||
	    rules_find(db, 0, 0, &rules, err) != 0)
		return -1;
	for (size_t i = 0; i <= JOB_UNKNOWN; i++)
		for (size_t k = 0; k < JOB_STATES; k++)
			c->jobs[i][k] = kinds[i][k];
	c->job_queue_age_seconds[0][0] = counts.oldest_ms;
	c->sandboxes[0][COUNTED_ACTIVE] = people.active;
	c->sandboxes[0][COUNTED_EXPIRING] = people.expiring;
	c->sandboxes[0][COUNTED_REMOVING] = people.removing;
	c->sandboxes_overdue[0][0] = people.overdue;
	c->paused[0][0] = rules.of[RULE_SERVICE].blocked;
	return 0;
}

/* The size of a file; 0: it is not there. */
static int64_t
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* For il-api, which has no right on the database.  The master opens the
 * database each time, so that it notices when the file is gone or replaced,
 * even while its children are busy. */
static void
report_jobs(void *arg)
{
	const struct front *front = arg;
	const struct config *config = front->config;
	auto_free char *wal = xprintf("%s-wal", config->database);
	struct counters *c = front->pending.counters;
	struct condition_jobs jobs = { .written_ms = clock_wall_ms() };
	struct err err;
	auto_db struct db *db = db_open(config->database, DB_READER, &err);

	if (db == NULL || count_rows(c, db, &jobs, &err) != 0)
		log_warn("database: %s", err.text);
	c->database_up[0][0] = jobs.database;
	c->database_bytes[0][0] = size_of(config->database);
	c->database_wal_bytes[0][0] = size_of(wal);
	c->sandboxes_limit[0][0] = config->sandboxes;
	if (condition_tell_jobs(config, &jobs, &err) != 0)
		log_warn("%s", err.text);
}

/* Returns after SIGTERM. */
static int
serve_discord(const struct config *config, struct err *err)
{
	static const struct serve_socket socket = { "fcgi.sock", SERVE_BACKLOG,
		FRONT_PROCESSES, NULL };
	static struct front front; /* large: see front.h */
	const struct serve serve = {
		.sockets = &socket,
		.socket_count = 1,
		.arg = &front,
		.start = front_start,
		.stop = front_close,
		.answer = front_check,
		.settle = front_settle,
		.after = front_after,
		.events_fd = front_events_fd,
		.due_ms = front_due_ms,
		.events = front_events,
		.drain = true,
		.tick = report_jobs,
		.tick_ms = CONDITION_TELL_MS,
		.lost = front_lost,
		.stop_ms = STOP_MS,
	};
	int result;

	process_take_short_slices();
	if (front_open(&front, config, err) < 0)
		return -1;
	result = master_run(&serve, config, err);
	front_close(&front);
	return result;
}

int
main(int argc, char **argv)
{
	auto_config struct config config = { 0 };
	const char *given[CONFIG_OPTIONS] = { NULL };
	struct interaction_key key;
	struct err err;

	config_begin(&config, "il-fcgi",
	    "tve:", "usage: il-fcgi [-tv] [-e envfile]\n", argc, argv, given);
	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (given['t'] == NULL) {
		if (serve_discord(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	} else if (!interaction_decode_key(&key, config.discord_public_key)) {
		log_fatal(78, "DISCORD_PUBLIC_KEY: is not set");
	}
	return 0;
}
