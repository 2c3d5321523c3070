/* SPDX-License-Identifier: MIT */
/* Answers of the code-interpreter routes, whole and as a stream. */
#include "contract/code_interpreter/execute_message.h"

#include "base/basics.h"
#include "protocol/cell.h"
#include "tap.h"

static struct buf text = BUF_INIT(EXECUTE_ANSWER_MAX);

static const char *
answer(const struct execute_result *result)
{
	buf_reset(&text);
	execute_answer(&text, result);
	return text.overflow ? "longer than told" : buf_str(&text);
}

static void
test_answer(void)
{
	struct capture out;
	struct capture err;
	struct cell_result cell = { .reason = REASON_EXIT,
		.status = 1,
		.cpu_us = 7000,
		.max_rss = 4096 };
	struct run_file items[] = {
		{ .path = "é\"", .id = "id-1", .size = 3 },
		{ .path = "big", .size = 1 << 30, .why = "size" },
		{ .path = "b", .id = "id-2", .size = 4 },
	};
	struct run_files files = { items, 0 };
	struct execute_result result = { .out = &out,
		.err = &err,
		.cell = &cell,
		.duration_ms = 12,
		.files = &files };

	out = (struct capture)CAPTURE_INIT("", 100);
	err = (struct capture)CAPTURE_INIT("", 100);
	capture_add(&out, "a\xff\xe2\x82", 4);
	capture_add(&out, "\xac\n", 2);
	capture_add(&err, "\0\x7f\xe2\x80\xa8\xf0", 6);
	is_str(answer(&result),
	    "{\"stdout\":\"a\xef\xbf\xbd€\\n\",\"stderr\":\"\\u0000\x7f"
	    "\xe2\x80\xa8\xef\xbf\xbd\",\"exit_code\":1,\"timed_out\":false,"
	    "\"duration_ms\":12,\"files\":[]}",
	    "no files");
	files.count = 3;
	cell = (struct cell_result){
		.reason = REASON_TIME, .cpu_us = 7000, .max_rss = 4096
	};
	result.extras = true;
	buf_release(&out.text);
	buf_release(&err.text);
	is_str(answer(&result),
	    "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":null,"
	    "\"timed_out\":true,\"duration_ms\":12,\"files\":["
	    "{\"path\":\"é\\\"\",\"kind\":\"file\",\"file_id\":\"id-1\"},"
	    "{\"path\":\"b\",\"kind\":\"file\",\"file_id\":\"id-2\"}],"
	    "\"cpu_ms\":7,\"max_rss_bytes\":4096,\"reason\":\"time\","
	    "\"left_out\":[{\"path\":\"big\",\"size_bytes\":1073741824,"
	    "\"why\":\"size\"}]}",
	    "files and extras");
	result.files = NULL;
	result.extras = false;
	cell = (struct cell_result){ .reason = REASON_MEMORY };
	is_str(answer(&result),
	    "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":137,"
	    "\"timed_out\":false,\"duration_ms\":12}",
	    "bash");
	cell = (struct cell_result){ .reason = REASON_SIGNAL, .signal = 6 };
	ok(strstr(answer(&result), "\"exit_code\":134,") != NULL, "a signal");
}

/* The longest answer that there can be: everything in it is escaped. */
static void
test_longest(void)
{
	static struct run_file items[1000 + LIMIT_LEFT_OUT_TAKEN];
	const struct run_files files = { items,
		sizeof(items) / sizeof(items[0]) };
	static char bytes[1000000];
	static char path[LIMIT_PATH + 1];
	struct capture out;
	struct capture err;
	struct cell_result cell = { .reason = REASON_EXIT };
	struct execute_result result = { .out = &out,
		.err = &err,
		.cell = &cell,
		.files = &files,
		.extras = true };

	memset(bytes, 1, sizeof(bytes));
	memset(path, 1, LIMIT_PATH);
	for (size_t i = 0; i < files.count; i++)
		items[i] = (struct run_file){ .path = path,
			.id = i < 1000 ?
			    "00000000-0000-4000-8000-000000000000" :
			    NULL,
			.size = INT64_MAX,
			.why = "the workspace was full" };
	out = (struct capture)CAPTURE_INIT("", sizeof(bytes));
	err = (struct capture)CAPTURE_INIT("", sizeof(bytes));
	capture_add(&out, bytes, sizeof(bytes));
	capture_add(&err, bytes, sizeof(bytes));
	ok(strlen(answer(&result)) > 12 * sizeof(bytes), "the longest fits");
	buf_release(&out.text);
	buf_release(&err.text);
}

