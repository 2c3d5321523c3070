/* SPDX-License-Identifier: MIT */
/*
 * /api/v2: Piston's contract on leased cells.  Its WebSocket is in
 * piston_connect.c.
 */
#include "api/piston.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/run.h"
#include "api/routes.h"
#include "contract/piston/piston_answer.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"

#define COMPILE_MS 10000 /* of the contract; nothing is compiled */
#define PROCESSES 64
/* A little more than both streams may have, so that one of them is over its
 * limit and that is known. */
#define OUTPUT_MAX (2 * PISTON_OUTPUT_MAX + 1)
#define LIST_MAX (64 << 10)
#define ASK_MS 5000
#define ASK_OUTPUT 256

/* ---- versions of the interpreters ---- */

/* Versions that one interpreter has reported.  Each is one number, so that it
 * is whole or missing: 0. */
struct piston_versions {
	_Atomic uint64_t of[2];	  /* enum piston_language */
	_Atomic int64_t asked_ms; /* 0: never */
};
#define PART_BITS 20
#define PART_MAX ((INT64_C(1) << PART_BITS) - 1)

int
piston_open(struct api_app *app, struct err *err)
{
	app->versions = shared_file_open(NULL,
	    API_INTERPRETERS_MAX * sizeof(*app->versions), err);
	return app->versions == NULL ? -1 : 0;
}

/* A line, "3.11.2", as one number, and what follows it; 0: it is none. */
static uint64_t
pack_version(const char **text)
{
	const char *line = *text;
	size_t len = strcspn(line, "\n");
	struct semver v;

	*text += len + (line[len] == '\n' ? 1 : 0);
	if (!semver_read(&v, line, len) || v.major < 1 || v.major > PART_MAX ||
	    v.minor > PART_MAX || v.patch > PART_MAX)
		return 0;
	return (uint64_t)v.major << 2 * PART_BITS |
	    (uint64_t)v.minor << PART_BITS | (uint64_t)v.patch;
}

static struct semver
unpack_version(uint64_t number)
{
	return (struct semver){ (int64_t)(number >> 2 * PART_BITS),
		(int64_t)(number >> PART_BITS) & PART_MAX,
		(int64_t)number & PART_MAX };
}

static void
piston_version_event(void *arg, const struct cell_event *event)
{
	if (event->kind == CELL_OUTPUT && event->stream == 1)
		buf_add(arg, event->data, event->len);
}

static const char *const environment[] = {
	"HOME=/tmp",
	"LANG=C.UTF-8",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"PYTHONDONTWRITEBYTECODE=1",
	"PYTHONIOENCODING=utf-8",
	NULL, /* room for PISTON_LANGUAGE, */
	NULL,
};

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
		.env = environment,
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
	const char *told;
	uint64_t python;

	api_run(&run, app->interpreters[index]);
	told = buf_str(&text);
	python = pack_version(&told);
	if (run.end != RUN_RESULT || python == 0) {
		log_warn("interpreter %s does not tell its version",
		    app->interpreters[index]);
		if (cannot_start(&run))
			versions->asked_ms = clock_monotonic_ms();
		return cannot_start(&run);
	}
	versions->of[PISTON_PYTHON] = python;
	versions->of[PISTON_BASH] = pack_version(&told);
	versions->asked_ms = clock_monotonic_ms();
	return true;
}

static void
add_runtimes(struct piston_runtimes *all, const struct api_app *app,
    enum piston_language language)
{
	for (size_t i = 0; app->interpreters[i] != NULL; i++) {
		uint64_t version = app->versions[i].of[language];

		if (version == 0)
			continue;
		all->items[all->count++] = (struct piston_runtime){
			.language = language,
			.version = unpack_version(version),
			.interpreter = app->interpreters[i]
		};
		/* one shell is enough */
		if (language == PISTON_BASH)
			return;
	}
}

bool
piston_runtimes(struct piston_runtimes *all, struct api_app *app,
    struct http_request *req, bool anew)
{
	int64_t since_ms = clock_monotonic_ms() - PISTON_ASK_AGAIN_MS;

	all->count = 0;
	for (size_t i = 0; app->interpreters[i] != NULL; i++) {
		int64_t asked_ms = app->versions[i].asked_ms;

		if (asked_ms != 0 && (!anew || asked_ms > since_ms))
			continue;
		/* Known versions stay known. */
		if (!piston_ask(app, req, i) && asked_ms == 0)
			return false;
	}
	add_runtimes(all, app, PISTON_PYTHON);
	add_runtimes(all, app, PISTON_BASH);
	return true;
}

/* ---- requests ---- */

struct piston_limits
piston_limits(const struct api_app *app)
{
	return (struct piston_limits){ app->config->piston_timeout_ms,
		COMPILE_MS, !app->config->eval_fallback };
}

