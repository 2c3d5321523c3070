/* SPDX-License-Identifier: MIT */
/*
 * POST /eval: snekbox's contract on a leased cell.
 */
#include <stdint.h>
#include <string.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/run.h"
#include "api/routes.h"
#include "contract/snekbox/eval_message.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/utf8.h"

/* The contract's limits; those of memory are the container's. */
#define WALL_MS 6000
#define COLLECT_MS 5000
#define ADDRESS_SPACE (INT64_C(700) << 20)
#define PROCESSES 15
#define DESCRIPTORS 32
#define CPU_SECONDS 600
#define CONTENT_STEP 49146 /* of a file in one piece: a record of base64 */
/* More than eval_output ever takes (two bytes for each of 1,000,000 Latin-1
 * characters, and a piece), so that it is the one to say what is too much. */
#define OUTPUT_MAX (INT64_C(2) * 1000000 + 65536)

static const char *const environment[] = {
	"LANG=en_US.UTF-8",
	"HOME=/home",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"PYTHONIOENCODING=utf-8:strict",
	"PYTHONUNBUFFERED=true",
	"PYTHONDONTWRITEBYTECODE=true",
	"PYTHONUSERBASE=/snekbox/user_base",
	"PYTHON_COLORS=1",
	"OMP_NUM_THREADS=15",
	"OPENBLAS_NUM_THREADS=15",
	"MKL_NUM_THREADS=15",
	"VECLIB_MAXIMUM_THREADS=15",
	"NUMEXPR_NUM_THREADS=15",
	NULL,
};

/* A run and its output. */
struct eval_run {
	struct api_run run;
	struct eval_output output;
	bool bad_name;	       /* the name of a file is no UTF-8 */
	bool too_late;	       /* the time was too short for all files */
	bool too_deep;	       /* some files lay too deep */
	const char *stands_in; /* the interpreter, if not the one asked for */
};

static void
write_base64(struct http_request *req, const struct buf *content)
{
	auto_buf struct buf piece = BUF_INIT(2 * CONTENT_STEP);

	for (size_t at = 0; at < content->len; at += CONTENT_STEP) {
		size_t rest = content->len - at;

		buf_reset(&piece);
		base64_add(&piece, content->data + at,
		    rest < CONTENT_STEP ? rest : CONTENT_STEP);
		http_write(req, piece.data, piece.len);
	}
}

/* The content of files becomes base64 on the way: it is not copied into the
 * answer. */
static void
eval_answer_result(struct api_run *run, const struct eval_result *result,
    const char *stands_in)
{
	auto_buf struct buf body = BUF_INIT(EVAL_ANSWER_MAX);
	auto_buf struct buf headers = BUF_INIT(512);
	size_t len = eval_answer(&body, result);
	size_t written = 0;

	buf_addf(&headers, "Content-Length: %zu\r\n", len);
	api_run_add_left_out(&headers, run);
	if (stands_in != NULL)
		buf_addf(&headers, REPLY_STANDS_IN, stands_in);
	http_begin(run->req, 200, REPLY_JSON, buf_str(&headers));
	for (size_t i = 0; i < run->files.count; i++) {
		const struct run_file *file = &run->files.items[i];

		if (file->at == 0)
			continue;
		http_write(run->req, body.data + written, file->at - written);
		write_base64(run->req, &file->content);
		written = file->at;
	}
	http_write(run->req, body.data + written, body.len - written);
}

/* The code cannot run: the answer has no result but a text. */
static void
answer_null(struct http_request *req, const char *text, const char *stands_in)
{
	const struct eval_result result = { .null_text = text };
	struct api_run none = { .req = req };

	eval_answer_result(&none, &result, stands_in);
}

/* ---- the run ---- */

static void
eval_output_event(struct api_run *run, const struct cell_event *event)
{
	struct eval_run *x = run->arg;

	if (!eval_output_add(&x->output, event->data, event->len))
		run->c.enough = true;
}

static bool
eval_file(struct api_run *run, const struct cell_event *event)
{
	struct eval_run *x = run->arg;

	if (!eval_wants(event->name))
		return false;
	if (!utf8_valid(event->name, strlen(event->name)))
		x->bad_name = true;
	return true;
}

static bool
eval_left_out(struct api_run *run, const struct cell_event *event)
{
	struct eval_run *x = run->arg;

	x->too_late = x->too_late || event->why == LEFT_OUT_TIME;
	x->too_deep = x->too_deep || event->why == LEFT_OUT_PATH;
	return true;
}

