/* SPDX-License-Identifier: MIT */
/*
 * Lets a test put many inputs through the pure functions of fcgi/api.  Reads
 * "COMMAND LENGTH\n" and so many bytes, again and again, and answers each with
 * "LENGTH\n" and so many bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/basics.h"
#include "contract/json.h"
#include "contract/code_interpreter/execute_message.h"
#include "contract/multipart.h"
#include "contract/snekbox/eval_message.h"

#define INPUT_MAX ((size_t)1 << 28)

static void
json(struct buf *out, const char *in, size_t len)
{
	struct jtree doc;
	struct jtree_error error;

	if (!jtree_parse(&doc, in, len, &error)) {
		buf_adds(out, error.is_syntax ? "ERROR " : "LIMIT ");
		buf_adds(out, error.text);
		return;
	}
	buf_adds(out, "OK ");
	jtext_add(out, doc.root, JSON_COMPACT);
	jtree_release(&doc);
}

static void
ascii(struct buf *out, const char *in, size_t len)
{
	jtext_add_string(out, in, len, JTEXT_ASCII);
}

static void
base64(struct buf *out, const char *in, size_t len)
{
	char *decoded = xmalloc(len);
	size_t n = 0;

	/* where it lies, as il-api does */
	if (len > 0)
		memcpy(decoded, in, len);
	if (base64_decode(decoded, len, true, decoded, &n)) {
		buf_adds(out, "OK ");
		buf_add(out, decoded, n);
	} else {
		buf_adds(out, "ERROR");
	}
	free(decoded);
}

static void
unbase64(struct buf *out, const char *in, size_t len)
{
	base64_add(out, in, len);
}

/* Pieces whose lengths the bytes themselves give. */
static void
replace(struct buf *out, const char *in, size_t len)
{
	struct utf8_decoder decoder = { .count = 0 };

	while (len > 0) {
		size_t piece = 1 + (unsigned char)in[0] % 3;

		if (piece > len)
			piece = len;
		utf8_decoder_add(&decoder, out, in, piece);
		in += piece;
		len -= piece;
	}
	utf8_decoder_end(&decoder, out);
}

/* A request: the content type is its first line, "-" for none. */
struct request {
	char *type; /* NULL: none; heap */
	const char *body;
	size_t len;
};

static struct request
request_of(const char *in, size_t len)
{
	const char *end = memchr(in, '\n', len);
	size_t head = end == NULL ? 0 : (size_t)(end - in);
	struct request req = { xstrndup(in, head), in + head + 1,
		len - head - 1 };

	if (strcmp(req.type, "-") == 0) {
		free(req.type);
		req.type = NULL;
	}
	return req;
}

/* A run is told field by field, each as its name, its length and its bytes. */
static void
tell(struct buf *out, const char *name, const void *data, size_t len)
{
	buf_addf(out, "%s %zu ", name, len);
	buf_add(out, data, len);
	buf_addc(out, '\n');
}

static void
tell_text(struct buf *out, const char *name, const char *text)
{
	tell(out, name, text, strlen(text));
}

static void
tell_run(struct buf *out, const struct eval_request *req)
{
	for (size_t i = 0; i < req->word_count; i++)
		tell(out, "arg", req->words[i].data, req->words[i].len);
	for (size_t i = 0; i < req->input_count; i++) {
		const struct cell_input *file = &req->inputs[i];

		tell_text(out, file->always ? "odd" : "path", file->path);
		tell(out, "content", file->content.data, file->content.len);
	}
	tell_text(out, "interpreter",
	    req->interpreter == NULL ? "default" : req->interpreter);
	if (req->stands_in)
		tell_text(out, "stands-in", "");
	if (req->input.data != NULL)
		tell(out, "stdin", req->input.data, req->input.len);
	buf_addf(out, "timeout %lld\n", (long long)req->timeout_ms);
}

