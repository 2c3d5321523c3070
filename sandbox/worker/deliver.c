/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/basics.h"
#include "protocol/handover.h"
#include "store/db.h"
#include "worker/worker.h"

/* A 404 this long after the interaction does not mean "not yet". */
#define MISSING_MS 20000
/* Failures that end a round. */
#define FAILURES_MOST 2
/* Failed rounds after which an answer is sent without its files, which may be
 * the cause. */
#define FILE_TRIES 6
/* Time for il-fcgi to pass a response on, beyond the time that it holds one. */
#define PASS_ON_MS 1000
/* Discord may need this long after a first response before it accepts an
 * edit. */
#define EDIT_AFTER_MS 250
/* The worker tries this often to store the end of a job. */
#define STORE_AGAIN_MS 1000
/* Response "thinking…", for its user alone. */
#define DEFERRAL "{\"type\":5,\"data\":{\"flags\":64}}"

/* An answer on its way. */
struct delivery {
	struct worker *worker;
	int64_t slot; /* that the job belongs to */
	const struct job *job;
	char *body;		       /* heap: without files */
	const struct message *message; /* NULL: its files are gone */
	enum rest_patience patience;
	bool remove;	     /* delete it, and edit it only if that fails */
	bool apart;	     /* moderated: only its owner may read the body */
	bool first;	     /* it was the first response */
	bool stored;	     /* it is in the database and on the disk */
	const char *outcome; /* the job's word for statistics */
	int64_t cpu_ms;	     /* of its code; or -1 */
	struct rest_reply reply;
	struct rest_reply objection; /* to the answer itself */
	struct err err;
};

void
deliver_read_rules(struct worker *worker, const struct job *job)
{
	struct err err = { 0 };

	/* the settings hold where the rules cannot be read */
	if (rules_find(worker->db, job->user_id, job->guild_id, &worker->rules,
		&err) != 0)
		log_err("%s job=%" PRId64, err.text, job->id);
}

/* ---- messages that are kept for their files ---- */

/* The message of a job whose files are still to be sent, or NULL. */
static struct deliver_kept *
kept_find(struct worker *worker, int64_t job_id)
{
	for (size_t i = 0; i < DELIVER_KEPT; i++)
		if (worker->kept[i].job_id == job_id)
			return &worker->kept[i];
	return NULL;
}

static void
kept_forget(struct worker *worker, int64_t job_id)
{
	struct deliver_kept *kept = kept_find(worker, job_id);

	if (kept == NULL)
		return;
	message_release(&kept->message);
	kept->job_id = 0;
}

/* Keep a message, in the place of the oldest one, whose answer is then sent
 * without files. */
static void
kept_add(struct worker *worker, int64_t job_id, struct message *message)
{
	struct deliver_kept *kept = &worker->kept[0];

	for (size_t i = 1; i < DELIVER_KEPT; i++)
		if (worker->kept[i].job_id < kept->job_id)
			kept = &worker->kept[i];
	message_release(&kept->message);
	*kept = (struct deliver_kept){ .job_id = job_id, .message = *message };
	*message = (struct message)MESSAGE_INIT;
}

/* ---- the end of a job ---- */

/* Steps of a job's end. */
enum step {
	STEP_END,
	/* After a power cut, a job without a stored answer is reported as
	 * interrupted.  So each answer waits for the disk, except a first
	 * response, which is sent meanwhile. */
	STEP_ON_DISK,
	STEP_DELIVERED,
};

static int
store(const struct delivery *d, enum step step, struct err *err)
{
	struct db *db = d->worker->db;

	if (step == STEP_ON_DISK)
		return db_flush(db, err);
	return step == STEP_DELIVERED ?
	    job_delivered(db, d->job->id, err) :
	    job_finish(db, d->job->id, d->slot, d->body, d->outcome, d->cpu_ms,
		err);
}

/* Try until the step of a job's end is stored.  No other job begins before
 * that.  Another worker's job is tried once, as its slot is
 * locked meanwhile.  False: it is not stored; the next round, or the next
 * worker, reports the job. */
static bool
store_again(const struct delivery *d, enum step step)
{
	struct worker *worker = d->worker;
	struct err err = { 0 };

	while (store(d, step, &err) < 0) {
		log_err("not stored yet: %s job=%" PRId64, err.text,
		    d->job->id);
		if (d->slot != worker->slot || worker_is_stopping(worker))
			return false;
		count_beat(worker);
		rest_pause(worker->rest, STORE_AGAIN_MS);
	}
	return true;
}

