/* SPDX-License-Identifier: MIT */
/*
 * /api/v2: Piston's contract on leased cells, and its WebSocket,
 * /api/v2/connect.  FastCGI has no way to change the protocol of a connection,
 * so nginx hands these on as HTTP, to a socket of their own.  A process serves
 * one connection, which has one run: its standard input is a pipe that is
 * filled here with what the client types.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/run.h"
#include "api/routes.h"
#include "api/web_socket.h"
#include "contract/piston/piston_message.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"

#define PROCESSES 64
/* A little more than both streams may have, so that one of them is over its
 * limit and that is known. */
#define OUTPUT_MAX (2 * PISTON_OUTPUT_MAX + 1)
#define ASK_MS 5000
#define ASK_OUTPUT 256
#define ASK_AGAIN_MS 600000
#define PARTS 1000	     /* of a version's numbers, each less than that */
#define INIT_MS 1000	     /* of the contract */
#define TYPED_MAX (64 << 10) /* that nobody has read; then the client waits */

#define ENVIRONMENT \
	"HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", \
	    "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8"

static const char *const environments[][7] = {
	[PISTON_PYTHON] = { ENVIRONMENT, "PISTON_LANGUAGE=python", NULL },
	[PISTON_BASH] = { ENVIRONMENT, "PISTON_LANGUAGE=bash", NULL },
};

/* ---- versions of the interpreters ---- */

/* Versions that one interpreter has reported.  Each is one number, so that it
 * is whole or missing: 0. */
struct piston_versions {
	_Atomic int64_t of[2];	  /* enum piston_language */
	_Atomic int64_t asked_ms; /* 0: never */
};

int
piston_open(struct api_app *app, struct err *err)
{
	app->versions = shared_file_open(NULL,
	    API_INTERPRETERS_MAX * sizeof(*app->versions), err);
	return app->versions == NULL ? -1 : 0;
}

/* A text, "3.11.2", as one number; 0: it is none. */
static int64_t
pack_version(const char *text, size_t len)
{
	struct semver v;

	return semver_read(&v, text, len) && v.major < PARTS &&
		v.minor < PARTS && v.patch < PARTS ?
	    (v.major * PARTS + v.minor) * PARTS + v.patch :
	    0;
}

static void
piston_version_event(void *arg, const struct cell_event *event)
{
	if (event->kind == CELL_OUTPUT && event->stream == 1)
		buf_add(arg, event->data, event->len);
}

/* Is another try useless for now? */
static bool
cannot_start(const struct api_run *run)
{
	return run->end == RUN_RESULT ||
	    (run->end == RUN_REFUSED &&
		(run->refusal == REFUSAL_IMAGE ||
		    run->refusal == REFUSAL_START));
}

/* Run an interpreter that prints its version, and that of the image's bash.  An
 * interpreter that cannot start has none.  False: they are unknown. */
static bool
piston_ask(struct api_app *app, struct http_request *req, size_t index)
{
	static const char code[] =
	    "import os, sys\nprint('%d.%d.%d' % sys.version_info[:3])\n"
	    "sys.stdout.flush()\n"
	    "try: os.execvp('bash', ['bash', '-c', 'echo ${BASH_VERSINFO[0]}."
	    "${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}'])\n"
	    "except OSError: pass\n";
	const struct cell_bytes words[] = { { "-c", 2 },
		{ code, sizeof(code) - 1 } };
	const struct cell_request cell = { .op = OP_RUN,
		.folder = "/workspace",
		.env = environments[PISTON_PYTHON],
		.plain = true,
		.words = words,
		.word_count = 2,
		.wall_ms = ASK_MS,
		.output_max = ASK_OUTPUT };
	struct piston_versions *versions = &app->versions[index];
	auto_buf struct buf text = BUF_INIT(ASK_OUTPUT);
	struct api_run run = { .app = app,
		.req = req,
		.request = &cell,
		.c = { .event = piston_version_event, .arg = &text } };
	const char *line;
	int64_t python = 0;

	api_run(&run, app->interpreters[index]);
	line = buf_str(&text);
	if (run.end == RUN_RESULT)
		python = pack_version(line, strcspn(line, "\n"));
	if (python == 0) {
		log_warn("interpreter %s does not tell its version",
		    app->interpreters[index]);
	} else {
		line += strcspn(line, "\n");
		line += *line == '\n' ? 1 : 0;
		versions->of[PISTON_PYTHON] = python;
		versions->of[PISTON_BASH] = pack_version(line,
		    strcspn(line, "\n"));
	}
	if (python != 0 || cannot_start(&run))
		versions->asked_ms = clock_monotonic_ms();
	return python != 0 || cannot_start(&run);
}

