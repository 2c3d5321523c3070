/*
 * /v1/sessions: a cell for a while, and commands in it.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "app.h"
#include "inputs.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "session_holder.h"
#include "../contract/detail.h"
#include "../contract/execute_answer.h"
#include "../contract/execute_request.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/lease.h"

#define PREFIX "code-session-"
#define OUTPUT_MAX 1000000
#define PROCESSES 64
#define START_MS 30000 /* a session's cell is always a new one */
#define STAGE_MS 30000
#define BORROW_MS 70000 /* another command may run for 60 s */
#define LEASE_MS_MAX (INT64_C(24) * 3600 * 1000)
#define LEASE_MORE_MS 60000

static void
refuse_session(struct http_request *req, const char *id)
{
	struct detail detail;

	(void)detail_text(&detail, 404, "Session '%s' not found", id);
	reply_refuse(req, &detail);
}

/* The digits of a session's id, or NULL: it cannot be one. */
static const char *
digits_of(const char *id)
{
	size_t prefix = strlen(PREFIX);

	if (strncmp(id, PREFIX, prefix) != 0 ||
	    strlen(id) != prefix + SESSION_ID_LEN ||
	    strspn(id + prefix, "0123456789abcdef") != SESSION_ID_LEN)
		return NULL;
	return id + prefix;
}

/* ---- creating ---- */

static void
make_id(char id[SESSION_ID_LEN + 1])
{
	unsigned char bytes[SESSION_ID_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		log_fatal(1, "getrandom: %m");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
}

static void
ignore_event(void *arg, const struct cell_event *event)
{
	(void)arg;
	(void)event;
}

/* False: it was answered. */
static bool
stage(struct api_app *app, struct http_request *req, const struct lease *lease,
    const struct api_inputs *inputs)
{
	struct cell_request request = {
		.op = OP_STAGE,
		.folder = "/workspace",
		.inputs = inputs->items,
		.input_count = inputs->count,
		.wall_ms = STAGE_MS,
	};
	struct detail detail;
	struct api_run run;

	if (inputs->count == 0)
		return true;
	api_run_in(&run, app, req, lease->cell_fd, lease->broker_fd, &request,
	    ignore_event, NULL);
	if (run.end != API_RESULT) {
		api_answer_lost(req, &run);
		return false;
	}
	if (run.result.reason == REASON_EXIT)
		return true;
	log_warn("the cell says: %s", run.result.error_text);
	(void)detail_text(&detail,
	    run.result.error == ERROR_NO_SPACE ? 413 : 422,
	    "File path '%s' cannot be written.", run.result.error_path);
	reply_refuse(req, &detail);
	return false;
}

/* The lease becomes the holder's. */
static void
begin_session(struct api_app *app, struct http_request *req,
    struct lease *lease, int64_t ttl_ms)
{
	auto_buf struct buf body = BUF_INIT(1024);
	char digits[SESSION_ID_LEN + 1];
	char id[sizeof(PREFIX) + SESSION_ID_LEN];
	struct session_holder_spec spec = { .folder = app->sessions,
		.id = digits,
		.until_ms = clock_monotonic_ms() + ttl_ms,
		.master = app->master,
		.metrics = &app->metrics,
		.owner = app->owner,
		.slot = app->slot };
	struct err err;

	make_id(digits);
	if (session_holder_start(&spec, lease, &err) != 0) {
		log_err("session: %s", err.text);
		reply_failed(req);
		return;
	}
	(void)snprintf(id, sizeof(id), PREFIX "%s", digits);
	execute_add_session(&body, id, clock_wall_ms() + ttl_ms);
	reply_text(req, 201, NULL, buf_str(&body));
}

static void
create(struct api_app *app, struct http_request *req,
    const struct execute_request *session, const struct api_inputs *inputs)
{
	int64_t ttl_ms = session->ttl_seconds * 1000;
	int64_t lease_ms = ttl_ms + LEASE_MORE_MS;
	struct lease_request request = { .class = "session",
		.sandbox = "",
		.lease_ms = lease_ms < LEASE_MS_MAX ? lease_ms : LEASE_MS_MAX };
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	struct lease lease = LEASE_NONE;
	struct err err;

	request.unless = &gone;
	if (lease_open(&lease, app->lease_socket, &request, START_MS, &err) !=
	    REFUSAL_NONE) {
		log_warn("no cell: %s", err.text);
		if (!http_client_gone(req))
			reply_busy(req);
		return;
	}
	if (stage(app, req, &lease, inputs) && !http_client_gone(req))
		begin_session(app, req, &lease, ttl_ms);
	lease_close(&lease);
}

void
api_session_create(struct api_app *app, struct http_request *req,
    const char *id)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct execute_request session;
	struct api_inputs inputs;
	const char *message;
	struct detail detail;

	(void)id;
	if (!reply_read_body(req, &body))
		return;
	if (!execute_parse(&session, EXECUTE_SESSION, 0,
		http_param(req, "CONTENT_TYPE"), buf_str(&body), body.len,
		&detail)) {
		reply_refuse(req, &detail);
		return;
	}
	if (!api_inputs_open(&inputs, app, &session.files, NULL, &detail)) {
		reply_refuse(req, &detail);
	} else {
		if (execute_stage(&session.files, false, &message)) {
			api_inputs_name(&inputs, &session.files);
			create(app, req, &session, &inputs);
		} else {
			(void)detail_text(&detail, 422, "%s", message);
			reply_refuse(req, &detail);
		}
		api_inputs_close(&inputs);
	}
	execute_release(&session);
}

