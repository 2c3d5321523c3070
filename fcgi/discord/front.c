#include "front.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "../server/http.h"
#include "interaction.h"
#include "route.h"
#include "siblings.h"
#include "submit.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/store/db.h"

#define DATABASE_RETRY_MS 1000
#define DENIALS_LOGGED 10 /* in a second */

/* A request that gets no answer of ours but a status. */
struct denial {
	int status;
	const char *word;
	const char *headers;
};

static const struct denial denied_path = { 404, "not-found", NULL };
static const struct denial denied_method = { 405, "method", "Allow: POST\r\n" };
static const struct denial denied_no_length = { 411, "no-length", NULL };
static const struct denial denied_length = { 400, "bad-length", NULL };
static const struct denial denied_size = { 413, "too-large", NULL };
static const struct denial denied_cut = { 400, "cut-short", NULL };
static const struct denial denied_parse = { 400, "malformed", NULL };
static const struct denial denied_late = { 504, "late", NULL };
static const struct denial denied_stale = { 401, "stale", NULL };
static const struct denial denied_other = { 400, "other-application", NULL };
static const struct denial denied_repeated = { 409, "repeated", NULL };

/* ---- answers ---- */

static void
answer_json(struct http_request *req, int status, const char *headers,
    const char *body)
{
	http_answer(req, status, "application/json", headers, body,
	    strlen(body));
}

/* Strangers can make these as fast as they like: some in a second are logged,
 * the rest is counted. */
static void
log_denial(struct front *front, const struct denial *denial)
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
		log_info("denied outcome=%s status=%d", denial->word,
		    denial->status);
}

static void
deny(struct front *front, struct http_request *req, const struct denial *denial)
{
	auto_buf struct buf body = BUF_INIT(128);

	buf_addf(&body, "{\"error\":\"%s\"}", denial->word);
	answer_json(req, denial->status, denial->headers, buf_str(&body));
	log_denial(front, denial);
}

/* ---- how it goes, for the operator ---- */

static void
answer_metrics(const struct front *front, struct http_request *req)
{
	auto_buf struct buf text = BUF_INIT(1024);

	buf_addf(&text,
	    "# HELP inline_interactions_total Interactions that were "
	    "answered.\n"
	    "# TYPE inline_interactions_total counter\n"
	    "inline_interactions_total %" PRId64 "\n"
	    "# HELP inline_interactions_late_total Interactions that were "
	    "dropped: Discord had given up when it was their turn.\n"
	    "# TYPE inline_interactions_late_total counter\n"
	    "inline_interactions_late_total %" PRId64 "\n",
	    front->siblings->answered, front->siblings->late);
	http_answer(req, 200, "text/plain; version=0.0.4", NULL, buf_str(&text),
	    text.len);
}

/* ---- checks before the JSON ---- */

static bool
is_late(const struct front_case *c)
{
	return clock_wall_ms() > c->received_ms + SUBMIT_WITHIN_MS;
}

static const struct denial *
check_head(const struct http_request *req)
{
	if (strcmp(req->path, "/interactions") != 0)
		return &denied_path;
	if (strcmp(req->method, "POST") != 0)
		return &denied_method;
	if (req->length == HTTP_NO_LENGTH)
		return &denied_no_length;
	if (req->length == HTTP_BAD_LENGTH)
		return &denied_length;
	if (req->length > FRONT_BODY_MAX)
		return &denied_size;
	return NULL;
}

static bool
check_signature(struct front *front, struct http_request *req,
    const struct buf *body, int64_t *signed_at)
{
	enum verify_result result = verify_request(&front->key,
	    http_param(req, "HTTP_X_SIGNATURE_TIMESTAMP"),
	    http_param(req, "HTTP_X_SIGNATURE_ED25519"), body->data, body->len,
	    signed_at);

	if (result == VERIFY_OK)
		return true;
	deny(front, req,
	    &(struct denial){ 401, verify_result_name(result), NULL });
	return false;
}

/* ---- checks after it ---- */

