/* SPDX-License-Identifier: MIT */
/* Piston's requests and answers at the borders of the contract. */
#include "contract/json.h"
#include "contract/piston/piston_message.h"

#include <signal.h>

#include "base/basics.h"
#include "protocol/frame.h"
#include "protocol/frame_limits.h"

#include "tap.h"

static const struct piston_offer offer = {
	.items = {
		{ PISTON_PYTHON, { 3, 11, 2 }, "3.11" },
		{ PISTON_PYTHON, { 3, 13, 1 }, "science" },
		{ PISTON_BASH, { 5, 2, 15 }, "3.11" },
	},
	.count = 3,
	.run_ms = 3000,
	.strict = true,
};

#define PY "\"language\":\"python\",\"version\":\"*\""
#define ONE PY ",\"files\":[{\"content\":\"x\"}]"

/* ---- requests ---- */

static bool
read_by(struct piston_request *req, const struct piston_offer *by,
    const char *body, struct api_error *error)
{
	*req = (struct piston_request){ .runtime = NULL };
	return piston_parse(&req->doc, body, strlen(body), error) &&
	    piston_accept(req, by, error);
}

static bool
read_request(struct piston_request *req, const char *body,
    struct api_error *error)
{
	return read_by(req, &offer, body, error);
}

/* Refused requests, and their texts. */
static const struct {
	const char *body;
	const char *message;
} refused[] = {
	{ "", "language is missing" },
	{ "[]", "The body must be an object" },
	{ "5", "The body must be an object" },
	{ "{\"language\":\"\"}", "language must not be empty" },
	{ "{\"language\":\"py\"}", "version is missing" },
	{ "{" PY "}", "files is missing" },
	{ "{" PY ",\"files\":[{\"content\":\"\"},{\"content\":5}]}",
	    "files[1].content must be a string" },
	{ "{" PY ",\"files\":[null]}", "files[0] must be an object" },
	{ "{\"language\":\"py\",\"version\":\"3.12\",\"files\":[]}",
	    "py-3.12 runtime is unknown" },
	{ "{" PY ",\"files\":[]}",
	    "files must include at least one utf8 encoded file" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"encoding\":\"utf\"}]}",
	    "files must include at least one utf8 encoded file" },
	{ "{" PY ",\"files\":[{\"content\":\"\"},"
	  "{\"content\":\"aGVs*bG8=\",\"encoding\":\"base64\"}]}",
	    "files[1].content must be base64" },
	{ "{" PY ",\"files\":[{\"content\":\"\","
	  "\"encoding\":\"utf8\\u0000x\"}]}",
	    "files[0].encoding must not contain a NUL character" },
	{ "{" ONE ",\"run_timeout\":3000.5}",
	    "run_timeout cannot exceed the configured limit of 3000" },
	{ "{" ONE ",\"run_timeout\":\"\"}", "run_timeout must be a number" },
	{ "{" ONE ",\"run_timeout\":1e40}",
	    "run_timeout cannot exceed the configured limit of 3000" },
	{ "{" ONE ",\"compile_cpu_time\":-0.1}",
	    "compile_cpu_time must be at least 0" },
	{ "{" ONE ",\"run_timeout\":true,\"compile_timeout\":[]}",
	    "compile_timeout must be a number" },
	{ "{" ONE ",\"stdin\":0}", "stdin must be a string" },
	{ "{" ONE ",\"args\":{}}", "args must be an array" },
	{ "{" ONE ",\"args\":\"ab\"}", "args must be an array" },
	{ "{" ONE ",\"args\":[1,[]]}",
	    "args[1] must be a string without NUL characters" },
	{ "{" ONE ",\"args\":[\"a\\u0000\"]}",
	    "args[0] must be a string without NUL characters" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"name\":\"a/../../b\"}]}",
	    "files[0].name leads out of the folder" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"name\":\"a/..\"}]}",
	    "files[0].name is no name of a file" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"name\":\"a\\u0000\"}]}",
	    "files[0].name must not contain a NUL character" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"name\":7}]}",
	    "files[0].name must be a string" },
	{ "{" PY ",\"files\":[{\"content\":\"\",\"name\":\"a\"},"
	  "{\"content\":\"\",\"name\":\"./a/b\"}]}",
	    "files[1].name lies below another file" },
};

