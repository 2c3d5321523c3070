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
 * interaction and commits a job; what can be said at once (no sandbox, already
 * running, somebody else's button, …) it says itself.  Nothing is answered
 * before the commit: what was acknowledged is done even if this program is
 * killed right then.  After the commit a byte in the FIFO STATE/wake tells the
 * workers; whatever of them has the answer in time gives it as the response
 * (pending.h), and what takes longer is answered "thinking…".
 *
 * It may: listen on its socket, read the sandboxes, insert jobs and views (the
 * database enforces that), and, before it serves, bring an older database up to
 * date.  It may not and need not: touch Docker, the network,
 * a user's files, or wait for anything but the database.  Its first process
 * tells il-api how many jobs there are (condition.h).
 *
 * The first process holds the socket and starts two that serve it, and starts
 * again what ends.  Whichever has nothing to do takes what has come: requests
 * that come together are checked one after another, committed in one
 * transaction and then answered, while the other one takes the next.  Alone one
 * takes about a millisecond, of which the commit is the most.  Everything about
 * a request is freed with it; what stays is the key, the database, and, in
 * memory that both share, the bytes that the workers are still to get.
 *
 * Files: server/ the processes, their loop and FastCGI; here front.c
 * has the order of checks, interaction.c the signature and the JSON, route.c
 * and actions.c the commands, submit.c job or refusal, answer.c the JSON back,
 * texts.def the words.
 */
#include <sodium.h>

#include "discord/chat_metrics.h"
#include "discord/front.h"
#include "server/serve.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/process.h"
#include "protocol/condition.h"
#include "store/db.h"
#include "store/job.h"

/* Longer than serve.c answers those who wait, and a peer may stall. */
#define STOP_MS 8000

/* For il-api, which has no right on the database.  Opened each time, in the
 * master: it is to be noticed when it is gone or another one, and while the
 * children are busy. */
static void
tell_jobs(void *arg)
{
	const struct front *front = arg;
	struct condition_jobs jobs = { .written_ms = clock_wall_ms() };
	struct job_counts counts = { .queued = 0 };
	struct err err;
	struct db *db = db_open(front->config->database, DB_READER, &err);

	if (db == NULL || job_count(db, &counts, &err) < 0) {
		log_warn("database: %s", err.text);
	} else {
		jobs.database = true;
		jobs.queued = counts.queued;
		jobs.running = counts.running;
		jobs.untold = counts.untold;
		jobs.oldest_ms = counts.oldest_ms;
	}
	if (condition_tell_jobs(front->config, &jobs, &err) != 0 ||
	    chat_metrics_tell(front->metrics, front->config,
		jobs.database ? db : NULL, &err) != 0)
		log_warn("%s", err.text);
	db_close(db);
}

/* Returns when it was told to end. */
static int
run(const struct config *config, struct err *err)
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
		.tick = tell_jobs,
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
	bool test = master_begin("il-fcgi", argc, argv, &config, NULL);
	struct interaction_key key;
	struct err err;

	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (!test) {
		if (run(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	} else if (!interaction_decode_key(&key, config.discord_public_key)) {
		log_fatal(78, "DISCORD_PUBLIC_KEY: is not set");
	}
	return 0;
}