static bool
deliver_store(const struct delivery *d)
{
	return store_again(d, STEP_END) && store_again(d, STEP_ON_DISK);
}

/* ---- one answer ---- */

static bool
has_files(const struct delivery *d)
{
	return d->message != NULL && d->message->file_count > 0;
}

static enum rest_outcome
send_body(struct delivery *d, enum rest_message which, const char *body,
    const struct message *files)
{
	const struct rest_target target = { which, d->job->token,
		d->job->received_ms + TOKEN_LIFE_MS };

	return rest_send_message(d->worker->rest, &target, body,
	    files != NULL ? files->files : NULL,
	    files != NULL ? files->file_count : 0,
	    which == REST_DELETION ? REST_FINAL : d->patience, &d->reply,
	    &d->err);
}

/* Send another message in the answer's place, with its files. */
static enum rest_outcome
send_instead(struct delivery *d, const struct message *message)
{
	auto_free char *body = message_json(message, true);

	return send_body(d, REST_ORIGINAL, body, message);
}

/* The server's moderation refused a shared answer: from here on it is for its
 * owner alone, in later tries, too. */
static void
narrow(struct delivery *d)
{
	char *before = d->body;
	struct err err = { 0 };

	d->apart = true;
	d->body = message_private_json(before);
	free(before);
	if (job_narrow(d->worker->db, d->job->id, d->body, &err) < 0)
		log_err("%s job=%" PRId64, err.text, d->job->id);
}

/* All see that there was an answer.  Its owner gets it in a further message,
 * which is private. */
static enum rest_outcome
send_apart(struct delivery *d)
{
	auto_message struct message notice = MESSAGE_INIT;
	enum rest_outcome outcome;

	render_add(&notice.lead, NOTE_MODERATED, NULL);
	outcome = send_instead(d, &notice);
	if (outcome != REST_DONE)
		return outcome;
	outcome = REST_REFUSED;
	if (has_files(d)) {
		auto_free char *whole = message_json(d->message, true);
		auto_free char *private = message_private_json(whole);

		outcome = send_body(d, REST_FURTHER, private, d->message);
	}
	if (outcome == REST_REFUSED)
		outcome = send_body(d, REST_FURTHER, d->body, NULL);
	return outcome;
}

/* Has Discord refused the answer in this form? */
static bool
is_refused(const struct delivery *d, enum rest_outcome outcome,
    const char *form)
{
	if (outcome == REST_REFUSED)
		log_warn("Discord refused the answer %s: %s job=%" PRId64, form,
		    d->err.text, d->job->id);
	return outcome == REST_REFUSED;
}

/* Send the answer in one form after another until Discord accepts one. */
static enum rest_outcome
send_forms(struct delivery *d)
{
	const struct job *job = d->job;
	auto_message struct message file = MESSAGE_INIT;
	auto_message struct message reason = MESSAGE_INIT;
	enum rest_outcome outcome;

	/* A message that cannot be deleted is edited.  Later rounds delete
	 * none. */
	if (d->remove && send_body(d, REST_DELETION, NULL, NULL) == REST_DONE)
		return REST_DONE;
	for (int files = has_files(d); files >= 0 && !d->apart; files--) {
		outcome = files > 0 ?
		    send_instead(d, d->message) :
		    send_body(d, REST_ORIGINAL, d->body, NULL);
		if (!is_refused(d, outcome,
			files > 0 ? "with its files" : "as text"))
			return outcome;
		d->objection = d->reply;
		if (job->share && rest_is_moderated(&d->reply))
			narrow(d);
	}
	if (!d->apart && job->may_attach && job->attachment_limit > 0) {
		render_as_file(&file, d->message, d->body,
		    job->attachment_limit);
		outcome = send_instead(d, &file);
		if (!is_refused(d, outcome, "as a file"))
			return outcome;
	}
	if (d->apart) {
		outcome = send_apart(d);
		if (!is_refused(d, outcome, "in private"))
			return outcome;
	}
	render_not_accepted(&reason,
	    d->objection.status != 0 ? &d->objection : &d->reply, job->id);
	outcome = send_instead(d, &reason);
	(void)is_refused(d, outcome, "with the reason alone");
	return outcome;
}

static enum rest_outcome
deliver(struct delivery *d)
{
	enum rest_outcome outcome = send_forms(d);

	/* Discord may answer 404 before it has made the message */
	return outcome != REST_DONE && d->reply.status == 404 &&
		clock_wall_ms() - d->job->received_ms > MISSING_MS ?
	    REST_GONE :
	    outcome;
}

