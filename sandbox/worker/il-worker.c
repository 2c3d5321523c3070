/* SPDX-License-Identifier: MIT */
/*
 * il-worker does the jobs of people in chat, and sends them the answers.
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
 * compare-and-set.  It is claimed here, started right before the cell gets the
 * request, finished with the rendered answer, and delivered when Discord has
 * accepted that.  The answer waits for the disk before it is sent, except a
 * first response (store/README.md).  So a worker can be killed at any moment.
 * The next holder of its slot's lock (worker/<slot>.lock) queues a claimed job
 * again, reports a started one as interrupted, and sends the answer of a
 * finished one.  Nothing runs twice.
 *
 * Between jobs it waits on the FIFO "wake", on signals and for the next round
 * of sweeping.  On SIGTERM it ends after its job, which loses its cell after
 * IL_STOP_SECONDS.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "protocol/condition.h"
#include "protocol/node_table.h"
#include "protocol/handover.h"
#include "store/db.h"
#include "worker/commands/command.h"
#include "worker/worker.h"

#define EXIT_USAGE 64
#define EXIT_CONFIG 78
#define SLOT_MOST 255
/* A worker that sweeps may lock our slot for a moment. */
#define LOCK_WAIT_MS 20000
/* Longest time between rounds: operators change rows with sqlite3, and a byte
 * in the FIFO can be lost with the worker that read it. */
#define ROUND_MS 10000
#define EXPIRE_MOST 16 /* sandboxes in one round */
#define REMOVE_WAIT_MS 10000
#define SLOTS_MAX 256
#define PRUNE_EVERY_MS (60 * 60 * 1000)
/* Rows of one step, which locks the database for 5 ms; 5,000 rows take 40
 * ms. */
#define PRUNE_STEP 200
#define PRUNE_STEPS 25
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define JOB_DAYS 30

/* ---- opening ---- */

/* Lock worker/<slot>.lock.  Returns its descriptor, -1 with ERR_BUSY: its
 * holder lives. */
static int
lock_slot(const struct worker *worker, int64_t slot, int64_t timeout_ms,
    struct err *err)
{
	auto_free char *path = xprintf("%s/worker/%" PRId64 ".lock",
	    worker->config->state_dir, slot);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);

	if (fd < 0)
		return err_system(err, "%s", path);
	if (!fd_lock_within(fd, timeout_ms))
		return err_set(err, ERR_BUSY,
		    "slot %" PRId64 " has a worker already", slot);
	return steal_fd(&fd);
}

/* Open all that the worker needs, or exit and say what is missing.  SIGTERM
 * still ends the process while it waits for its slot. */