static const struct denial *
check_interaction(struct front *front, const struct interaction *in,
    int64_t signed_at, int64_t received_ms)
{
	const struct config *config = front->config;
	int64_t skew = received_ms / 1000 - signed_at;

	if (config->max_skew_seconds > 0 &&
	    (skew > config->max_skew_seconds ||
		skew < -config->max_skew_seconds))
		return &denied_stale;
	if (config->discord_application_id != 0 &&
	    in->application_id != config->discord_application_id)
		return &denied_other;
	if (!seen_add(&front->siblings->seen, in->id))
		return &denied_repeated;
	return NULL;
}

/* ---- the database ---- */

static void
database_open(struct front *front)
{
	struct err err;

	if (front->db != NULL || clock_monotonic_ms() < front->db_retry_ms)
		return;
	front->db = db_open(front->config->database, DB_FRONT, &err);
	if (front->db != NULL)
		return;
	log_err("database: %s", err.text);
	front->db_retry_ms = clock_monotonic_ms() + DATABASE_RETRY_MS;
}

/* What the database said, and whether it is worth opening it anew: it may have
 * been replaced, or its disk be back. */
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

static const char *
type_name(enum interaction_type type)
{
	switch (type) {
	case INTERACTION_PING:
		return "ping";
	case INTERACTION_COMMAND:
		return "command";
	case INTERACTION_COMPONENT:
		return "component";
	case INTERACTION_AUTOCOMPLETE:
		return "autocomplete";
	case INTERACTION_MODAL:
		return "modal";
	}
	return "?";
}

static void
log_case(const struct front_case *c)
{
	const struct interaction *in = &c->in;

	log_info("interaction=%" PRId64 " type=%s name=\"%.32s %.32s%.32s\" "
		 "user=%" PRId64 " outcome=%s job=%" PRId64
		 " ms=%.1f skew_ms=%" PRId64,
	    in->id, type_name(in->type), in->name, in->sub, in->custom_id,
	    in->user_id, c->reply.outcome, c->reply.job_id,
	    (double)(c->answered_us - c->started_us) / 1000.0,
	    c->received_ms - interaction_created_ms(in->id));
}

static void
answer_ping(struct http_request *req, const struct interaction *in,
    int64_t started_us)
{
	char *pong = answer_pong();

	answer_json(req, 200, NULL, pong);
	free(pong);
	log_info("interaction=%" PRId64 " type=ping outcome=pong ms=%.1f",
	    in->id, (double)(clock_monotonic_us() - started_us) / 1000.0);
}

/* The JSON is good: these are Discord's words.  True: it is to be decided. */
static bool
check_case(struct front *front, struct front_case *c, int64_t signed_at)
{
	const struct denial *denial;

	if (c->in.type == INTERACTION_PING) {
		answer_ping(c->http, &c->in, c->started_us);
		return false;
	}
	denial = check_interaction(front, &c->in, signed_at, c->received_ms);
	if (denial != NULL)
		deny(front, c->http, denial);
	return denial == NULL;
}

/* The signature is good. */
static bool
take_body(struct front *front, struct front_case *c, const struct buf *body,
    int64_t signed_at)
{
	struct err err;

	if (interaction_parse(&c->in, body->data, body->len, &err) < 0) {
		log_warn("signed, but %s", err.text);
		deny(front, c->http, &denied_parse);
		return false;
	}
	if (check_case(front, c, signed_at))
		return true;
	interaction_release(&c->in);
	return false;
}

/* nginx says when it had the first byte; who does not has come just now. */
static int64_t
received_ms(const struct http_request *req)
{
	int64_t told_ms = http_received_ms(req);
	int64_t now_ms = clock_wall_ms();

	return told_ms >= 0 && told_ms < now_ms ? told_ms : now_ms;
}

bool
front_take(void *arg, struct http_request *req, size_t index)
{
	struct front *front = arg;
	struct front_case *c = &front->cases[index];
	auto_buf struct buf body = BUF_INIT(FRONT_BODY_MAX);
	const struct denial *denial;
	int64_t signed_at = 0;

	*c = (struct front_case){
		.http = req,
		.reply = { .status = 500, .outcome = "?" },
		.started_us = clock_monotonic_us(),
		.received_ms = received_ms(req),
	};
	siblings_begin(front->siblings, front->index, c->started_us / 1000);
	if (strcmp(req->path, FRONT_METRICS_PATH) == 0) {
		answer_metrics(front, req);
		return false;
	}
	denial = check_head(req);
	/* Before the work of a check: a queue that is late gets shorter. */
	if (denial == NULL && is_late(c)) {
		front->siblings->late++;
		denial = &denied_late;
	}
	if (denial == NULL && !http_read_all(req, &body))
		denial = &denied_cut;
	if (denial != NULL) {
		deny(front, req, denial);
		return false;
	}
	return check_signature(front, req, &body, &signed_at) &&
	    take_body(front, c, &body, signed_at);
}