/* Why the answer has no result, or NULL.  An answer with extras names the
 * missing files, and has the others. */
static const char *
null_text(const struct eval_run *x, bool extras)
{
	if (x->output.state == EVAL_OUTPUT_INVALID)
		return EVAL_NULL_OUTPUT;
	if (x->too_late && !extras)
		return EVAL_NULL_TIME;
	if (x->too_deep && !extras)
		return EVAL_NULL_DEPTH;
	if (x->bad_name)
		return EVAL_NULL_NAME;
	return NULL;
}

/* Answer with the run's end, its output and its files. */
static void
eval_answer_run(struct api_run *run)
{
	struct eval_run *x = run->arg;
	struct eval_result result = {
		.text = &x->output.text,
		.files = &run->files,
		.extras = http_says(run->req, REPLY_EXTRAS),
		.cell = &run->result,
	};

	eval_output_end(&x->output);
	run_files_sort(&run->files);
	if (x->output.state == EVAL_OUTPUT_FULL)
		run->result.reason = REASON_OUTPUT;
	result.null_text = null_text(x, result.extras);
	eval_answer_result(run, &result, x->stands_in);
}

static void
eval_refuse_run(struct api_run *run, int status, const char *text)
{
	const struct eval_run *x = run->arg;

	if (status == 200)
		answer_null(run->req, text, x->stands_in);
	else
		reply_eval(run->req, status, NULL, text);
}

static const struct run_error eval_errors[] = {
	{ 0, true, 200, "OSError: Failed to create file '*'." },
	/* A program cannot be given as much. */
	{ ERROR_TOO_LARGE, false, 413, EVAL_TOO_LONG },
	{ 0, false, 0, NULL },
};

static const struct run_front eval_front = {
	.kind = API_EVAL,
	.keep = RUN_KEEP_HERE,
	.output = eval_output_event,
	.file = eval_file,
	.left_out = eval_left_out,
	.answer = eval_answer_run,
	.errors = eval_errors,
	.refuse = eval_refuse_run,
};

/* The contract's program is the interpreter with these arguments. */
static void
run_eval(struct api_app *app, struct http_request *req,
    const struct eval_request *eval)
{
	const struct cell_request cell = {
		.op = OP_RUN,
		.folder = "/home",
		.env = environment,
		.plain = true,
		.words = eval->words,
		.word_count = eval->word_count,
		.inputs = eval->inputs,
		.input_count = eval->input_count,
		.input = eval->input.data,
		.input_len = eval->input.len,
		.merge = true,
		.wall_ms = eval->timeout_ms > 0 ? eval->timeout_ms : WALL_MS,
		.output_max = OUTPUT_MAX,
		.limit_memory = ADDRESS_SPACE,
		.limit_processes = PROCESSES,
		.limit_files = DESCRIPTORS,
		.limit_cpu = CPU_SECONDS,
		.collect_files = EVAL_FILES_MAX,
		.collect_bytes = EVAL_FILES_TOTAL,
		.collect_total = EVAL_FILES_TOTAL,
		.collect_how = COLLECT_MTIME | COLLECT_NO_DOT |
		    COLLECT_NO_UNDERSCORE | COLLECT_LINKS,
		.collect_ms = COLLECT_MS,
	};
	struct eval_run x = { .run = { .front = &eval_front,
				  .app = app,
				  .req = req,
				  .request = &cell },
		.output.text = BUF_INIT(EVAL_OUTPUT_MAX) };

	x.run.arg = &x;
	x.stands_in = eval->stands_in ? eval->interpreter : NULL;
	api_run(&x.run, eval->interpreter);
	api_run_answer(&x.run);
	buf_release(&x.output.text);
}

void
api_eval(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	const char *coding = http_param(req, "HTTP_TRANSFER_ENCODING");
	struct eval_refusal refusal;
	struct eval_request eval;

	if (!api_read_body(req, &body))
		return;
	/* The contract takes a chunked body for none. */
	if (coding != NULL && coding[0] != '\0')
		buf_reset(&body);
	if (eval_parse(&eval, app->interpreters, app->config->eval_fallback,
		http_param(req, "CONTENT_TYPE"), buf_str(&body), body.len,
		&refusal)) {
		buf_release(&body);
		run_eval(app, req, &eval);
		jtree_release(&eval.doc);
	} else if (refusal.status != 200) {
		reply_json(req, refusal.status, NULL, &refusal.body);
	} else {
		answer_null(req, buf_str(&refusal.body), NULL);
		buf_release(&refusal.body);
	}
}