/* Give the answer up: it cannot be delivered. */
static void
deliver_give_up(const struct delivery *d, const char *why)
{
	struct err err = { 0 };

	log_warn("nobody to tell (%s): %s job=%" PRId64, why, d->err.text,
	    d->job->id);
	d->worker->counters->answers_total[0][JOB_REPORT_NOBODY]++;
	if (job_undeliverable(d->worker->db, d->job->id, why, &err) < 0)
		log_err("%s", err.text);
	kept_forget(d->worker, d->job->id);
}

/* Store the outcome.  True: the delivery is over. */
static bool
deliver_settle(struct delivery *d, enum rest_outcome outcome)
{
	struct worker *worker = d->worker;

	if (outcome == REST_DONE) {
		worker->unanswered = false;
		worker->counters
		    ->answers_total[0][d->first ? JOB_REPORT_FIRST :
						  JOB_REPORT_EDIT]++;
		(void)store_again(d, STEP_DELIVERED);
		kept_forget(worker, d->job->id);
	} else if (outcome == REST_GONE || outcome == REST_REFUSED) {
		deliver_give_up(d, outcome == REST_GONE ? "gone" : "refused");
	} else {
		log_warn("not delivered yet: %s job=%" PRId64, d->err.text,
		    d->job->id);
		return false;
	}
	return true;
}

/* ---- a task that is over ---- */

/* Must the answer be an edit?  Files need one.  So do shared answers, as
 * Discord reports the refusal of a server's moderation for edits alone. */
static bool
is_edit(const struct task *task)
{
	return task->editor == NULL &&
	    (task->message.file_count > 0 || task->remove ||
		(task->job->share && !task->apart));
}

/* Send the first response to the front that waits for it: the answer, or a
 * deferral before its edit.  -1: no front waits. */
static int
give_first(const struct task *task, struct err *err)
{
	const struct job *job = task->job;
	auto_free char *path = first_response_path(task->worker->config,
	    job->held_by);
	auto_free char *own = NULL;
	const char *json = task->editor;

	/* the front would open a message for an editor */
	if (is_edit(task))
		json = job->answer == ANSWER_EDITOR ? DEFERRAL : "";
	if (json == NULL)
		json = own = message_response_json(&task->message, job->answer);
	return first_response_give(path, job->id, json, PASS_ON_MS, err);
}

/* Wait until Discord knows the first response.  It has just been sent, or the
 * front has sent its own when its time was over.  The clock may have been set
 * back. */
static void
wait_to_edit(const struct task *task)
{
	const struct worker *worker = task->worker;
	bool held = task->job->held_by >= 0;
	int64_t most_ms = EDIT_AFTER_MS +
	    (held ? worker->config->instant_ms : 0);
	int64_t wait_ms = task->job->received_ms + most_ms - clock_wall_ms();

	if (held && is_edit(task))
		wait_ms = EDIT_AFTER_MS;
	rest_pause(worker->rest, wait_ms < most_ms ? wait_ms : most_ms);
}

/* Send the first response.  True: it was the answer, or none can follow; the
 * outcome is filled. */
static bool
deliver_first(struct task *task, struct delivery *d, enum rest_outcome *outcome)
{
	const struct job *job = task->job;
	bool held = job->held_by != JOB_HELD_NOWHERE;
	struct err err = { 0 };
	enum first_response first = held ? FIRST_RESPONSE_NOBODY :
					   FIRST_RESPONSE_LATE;
	auto_close int fd = held ? give_first(task, &d->err) : -1;

	/* the response is on its way meanwhile */
	d->stored = d->stored && store(d, STEP_ON_DISK, &err) == 0;
	if (fd >= 0)
		first = first_response_outcome(fd, PASS_ON_MS, &d->err);
	if (first == FIRST_RESPONSE_NOBODY) {
		log_warn("no first response: %s job=%" PRId64, d->err.text,
		    job->id);
		/* there may be nothing to edit yet: later rounds deliver it */
		d->patience = REST_ONCE;
	}
	/* nothing is left to be sent before an edit */
	run_keep_names(task);
	/* a late editor became a button, which a front has sent */
	*outcome = first == FIRST_RESPONSE_NOBODY ? REST_GONE : REST_DONE;
	if ((first == FIRST_RESPONSE_SENT && !is_edit(task)) ||
	    task->editor != NULL)
		return true;
	wait_to_edit(task);
	return false;
}

/* The answer is stored first.  If that fails (the disk may be full), it is sent
 * all the same, and stored afterwards. */