void
api_session_delete(struct api_app *app, struct http_request *req,
    const char *id)
{
	const char *digits = digits_of(id);
	struct err err;

	if (digits == NULL ||
	    session_holder_end(app->sessions, digits, app->owner, &err) != 0)
		refuse_session(req, id);
	else
		http_answer(req, 204, NULL, NULL, "", 0);
}

/* ---- commands ---- */

struct command {
	struct capture out;
	struct capture err;
};

static void
take_output(void *arg, const struct cell_event *event)
{
	struct command *command = arg;

	if (event->kind == CELL_OUTPUT)
		capture_add(event->stream == 1 ? &command->out : &command->err,
		    event->data, event->len);
}

static void
answer_command(struct http_request *req, struct api_run *run,
    const struct command *command)
{
	struct execute_result result = { .out = &command->out,
		.err = &command->err,
		.cell = &run->result,
		.duration_ms = run->duration_us / 1000,
		.extras = reply_wants_extras(req) };
	struct buf body;

	if (run->end != API_RESULT) {
		api_answer_lost(req, run);
		return;
	}
	if (run->result.reason == REASON_ERROR) {
		reply_failed(req);
		return;
	}
	buf_init(&body, EXECUTE_ANSWER_MAX);
	execute_answer(&body, &result);
	http_answer(req, 200, REPLY_JSON, NULL, buf_str(&body), body.len);
	buf_release(&body);
}

static void
run_command(struct api_app *app, struct http_request *req, int connection,
    int cell_fd, const struct execute_request *bash)
{
	struct cell_request request = {
		.op = OP_BASH,
		.folder = "/workspace",
		.env = execute_environment,
		.source = bash->code.text,
		.source_len = bash->code.len,
		.wall_ms = bash->timeout_ms,
		.output_max = OUTPUT_MAX + 1,
		.output_mode = OUTPUT_DRAIN,
		.limit_processes = PROCESSES,
	};
	struct command command;
	struct api_run run;

	capture_init(&command.out, OUTPUT_MAX);
	capture_init(&command.err, OUTPUT_MAX);
	api_run_in(&run, app, req, cell_fd, connection, &request, take_output,
	    &command);
	if (run.end == API_RESULT && !run.lost)
		session_holder_return(connection);
	else
		(void)close(connection); /* which ends the session */
	answer_command(req, &run, &command);
	api_run_count(&run, app, API_BASH);
	capture_release(&command.out);
	capture_release(&command.err);
}

void
api_session_bash(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	const char *digits = digits_of(id);
	struct execute_request bash;
	struct detail detail;
	struct err err;
	int connection;
	int cell_fd;

	if (!reply_read_body(req, &body))
		return;
	if (!execute_parse(&bash, EXECUTE_BASH, app->eval_terms.timeout_max_ms,
		http_param(req, "CONTENT_TYPE"), buf_str(&body), body.len,
		&detail)) {
		reply_refuse(req, &detail);
		return;
	}
	connection = digits == NULL ?
	    -1 :
	    session_holder_borrow(app->sessions, digits, app->owner, &gone,
		&cell_fd, BORROW_MS, &err);
	if (connection >= 0) {
		run_command(app, req, connection, cell_fd, &bash);
		(void)close(cell_fd);
	} else if (digits != NULL && err.code == ERR_TIMEOUT) {
		if (!http_client_gone(req))
			reply_busy(req);
	} else {
		refuse_session(req, id);
	}
	execute_release(&bash);
}