static void
add_runtimes(struct piston_offer *offer, const struct api_app *app,
    enum piston_language language)
{
	for (size_t i = 0; app->interpreters[i] != NULL; i++) {
		int64_t version = app->versions[i].of[language];

		if (version == 0)
			continue;
		offer->items[offer->count++] = (struct piston_runtime){
			language,
			{ version / PARTS / PARTS, version / PARTS % PARTS,
			    version % PARTS },
			app->interpreters[i],
		};
		/* one shell is enough */
		if (language == PISTON_BASH)
			return;
	}
}

/* The runtimes of the interpreters on offer.  The first request that needs an
 * unknown version runs the interpreter to learn it, for all processes.  anew:
 * versions older than ASK_AGAIN_MS are learned again.  False: there was no
 * cell, which is not answered yet, or the client is gone. */
static bool
piston_make_offer(struct piston_offer *offer, struct api_app *app,
    struct http_request *req, bool anew)
{
	int64_t since_ms = clock_monotonic_ms() - ASK_AGAIN_MS;

	for (size_t i = 0; app->interpreters[i] != NULL; i++) {
		int64_t asked_ms = app->versions[i].asked_ms;

		if (asked_ms != 0 && (!anew || asked_ms > since_ms))
			continue;
		/* Known versions stay known. */
		if (!piston_ask(app, req, i) && asked_ms == 0)
			return false;
	}
	offer->count = 0;
	offer->run_ms = app->config->piston_timeout_ms;
	offer->strict = !app->config->eval_fallback;
	add_runtimes(offer, app, PISTON_PYTHON);
	add_runtimes(offer, app, PISTON_BASH);
	return true;
}

static void
answer_list(struct api_app *app, struct http_request *req, bool packages)
{
	struct piston_offer offer;

	if (piston_make_offer(&offer, app, req, true))
		reply_value(req, 200, NULL, piston_pack_list(&offer, packages));
	else
		reply_busy(req);
}

void
api_piston_runtimes(struct api_app *app, struct http_request *req)
{
	answer_list(app, req, false);
}

void
api_piston_packages(struct api_app *app, struct http_request *req)
{
	answer_list(app, req, true);
}

/* ---- a run ---- */

struct job {
	struct api_app *app;
	struct http_request *req; /* for the gate and the run */
	struct piston_request request;
	struct api_run run;
	struct piston_output output;
	/* The rest is a WebSocket's, whose output is what is not sent yet. */
	struct web_socket s;
	bool running; /* it has said what to run */
	int reader;   /* of the pipe; both -1: closed */
	int writer;
	struct buf typed;
	bool eof;
	struct pollfd others[CONVERSATION_OTHERS];
};

static void
piston_run(struct job *j, const struct run_front *front)
{
	const struct piston_runtime *runtime = j->request.runtime;
	struct cell_request *cell = &j->request.cell;

	cell->op = runtime->language == PISTON_BASH ? OP_BASH : OP_RUN;
	cell->folder = "/workspace";
	cell->env = environments[runtime->language];
	cell->plain = true;
	cell->output_max = OUTPUT_MAX;
	cell->limit_processes = PROCESSES;
	/* The kernel counts whole seconds, and by its ticks: whom it ends is to
	 * be over the limit by the microsecond, too. */
	cell->limit_cpu = (j->request.cpu_us + 500000) / 1000000 + 1;
	j->run.front = front;
	j->run.arg = j;
	j->run.app = j->app;
	j->run.req = j->req;
	j->run.request = cell;
	piston_output_init(&j->output);
	api_run(&j->run, runtime->interpreter);
	api_run_answer(&j->run);
	piston_output_release(&j->output);
}

