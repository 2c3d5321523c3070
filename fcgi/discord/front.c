/* SPDX-License-Identifier: MIT */
#include "discord/front.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "discord/route.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"
#include "locale/locale.h"
#include "protocol/node_table.h"
#include "store/db.h"
#include "store/moves.h"

#define DATABASE_RETRY_MS 1000
#define DENIALS_LOGGED 10 /* in a second */
#define STALE_MS 60000	  /* between two warnings of the clock */
#define WORD_MOST 64	  /* of a parameter of nginx, in the log */

/* ---- wake-ups ---- */

void
front_wakes_begin(struct front_wakes *w, size_t index, int64_t now_ms)
{
	if (w->busy_ms[index] == 0)
		w->busy_ms[index] = now_ms;
}

/* A process that is busy for long is blocked: the others do not wait for it. */
bool
front_wakes_alone(const struct front_wakes *w, size_t index, int64_t now_ms)
{
	for (size_t i = 0; i < FRONT_PROCESSES; i++) {
		int64_t since_ms = w->busy_ms[i];

		if (i != index && since_ms != 0 &&
		    now_ms - since_ms < FRONT_WAKES_DELAY_MS)
			return false;
	}
	return true;
}

size_t
front_wakes_end(struct front_wakes *w, size_t index, size_t jobs, bool more,
    int64_t now_ms)
{
	size_t before = atomic_fetch_add(&w->owed, jobs);

	if (before == 0)
		w->owed_ms = now_ms;
	/* last: of two that end together the later one sees both */
	w->busy_ms[index] = 0;
	if ((more || !front_wakes_alone(w, index, now_ms)) &&
	    now_ms - w->owed_ms < FRONT_WAKES_DELAY_MS)
		return 0;
	return atomic_exchange(&w->owed, 0);
}

size_t
front_wakes_lost(struct front_wakes *w)
{
	for (size_t i = 0; i < FRONT_PROCESSES; i++)
		w->busy_ms[i] = 0;
	return atomic_exchange(&w->owed, 0);
}

/* ---- answers ---- */

/* Strangers can cause denials as fast as they like: a few in a second are
 * logged, the rest is counted. */
static void
log_denial(struct front *front, const struct reply *reply)
{
	int64_t second = clock_monotonic_ms() / 1000;

	if (second != front->log_second) {
		if (front->log_count > DENIALS_LOGGED)
			log_info("denied %" PRId64 " more requests",
			    front->log_count - DENIALS_LOGGED);
		front->log_second = second;
		front->log_count = 0;
	}
	if (front->log_count++ < DENIALS_LOGGED)
		log_info("denied outcome=%s status=%d", reply->outcome,
		    reply->status);
}

static void
answer_request(struct http_request *req, const struct reply *reply)
{
	const char *body = reply->body;

	http_answer(req, reply->status,
	    body != NULL ? "application/json" : NULL,
	    reply->status == 405 ? "Allow: POST\r\n" : reply->headers,
	    body != NULL ? body : "", body != NULL ? strlen(body) : 0);
}

static enum chat_outcome
outcome_of(const struct reply *reply)
{
	switch (reply->status) {
	case 200:
		return reply->said;
	case 401:
		return CHAT_UNSIGNED;
	case 504:
		return CHAT_LATE;
	default:
		return CHAT_DENIED;
	}
}

static void
count_case(const struct front *front, const struct front_case *c)
{
	pending_count(&front->pending, c->in.type, outcome_of(&c->reply),
	    c->received_ms);
}

static void
reply_release(struct reply *reply)
{
	free(reply->body);
	free(reply->headers);
	reply->body = reply->headers = NULL;
}

/* Refuse a request that did not come from Discord: a status and a one-word
 * reason.  Always false. */
static bool
deny(struct front *front, struct front_case *c, int status, const char *word)
{
	reply_status(&c->reply, status, word);
	answer_request(c->http, &c->reply);
	count_case(front, c);
	log_denial(front, &c->reply);
	reply_release(&c->reply);
	return false;
}

/* ---- checks before the JSON ---- */

static bool
is_late(const struct front_case *c)
{
	return clock_wall_ms() > c->until_ms;
}