static void
open_all(struct worker *worker)
{
	const struct config *config = worker->config;
	auto_free char *wake = config_state_path(config, "wake");
	auto_free char *folder = config_state_path(config, "worker");
	auto_free char *brake = config_state_path(config, "worker/brake");
	struct err err = { 0 };

	if (fd_make_dirs(folder, 0755, &err) < 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	worker->slot_lock = lock_slot(worker, worker->slot, LOCK_WAIT_MS, &err);
	if (worker->slot_lock >= 0)
		worker->signal_fd = fd_signals(false, &err);
	if (worker->slot_lock < 0 || worker->signal_fd < 0)
		log_fatal(1, "%s", err.text);
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
	worker->rest = rest_new(config->discord_api_base, "",
	    config->discord_application_id, brake, worker->signal_fd, &err);
	if (worker->rest == NULL)
		log_fatal(1, "%s", err.text);
	count_open(worker);
	worker->lease_socket = config_state_path(config, SOCKET_BROKER_WORKER);
}

static void
close_all(struct worker *worker)
{
	for (size_t i = 0; i < DELIVER_KEPT; i++)
		message_release(&worker->kept[i].message);
	rest_free(worker->rest);
	node_table_free(worker->nodes);
	pulse_close(worker->pulse, worker->slot);
	db_close(worker->db);
	free(worker->lease_socket);
	if (worker->cancel_fd >= 0)
		(void)close(worker->cancel_fd);
	(void)close(worker->wait_fd);
	(void)close(worker->wake_fd);
	(void)close(worker->signal_fd);
	(void)close(worker->slot_lock);
}

/* ---- one job ---- */

/* Apply the operator's rules for this person, their server and all. */
static void
obey_rules(struct task *task)
{
	struct worker *worker = task->worker;
	const struct config *config = worker->config;

	deliver_read_rules(worker, task->job);
	task->limits = *config; /* its pointers are those of the settings */
	task->limits.timeout_ms = rules_number(&worker->rules,
	    offsetof(struct rule, timeout_ms), config->timeout_ms);
	task->limits.quota = rules_number(&worker->rules,
	    offsetof(struct rule, quota), config->quota);
	task->env.config = &task->limits;
	task->message.banner = worker->rules.of[RULE_SERVICE].banner;
}

/* Is the job allowed to begin?  If its user was blocked after il-fcgi accepted
 * it, the message says so.  Jobs from before a pause are done. */
static bool
is_let_in(struct task *task)
{
	const struct rule *of = task->worker->rules.of;
	bool guild = of[RULE_GUILD].blocked;
	const char *reason = of[guild ? RULE_GUILD : RULE_USER].reason;

	if (!guild && !of[RULE_USER].blocked)
		return true;
	(void)command_say(task, guild ? SAY_GUILD_BLOCKED : SAY_USER_BLOCKED,
	    NULL);
	if (*reason != '\0')
		rule_add_text(&task->message.lead, reason);
	task->run.end = RUN_REFUSED;
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
			.message = &task.message,
			.run = &task.run,
			.collect = &task.collect,
			.path = task.path,
			.kind = job->kind,
			.reference = job->id,
			.file_most = job->attachment_limit,
			.may_attach = job->may_attach,
		},
	};
	struct err err = { 0 };
	int64_t took_ms;
	int64_t waited_ms;

	/* the token is dead, so no answer can be sent */
	if (clock_wall_ms() >= task.until_ms) {
		log_warn("too late job=%" PRId64, job->id);
		worker->counters->jobs_total[job->kind][JOB_END_TOO_LATE]++;
		if (job_undeliverable(worker->db, job->id, "too late", &err) <
		    0)
			log_err("%s", err.text);
		return;
	}
	/* the commands may have been registered anew */
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
	/* a job of another worker keeps its cancellation; that of a finished
	 * job is not read again */
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
	view_texts_release(&task.texts);
	free(task.editor);
}

/* ---- between jobs ---- */

/*
 * Work between jobs.  All workers do all of it; the database's compare-and-set
 * and the slots' locks keep them out of each other's way.
 */

/* Take over the jobs of a slot whose lock we own: claimed jobs are queued
 * again, started ones are reported as interrupted, answers are sent.  The slot
 * is a dead worker's, or our own between two jobs, where a failure of the
 * database may have left a job. */
static void
sweep_slot(struct worker *worker, int64_t slot)
{
	struct err err = { 0 };
	int count = job_recover(worker->db, slot, &err);

	if (count < 0) {
		log_err("%s", err.text);
		return;
	}
	if (count > 0) {
		log_warn("slot %" PRId64 " had left %d jobs", slot, count);
		wake_others(worker->wake_fd, count);
	}
	deliver_untold(worker, slot);
}

/* Sweep every slot with unfinished jobs and no living worker, and our own. */
static void
sweep_slots(struct worker *worker)
{
	int64_t slots[SLOTS_MAX];
	struct err err = { 0 };
	int count = job_slots(worker->db, slots, SLOTS_MAX, &err);

	if (count < 0)
		log_err("%s", err.text);
	for (int i = 0; i < count; i++) {
		bool own = slots[i] == worker->slot;
		auto_close int lock = own ?
		    -1 :
		    lock_slot(worker, slots[i], 0, &err);

		if (own || lock >= 0)
			sweep_slot(worker, slots[i]);
	}
}

/* Remove an expired sandbox.  True: there may be more. */
static bool
remove_expired(struct worker *worker)
{
	struct sandbox sandbox;
	struct err err = { 0 };
	int result = sandbox_take_expired(worker->db, &sandbox, &err);

	if (result != 0) {
		if (result < 0)
			log_err("%s", err.text);
		return false;
	}
	/* the row is not returned again for a minute */
	if (!command_remove_files(worker, sandbox.id, REMOVE_WAIT_MS))
		return false;
	log_info("removed sandbox=%s user=%" PRId64, sandbox.id,
	    sandbox.user_id);
	return true;
}

/* Delete rows that are too old, in small steps, between which fronts write.
 * True: there may be more. */
