/* SPDX-License-Identifier: MIT */
/*
 * il-worker: does what people asked for, and tells them.
 *
 * Each worker is one process with one slot (-s) and does one job at a time:
 *
 *	il-fcgi --commit--> SQLite <--claim-- il-worker --lease--> il-sandboxd
 *	   '------byte------> wake --poll-----'   |  '--frames---> cell
 *	                                          '--HTTPS-------> Discord
 *
 * It may use the database, the network to Discord, leased cells and, with other
 * nodes, nginx's socket by which they are asked.  It never touches Docker or a
 * workspace; all of that is behind il-sandboxd.
 *
 * The life of a job is in the database (store/job.h), changed by
 * compare-and-set: claimed here, started right before the cell gets the
 * request, finished with the rendered answer before that is sent (which waits
 * for the disk, but for a first response: store/README.md), delivered when
 * Discord has taken it.  So a worker can be killed at any moment: whoever gets
 * its slot's lock (worker/<slot>.lock) queues again what it had only claimed,
 * tells "interrupted" for what it had started, and sends what it had finished.
 * Nothing runs twice.
 *
 * Between jobs it waits on the FIFO "wake", on signals and for the next round
 * of sweeping (sweep.c).  On SIGTERM it ends after the job that it has, which
 * loses its cell after IL_STOP_SECONDS.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/priority.h"
#include "../base/text.h"
#include "../locale/locale.h"
#include "../protocol/cancel.h"
#include "../protocol/lease.h"
#include "../protocol/node_table.h"
#include "../protocol/wake.h"
#include "../rest/rest.h"
#include "../store/db.h"
#include "../store/job.h"
#include "commands/command.h"
#include "count.h"
#include "deliver.h"
#include "run.h"
#include "sweep.h"

#define EXIT_USAGE 64
#define EXIT_CONFIG 78
#define SLOT_MOST 255
/* A worker that sweeps may hold our lock for a moment. */
#define LOCK_WAIT_MS 20000
#define LOCK_PAUSE_MS 50

static void
usage(void)
{
	(void)fputs("usage: il-worker [-t] [-e envfile] -s slot\n", stderr);
	exit(EXIT_USAGE);
}

/* ---- opening all that it holds ---- */

/* True once SIGTERM or SIGINT is pending, waiting for it so long. */
static bool
is_stopping(const struct worker *worker, int wait_ms)
{
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };

	return poll(&stop, 1, wait_ms) > 0;
}

static void
lock_own_slot(struct worker *worker)
{
	int64_t until_ms = clock_monotonic_ms() + LOCK_WAIT_MS;
	struct err err = { 0 };

	for (;;) {
		worker->slot_lock = sweep_lock_slot(worker, worker->slot, &err);
		if (worker->slot_lock >= 0)
			return;
		if (err.code != ERR_BUSY || clock_monotonic_ms() > until_ms)
			log_fatal(1, "%s", err.text);
		if (is_stopping(worker, LOCK_PAUSE_MS))
			exit(0);
	}
}

/* All that it needs, or a word on what is missing: the descriptor of the
 * signals is first, as each wait heeds it. */