/* The length of stdout in an answer of ASCII. */
static void
check_cut(size_t max, size_t printed, size_t want, const char *name)
{
	struct capture out;
	struct capture err;
	struct cell_result cell = { .reason = REASON_EXIT };
	struct execute_result result = {
		.out = &out, .err = &err, .cell = &cell
	};
	size_t got;

	out = (struct capture)CAPTURE_INIT("", max);
	err = (struct capture)CAPTURE_INIT("", max);
	for (size_t i = 0; i < printed; i += 7)
		capture_add(&out, "xxxxxxx", printed - i < 7 ? printed - i : 7);
	(void)answer(&result);
	got = strcspn(buf_str(&text) + strlen("{\"stdout\":\""), "\"");
	is_int(got, want, name);
	buf_release(&out.text);
	buf_release(&err.text);
}

static void
test_stream(void)
{
	struct capture out;
	struct cell_result cell = { .reason = REASON_EXIT };
	struct run_file file = {
		.path = "\xe2\x80\xa8", .id = "id", .size = 1
	};
	const struct run_files files = { &file, 1 };
	struct execute_result result = {
		.cell = &cell, .files = &files, .duration_ms = 3
	};

	buf_reset(&text);
	out = (struct capture)CAPTURE_INIT("stdout", 8);
	sse_add_output(&text, &out, "a\xc2\x85\xe2", 4);
	is_str(buf_str(&text),
	    "event: output\ndata: {\"stream\":\"stdout\","
	    "\"data\":\"a\\u0085\"}\n\n",
	    "a character waits for its end");
	buf_reset(&text);
	sse_add_output(&text, &out, "\x82", 1);
	is_str(buf_str(&text), "", "there is nothing to say");
	sse_add_output(&text, &out, "\xac\xf0\x9f more", 7);
	is_str(buf_str(&text),
	    "event: output\ndata: {\"stream\":\"stdout\","
	    "\"data\":\"\\u20ac\"}\n\n",
	    "up to the bound");
	buf_reset(&text);
	sse_add_output(&text, &out, "more", 4);
	is_str(buf_str(&text), "", "then silence");
	sse_add_output(&text, &out, NULL, 0);
	sse_add_output(&text, &out, NULL, 0);
	is_str(buf_str(&text),
	    "event: output\ndata: {\"stream\":\"stdout\","
	    "\"data\":\"\\ufffd\"}\n\n",
	    "what was cut off");
	buf_reset(&text);
	sse_add_result(&text, &result);
	is_str(buf_str(&text),
	    "event: result\ndata: {\"exit_code\":0,\"timed_out\":false,"
	    "\"duration_ms\":3,\"files\":[{\"path\":\"\\u2028\","
	    "\"kind\":\"file\",\"file_id\":\"id\"}]}\n\n",
	    "the result");
	buf_reset(&text);
	sse_add_error(&text, "é\n");
	is_str(buf_str(&text),
	    "event: error\ndata: {\"message\":\"\\u00e9\\n\"}\n\n", "an error");
}

int
main(void)
{
	test_answer();
	test_longest();
	check_cut(1000000, 1000000, 1000000, "all of it");
	check_cut(1000000, 1000001, 999968 + 16, "cut, with its mark");
	check_cut(10, 11, 16, "nothing but the mark");
	test_stream();
	buf_reset(&text);
	execute_add_session(&text, "code-session-1", 1700000000500);
	is_str(buf_str(&text),
	    "{\"session_id\":\"code-session-1\",\"expires_at\":1700000000.500}",
	    "a session");
	return tap_done();
}