static void
piston_run_output(struct api_run *run, const struct cell_event *event)
{
	struct job *j = run->arg;

	if (!piston_output_add(&j->output, event->stream, event->data,
		event->len))
		run->c.enough = true;
}

static void
say_error(struct job *j, const char *text)
{
	web_socket_say(&j->s,
	    json_pack("{s:s,s:o}", "type", "error", "message",
		jtext_pack(text, strlen(text))));
	web_socket_goodbye(&j->s, 4002, "Notified Error");
}

/* Answer, or say it where a WebSocket has begun. */
static void
piston_run_refuse(struct api_run *run, int status, const char *text)
{
	if (run->req->begun)
		say_error(run->arg, text);
	else
		reply_refuse(run->req, status, NULL, text);
}

static const struct run_error piston_errors[] = {
	{ ERROR_NO_SPACE, false, 413, "The files do not fit into the folder" },
	{ 0, true, 400, "* cannot be written" },
	{ ERROR_TOO_LARGE, false, 400, "The arguments are too long" },
	{ 0, false, 500, "Internal Server Error" },
};

/* ---- POST /api/v2/execute ---- */

static void
piston_run_answer(struct api_run *run)
{
	struct job *j = run->arg;
	auto_buf struct buf headers = BUF_INIT(256);

	if (j->request.stands_in)
		buf_addf(&headers, REPLY_STANDS_IN,
		    j->request.runtime->interpreter);
	piston_output_end(&j->output);
	reply_value(run->req, 200, buf_str(&headers),
	    piston_pack_answer(&j->request, &j->output, &run->result));
}

static const struct run_front piston_front = {
	.kind = API_PISTON,
	.output = piston_run_output,
	.answer = piston_run_answer,
	.errors = piston_errors,
	.refuse = piston_run_refuse,
};

void
api_piston_execute(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct job j = { .app = app, .req = req };
	struct piston_offer offer;
	struct api_error error;

	if (!api_read_body(req, &body))
		return;
	if (!piston_make_offer(&offer, app, req, false)) {
		reply_busy(req);
		return;
	}
	if (!piston_parse(&j.request.doc, buf_str(&body), body.len, &error) ||
	    !piston_accept(&j.request, &offer, &error)) {
		reply_refuse(req, error.status, NULL, error.text);
		return;
	}
	buf_release(&body);
	piston_run(&j, &piston_front);
	jtree_release(&j.request.doc);
}

/* ---- /api/v2/connect: what the client types ---- */

/* Write into the pipe what was typed, as far as it goes. */
static void
type(struct job *j)
{
	while (j->writer >= 0 && j->typed.len > 0) {
		ssize_t n = write(j->writer, j->typed.data, j->typed.len);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			cleanup_close(&j->writer);
		else
			buf_drop(&j->typed, (size_t)n);
	}
	buf_reset(&j->typed);
	if (j->eof)
		cleanup_close(&j->writer);
}

/* Act on the message that has come.  True: it is a request to run. */
static bool
hear(struct job *j)
{
	const struct buf *message = &j->s.in.message;
	struct piston_said said;
	struct api_error error;

	switch (piston_hear(&said, buf_str(message), message->len, j->running,
	    &error)) {
	case PISTON_INIT:
		j->request = (struct piston_request){ .doc = said.doc };
		j->running = true;
		return true;
	case PISTON_DATA:
		if (!j->eof)
			buf_add(&j->typed, said.text, said.len);
		j->eof = j->eof || said.eof;
		type(j);
		break;
	case PISTON_SIGNAL:
		cell_signal(j->run.c.cell, said.number);
		break;
	case PISTON_CLOSE:
		web_socket_goodbye(&j->s, said.code, said.reason);
		break;
	case PISTON_WRONG:
		say_error(j, error.text);
		break;
	case PISTON_OTHER:
		break;
	}
	jtree_release(&said.doc);
	return false;
}