void
piston_fill(struct cell_request *cell, const struct piston_request *req)
{
	static const char *env[2][sizeof(environment) / sizeof(environment[0])];
	enum piston_language language = req->runtime->language;
	size_t n = 0;

	while (environment[n] != NULL) {
		env[language][n] = environment[n];
		n++;
	}
	env[language][n] = language == PISTON_BASH ? "PISTON_LANGUAGE=bash" :
						     "PISTON_LANGUAGE=python";
	*cell = (struct cell_request){
		.op = language == PISTON_BASH ? OP_BASH : OP_RUN,
		.folder = "/workspace",
		.env = env[language],
		.plain = true,
		.words = req->words,
		.word_count = req->word_count,
		.inputs = req->inputs,
		.input_count = req->input_count,
		.input = req->input,
		.input_len = req->input_len,
		.wall_ms = req->wall_ms,
		.output_max = OUTPUT_MAX,
		.limit_memory = req->memory,
		.limit_processes = PROCESSES,
		/* The kernel counts whole seconds, and by its ticks: whom it
		 * ends is to be over the limit by the microsecond, too. */
		.limit_cpu = (req->cpu_us + 500000) / 1000000 + 1,
	};
}

/* ---- POST /api/v2/execute ---- */

struct piston_run {
	struct api_run run;
	const struct piston_request *request;
	struct piston_output output;
};

static void
piston_run_output(struct api_run *run, const struct cell_event *event)
{
	struct piston_run *x = run->arg;

	if (!piston_output_add(&x->output, event->stream, event->data,
		event->len))
		run->c.enough = true;
}

static void
piston_run_answer(struct api_run *run)
{
	struct piston_run *x = run->arg;
	auto_buf struct buf body = BUF_INIT(PISTON_ANSWER_MAX);
	auto_buf struct buf headers = BUF_INIT(256);

	piston_add_answer(&body, x->request, &x->output, &run->result);
	if (x->request->stands_in)
		buf_addf(&headers, REPLY_STANDS_IN,
		    x->request->runtime->interpreter);
	reply_json(run->req, 200, buf_str(&headers), &body);
}

static void
piston_run_refuse(struct api_run *run, int status, const char *text)
{
	reply_refuse(run->req, status, NULL, text);
}

static const struct run_error piston_errors[] = {
	{ ERROR_NO_SPACE, false, 413, "The files do not fit into the folder" },
	{ 0, true, 400, "* cannot be written" },
	{ ERROR_TOO_LARGE, false, 400, "The arguments are too long" },
	{ 0, false, 500, "Internal Server Error" },
};

static const struct run_front piston_front = {
	.kind = API_PISTON,
	.output = piston_run_output,
	.answer = piston_run_answer,
	.errors = piston_errors,
	.refuse = piston_run_refuse,
};

static void
piston_run(struct api_app *app, struct http_request *req,
    const struct piston_request *request)
{
	struct cell_request cell;
	struct piston_run x = { .run = { .front = &piston_front,
				    .app = app,
				    .req = req,
				    .request = &cell },
		.request = request };

	x.run.arg = &x;
	piston_fill(&cell, request);
	piston_output_init(&x.output);
	api_run(&x.run, request->runtime->interpreter);
	api_run_answer(&x.run);
	piston_output_release(&x.output);
}

void
api_piston_execute(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	const struct piston_limits limits = piston_limits(app);
	struct piston_runtimes all;
	struct piston_refusal refusal;
	struct piston_request request;

	if (!api_read_body(req, &body))
		return;
	if (!piston_runtimes(&all, app, req, false)) {
		reply_busy(req);
		return;
	}
	if (!piston_read(&request, &limits, all.items, all.count,
		buf_str(&body), body.len, &refusal)) {
		reply_json(req, refusal.status, NULL, &refusal.body);
		return;
	}
	buf_release(&body);
	piston_run(app, req, &request);
	jtree_release(&request.doc);
}

/* ---- lists of runtimes and packages ---- */

static void
answer_list(struct api_app *app, struct http_request *req,
    void (*add)(struct buf *, const struct piston_runtime *, size_t))
{
	auto_buf struct buf body = BUF_INIT(LIST_MAX);
	struct piston_runtimes all;

	if (piston_runtimes(&all, app, req, true)) {
		add(&body, all.items, all.count);
		reply_text(req, 200, NULL, buf_str(&body));
	} else {
		reply_busy(req);
	}
}

void
api_piston_runtimes(struct api_app *app, struct http_request *req)
{
	answer_list(app, req, piston_add_runtimes);
}

void
api_piston_packages(struct api_app *app, struct http_request *req)
{
	answer_list(app, req, piston_add_packages);
}
