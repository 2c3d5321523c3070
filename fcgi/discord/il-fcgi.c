/* SPDX-License-Identifier: MIT */
/*
 * il-fcgi: answers Discord.
 *
 *	Discord ──HTTPS──▶ nginx ──FastCGI──▶ 2 children ──commit──▶ SQLite
 *	                                         │                    │ claim
 *	                                         └──a byte──▶ il-worker
 *
 * Discord sends each slash command, button and editor as a signed request and
 * wants an answer within three seconds.  This program verifies the signature
 * over the raw body before anything looks into it, turns the JSON into a typed
 * interaction, commits a job, and answers "thinking…"; what can be said at once
 * (no sandbox, already running, somebody else's button, …) it says itself.  An
 * answer is given after the commit and never before: what was acknowledged is
 * done even if this program is killed right then.  After the answer is out, a
 * byte in the FIFO STATE/wake tells the workers.
 *
 * It may: listen on its socket, read the sandboxes, insert jobs and views (the
 * database enforces that).  It may not and need not: touch Docker, the network,
 * a user's files, or wait for anything but the database.  Its first process
 * tells il-api how many jobs there are (report.h).
 *
 * The first process holds the socket and starts two that serve it, and starts
 * again what ends.  Whichever has nothing to do takes what has come: requests
 * that come together are checked one after another, committed in one
 * transaction and then answered, while the other one takes the next.  Alone one
 * takes about a millisecond, of which the commit is the most.  Everything about
 * a request is freed with it; what stays is the key, the database, and, in
 * memory that both share, the last interaction ids and the bytes that the
 * workers are still to get.
 *
 * Files: server/ the processes, their loop and FastCGI; here siblings.c and
 * seen.c what the processes share, front.c the order of checks, verify.c the
 * signature, interaction.c the JSON, route.c and actions.c what is asked for,
 * submit.c job or refusal, answer.c the JSON back, texts.def the words.
 */
#include <stdio.h>

#include <sodium.h>

#include "front.h"
#include "../server/master.h"
#include "../server/report.h"
#include "../server/serve.h"
#include "siblings.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/priority.h"
#include "../../sandbox/store/db.h"
#include "../../sandbox/store/job.h"

static const char usage[] = "usage: il-fcgi [-tv] [-e envfile]\n";

/* Takes as many processors; the database has one writer at a time. */
#define PROCESSES 2
/* Longer than serve.c answers those who wait, and a peer may stall. */
#define STOP_MS 8000

_Static_assert(PROCESSES <= SIBLINGS_MAX, "each has its place");

/* For il-api, which has no right on the database.  Opened each time, in the
 * master: it is to be noticed when it is gone or another one, and while the
 * children are busy. */
static void
tell_jobs(void *arg)
{
	const struct front *front = arg;
	struct report report = { .written_ms = clock_wall_ms() };
	struct job_counts counts = { .queued = 0 };
	struct err err;
	struct db *db = db_open(front->config->database, DB_READER, &err);

	if (db == NULL || job_count(db, &counts, &err) < 0) {
		log_warn("database: %s", err.text);
	} else {
		report.database = true;
		report.queued = counts.queued;
		report.running = counts.running;
		report.untold = counts.untold;
		report.oldest_ms = counts.oldest_ms;
	}
	db_close(db);
	if (report_write(front->config, &report, &err) != 0)
		log_warn("%s", err.text);
}

/* A child: returns when it was told to end. */
static int
work(void *arg, struct serve *serve, size_t index)
{
	struct front *front = arg;
	struct serve_calls calls = {
		.take = front_take,
		.settle = front_settle,
		.after = front_after,
		.arg = front,
	};
	struct err err;
	int result;

	front_start(front, index);
	result = serve_run(serve, &calls, &err);
	if (result != 0)
		log_err("%s", err.text);
	front_close(front);
	return result == 0 ? 0 : 1;
}

/* Returns when it was told to end. */
static int
run(const struct config *config, struct err *err)
{
	static const struct master_socket socket = { "fcgi.sock", SERVE_BACKLOG,
		PROCESSES };
	static struct front front; /* large: see front.h */
	struct master master;
	int result;

	priority_take_short_slices();
	if (front_open(&front, config, err) < 0)
		return -1;
	result = master_open(&master, config, &socket, 1, err);
	if (result == 0) {
		master.work = work;
		master.lost = front_lost;
		master.tick = tell_jobs;
		master.tick_ms = REPORT_EVERY_MS;
		master.arg = &front;
		master.stop_ms = STOP_MS;
		log_info("ready");
		result = master_run(&master, err);
		master_close(&master);
	}
	front_close(&front);
	return result;
}

int
main(int argc, char **argv)
{
	struct serve_options options;
	struct config config;
	struct verify_key key;
	struct err err;

	if (!serve_options_parse(&options, "e:tv", argc, argv)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	log_init("il-fcgi", options.level);
	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (config_load(&config, options.env_file, &err) < 0)
		log_fatal(78, "%s", err.text);
	if (!options.test) {
		if (run(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	} else if (!verify_key_decode(&key, config.discord_public_key)) {
		log_fatal(78, "DISCORD_PUBLIC_KEY: is not set");
	}
	config_release(&config);
	return 0;
}