static bool
check_head(struct front *front, struct front_case *c)
{
	const struct http_request *req = c->http;

	if (strcmp(req->path, "/interactions") != 0)
		return deny(front, c, 404, "not-found");
	if (strcmp(req->method, "POST") != 0)
		return deny(front, c, 405, "method");
	if (req->length == HTTP_NO_LENGTH)
		return deny(front, c, 411, "no-length");
	if (req->length == HTTP_BAD_LENGTH)
		return deny(front, c, 400, "bad-length");
	if (req->length > FRONT_BODY_MAX)
		return deny(front, c, 413, "too-large");
	if (!is_late(c))
		return true;
	/* before the costly checks, so that a late queue gets shorter */
	return deny(front, c, 504, "late");
}

/* Verify the signature of the body, then parse it. */
static bool
check_body(struct front *front, struct front_case *c, int64_t *signed_at)
{
	auto_buf struct buf body = BUF_INIT(FRONT_BODY_MAX);
	const char *wrong;
	struct err err;

	if (!http_read_all(c->http, &body))
		return deny(front, c, 400, "cut-short");
	wrong = interaction_verify(&front->key,
	    http_param(c->http, "HTTP_X_SIGNATURE_TIMESTAMP"),
	    http_param(c->http, "HTTP_X_SIGNATURE_ED25519"), body.data,
	    body.len, signed_at);
	if (wrong != NULL)
		return deny(front, c, 401, wrong);
	if (interaction_parse(&c->in, body.data, body.len, &err) == 0)
		return true;
	log_warn("signed, but %s", err.text);
	return deny(front, c, 400, "malformed");
}

/* A single stale request may be a repetition; if all are stale, this host's
 * clock is wrong. */
static void
log_stale(struct front *front, int64_t skew)
{
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms < front->stale_ms)
		return;
	front->stale_ms = now_ms + STALE_MS;
	log_warn("signed as it should be, but %" PRId64
		 " s ago: is this host's clock right?",
	    skew);
}

/* Answer a PING, refuse a stale or foreign interaction.  True: it is to be
 * decided. */
static bool
check_interaction(struct front *front, struct front_case *c, int64_t signed_at)
{
	const struct config *config = front->config;
	int64_t skew = c->received_ms / 1000 - signed_at;

	if (c->in.type == INTERACTION_PING) {
		http_answer(c->http, 200, "application/json", NULL,
		    ANSWER_JSON_PONG, strlen(ANSWER_JSON_PONG));
		log_info("interaction=%" PRId64
			 " type=ping outcome=pong ms=%.1f",
		    c->in.id,
		    (double)(clock_monotonic_us() - c->started_us) / 1000.0);
		pending_count(&front->pending, INTERACTION_PING, CHAT_PONG,
		    c->received_ms);
		return false;
	}
	if (config->max_skew_seconds > 0 &&
	    llabs(skew) > config->max_skew_seconds) {
		log_stale(front, skew);
		return deny(front, c, 401, "stale");
	}
	if (config->discord_application_id != 0 &&
	    c->in.application_id != config->discord_application_id)
		return deny(front, c, 400, "other-application");
	return true;
}

static void
log_case(const struct front_case *c)
{
	auto_free char *label = interaction_label(&c->in);

	log_info("%s outcome=%s job=%" PRId64 " ms=%.1f skew_ms=%" PRId64,
	    label, c->reply.outcome, c->reply.job_id,
	    (double)(c->answered_us - c->started_us) / 1000.0,
	    c->received_ms - interaction_created_ms(c->in.id));
}

/* ---- the database ---- */

static void
database_open(struct front *front, bool starts)
{
	struct err err;

	if (front->db != NULL || clock_monotonic_ms() < front->db_retry_ms)
		return;
	front->db = (starts ? db_start : db_open)(front->config->database,
	    DB_FRONT, &err);
	if (front->db != NULL)
		return;
	log_err("database: %s", err.text);
	front->db_retry_ms = clock_monotonic_ms() + DATABASE_RETRY_MS;
}

/* Log a fault of the database, and close it unless it was only busy: it may
 * have been replaced, or its disk be back. */
static void
database_check(struct front *front, const struct interaction *in,
    const struct err *err)
{
	if (err->code == ERR_NONE)
		return;
	log_err("%s interaction=%" PRId64, err->text, in->id);
	if (err->code == ERR_BUSY || err->code == ERR_LIMIT)
		return;
	db_close(front->db);
	front->db = NULL;
}

/* ---- one request ---- */

