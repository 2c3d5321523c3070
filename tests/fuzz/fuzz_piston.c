/* SPDX-License-Identifier: MIT */
/* Any bytes as what a client of Piston's contract sends: the first byte says
 * what they are.  A request that is taken keeps the promises of its headers, a
 * refusal is JSON, and a WebSocket never holds more than it may. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "contract/json.h"
#include "contract/piston/piston_message.h"
#include "contract/piston/piston_socket.h"
#include "protocol/frame.h"
#include "protocol/frame_limits.h"

static const struct piston_offer offer = {
	.items = { { PISTON_PYTHON, { 3, 11, 2 }, "3.11" },
	    { PISTON_BASH, { 5, 2, 15 }, "3.11" } },
	.count = 2,
	.run_ms = 3000,
};

static void
check_refusal(const struct api_error *error)
{
	fuzz_holds(error->status >= 400 && error->text[0] != '\0' &&
		strlen(error->text) < sizeof(error->text),
	    "a refusal is a text");
}

static void
check_request(const struct piston_request *req)
{
	for (size_t i = 0; i < req->cell.word_count; i++) {
		const struct cell_bytes *word = &req->cell.words[i];

		fuzz_holds(word->data != NULL &&
			strlen(word->data) == word->len &&
			utf8_valid(word->data, word->len),
		    "an argument is text, and ends");
	}
	for (size_t i = 0; i < req->cell.input_count; i++) {
		const char *path = req->cell.inputs[i].path;

		fuzz_holds(path[0] != '\0' && path[0] != '/' &&
			strlen(path) <= LIMIT_PATH,
		    "a path");
		fuzz_holds(strncmp(path, "../", 3) != 0 &&
			strcmp(path, "..") != 0 && strstr(path, "/../") == NULL,
		    "inside");
	}
	fuzz_holds(req->runtime != NULL && req->cell.word_count > 0 &&
		req->cell.words[0].data[0] != '-' && req->cell.input_len > 0 &&
		req->cell.input[req->cell.input_len - 1] == '\n',
	    "something to run");
	fuzz_holds(req->cell.wall_ms >= 1 &&
		req->cell.wall_ms <= offer.run_ms && req->cpu_us >= 0 &&
		req->cpu_us <= offer.run_ms * 1000 &&
		req->cell.limit_memory >= 0,
	    "limits");
}

static void
try_request(const char *text, size_t size)
{
	struct piston_request req = { .runtime = NULL };
	struct api_error error;

	if (piston_parse(&req.doc, text, size, &error) &&
	    piston_accept(&req, &offer, &error)) {
		check_request(&req);
		jtree_release(&req.doc);
	} else {
		check_refusal(&error);
	}
}

static void
try_message(const char *text, size_t size)
{
	bool running = size % 2 == 0;
	struct piston_said said;
	struct api_error error;
	enum piston_message kind = piston_hear(&said, text, size, running,
	    &error);

	if (kind == PISTON_WRONG)
		check_refusal(&error);
	fuzz_holds((kind == PISTON_CLOSE) == (said.code != 0) &&
		(kind != PISTON_INIT || !running),
	    "an end has a code");
	fuzz_holds(said.len == 0 || utf8_valid(said.text, said.len),
	    "what is typed is text");
	fuzz_holds(said.number >= 0 && said.number <= 64, "a signal");
	jtree_release(&said.doc);
}

/* In two pieces, as they may come. */
static void
try_frames(const char *text, size_t size)
{
	struct socket_reader r;
	enum socket_event event = SOCKET_MORE;

	socket_reader_init(&r);
	for (int i = 0; i < 2 && event == SOCKET_MORE; i++) {
		size_t half = size / 2;

		socket_reader_add(&r, text + (i == 0 ? 0 : half),
		    i == 0 ? half : size - half);
		do {
			event = socket_next(&r);
			fuzz_holds(event != SOCKET_MESSAGE || !r.is_text ||
				utf8_valid(buf_str(&r.message), r.message.len),
			    "a text is text");
			fuzz_holds(r.control_len <= 125 && !r.message.overflow,
			    "nothing is too long");
		} while (event == SOCKET_MESSAGE || event == SOCKET_PING);
	}
	fuzz_holds((event == SOCKET_FAULT) == (r.code != 0), "a fault is told");
	fuzz_holds(event != SOCKET_CLOSE || r.control_len == 0 ||
		(r.control_len >= 2 &&
		    utf8_valid(r.control + 2, r.control_len - 2)),
	    "a goodbye is nothing, or a code and text");
	socket_reader_release(&r);
}

static void
try_head(const char *text, size_t size)
{
	struct socket_head head;
	char answer[SOCKET_ANSWER_LEN + 1];
	ssize_t end = socket_head_read(&head, text, size);

	fuzz_holds(end <= (ssize_t)size, "a head ends in what was sent");
	if (end <= 0)
		return;
	socket_answer(head.key, answer);
	fuzz_holds(strlen(answer) == SOCKET_ANSWER_LEN, "an answer");
}

/* The rest as what an image tells of itself, and as what a run prints on both
 * its streams in turn, in pieces. */
static void
try_output(const char *text, size_t size)
{
	auto_buf struct buf body = BUF_INIT(4 << 20);
	json_auto_t *answer = NULL;
	const struct piston_request req = { .runtime = &offer.items[0] };
	const struct cell_result cell = { .reason = REASON_EXIT };
	struct piston_output output;
	struct jtree_error fault;
	struct jtree doc;
	struct semver version;
	size_t piece = size / 7 + 1;

	if (semver_read(&version, text, size))
		fuzz_holds(version.major >= 0 && version.minor >= 0 &&
			version.patch >= 0,
		    "a version");
	piston_output_init(&output);
	for (size_t at = 0; at < size; at += piece)
		(void)piston_output_add(&output, (int64_t)(at / piece % 2) + 1,
		    text + at, size - at < piece ? size - at : piece);
	piston_output_end(&output);
	answer = piston_pack_answer(&req, &output, &cell);
	jtext_add(&body, answer, JSON_COMPACT);
	fuzz_holds(!body.overflow && utf8_valid(buf_str(&body), body.len) &&
		jtree_parse(&doc, buf_str(&body), body.len, &fault),
	    "an answer is JSON");
	jtree_release(&doc);
	piston_output_release(&output);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(const char *, size_t) = { try_request,
		try_message, try_frames, try_head };
	char *text;

	if (size == 0)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	if (data[0] % 5 == 4) {
		(void)semver_matches(&offer.items[0].version, text, size - 1);
		try_output(text, size - 1);
	} else {
		tries[data[0] % 5](text, size - 1);
	}
	free(text);
	return 0;
}
