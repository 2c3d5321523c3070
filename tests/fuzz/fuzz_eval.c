/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of POST /eval, the first choosing the content type:
 * what is to be run keeps the promises of eval_message.h, a refusal can be
 * told. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "contract/snekbox/eval_message.h"
#include "contract/run_files.h"
#include "protocol/frame_limits.h"
#include "contract/json.h"

static void
check_run(const struct eval_request *req)
{
	for (size_t i = 0; i < req->word_count; i++) {
		const struct cell_bytes *word = &req->words[i];

		fuzz_holds(utf8_valid(word->data, word->len) &&
			word->data[word->len] == '\0' &&
			strlen(word->data) == word->len,
		    "an argument is text, and ends");
	}
	fuzz_holds(req->word_count == 0 || req->words[0].len > 0,
	    "the first is not empty");
	for (size_t i = 0; i < req->input_count; i++) {
		const char *path = req->inputs[i].path;

		fuzz_holds(path[0] != '\0' && path[0] != '/', "a path");
		fuzz_holds(strlen(path) <= LIMIT_PATH, "a short path");
		fuzz_holds(strncmp(path, "../", 3) != 0 &&
			strstr(path, "/../") == NULL && strcmp(path, "..") != 0,
		    "inside");
		fuzz_holds(req->inputs[i].content.data != NULL, "has content");
	}
	fuzz_holds(req->timeout_ms >= 0 && req->timeout_ms <= 60000, "a time");
}

static void
check_output(const uint8_t *data, size_t size)
{
	struct eval_output out;
	bool open;

	out = (struct eval_output){ .text = BUF_INIT(EVAL_OUTPUT_MAX) };
	open = eval_output_add(&out, data, size / 2);
	if (open)
		(void)eval_output_add(&out, data + size / 2, size - size / 2);
	eval_output_end(&out);
	fuzz_holds(!out.text.overflow, "there is room");
	fuzz_holds(utf8_valid(buf_str(&out.text), out.text.len),
	    "output is text");
	fuzz_holds(out.text.len == 0 ||
		memchr(out.text.data, '\r', out.text.len) == NULL,
	    "newlines are the same");
	buf_release(&out.text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = { NULL, "application/json",
		"application/json; charset=utf-8", "text/plain" };
	static const char *const names[] = { "3.11", NULL };
	struct eval_request req;
	struct eval_refusal refusal;
	bool good;
	char *text;

	if (size == 0)
		return 0;
	check_output(data, size);
	text = fuzz_text(data + 1, size - 1);
	good = eval_parse(&req, names, data[0] & 4, types[data[0] % 4], text,
	    size - 1, &refusal);
	free(text);
	if (good) {
		check_run(&req);
		jtree_release(&req.doc);
		return 0;
	}
	fuzz_holds(!refusal.body.overflow &&
		utf8_valid(buf_str(&refusal.body), refusal.body.len),
	    "a refusal is text");
	buf_release(&refusal.body);
	return 0;
}