/* nginx sends the time of the first byte; without that it is now. */
static int64_t
received_ms(const struct http_request *req)
{
	int64_t sent_ms = http_received_ms(req);
	int64_t now_ms = clock_wall_ms();

	return sent_ms >= 0 && sent_ms < now_ms ? sent_ms : now_ms;
}

bool
front_check(void *arg, struct http_request *req, size_t index)
{
	struct front *front = arg;
	struct front_case *c = &front->cases[index];
	int64_t signed_at = 0;

	*c = (struct front_case){
		.http = req,
		.reply = { .status = 500, .outcome = "?" },
		.started_us = clock_monotonic_us(),
		.received_ms = received_ms(req),
	};
	c->until_ms = c->received_ms + ROUTE_WITHIN_MS;
	front_wakes_begin(front->wakes, front->index, c->started_us / 1000);
	if (!check_head(front, c) || !check_body(front, c, &signed_at))
		return false;
	if (check_interaction(front, c, signed_at))
		return true;
	interaction_release(&c->in);
	return false;
}

/* ---- a batch ---- */

/* From here on texts are in the language of the invoker. */
static struct context
context_of(struct front *front, struct front_case *c)
{
	locale_set(c->in.locale);
	return (struct context){
		.config = front->config,
		.db = front->db,
		.in = &c->in,
		.reply = &c->reply,
		.pending = &front->pending,
		.received_ms = c->received_ms,
		.until_ms = c->until_ms,
		.holder = front->pending.count < front->pending.most ?
		    (int64_t)front->index :
		    -1,
	};
}

/* ---- other nodes ---- */

/* Answer in words, before any row is read.  Always false, as the next three. */
static bool
reply_words(struct front_case *c, enum text_id text, const char *outcome)
{
	locale_set(c->in.locale);
	reply_set(&c->reply,
	    c->in.type == INTERACTION_AUTOCOMPLETE ?
		xstrdup(ANSWER_JSON_NO_CHOICES) :
		answer_message(text_of(text), false),
	    outcome);
	c->reply.said = CHAT_FAULT;
	return false;
}

/* nginx could not reach the person's node.  That node may have begun the
 * command, so nothing is begun here. */
static bool
reply_away(struct front_case *c, const char *what)
{
	log_warn("the person's node does not answer: interaction=%" PRId64
		 " user=%" PRId64 " status=\"%.*s\"",
	    c->in.id, c->in.user_id, WORD_MOST, what);
	return reply_words(c, TEXT_NODE_AWAY, "node-away");
}

/* Another node has handed the interaction on to us, and by our table the person
 * is on a third one. */
static bool
reply_differ(struct front_case *c, const char *owner)
{
	const char *by = http_param(c->http, "INLINE_BY");

	log_warn("the tables of nodes differ: node %.*s has handed on "
		 "interaction=%" PRId64 " of a person who is on node %s",
	    WORD_MOST, by != NULL ? by : "?", c->in.id, owner);
	return reply_words(c, TEXT_NODES_DIFFER, "nodes-differ");
}

/* Have nginx hand the interaction on (discord.conf).  A node's name and address
 * hold only letters, digits and a few signs.  moved: the person has moved
 * there, even if that node's table does not have it yet. */
static bool
hand_on(struct front *front, struct front_case *c,
    const struct node_entry *node, bool moved)
{
	reply_set(&c->reply, xstrdup(""), "handed-on");
	c->reply.headers = xprintf("X-Accel-Redirect: @person\r\n"
				   "Inline-Node: %s\r\nInline-By: %s\r\n%s",
	    node->address, node_table_own(front->nodes)->name,
	    moved ? "Inline-Moved: 1\r\n" : "");
	c->reply.said = CHAT_HANDED_ON;
	return false;
}

/* A row of another person's is known by its slot only. */
static enum move_state
find_move(struct front *front, struct front_case *c, int slot,
    char to[MOVES_NODE_MAX + 1])
{
	int64_t user_id = slot == slot_of(c->in.user_id) ? c->in.user_id :
							   MOVES_ALL;

	if (front->db == NULL)
		return MOVE_NONE;
	/* from here on no other process changes the answer */
	if (c->in.type != INTERACTION_AUTOCOMPLETE &&
	    db_begin(front->db, &c->reply.err) != 0)
		return MOVE_UNKNOWN;
	return moves_find(front->db, slot, user_id, to, &c->reply.err);
}

/* Another node has handed the interaction on: count the time it had it.  That
 * node answers the person itself when it has waited long enough. */
