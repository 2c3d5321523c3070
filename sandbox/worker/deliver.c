/* SPDX-License-Identifier: MIT */
#include "worker/deliver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/first_response.h"
#include "store/db.h"
#include "worker/count.h"
#include "worker/run.h"
#include "worker/task.h"

/* A 404 so much after the interaction is not "not yet" any more. */
#define MISSING_MS 20000
/* In one round; then the rest waits for the next one. */
#define FAILURES_MOST 2
/* Rounds in which Discord fails over the files, then the answer goes without
 * them: they may be what it cannot digest. */
#define FILE_TRIES 6
/* Time for il-fcgi to pass a response on, beyond the time that it holds one. */
#define PASS_ON_MS 1000
/* After a first response has left, Discord may not know yet what an edit is to
 * change. */
#define EDIT_AFTER_MS 250
/* "thinking…", for its user alone. */
#define DEFERRAL "{\"type\":5,\"data\":{\"flags\":64}}"

/* One answer on its way. */
struct delivery {
	struct worker *worker;
	const struct job *job;
	const char *body;	       /* without files */
	const struct message *message; /* NULL: there are no files any more */
	enum rest_patience patience;
	bool remove; /* delete it, and edit it only if that fails */
	bool apart;  /* moderated: its owner alone may read the body */
	char *owned; /* the body, where it is not the caller's; or NULL */
	bool first;  /* it was the first response */
	bool lasts;  /* it is in the database for good */
	struct rest_reply reply;
	struct err err;
};

void
deliver_read_rules(struct worker *worker, const struct job *job)
{
	struct err err = { 0 };

	/* where they cannot be read the settings hold */
	if (rules_find(worker->db, job->user_id, job->guild_id, &worker->rules,
		&err) != 0)
		log_err("%s job=%" PRId64, err.text, job->id);
}

/* ---- what was kept for its files ---- */

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

/* The new message takes the place of the oldest one, whose answer is still
 * sent, without files. */
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

void
deliver_release(struct worker *worker)
{
	for (size_t i = 0; i < DELIVER_KEPT; i++)
		message_release(&worker->kept[i].message);
	(void)deliver_note(worker);
	free(worker->owed.body);
}

/* ---- what the database is owed ---- */

/* A note that failed, or may be lost again, is repeated until it lasts. */
static void
owe(struct worker *worker, const struct task *task, const char *body,
    int64_t cpu_ms, bool told)
{
	free(worker->owed.body);
	worker->owed = (struct deliver_owed){ .job_id = task->job->id,
		.body = xstrdup(body),
		.cpu_ms = cpu_ms,
		.told = told };
	(void)snprintf(worker->owed.outcome, sizeof(worker->owed.outcome), "%s",
	    task->outcome);
}

/* A job whose answer a power cut takes back is reported as "interrupted".  So
 * each answer waits for the disk, except a first response, which is sent
 * meanwhile. */
static bool
flush(struct worker *worker, int64_t job_id)
{
	struct err err = { 0 };

	if (db_flush(worker->db, &err) == 0)
		return true;
	log_err("%s job=%" PRId64, err.text, job_id);
	return false;
}

/* The job is noted as finished first: from there on the rounds of telling know
 * of it, too. */
bool
deliver_note(struct worker *worker)
{
	struct deliver_owed *owed = &worker->owed;
	struct err err = { 0 };
	int result = 0; /* 1: it is somebody else's job now */

	if (owed->body != NULL) {
		result = job_finish(worker->db, owed->job_id, worker->slot,
		    owed->body, owed->outcome, owed->cpu_ms, &err);
		if (!flush(worker, owed->job_id))
			return false;
	}
	if (result >= 0) {
		free(owed->body);
		owed->body = NULL;
	}
	if (result >= 0 && owed->told)
		result = job_delivered(worker->db, owed->job_id, &err);
	if (result < 0)
		log_err("not noted yet: %s job=%" PRId64, err.text,
		    owed->job_id);
	else
		*owed = (struct deliver_owed){ 0 };
	return result >= 0;
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
	    files != NULL ? files->file_count : 0, d->patience, &d->reply,
	    &d->err);
}