static void
test_refused(size_t i)
{
	struct piston_request req;
	struct api_error error = { 0 };

	if (read_request(&req, refused[i].body, &error))
		jtree_release(&req.doc);
	is_int(error.status, 400, refused[i].body);
	is_str(error.text, refused[i].message, "in the contract's words");
}

/* A version that is not there is refused only where the operator says so. */
static void
test_nearest(const char *language, const char *version, const char *ran)
{
	struct piston_offer lenient = offer;
	auto_buf struct buf body = BUF_INIT(4096);
	struct piston_request req;
	struct api_error error;

	lenient.strict = false;
	buf_addf(&body,
	    "{\"language\":\"%s\",\"version\":\"%s\","
	    "\"files\":[{\"content\":\"x\"}]}",
	    language, version);
	if (read_by(&req, &lenient, buf_str(&body), &error)) {
		is_str(req.runtime->interpreter, ran, version);
		ok(req.stands_in, "which stands in for it");
		jtree_release(&req.doc);
	} else {
		is_str(ran, "", version);
	}
}

/* Accepted requests: their limits, and their words with '|' between. */
static const struct {
	const char *more;
	int64_t wall_ms;
	int64_t cpu_us;
	int64_t memory;
	const char *words;
} taken[] = {
	{ "", 3000, 3000000, 0, "file0.code" },
	{ ",\"run_timeout\":null,\"run_cpu_time\":null", 3000, 3000000, 0,
	    "file0.code" },
	{ ",\"run_timeout\":0,\"run_cpu_time\":0", 1, 0, 0, "file0.code" },
	{ ",\"run_timeout\":3000,\"run_cpu_time\":3000.0", 3000, 3000000, 0,
	    "file0.code" },
	{ ",\"run_timeout\":2.5,\"run_cpu_time\":2.5", 3, 2500, 0,
	    "file0.code" },
	{ ",\"run_memory_limit\":-1", 3000, 3000000, 0, "file0.code" },
	{ ",\"run_memory_limit\":1e300", 3000, 3000000, 0, "file0.code" },
	{ ",\"run_memory_limit\":67108864", 3000, 3000000, 67108864,
	    "file0.code" },
	{ ",\"args\":null", 3000, 3000000, 0, "file0.code" },
	{ ",\"args\":[\"\",1,1.0,-1.5,true,null,0.1,3.141592653589793]", 3000,
	    3000000, 0,
	    "file0.code||1|1.0|-1.5|true|null|0.1|3.141592653589793" },
	{ ",\"args\":[\"a\\u20ac\\ud83d\"]", 3000, 3000000, 0,
	    "file0.code|a\u20ac\ufffd" },
};

static void
test_taken(size_t i)
{
	auto_buf struct buf body = BUF_INIT(4096);
	auto_buf struct buf words = BUF_INIT(4096);
	struct piston_request req;
	struct api_error error;

	buf_addf(&body, "{" ONE "%s}", taken[i].more);
	if (!read_request(&req, buf_str(&body), &error)) {
		is_str(error.text, "", taken[i].more);
		return;
	}
	for (size_t n = 0; n < req.cell.word_count; n++)
		buf_addf(&words, "%s%.*s", n == 0 ? "" : "|",
		    (int)req.cell.words[n].len,
		    (const char *)req.cell.words[n].data);
	is_str(buf_str(&words), taken[i].words, taken[i].more);
	is_int(req.cell.wall_ms, taken[i].wall_ms, "wall clock");
	is_int(req.cpu_us, taken[i].cpu_us, "processor time");
	is_int(req.cell.limit_memory, taken[i].memory, "memory");
	is_int(req.runtime->version.minor, 13, "the newest");
	ok(req.cell.input_len == 1 && req.cell.input[0] == '\n',
	    "no input is a line");
	jtree_release(&req.doc);
}