static bool
prune(struct db *db, enum statement which, int64_t days)
{
	struct err err = { 0 };
	int count = PRUNE_STEP;

	for (int i = 0; i < PRUNE_STEPS && count == PRUNE_STEP; i++)
		count = db_change(db, which,
		    DB_VALUES(BIND(":before_ms",
				  clock_wall_ms() - days * DAY_MS),
			BIND(":most", PRUNE_STEP)),
		    &err);
	if (count < 0)
		log_err("%s", err.text);
	return count == PRUNE_STEP;
}

/* Make a round: dead workers' slots and our own, expired sandboxes, old rows,
 * the database's log.  Returns the monotonic time of the next one. */
static int64_t
worker_sweep(struct worker *worker)
{
	struct err err = { 0 };
	int64_t seconds;
	bool more;

	rest_note_end(worker->rest);
	sweep_slots(worker);
	for (int i = 0; i < EXPIRE_MOST && remove_expired(worker); i++)
		;
	if (clock_monotonic_ms() >= worker->prune_at_ms) {
		/* those of a busy day take several rounds */
		more = prune(worker->db, STATEMENT_JOB_PRUNE, JOB_DAYS);
		more |= prune(worker->db, STATEMENT_VIEW_PRUNE,
		    worker->config->keep_days);
		if (!more)
			worker->prune_at_ms = clock_monotonic_ms() +
			    PRUNE_EVERY_MS;
		cancel_sweep(worker->config);
	}
	/* the worker is idle here; fronts make no checkpoints (db.h) */
	db_checkpoint(worker->db);
	seconds = sandbox_next_expiry(worker->db, &err);
	if (seconds < 0 || seconds > ROUND_MS / 1000)
		return clock_monotonic_ms() + ROUND_MS;
	return clock_monotonic_ms() + seconds * 1000;
}

/* ---- the loop ---- */

/* Do the oldest queued job.  False: there is none. */
static bool
do_next(struct worker *worker)
{
	struct err err = { 0 };
	struct job job;
	int result = job_claim(worker->db, worker->slot, &job, &err);

	if (result < 0)
		log_err("%s", err.text);
	if (result != 0)
		return false;
	do_job(worker, &job);
	job_release(&job);
	return true;
}

bool
worker_is_stopping(const struct worker *worker)
{
	struct pollfd stop = { .fd = worker->signal_fd, .events = POLLIN };

	return poll(&stop, 1, 0) > 0;
}

/* Do jobs as long as there are any. */
static void
worker_run(struct worker *worker)
{
	int64_t sweep_at_ms = 0;
	int64_t idle_ms;

	sweep_slot(worker, worker->slot);
	while (!worker_is_stopping(worker)) {
		count_beat(worker);
		if (do_next(worker)) {
			/* a busy worker sweeps too, only later */
			if (clock_monotonic_ms() < sweep_at_ms + 60000)
				continue;
		} else if (clock_monotonic_ms() < sweep_at_ms) {
			/* idle; the time may have come since */
			idle_ms = sweep_at_ms - clock_monotonic_ms();
			pulse_beat(worker->pulse, worker->slot,
			    idle_ms > 0 ? idle_ms : 0, true);
			wake_wait(worker->wait_fd, worker->wake_fd,
			    clock_poll_timeout(sweep_at_ms));
			continue;
		}
		sweep_at_ms = worker_sweep(worker);
	}
}

int
main(int argc, char **argv)
{
	auto_config struct config config = { 0 };
	struct worker worker = { .config = &config, .slot = -1 };
	const char *given[CONFIG_OPTIONS] = { NULL };

	config_begin(&config, "il-worker", "e:s:t",
	    "usage: il-worker [-t] [-e envfile] -s slot\n", argc, argv, given);
	if (given['s'] == NULL ?
		given['t'] == NULL :
		!text_parse_int(given['s'], 0, SLOT_MOST, &worker.slot))
		log_fatal(EXIT_USAGE,
		    "-s: is needed, with the number of a slot");
	if (config.discord_application_id == 0)
		log_fatal(EXIT_CONFIG, "DISCORD_APPLICATION_ID: must be set");
	if (given['t'] == NULL) {
		process_take_short_slices();
		open_all(&worker);
		log_info("ready slot=%" PRId64, worker.slot);
		worker_run(&worker);
		log_info("ending slot=%" PRId64, worker.slot);
		close_all(&worker);
	}
	return 0;
}