/* ---- all that came together ---- */

static void
decide(struct front *front, struct front_case *c)
{
	struct context context = {
		.db = front->db,
		.config = front->config,
		.received_ms = c->received_ms,
	};

	if (is_late(c))
		submit_late(&c->reply);
	else
		route(&context, &c->in, &c->reply);
}

/* Nothing of it is in the database: who was promised something is told. */
static void
take_back(struct front *front, size_t count, const struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];

		if (!c->reply.pledged)
			continue;
		c->reply.err = *err;
		c->reply.job_id = 0;
		submit_fault(&c->in, "database", &c->reply);
	}
}

/* Every answer is given after the commit of what it promises. */
static void
decide_all(struct front *front, size_t count)
{
	struct err err;

	database_open(front);
	if (front->db != NULL)
		db_group_begin(front->db);
	for (size_t i = 0; i < count; i++)
		decide(front, &front->cases[i]);
	if (front->db != NULL && db_group_commit(front->db, &err) != 0)
		take_back(front, count, &err);
}

static void
answer_case(struct front_case *c)
{
	if (c->reply.body == NULL)
		http_answer(c->http, c->reply.status, NULL, NULL, "", 0);
	else
		answer_json(c->http, c->reply.status, NULL, c->reply.body);
	c->answered_us = clock_monotonic_us();
}

void
front_settle(void *arg, size_t count)
{
	struct front *front = arg;

	decide_all(front, count);
	for (size_t i = 0; i < count; i++)
		answer_case(&front->cases[i]);
	front->answered = count;
}

static void
count_cases(struct front *front, size_t count)
{
	int64_t late = 0;

	for (size_t i = 0; i < count; i++)
		late += front->cases[i].reply.status == denied_late.status;
	front->siblings->late += late;
	front->siblings->answered += (int64_t)count - late;
}

void
front_after(void *arg, bool more)
{
	struct front *front = arg;
	size_t count = front->answered;
	size_t jobs = 0;

	front->answered = 0;
	for (size_t i = 0; i < count; i++)
		if (front->cases[i].reply.job_id != 0)
			jobs++;
	count_cases(front, count);
	wake_workers(&front->wake,
	    siblings_end(front->siblings, front->index, jobs, more,
		clock_monotonic_ms()));
	for (size_t i = 0; i < count; i++) {
		struct front_case *c = &front->cases[i];

		database_check(front, &c->in, &c->reply.err);
		log_case(c);
		interaction_release(&c->in);
		reply_release(&c->reply);
	}
}

int
front_open(struct front *front, const struct config *config, struct err *err)
{
	memset(front, 0, sizeof(*front));
	front->config = config;
	if (!verify_key_decode(&front->key, config->discord_public_key))
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY: is not "
		    "set (64 hex digits, the application's public key)");
	front->siblings = siblings_open(err);
	if (front->siblings == NULL)
		return -1;
	front->wake_path = config_state_path(config, "wake");
	wake_init(&front->wake, front->wake_path);
	return 0;
}

void
front_start(struct front *front, size_t index)
{
	front->index = index;
	database_open(front);
}

void
front_lost(void *arg)
{
	struct front *front = arg;

	wake_workers(&front->wake, siblings_lost(front->siblings));
}

void
front_close(struct front *front)
{
	db_close(front->db);
	front->db = NULL;
	wake_workers(&front->wake,
	    siblings_end(front->siblings, front->index, 0, false,
		clock_monotonic_ms()));
	wake_close(&front->wake);
	siblings_close(front->siblings);
	front->siblings = NULL;
	free(front->wake_path);
	front->wake_path = NULL;
}