static void
open_all(struct worker *worker)
{
	const struct config *config = worker->config;
	auto_free char *wake = config_state_path(config, "wake");
	auto_free char *folder = config_state_path(config, "worker");
	auto_free char *brake = config_state_path(config, "worker/brake");
	struct err err = { 0 };

	worker->signal_fd = fd_signals(0, &err);
	if (worker->signal_fd < 0)
		log_fatal(1, "%s", err.text);
	if (fd_make_dirs(folder, 0755, &err) < 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	lock_own_slot(worker);
	worker->wake_fd = wake_fifo_open(wake, &err);
	if (worker->wake_fd < 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	worker->wait_fd = wake_wait_open(worker->wake_fd, worker->signal_fd,
	    &err);
	if (worker->wait_fd < 0)
		log_fatal(1, "%s", err.text);
	worker->cancel_fd = cancel_watch(config, &err);
	if (worker->cancel_fd < 0)
		log_err("what runs here cannot be cancelled: %s", err.text);
	if (db_claim(config, &err) == 0)
		worker->db = db_start(config->database, DB_WORKER, &err);
	if (worker->db == NULL)
		log_fatal(err.code == ERR_CONFIG ? EXIT_CONFIG : 1, "%s",
		    err.text);
	if (node_table_open(&worker->nodes, config, &err) != 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	worker->rest = rest_new(config->discord_api_base, config->discord_token,
	    config->discord_application_id, brake, worker->signal_fd, &err);
	if (worker->rest == NULL)
		log_fatal(1, "%s", err.text);
	count_open(worker);
	worker->lease_socket = config_state_path(config, SOCKET_BROKER_WORKER);
}

/* What the database is owed is noted before it is closed. */
static void
close_all(struct worker *worker)
{
	deliver_release(worker);
	rest_free(worker->rest);
	node_table_free(worker->nodes);
	count_close(worker);
	db_close(worker->db);
	free(worker->lease_socket);
	if (worker->cancel_fd >= 0)
		(void)close(worker->cancel_fd);
	(void)close(worker->wait_fd);
	(void)close(worker->wake_fd);
	(void)close(worker->signal_fd);
	(void)close(worker->slot_lock);
}

/* ---- the loop ---- */

/* What the operator has said of this person, their server and all. */
static void
obey_rules(struct task *task)
{
	struct worker *worker = task->worker;
	const struct config *config = worker->config;

	deliver_read_rules(worker, task->job);
	task->limits = *config; /* what it points to is the settings' */
	task->limits.timeout_ms = rules_timeout(&worker->rules,
	    config->timeout_ms);
	task->limits.quota = rules_quota(&worker->rules, config->quota);
	task->env.config = &task->limits;
	task->message.banner = worker->rules.of[RULE_SERVICE].banner;
}

/* Who was blocked after il-fcgi had let them in is told so: nothing of theirs
 * begins any more.  What had come before a pause is done. */
static bool
is_let_in(struct task *task)
{
	const struct rule *of = task->worker->rules.of;
	enum rule_subject who = of[RULE_GUILD].blocked ? RULE_GUILD : RULE_USER;

	if (!of[who].blocked)
		return true;
	render_blocked(&task->message, who, of[who].reason);
	task->run.end = RUN_REFUSED;
	task->outcome = "blocked";
	return false;
}

/* A job from its claim to its end. */
static void
do_job(struct worker *worker, struct job *job)
{
	struct task task = {
		.worker = worker,
		.job = job,
		.begun_ms = clock_monotonic_ms(),
		.until_ms = job->received_ms + TOKEN_LIFE_MS,
		.lease = LEASE_NONE,
		.message = MESSAGE_FOR(&worker->ids),
		.outcome = "done",
		.env = {
			.kind = job->kind,
			.reference = job->id,
			.file_most = job->attachment_limit,
			.may_attach = job->may_attach,
		},
	};
	struct err err = { 0 };
	int64_t took_ms;
	int64_t waited_ms;

	/* its user cannot be told any more */
	if (clock_wall_ms() >= task.until_ms) {
		log_warn("too late job=%" PRId64, job->id);
		count_job(worker, job->kind, TALLY_TOO_LATE);
		if (job_undeliverable(worker->db, job->id, "too late", &err) <
		    0)
			log_err("%s", err.text);
		return;
	}
	/* for its texts; the commands may have been registered anew */
	if (command_ids_load(worker->db, job->application_id, &worker->ids,
		&err) < 0)
		log_err("%s job=%" PRId64, err.text, job->id);
	obey_rules(&task);
	if (task.env.file_most > MESSAGE_BYTES_MAX)
		task.env.file_most = MESSAGE_BYTES_MAX;
	if (task.env.file_most < 0)
		task.env.file_most = 0;
	cancel_heard(worker->cancel_fd);
	locale_set(job->locale);
	if (is_let_in(&task))
		command_run(&task);
	/* whoever has it now is still to be told that it is cancelled, and once
	 * it is finished nobody asks for it any more */
	if (!task.taken) {
		deliver_task(&task);
		cancel_forget(worker->config, job->id);
	}
	took_ms = clock_monotonic_ms() - task.begun_ms;
	waited_ms = clock_wall_ms() - job->received_ms - took_ms;
	count_task(&task, waited_ms, took_ms);
	log_info("%s: %s job=%" PRId64 " user=%" PRId64 " ms=%" PRId64
		 " waited=%" PRId64,
	    commands[job->kind].name, task.outcome, job->id, job->user_id,
	    took_ms, waited_ms);
	lease_close(&task.lease);
	collect_release(&task.collect);
	message_release(&task.message);
	free(task.editor);
}

/* Do the oldest queued job.  False: there is none. */
static bool
do_next(struct worker *worker)
{
	struct err err = { 0 };
	struct job job;
	int result;

	if (!deliver_note(worker))
		return false;
	result = job_claim(worker->db, worker->slot, &job, &err);
	if (result < 0)
		log_err("%s", err.text);
	if (result != 0)
		return false;
	do_job(worker, &job);
	job_release(&job);
	return true;
}

/* For a byte, or for the next round of sweeping. */
static void
wait(struct worker *worker, int64_t until_ms)
{
	count_rest(worker, until_ms - clock_monotonic_ms());
	wake_wait(worker->wait_fd, worker->wake_fd,
	    clock_poll_timeout(until_ms));
}

/* Jobs as long as there are any. */
static void
run(struct worker *worker)
{
	int64_t sweep_at_ms = 0;

	sweep_slot(worker, worker->slot);
	while (!is_stopping(worker, 0)) {
		count_beat(worker);
		if (do_next(worker)) {
			/* a busy worker sweeps too, only later */
			if (clock_monotonic_ms() < sweep_at_ms + 60000)
				continue;
		} else if (clock_monotonic_ms() < sweep_at_ms) {
			wait(worker, sweep_at_ms);
			continue;
		}
		sweep_at_ms = sweep_run(worker);
	}
}

int
main(int argc, char **argv)
{
	auto_config struct config config = { 0 };
	struct err err = { 0 };
	struct worker worker = { .config = &config, .slot = -1 };
	const char *env_file = NULL;
	bool test = false;
	int c;

	while ((c = getopt(argc, argv, "e:s:t")) != -1) {
		if (c == 'e')
			env_file = optarg;
		else if (c == 't')
			test = true;
		else if (c != 's' ||
		    !text_parse_int(optarg, 0, SLOT_MOST, &worker.slot))
			usage();
	}
	if (optind != argc || (worker.slot < 0 && !test))
		usage();
	log_init("il-worker", LOG_LEVEL_INFO);
	if (config_load(&config, env_file, &err) < 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	if (config.discord_application_id == 0)
		log_fatal(EXIT_CONFIG, "DISCORD_APPLICATION_ID: must be set");
	if (!test) {
		priority_take_short_slices();
		open_all(&worker);
		log_info("ready slot=%" PRId64, worker.slot);
		run(&worker);
		log_info("ending slot=%" PRId64, worker.slot);
		close_all(&worker);
	}
	return 0;
}