static void
note_handed(struct front_case *c)
{
	int64_t before_ms = http_param_ms(c->http, "INLINE_TOOK_BEFORE");

	c->http->relayed = true;
	if (before_ms > 0 && before_ms < c->received_ms)
		c->received_ms -= before_ms;
	c->until_ms = c->received_ms + ROUTE_RELAYED_MS;
}

/* Is the person settled here?  Not while they move or after they have moved,
 * and not if our table has them on another node and they have not come from
 * there.  The transaction of the job includes this check, so no job begins for
 * a person who leaves.  given: the other node says that they moved to us. */
static bool
is_settled(struct front *front, struct front_case *c, int slot,
    const struct node_entry *other, bool given)
{
	char to[MOVES_NODE_MAX + 1] = "";
	struct context context;

	switch (find_move(front, c, slot, to)) {
	case MOVE_NONE:
	case MOVE_COME: /* our table need not have it yet */
		return other == NULL ||
		    strcmp(node_table_version(front->nodes), to) == 0 ||
		    reply_differ(c, other->name);
	case MOVE_UNKNOWN:
		context = context_of(front, c);
		return route_fault(&context, "database");
	case MOVE_LEAVING:
		(void)reply_words(c, TEXT_NODE_MOVES, "moves");
		c->reply.said = CHAT_REFUSED;
		return false;
	case MOVE_GONE:
		break;
	}
	other = node_table_named(front->nodes, to);
	return other == NULL || given ? reply_differ(c, to) :
					hand_on(front, c, other, true);
}

/* A person's sandbox is on one of the nodes (protocol/node_table.h), and so is
 * the row of a button.  An interaction that was handed on is handed on again
 * only for a person who has moved away (store/moves.h), and once: two tables
 * that differ end in an answer.  False: the reply is made. */
static bool
is_for_this_node(struct front *front, struct front_case *c)
{
	const struct node_entry *other = NULL;
	const char *away;
	bool handed;
	bool given;
	int slot;

	if (front->nodes == NULL)
		return true;
	handed = http_is_from_node(c->http);
	given = handed && http_says(c->http, "INLINE_MOVED");
	away = http_param(c->http, "INLINE_NODE_AWAY");
	if (handed)
		note_handed(c);
	if (away != NULL)
		return reply_away(c, away);
	slot = route_slot(&c->in);
	if (slot < 0)
		return true;
	node_table_refresh(front->nodes, clock_monotonic_ms());
	if (!given)
		other = node_table_other(front->nodes, slot);
	return other != NULL && !handed ?
	    hand_on(front, c, other, false) :
	    is_settled(front, c, slot, other, given);
}

/* ---- all of them ---- */

/* After this, whatever the answers promise is on the disk.  A worker is woken
 * for a lone job before the flush, and flushes after it; the runs of many jobs
 * would take the processors from waiting requests. */
static int
commit_all(struct front *front, size_t count, struct err *err)
{
	struct front_case *c = &front->cases[0];

	if (db_group_commit(front->db, err) != 0)
		return -1;
	c->woken = count == 1 && c->reply.job_id != 0 && c->reply.hold_ms > 0 &&
	    front_wakes_alone(front->wakes, front->index, clock_monotonic_ms());
	wake_workers(&front->wake, c->woken);
	return db_flush(front->db, err);
}

/* Make all replies and commit their jobs; the answers are sent after that. */
static void
decide_all(struct front *front, size_t count)
{
	struct err err;

	database_open(front, false);
	if (front->db != NULL)
		db_group_begin(front->db);
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];
		struct context context;

		if (!is_for_this_node(front, c))
			continue;
		context = context_of(front, c);
		if (is_late(c))
			reply_status(&c->reply, 504, "late");
		else
			route(&context);
	}
	if (front->db == NULL || commit_all(front, count, &err) == 0)
		return;
	/* the commit failed: tell each person whose command was acknowledged */
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];
		struct context context = context_of(front, c);

		if (c->reply.pledged)
			route_lost(&context, &err);
	}
}

/* Leave the response to pending.c, as the job may end in a moment.  False: it
 * is sent now. */