/* Another message in its place, with the files that it has. */
static enum rest_outcome
send_instead(struct delivery *d, const struct message *message)
{
	auto_free char *body = message_json(message, true);

	return send_body(d, REST_ORIGINAL, body, message);
}

/* All were to see it, and their server's moderation has refused it.  From here
 * on it is for its owner alone, for those who try again, too. */
static void
narrow(struct delivery *d)
{
	char *before = d->owned;
	struct err err = { 0 };

	d->apart = true;
	d->body = d->owned = message_private_json(d->body);
	free(before);
	if (job_narrow(d->worker->db, d->job->id, d->body, &err) < 0)
		log_err("%s job=%" PRId64, err.text, d->job->id);
}

/* All see that there was an answer, and its owner gets it in a further message
 * that nobody else sees. */
static enum rest_outcome
deliver_apart(struct delivery *d)
{
	auto_message struct message instead = MESSAGE_INIT;
	enum rest_outcome outcome;

	buf_adds(&instead.lead, _(TEXT_MODERATED_FOR_ALL));
	outcome = send_instead(d, &instead);
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

/* The last answer was a refusal of a text that all were to see. */
static bool
is_moderated(const struct delivery *d)
{
	return d->job->share && rest_is_moderated(&d->reply);
}

/* The answer is sent with its files, else without them, else as a text file,
 * where it may pass. */
static enum rest_outcome
deliver_to_all(struct delivery *d, struct rest_reply *objection)
{
	auto_message struct message as_file = MESSAGE_INIT;
	enum rest_outcome outcome = REST_REFUSED;

	if (has_files(d)) {
		outcome = send_instead(d, d->message);
		if (outcome == REST_REFUSED)
			log_warn("the files were refused: %s job=%" PRId64,
			    d->err.text, d->job->id);
	}
	if (outcome == REST_REFUSED && !is_moderated(d))
		outcome = send_body(d, REST_ORIGINAL, d->body, NULL);
	if (outcome != REST_REFUSED)
		return outcome;
	log_warn("the answer was refused: %s job=%" PRId64, d->err.text,
	    d->job->id);
	*objection = d->reply;
	if (is_moderated(d))
		narrow(d);
	if (d->apart || !d->job->may_attach || d->job->attachment_limit <= 0)
		return REST_REFUSED;
	render_as_file(&as_file, d->message, d->body, d->job->attachment_limit);
	return send_instead(d, &as_file);
}

/* The answer goes to all who were to see it, else to its owner, else we say in
 * our words why not. */
static enum rest_outcome
deliver(struct delivery *d)
{
	auto_message struct message plain = MESSAGE_INIT;
	struct rest_reply objection = { 0 };
	enum rest_outcome outcome = REST_REFUSED;

	if (d->remove &&
	    rest_delete_original(d->worker->rest, d->job->token,
		d->job->received_ms + TOKEN_LIFE_MS, &d->reply,
		&d->err) == REST_DONE)
		return REST_DONE;
	if (!d->apart)
		outcome = deliver_to_all(d, &objection);
	if (d->apart)
		outcome = deliver_apart(d);
	/* then at least say why */
	if (outcome == REST_REFUSED) {
		render_not_accepted(&plain,
		    objection.status != 0 ? &objection : &d->reply, d->job->id);
		outcome = send_instead(d, &plain);
	}
	/* Discord says 404 of a message that it has not made yet, too */
	if (outcome != REST_DONE && d->reply.status == 404 &&
	    clock_wall_ms() - d->job->received_ms > MISSING_MS)
		outcome = REST_GONE;
	return outcome;
}

/* The answer cannot be delivered any more; the job ends here. */
static void
give_up(const struct delivery *d, const char *why)
{
	struct err err = { 0 };

	log_warn("nobody to tell (%s): %s job=%" PRId64, why, d->err.text,
	    d->job->id);
	d->worker->tally->told[TALLY_NOBODY]++;
	if (job_undeliverable(d->worker->db, d->job->id, why, &err) < 0)
		log_err("%s", err.text);
	kept_forget(d->worker, d->job->id);
}

/* Note what became of it.  True: there is nothing more to do. */
static bool
settle(struct delivery *d, enum rest_outcome outcome)
{
	struct err err = { 0 };

	if (outcome == REST_GONE || outcome == REST_REFUSED) {
		give_up(d, outcome == REST_GONE ? "gone" : "refused");
		return true;
	}
	if (outcome != REST_DONE) {
		log_warn("not told yet: %s job=%" PRId64, d->err.text,
		    d->job->id);
		return false;
	}
	d->worker->unanswered = false;
	d->worker->tally->told[d->first ? TALLY_FIRST : TALLY_EDIT]++;
	if (job_delivered(d->worker->db, d->job->id, &err) < 0) {
		d->worker->owed.job_id = d->job->id;
		d->worker->owed.told = true;
	}
	kept_forget(d->worker, d->job->id);
	return true;
}

/* ---- a task that is over ---- */

/* Must the answer be an edit?  Files come with their text in one.  A server's
 * moderation may refuse an answer for all, and Discord says so of edits alone.
 */
static bool
is_edit(const struct task *task)
{
	return task->editor == NULL &&
	    (task->message.file_count > 0 || task->remove ||
		(task->job->share && !task->apart));
}

/* The answer as the first response, should the front still wait for it, or a
 * deferral before its edit.  -1: nobody is there. */
static int
give_first(const struct task *task, struct err *err)
{
	const struct job *job = task->job;
	auto_free char *path = first_response_path(task->worker->config,
	    job->held_by);
	auto_free char *own = NULL;
	const char *json = task->editor;

	/* the front's own deferral of an editor is a message */
	if (is_edit(task))
		json = job->answer == ANSWER_EDITOR ? DEFERRAL : "";
	if (json == NULL)
		json = own = message_response_json(&task->message, job->answer);
	return first_response_give(path, job->id, json, PASS_ON_MS, err);
}

/* The first response leaves now at the latest where we have just asked for it,
 * otherwise when its time is over.  The clock may have been set back. */
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

/* The first response, or what it leaves to be done.  True: nothing, and the
 * outcome is filled. */
static bool
deliver_first(struct task *task, struct delivery *d, enum rest_outcome *outcome)
{
	const struct job *job = task->job;
	bool held = job->held_by != JOB_HELD_NOWHERE;
	enum first_response first = held ? FIRST_RESPONSE_NOBODY :
					   FIRST_RESPONSE_LATE;
	auto_close int fd = held ? give_first(task, &d->err) : -1;

	/* the response is on its way meanwhile */
	d->lasts = flush(task->worker, job->id);
	if (fd >= 0)
		first = first_response_outcome(fd, PASS_ON_MS, &d->err);
	if (first == FIRST_RESPONSE_NOBODY) {
		log_warn("no first response: %s job=%" PRId64, d->err.text,
		    job->id);
		/* there may be nothing to edit: the rounds see to it */
		d->patience = REST_ONCE;
	}
	/* the user has been answered, or must be patient for an edit */
	run_keep_names(task);
	/* a late editor has a button, which only a front has sent */
	*outcome = first == FIRST_RESPONSE_NOBODY ? REST_GONE : REST_DONE;
	if ((first == FIRST_RESPONSE_SENT && !is_edit(task)) ||
	    task->editor != NULL)
		return true;
	wait_to_edit(task);
	return false;
}

/* Processor time of what the last request ran, where it ran something. */
static int64_t
cpu_of(const struct task *task)
{
	const struct run_outcome *run = &task->run;

	return task->started && run->end == RUN_RESULT ?
	    run->result.cpu_us / 1000 :
	    -1;
}

/* The answer goes into the database first; when that fails (a full disk, say)
 * its user is told all the same, and the database later. */
void
deliver_task(struct task *task)
{
	struct worker *worker = task->worker;
	auto_free char *body = message_json(&task->message, false);
	struct delivery d = {
		.worker = worker,
		.job = task->job,
		.body = body,
		.message = &task->message,
		.patience = REST_FINAL,
		.remove = task->remove,
	};
	struct err err = { 0 };
	enum rest_outcome outcome;
	bool settled;
	int64_t cpu_ms = cpu_of(task);
	int finished = job_finish(worker->db, task->job->id, worker->slot, body,
	    task->outcome, cpu_ms, &err);

	if (finished == 1) {
		log_err("the job was taken away job=%" PRId64, task->job->id);
		return;
	}
	if (finished < 0)
		log_err("%s job=%" PRId64, err.text, task->job->id);
	d.first = deliver_first(task, &d, &outcome);
	if (!d.first) {
		/* Discord did not answer the last time, and others wait: one
		 * try of 5 s, not of 35, and the rounds see to the rest. */
		if (worker->unanswered && job_peek(worker->db, &err) == 0)
			d.patience = REST_ONCE;
		outcome = deliver(&d);
		worker->unanswered = outcome == REST_LATER &&
		    d.reply.status == 0;
	}
	d.lasts = d.lasts && finished == 0;
	settled = d.lasts ? settle(&d, outcome) : outcome == REST_DONE;
	if (!d.lasts)
		owe(worker, task, d.body, cpu_ms, settled);
	if (!settled && task->message.file_count > 0)
		kept_add(worker, task->job->id, &task->message);
	free(d.owned);
}

/* ---- what was left ---- */

/* A job that was running when its worker died: now it gets its answer. */
static char *
lost_body(struct worker *worker, int64_t slot, const struct job *job)
{
	auto_message struct message message = MESSAGE_FOR(&worker->ids);
	struct err err = { 0 };
	char *body;

	deliver_read_rules(worker, job);
	message.banner = worker->rules.of[RULE_SERVICE].banner;
	render_lost(&message, job->kind, job->id);
	body = message_json(&message, false);
	log_warn("interrupted: its worker did not end it job=%" PRId64
		 " user=%" PRId64 " slot=%" PRId64,
	    job->id, job->user_id, slot);
	worker->tally->jobs[job->kind][TALLY_INTERRUPTED]++;
	if (job_finish(worker->db, job->id, slot, body, "interrupted", -1,
		&err) < 0)
		log_err("%s", err.text);
	flush(worker, job->id);
	return body;
}

/* True: it is settled. */
static bool
tell(struct worker *worker, int64_t slot, const struct job *job)
{
	struct deliver_kept *kept = kept_find(worker, job->id);
	struct delivery d = {
		.worker = worker,
		.job = job,
		.body = job->body,
		.message = kept != NULL ? &kept->message : NULL,
		.patience = REST_ONCE,
	};
	enum rest_outcome outcome;
	bool settled;

	locale_set(job->locale);
	/* a late editor has a button instead */
	if (clock_wall_ms() >= job->received_ms + TOKEN_LIFE_MS ||
	    job->answer == ANSWER_EDITOR) {
		give_up(&d, "too late");
		return true;
	}
	if (kept != NULL && kept->tries >= FILE_TRIES) {
		kept_forget(worker, job->id);
		kept = NULL;
		d.message = NULL;
	}
	if (job->lost || d.body == NULL)
		d.body = d.owned = lost_body(worker, slot, job);
	d.apart = job->share && message_is_private(d.body);
	outcome = deliver(&d);
	/* a Discord that takes nothing at all says nothing of the files */
	if (kept != NULL && outcome == REST_LATER)
		kept->tries++;
	settled = settle(&d, outcome);
	free(d.owned);
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

	while (failures < FAILURES_MOST && deliver_note(worker) &&
	    (result = job_next_untold(worker->db, slot, after, &job, &err)) ==
		0) {
		after = job.id;
		if (!tell(worker, slot, &job))
			failures++;
		job_release(&job);
	}
	if (failures < FAILURES_MOST && result < 0)
		log_err("%s", err.text);
	if (slot == worker->slot)
		worker->untold_after = failures < FAILURES_MOST ? 0 : after;
}
