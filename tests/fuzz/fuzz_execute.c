/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of the code-interpreter's routes, and as the output of
 * what they run: what is taken keeps the promises of execute_message.h, every
 * answer is JSON. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "contract/code_interpreter/execute_message.h"
#include "protocol/cell.h"
#include "contract/json.h"

static const char *const types[] = { "application/json", NULL, "text/plain",
	"application/x+json" };

static void
check_json(const char *s, size_t len)
{
	struct jtree doc;
	struct jtree_error error;
	char *text = fuzz_text((const uint8_t *)s, len);

	fuzz_holds(jtree_parse(&doc, text, len, &error), "an answer is JSON");
	free(text);
	jtree_release(&doc);
}

static void
check_detail(struct detail *d)
{
	fuzz_holds(d->status == 422 || d->status == 400, "a status");
	check_json(buf_str(&d->body), d->body.len);
	buf_release(&d->body);
}

static void
check_text(const struct cell_bytes *text)
{
	fuzz_holds(utf8_valid(text->data, text->len), "is text");
	fuzz_holds(text->data[text->len] == '\0', "ends");
}

static void
check_files(struct execute_request *req)
{
	struct cell_input *inputs = xcalloc(req->files.count + 1,
	    sizeof(*inputs));
	const struct execute_file *files = req->files.items;
	bool good = execute_stage(req, inputs) == NULL;

	for (size_t i = 0; i < req->files.count; i++) {
		struct detail d;

		check_text(&files[i].path);
		check_text(&files[i].id);
		(void)execute_refuse_file(&files[i], &d);
		check_json(buf_str(&d.body), d.body.len);
		buf_release(&d.body);
		if (good)
			fuzz_holds(inputs[i].path[0] != '/' &&
				strstr(inputs[i].path, "//") == NULL,
			    "a path");
	}
	free(inputs);
}

static void
check_requests(const char *type, const char *body, size_t len)
{
	struct execute_request req;
	struct detail d;

	for (enum execute_route route = EXECUTE_CODE; route <= EXECUTE_BASH;
	     route++) {
		if (execute_parse(&req, route, type, body, len, &d)) {
			if (route != EXECUTE_SESSION)
				check_text(&req.code);
			check_files(&req);
			jtree_release(&req.doc);
		} else {
			check_detail(&d);
		}
	}
}

static void
check_answer(const char *data, size_t len)
{
	struct capture out;
	struct capture err;
	struct cell_result cell = { .reason = REASON_EXIT };
	char path[256] = "";
	struct run_file file = { .path = path, .id = "id", .size = 1 };
	const struct run_files files = { &file, 1 };
	struct execute_result result = {
		.out = &out, .err = &err, .cell = &cell, .files = &files
	};
	auto_buf struct buf json = BUF_INIT((size_t)1 << 24);

	memcpy(path, data, len < 255 ? len : 255);
	out = (struct capture)CAPTURE_INIT("", 100);
	err = (struct capture)CAPTURE_INIT("", 100);
	capture_add(&out, data, len);
	for (size_t i = 0; i < len; i += 7)
		capture_add(&err, data + i, len - i < 7 ? len - i : 7);
	fuzz_holds(out.text.len == err.text.len &&
		memcmp(buf_str(&out.text), buf_str(&err.text), out.text.len) ==
		    0,
	    "pieces are as good as the whole");
	execute_answer(&json, &result);
	check_json(buf_str(&json), json.len);
	buf_release(&out.text);
	buf_release(&err.text);
}

static void
check_stream(const char *data, size_t len)
{
	static const char head[] = "event: output\ndata: ";
	auto_buf struct buf frames = BUF_INIT((size_t)1 << 24);
	struct capture s;

	s = (struct capture)CAPTURE_INIT("stdout", len);
	sse_add_output(&frames, &s, data, len / 2);
	sse_add_output(&frames, &s, data + len / 2, len - len / 2);
	sse_add_output(&frames, &s, NULL, 0);
	for (const char *p = buf_str(&frames); *p != '\0';) {
		const char *end = strstr(p, "\n\n");

		fuzz_holds(strncmp(p, head, strlen(head)) == 0 && end != NULL,
		    "a frame");
		p += strlen(head);
		check_json(p, (size_t)(end - p));
		p = end + 2;
	}
	for (size_t i = 0; i < frames.len; i++)
		fuzz_holds((unsigned char)frames.data[i] < 0x7f, "in ASCII");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *body;

	if (size == 0)
		return 0;
	body = fuzz_text(data + 1, size - 1);
	check_requests(types[data[0] % 4], body, size - 1);
	check_answer(body, size - 1);
	check_stream(body, size - 1);
	free(body);
	return 0;
}