static bool
delay_response(struct front *front, struct front_case *c)
{
	int64_t most_ms = c->until_ms - c->received_ms - ROUTE_SPARE_MS;
	int64_t left_ms = c->received_ms - clock_wall_ms() +
	    (c->reply.hold_ms < most_ms ? c->reply.hold_ms : most_ms);
	struct pending_case it = {
		.http = c->http,
		.job_id = c->reply.job_id,
		.late = c->reply.body,
		.started_us = c->started_us,
		.received_ms = c->received_ms,
		.type = c->in.type,
	};
	char *instead;

	memcpy(it.locale, c->in.locale, strlen(c->in.locale) + 1);
	if (c->reply.hold_ms == 0 || left_ms <= 0 ||
	    front->pending.count == front->pending.most) {
		instead = pending_instead(&front->pending, &it);
		if (instead != NULL) {
			reply_set(&c->reply, instead, "degraded");
			c->reply.said = CHAT_DEFERRED;
		}
		return false;
	}
	/* the clock may have been set back */
	if (left_ms > c->reply.hold_ms)
		left_ms = c->reply.hold_ms;
	it.due_ms = clock_monotonic_ms() + left_ms;
	it.label = interaction_label(&c->in);
	pending_add(&front->pending, &it);
	c->reply.body = NULL;
	c->http->held = true;
	c->http = NULL;
	return true;
}

void
front_settle(void *arg, size_t count)
{
	struct front *front = arg;

	decide_all(front, count);
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];

		c->pending = delay_response(front, c);
		if (!c->pending)
			answer_request(c->http, &c->reply);
		c->answered_us = clock_monotonic_us();
	}
	front->answered = count;
}

void
front_after(void *arg, bool more)
{
	struct front *front = arg;
	size_t count = front->answered;
	size_t jobs = 0;

	front->answered = 0;
	for (size_t i = 0; i < count; i++) {
		const struct reply *reply = &front->cases[i].reply;

		if (reply->job_id != 0 && !front->cases[i].woken)
			jobs++;
		if (!front->cases[i].pending)
			count_case(front, &front->cases[i]);
	}
	wake_workers(&front->wake,
	    front_wakes_end(front->wakes, front->index, jobs, more,
		clock_monotonic_ms()));
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];

		database_check(front, &c->in, &c->reply.err);
		if (!c->pending)
			log_case(c);
		interaction_release(&c->in);
		reply_release(&c->reply);
	}
}

int
front_events_fd(const void *arg)
{
	return ((const struct front *)arg)->pending.epoll_fd;
}

int64_t
front_due_ms(const void *arg)
{
	return pending_due_ms(&((const struct front *)arg)->pending);
}

void
front_events(void *arg)
{
	pending_events(&((struct front *)arg)->pending);
}

int
front_open(struct front *front, const struct config *config, struct err *err)
{
	memset(front, 0, sizeof(*front));
	front->config = config;
	front->pending.listen_fd = front->pending.epoll_fd = -1;
	if (!interaction_decode_key(&front->key, config->discord_public_key))
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY: is not "
		    "set (64 hex digits, the application's public key)");
	if (node_table_open(&front->nodes, config, err) != 0 ||
	    db_claim(config, err) != 0)
		return -1;
	front->wakes = shared_file_open(NULL, sizeof(*front->wakes), err);
	if (front->wakes == NULL)
		return -1;
	front->pending.config = config;
	front->pending.counters = counters_open(config, COUNTERS_OF_FRONT);
	front->pending.db = &front->db;
	front->wake = (struct wake){ config_state_path(config, "wake"), -1 };
	return 0;
}

void
front_start(void *arg, size_t index)
{
	struct front *front = arg;
	struct err err;

	front->index = index;
	/* without it every job is deferred at once, and edited later */
	if (pending_open(&front->pending, index, &err) != 0)
		log_err("no response is delayed: %s", err.text);
	database_open(front, true);
}

void
front_lost(void *arg)
{
	struct front *front = arg;

	wake_workers(&front->wake, front_wakes_lost(front->wakes));
}

void
front_close(void *arg)
{
	struct front *front = arg;

	pending_close(&front->pending);
	db_close(front->db);
	front->db = NULL;
	wake_workers(&front->wake,
	    front_wakes_end(front->wakes, front->index, 0, false,
		clock_monotonic_ms()));
	cleanup_close(&front->wake.fd);
	shared_file_close(front->wakes, sizeof(*front->wakes));
	front->wakes = NULL;
	node_table_free(front->nodes);
	front->nodes = NULL;
	free(front->wake.path);
	front->wake.path = NULL;
}