static void
eval_with(struct buf *out, const char *in, size_t len, bool fallback)
{
	static const char *const names[] = { "3.11", "3.13", NULL };
	struct request in_parts = request_of(in, len);
	struct eval_request req;
	struct eval_refusal refusal;

	if (eval_parse(&req, names, fallback, in_parts.type, in_parts.body,
		in_parts.len, &refusal)) {
		buf_adds(out, "RUN\n");
		tell_run(out, &req);
		jtree_release(&req.doc);
	} else {
		if (refusal.status == 200)
			buf_adds(out, "KNOWN ");
		else
			buf_addf(out, "%d ", refusal.status);
		buf_adds(out, buf_str(&refusal.body));
		buf_release(&refusal.body);
	}
	free(in_parts.type);
}

static void
eval(struct buf *out, const char *in, size_t len)
{
	eval_with(out, in, len, false);
}

static void
eval_fallback(struct buf *out, const char *in, size_t len)
{
	eval_with(out, in, len, true);
}

static void
output(struct buf *out, const char *in, size_t len)
{
	struct eval_output taken;

	taken = (struct eval_output){ .text = BUF_INIT(EVAL_OUTPUT_MAX) };
	while (len > 0) {
		size_t piece = 1 + (size_t)(unsigned char)in[0] * 37 % 5000;

		if (piece > len)
			piece = len;
		if (!eval_output_add(&taken, in, piece))
			break;
		in += piece;
		len -= piece;
	}
	eval_output_end(&taken);
	buf_adds(out,
	    taken.state == EVAL_OUTPUT_OPEN	? "OPEN " :
		taken.state == EVAL_OUTPUT_FULL ? "FULL " :
						  "INVALID ");
	if (taken.state != EVAL_OUTPUT_INVALID)
		buf_add(out, buf_str(&taken.text), taken.text.len);
	buf_release(&taken.text);
}

static void
tell_detail(struct buf *out, struct detail *d)
{
	buf_addf(out, "%d ", d->status);
	buf_add(out, buf_str(&d->body), d->body.len);
	buf_release(&d->body);
}

static void
tell_files(struct buf *out, struct execute_request *req)
{
	struct cell_input *inputs = xcalloc(req->files.count + 1,
	    sizeof(*inputs));
	const struct execute_file *files = req->files.items;
	const char *message = execute_stage(req, inputs);

	if (message != NULL)
		tell_text(out, "message", message);
	for (size_t i = 0; message == NULL && i < req->files.count; i++) {
		struct detail d;

		tell_text(out, "path", inputs[i].path);
		(void)execute_refuse_file(&files[i], &d);
		tell(out, "missing", buf_str(&d.body), d.body.len);
		buf_release(&d.body);
	}
	free(inputs);
}

static void
execute(struct buf *out, const char *in, size_t len)
{
	struct request parts = request_of(in, len);
	struct execute_request req;
	struct detail d;

	if (execute_parse(&req, EXECUTE_CODE, parts.type, parts.body, parts.len,
		&d)) {
		buf_adds(out, "RUN\n");
		tell(out, "code", req.code.data, req.code.len);
		if (req.input.data != NULL)
			tell(out, "stdin", req.input.data, req.input.len);
		buf_addf(out, "timeout %lld\necho %d\n",
		    (long long)req.timeout_ms, req.echo ? 1 : 0);
		tell_files(out, &req);
		jtree_release(&req.doc);
	} else {
		tell_detail(out, &d);
	}
	free(parts.type);
}

static void
session(struct buf *out, const char *in, size_t len)
{
	struct request parts = request_of(in, len);
	struct execute_request req;
	struct detail d;

	if (execute_parse(&req, EXECUTE_SESSION, parts.type, parts.body,
		parts.len, &d)) {
		buf_addf(out, "RUN\nttl %lld\n", (long long)req.ttl_seconds);
		tell_files(out, &req);
		jtree_release(&req.doc);
	} else {
		tell_detail(out, &d);
	}
	free(parts.type);
}

static void
bash(struct buf *out, const char *in, size_t len)
{
	struct request parts = request_of(in, len);
	struct execute_request req;
	struct detail d;

	if (execute_parse(&req, EXECUTE_BASH, parts.type, parts.body, parts.len,
		&d)) {
		buf_adds(out, "RUN\n");
		tell(out, "cmd", req.code.data, req.code.len);
		buf_addf(out, "timeout %lld\n", (long long)req.timeout_ms);
		jtree_release(&req.doc);
	} else {
		tell_detail(out, &d);
	}
	free(parts.type);
}