/* A client that types faster than the run reads must wait, too. */
static bool
is_full(const struct job *j)
{
	return j->typed.len >= TYPED_MAX;
}

static void
hear_messages(struct job *j)
{
	while (!is_full(j) && web_socket_next(&j->s))
		(void)hear(j);
}

/* ---- /api/v2/connect: while it runs ---- */

/* Set, before the cell is waited for again, what to wait for beside it. */
static void
connect_settle(struct job *j)
{
	j->run.c.hang_up = j->s.gone || j->s.closing;
	j->others[0] = (struct pollfd){ .fd = j->s.fd,
		.events = (short)((is_full(j) ? 0 : POLLIN) |
		    (j->s.out.len > 0 ? POLLOUT : 0)) };
	j->others[1] = (struct pollfd){ .fd = j->typed.len > 0 ? j->writer : -1,
		.events = POLLOUT };
}

static void
connect_other_event(void *arg)
{
	struct job *j = ((struct api_run *)arg)->arg;

	web_socket_flush(&j->s);
	type(j);
	hear_messages(j);
	if (!is_full(j)) {
		web_socket_receive(&j->s);
		hear_messages(j);
	}
	connect_settle(j);
}

/* Send the output that has come. */
static void
say_output(struct job *j)
{
	for (int i = 0; i < 2; i++) {
		struct buf *text = &j->output.streams[i].text;

		if (text->len > 0)
			web_socket_say(&j->s, piston_pack_data(i + 1, text));
		buf_reset(text);
	}
	buf_reset(&j->output.all);
}

static void
connect_started(struct api_run *run)
{
	struct job *j = run->arg;

	web_socket_say(&j->s,
	    json_pack("{s:s,s:s}", "type", "stage", "stage", "run"));
	/* The run alone has the reader: when it closes that, we notice. */
	cleanup_close(&j->reader);
	/* Messages that came with the request cause no event. */
	hear_messages(j);
	connect_settle(j);
}

static void
connect_output(struct api_run *run, const struct cell_event *event)
{
	piston_run_output(run, event);
	say_output(run->arg);
	connect_settle(run->arg);
}

static void
connect_answer(struct api_run *run)
{
	struct job *j = run->arg;
	struct piston_end end;

	piston_output_end(&j->output);
	say_output(j);
	end = piston_end(&j->request, &run->result, j->output.full);
	web_socket_say(&j->s, piston_pack_exit(&end));
	web_socket_goodbye(&j->s, 4999, "Job Completed");
}

static const struct run_front connect_front = {
	.kind = API_CONNECT,
	.started = connect_started,
	.output = connect_output,
	.answer = connect_answer,
	.errors = piston_errors,
	.refuse = piston_run_refuse,
};

/* Run the request, which is released. */
static void
connect_run(struct job *j)
{
	struct piston_offer offer;
	struct api_error error;
	int ends[2];

	if (!piston_make_offer(&offer, j->app, j->req, false)) {
		jtree_release(&j->request.doc);
		say_error(j, REPLY_BUSY);
		return;
	}
	if (!piston_accept(&j->request, &offer, &error)) {
		say_error(j, error.text);
		return;
	}
	if (pipe2(ends, O_CLOEXEC) != 0) {
		log_err("pipe: %m");
		say_error(j, "Internal Server Error");
	} else {
		j->reader = ends[0];
		j->writer = ends[1];
		(void)fcntl(j->writer, F_SETFL, O_NONBLOCK);
		web_socket_say(&j->s, piston_pack_runtime(j->request.runtime));
		j->request.cell.input = NULL;
		j->request.cell.input_len = 0;
		j->request.cell.live = true;
		j->request.cell.live_fd = j->reader;
		j->run.c.others = j->others;
		j->run.c.other_count = CONVERSATION_OTHERS;
		j->run.c.other = connect_other_event;
		connect_settle(j);
		piston_run(j, &connect_front);
		cleanup_close(&j->reader);
		cleanup_close(&j->writer);
	}
	jtree_release(&j->request.doc);
}