/* As long as a part of a frame may be, with the newline that is added. */
static void
test_input(void)
{
	auto_buf struct buf body = BUF_INIT(LIMIT_PART + 1024);
	struct piston_request req;
	struct api_error error;

	buf_adds(&body, "{" ONE ",\"stdin\":\"");
	(void)memset(buf_reserve(&body, LIMIT_PART), 'x', LIMIT_PART);
	buf_commit(&body, LIMIT_PART);
	buf_adds(&body, "\"}");
	if (!read_request(&req, buf_str(&body), &error)) {
		is_str(error.text, "stdin must have at most 16777215 bytes",
		    "too much input");
	} else {
		ok(false, "too much input");
		jtree_release(&req.doc);
	}
	body.len -= 3;
	buf_adds(&body, "\"}");
	ok(read_request(&req, buf_str(&body), &error) &&
		req.cell.input_len == LIMIT_PART,
	    "as much as may be");
	jtree_release(&req.doc);
}

static void
test_files(void)
{
	static const char body[] =
	    "{" PY ",\"stdin\":\"in\\n\",\"files\":["
	    "{\"content\":\"-_8=\",\"encoding\":\"base64\",\"name\":\"/b\"},"
	    "{\"content\":\"00fFg0\",\"encoding\":\"hex\"},"
	    "{\"content\":\"\\ud800\",\"encoding\":\"utf-8\"},"
	    "{\"content\":\"y\",\"name\":\"d/../-m\"}]}";
	static const struct {
		const char *path;
		const char *content;
		size_t len;
	} want[] = {
		{ "b", "\xfb\xff", 2 },
		{ "file1.code", "\0\xff", 2 },
		{ "file2.code", "\xef\xbf\xbd", 3 },
		{ "-m", "y", 1 },
	};
	struct piston_request req;
	struct api_error error;

	if (!read_request(&req, body, &error)) {
		is_str(error.text, "", "files");
		return;
	}
	is_int(req.cell.input_count, 4, "all files");
	for (size_t i = 0; i < req.cell.input_count; i++) {
		const struct cell_input *file = &req.cell.inputs[i];

		is_str(file->path, want[i].path, "a path");
		is_mem(file->content.data, file->content.len, want[i].content,
		    want[i].len, "what it holds");
	}
	is_str(req.cell.words[0].data, "file2.code",
	    "the first that may be a text");
	is_int(req.cell.input_len, 3, "input that ends with a newline");
	jtree_release(&req.doc);
	(void)read_request(&req,
	    "{" PY ",\"files\":[{\"content\":\"\",\"name\":\"-m\"}]}", &error);
	is_str(req.cell.words[0].data, "./-m", "a file is no option");
	jtree_release(&req.doc);
}

/* ---- answers ---- */

static const struct {
	struct cell_result cell;
	int full;
	const char *signal;
	int64_t code;
	const char *status;
	const char *message;
} ends[] = {
	{ { .reason = REASON_EXIT }, 0, NULL, 0, NULL, "" },
	{ { .reason = REASON_EXIT, .status = 255 }, 0, NULL, 255, "RE",
	    "Exited with error status 255" },
	{ { .reason = REASON_EXIT, .cpu_us = 1000 }, 0, NULL, 0, NULL, "" },
	{ { .reason = REASON_EXIT, .cpu_us = 1001 }, 0, "SIGKILL", -1, "TO",
	    "Time limit exceeded" },
	{ { .reason = REASON_TIME, .cpu_us = 1001 }, 0, "SIGKILL", -1, "TO",
	    "Time limit exceeded (wall clock)" },
	{ { .reason = REASON_MEMORY, .cpu_us = 1001 }, 0, "SIGKILL", -1, "SG",
	    "Memory limit exceeded" },
	{ { .reason = REASON_SIGNAL, .signal = SIGSEGV }, 0, "SIGSEGV", -1,
	    "SG", "Caught fatal signal 11" },
	{ { .reason = REASON_SIGNAL, .signal = 64 }, 0, "SIGRTMIN", -1, "SG",
	    "Caught fatal signal 64" },
	{ { .reason = REASON_OUTPUT }, 0, "SIGKILL", -1, "OL",
	    "stdout length exceeded" },
	{ { .reason = REASON_EXIT }, 1, "SIGKILL", -1, "OL",
	    "stdout length exceeded" },
	{ { .reason = REASON_TIME }, 2, "SIGKILL", -1, "EL",
	    "stderr length exceeded" },
};