/* False: it has failed. */
static bool
take_upload(struct upload *up, struct buf *taken)
{
	enum multipart_event event;

	while ((event = multipart_next(&up->form)) != MULTIPART_MORE) {
		if (event == MULTIPART_FAILED)
			return false;
		if (event == MULTIPART_PART && upload_begin(up))
			buf_reset(taken);
		else if (event == MULTIPART_SLICE && upload_count(up))
			buf_add(taken, up->form.data, up->form.data_len);
	}
	return true;
}

/* Fed in pieces of a length that the body's own length gives; 3 MB at most. */
static void
upload(struct buf *out, const char *in, size_t len)
{
	struct request parts = request_of(in, len);
	struct buf taken = BUF_INIT((size_t)1 << 28);
	struct upload up;
	struct detail d;
	size_t piece = parts.len % 2 == 0 ? 1 + parts.len % 5 : 65536;

	if (!upload_open(&up, parts.type, 3 << 20, &d)) {
		tell_detail(out, &d);
		free(parts.type);
		return;
	}
	for (size_t at = 0; at < parts.len; at += piece) {
		multipart_add(&up.form, parts.body + at,
		    parts.len - at < piece ? parts.len - at : piece);
		if (!take_upload(&up, &taken))
			break;
	}
	if (upload_end(&up, &d)) {
		tell(out, "name", buf_str(&up.name), up.name.len);
		tell(out, "data", buf_str(&taken), taken.len);
		if ((size_t)up.size != taken.len)
			buf_adds(out, "another size");
	} else {
		tell_detail(out, &d);
	}
	upload_release(&up);
	buf_release(&taken);
	free(parts.type);
}

static void
disposition(struct buf *out, const char *in, size_t len)
{
	char *name = xstrndup(in, len);

	disposition_add(out, name);
	free(name);
}

static void
versions(struct buf *out, const char *in, size_t len)
{
	static const char *const names[] = { "3.11", "3.13", NULL };

	(void)in;
	(void)len;
	eval_add_versions(out, names);
}

static void
docs(struct buf *out, const char *in, size_t len)
{
	(void)in;
	(void)len;
	buf_add(out, pages_docs, pages_docs_len);
}

static void
docs_headers(struct buf *out, const char *in, size_t len)
{
	(void)in;
	(void)len;
	buf_add(out, pages_docs_headers, pages_docs_headers_len);
}

static void
openapi(struct buf *out, const char *in, size_t len)
{
	(void)in;
	(void)len;
	buf_add(out, pages_openapi, pages_openapi_len);
}

/* "GET /health\n"… */
static void
routes(struct buf *out, const char *in, size_t len)
{
	(void)in;
	(void)len;
#define ROUTE(contract, method, path, ...) buf_adds(out, method " " path "\n");
#include "api/routes.def"
}

struct command {
	const char *name;
	void (*run)(struct buf *out, const char *in, size_t len);
};

static const struct command commands[] = {
	{ "json", json },
	{ "ascii", ascii },
	{ "base64", base64 },
	{ "unbase64", unbase64 },
	{ "replace", replace },
	{ "eval", eval },
	{ "eval_fallback", eval_fallback },
	{ "output", output },
	{ "execute", execute },
	{ "session", session },
	{ "bash", bash },
	{ "upload", upload },
	{ "disposition", disposition },
	{ "versions", versions },
	{ "docs", docs },
	{ "docs-headers", docs_headers },
	{ "openapi", openapi },
	{ "routes", routes },
};

static void
answer(const char *name, const char *in, size_t len)
{
	struct buf out;

	buf_init(&out, (size_t)1 << 30);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			commands[i].run(&out, in, len);
	printf("%zu\n", out.len);
	(void)fwrite(buf_str(&out), 1, out.len, stdout);
	(void)fflush(stdout);
	buf_release(&out);
}

int
main(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *blank = strchr(line, ' ');
		size_t len = blank == NULL ? INPUT_MAX + 1 :
					     strtoul(blank + 1, NULL, 10);
		char *in;

		if (len > INPUT_MAX)
			return 1;
		*blank = '\0';
		in = xcalloc(len + 1, 1);
		if (fread(in, 1, len, stdin) != len)
			return 1;
		answer(line, in, len);
		free(in);
	}
	return 0;
}