void
deliver_task(struct task *task)
{
	struct worker *worker = task->worker;
	struct delivery d = {
		.worker = worker,
		.slot = worker->slot,
		.job = task->job,
		.body = message_json(&task->message, false),
		.message = &task->message,
		.patience = REST_FINAL,
		.remove = task->remove,
		.outcome = task->outcome,
		/* of the last request's run; -1: it ran nothing */
		.cpu_ms = task->started && task->run.end == RUN_RESULT ?
		    task->run.result.cpu_us / 1000 :
		    -1,
	};
	struct err err = { 0 };
	enum rest_outcome outcome;
	int finished = store(&d, STEP_END, &err);

	if (finished == 1) {
		log_err("the job was taken away job=%" PRId64, task->job->id);
		free(d.body);
		return;
	}
	if (finished < 0)
		log_err("%s job=%" PRId64, err.text, task->job->id);
	d.stored = finished == 0;
	d.first = deliver_first(task, &d, &outcome);
	if (!d.first) {
		/* After a call without an answer, and while jobs wait, an
		 * answer has one try of 5 s, not 35 s; later rounds try
		 * again. */
		if (worker->unanswered && job_peek(worker->db, &err) == 0)
			d.patience = REST_ONCE;
		outcome = deliver(&d);
		worker->unanswered = outcome == REST_LATER &&
		    d.reply.status == 0;
	}
	if ((d.stored || deliver_store(&d)) && !deliver_settle(&d, outcome) &&
	    task->message.file_count > 0)
		kept_add(worker, task->job->id, &task->message);
	free(d.body);
}

/* ---- answers that wait ---- */

/* Finish a job whose worker died while it ran. */
static bool
finish_lost(struct delivery *d)
{
	struct worker *worker = d->worker;
	const struct job *job = d->job;
	auto_message struct message message = MESSAGE_FOR(&worker->ids);

	deliver_read_rules(worker, job);
	message.banner = worker->rules.of[RULE_SERVICE].banner;
	render_lost(&message, job->kind, job->id);
	free(d->body);
	d->body = message_json(&message, false);
	d->outcome = "interrupted";
	d->cpu_ms = -1;
	log_warn("interrupted: its worker did not end it job=%" PRId64
		 " user=%" PRId64 " slot=%" PRId64,
	    job->id, job->user_id, d->slot);
	worker->counters->jobs_total[job->kind][JOB_END_INTERRUPTED]++;
	return deliver_store(d);
}

/* Deliver a waiting answer.  True: the delivery is over. */
static bool
deliver_one(struct worker *worker, int64_t slot, const struct job *job)
{
	struct deliver_kept *kept = kept_find(worker, job->id);
	struct delivery d = {
		.worker = worker,
		.slot = slot,
		.job = job,
		.body = job->body != NULL ? xstrdup(job->body) : NULL,
		.message = kept != NULL ? &kept->message : NULL,
		.patience = REST_ONCE,
	};
	enum rest_outcome outcome;
	bool settled = false;

	locale_set(job->locale);
	/* a late editor became a button */
	if (clock_wall_ms() >= job->received_ms + TOKEN_LIFE_MS ||
	    job->answer == ANSWER_EDITOR) {
		deliver_give_up(&d, "too late");
		free(d.body);
		return true;
	}
	if (kept != NULL && kept->tries >= FILE_TRIES) {
		kept_forget(worker, job->id);
		kept = NULL;
		d.message = NULL;
	}
	if ((!job->lost && d.body != NULL) || finish_lost(&d)) {
		d.apart = job->share && message_is_private(d.body);
		outcome = deliver(&d);
		/* a refusal of any request does not count against the files */
		if (kept != NULL && outcome == REST_LATER)
			kept->tries++;
		settled = deliver_settle(&d, outcome);
	}
	free(d.body);
	return settled;
}

void
deliver_untold(struct worker *worker, int64_t slot)
{
	struct err err = { 0 };
	struct job job;
	int64_t after = slot == worker->slot ? worker->untold_after : 0;
	int failures = 0;
	int result = 1;

	while (failures < FAILURES_MOST &&
	    (result = job_next_untold(worker->db, slot, after, &job, &err)) ==
		0) {
		after = job.id;
		if (!deliver_one(worker, slot, &job))
			failures++;
		job_release(&job);
	}
	if (failures < FAILURES_MOST && result < 0)
		log_err("%s", err.text);
	if (slot == worker->slot)
		worker->untold_after = failures < FAILURES_MOST ? 0 : after;
}