static void
test_end(size_t i)
{
	const struct piston_request req = { .cpu_us = 1000 };
	const struct piston_end end = piston_end(&req, &ends[i].cell,
	    ends[i].full);

	is_str(end.signal.text[0] == '\0' ? NULL : end.signal.text,
	    ends[i].signal, "signal");
	is_int(end.code, ends[i].code, "code");
	is_str(end.status, ends[i].status, "status");
	is_str(end.message, ends[i].message, "message");
}

static void
test_signals(void)
{
	for (int i = 1; i < 32; i++)
		is_int(piston_signal_number(piston_signal_name(i).text), i,
		    "a name");
	is_str(piston_signal_name(SIGIO).text, "SIGIO",
	    "by the name that Piston's clients know");
	is_int(piston_signal_number("SIGTER"), 0, "a part of a name");
	is_int(piston_signal_number("SIGTERMX"), 0, "more than a name");
	is_int(piston_signal_number(""), 0, "an empty name");
	is_int(piston_signal_number(NULL), 0, "none");
}

/* Add so many times the text; what was the last answer? */
static bool
print(struct piston_output *output, int stream, const char *text, size_t count)
{
	bool more = true;

	for (size_t i = 0; i < count; i++)
		more = piston_output_add(output, stream, text, strlen(text));
	return more;
}

/* The answer's text, until the next one. */
static const char *
answer(const struct piston_request *req, struct piston_output *output,
    const struct cell_result *cell)
{
	static struct buf body = BUF_INIT(4 << 20);
	json_auto_t *value = NULL;

	piston_output_end(output);
	value = piston_pack_answer(req, output, cell);
	buf_reset(&body);
	jtext_add(&body, value, JSON_COMPACT);
	return buf_str(&body);
}

static void
test_output(void)
{
	const struct piston_request req = { .runtime = &offer.items[2],
		.cpu_us = 1000 };
	const struct cell_result cell = {
		.reason = REASON_EXIT, .max_rss = 7, .wall_us = 2999
	};
	struct piston_output output;

	piston_output_init(&output);
	ok(print(&output, 1, "\1", PISTON_OUTPUT_MAX), "as much as may be");
	ok(print(&output, 2, "\xff", PISTON_OUTPUT_MAX), "and of the other");
	is_int(output.full, 0, "is not too much");
	ok(!print(&output, 2, "x", 1), "but a byte more is");
	is_int(output.full, 2, "of that one");
	ok(!print(&output, 1, "x", 1), "then nothing is taken");
	ok(answer(&req, &output, &cell)[0] == '{', "an answer all the same");
	piston_output_release(&output);

	piston_output_init(&output);
	ok(print(&output, 1, "\xe2\x82\xac", PISTON_OUTPUT_MAX / 3),
	    "wide ones");
	ok(!print(&output, 1, "\xe2\x82\xac", 1), "end in one that is cut");
	piston_output_end(&output);
	is_int(output.streams[0].text.len, PISTON_OUTPUT_MAX / 3 * 3,
	    "which is left out");
	piston_output_release(&output);

	piston_output_init(&output);
	(void)print(&output, 1, "a\xe2", 1);
	(void)print(&output, 2, "b\"", 1);
	(void)print(&output, 1, "\x82\xac\xe2", 1);
	is_str(answer(&req, &output, &cell),
	    "{\"run\":{\"signal\":null,\"stdout\":\"a\u20ac\ufffd\","
	    "\"stderr\":\"b\\\"\",\"code\":0,\"output\":\"ab\\\"\u20ac\ufffd\","
	    "\"memory\":7,\"message\":null,\"status\":null,\"cpu_time\":0,"
	    "\"wall_time\":2},\"language\":\"bash\",\"version\":\"5.2.15\"}",
	    "an answer");
	piston_output_release(&output);
}

int
main(void)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		test_refused(i);
	test_nearest("python", "3.10.0", "3.11");
	test_nearest("py", "3.14.0", "science");
	test_nearest("bash", "5.1.0", "3.11");
	test_nearest("python", "2.7.18", "");
	test_nearest("python", "latest", "");
	test_nearest("python2", "3.10.0", "");
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		test_taken(i);
	test_input();
	test_files();
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		test_end(i);
	test_signals();
	test_output();
	return tap_done();
}