/* ---- /api/v2/connect: a connection ---- */

/* Until it says what to run. */
static void
talk(struct job *j)
{
	int64_t until_ms = clock_monotonic_ms() + INIT_MS;

	while (!j->s.gone && !j->s.closing) {
		if (web_socket_next(&j->s)) {
			if (hear(j)) {
				connect_run(j);
				return;
			}
		} else if (j->s.gone || j->s.closing) {
			return;
		} else if (web_socket_wait(&j->s, until_ms)) {
			web_socket_receive(&j->s);
		} else {
			web_socket_goodbye(&j->s, 4001,
			    "Initialization Timeout");
		}
	}
}

/* Is it a WebSocket that is asked for?  False: it was answered. */
static bool
is_upgrade(struct job *j, const struct socket_head *head)
{
	if (!api_serves_connect(j->app) ||
	    strcmp(head->path, "/api/v2/connect") != 0 ||
	    strcasecmp(head->upgrade, "websocket") != 0)
		reply_refuse(j->req, 404, NULL, REPLY_NOT_FOUND);
	else if (strcmp(head->version, "13") != 0)
		reply_refuse(j->req, 426, "Sec-WebSocket-Version: 13\r\n",
		    "Upgrade Required");
	else if (head->key[0] == '\0')
		reply_refuse(j->req, 400, NULL, "Bad Request");
	else
		return true;
	return false;
}

static void
connect_serve(struct job *j, const struct socket_head *head)
{
	char answer[SOCKET_ANSWER_LEN + 1];

	if (!is_upgrade(j, head) ||
	    !gate_enter(j->app, j->req, GATE_CELL, gate_by_token))
		return;
	socket_answer(head->key, answer);
	buf_addf(&j->s.out,
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
	    answer);
	web_socket_flush(&j->s);
	j->req->status = 101;
	j->req->begun = true;
	talk(j);
	gate_leave(j->app);
}

void
api_connect(void *arg, int fd)
{
	struct api_app *app = arg;
	struct http_request req;
	struct job j = { .app = app,
		.req = &req,
		.typed = BUF_INIT(SOCKET_MESSAGE_MAX + TYPED_MAX),
		.reader = -1,
		.writer = -1 };
	int64_t started_us = clock_monotonic_us();
	struct socket_head head;
	char authorization[sizeof(head.authorization) + 32];
	char foreign[sizeof(head.foreign) + 32];
	char *params[] = { (char[]){ "DOCUMENT_URI=/api/v2/connect" }, foreign,
		NULL, NULL };

	web_socket_open(&j.s, fd);
	if (web_socket_read_head(&j.s, &head)) {
		(void)snprintf(authorization, sizeof(authorization),
		    "HTTP_AUTHORIZATION=%s", head.authorization);
		(void)snprintf(foreign, sizeof(foreign), "INLINE_FOREIGN=%s",
		    head.foreign);
		if (head.authorization[0] != '\0')
			params[2] = authorization;
		http_raw(&req, fd, params);
		metrics_change(&app->metrics, METRICS_REQUESTS, 1);
		connect_serve(&j, &head);
		web_socket_linger(&j.s);
		metrics_change(&app->metrics, METRICS_REQUESTS, -1);
		metrics_request(&app->metrics, api_route_connect, req.status,
		    clock_monotonic_us() - started_us, 0, req.sent);
	}
	web_socket_release(&j.s);
	buf_release(&j.typed);
}
