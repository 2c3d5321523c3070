/* SPDX-License-Identifier: MIT */
/* Answers of /eval: files, order, numbers, the extras. */
#include "contract/snekbox/eval_message.h"

#include "base/basics.h"
#include "protocol/cell.h"
#include "tap.h"

/* The answer, with the contents of its files; it has the length that was
 * told. */
static const char *
answer(struct eval_result *result)
{
	static struct buf out = BUF_INIT(1 << 20);
	const struct run_files *files = result->files;
	struct buf body = BUF_INIT(1 << 20);
	size_t told;
	size_t at = 0;

	for (size_t i = 0; files != NULL && i < files->count; i++)
		files->items[i].at = 0;
	told = eval_answer(&body, result);
	buf_reset(&out);
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if (file->at == 0)
			continue;
		buf_add(&out, body.data + at, file->at - at);
		base64_add(&out, file->content.data, file->content.len);
		at = file->at;
	}
	buf_add(&out, body.data + at, body.len - at);
	buf_release(&body);
	return out.len == told ? buf_str(&out) : "another length";
}

static void
add_file(struct run_files *files, const char *path, const char *content)
{
	size_t len = strlen(content);

	buf_add(&run_files_add(files, path, (int64_t)len, NULL)->content,
	    content, len);
}

static void
test_wants(void)
{
	static const char *const yes[] = { "a", "a/b", "_d/a", "a_", "a.b", "é",
		"a b", "~" };
	static const char *const no[] = { "_a", ".a", "a/_b", ".d/a", "a/.b/c",
		"_d/.a", "", "a/" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ok(eval_wants(yes[i]), yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ok(!eval_wants(no[i]), no[i]);
}

static void
test_returncode(void)
{
	struct cell_result r = { .reason = REASON_EXIT, .status = 3 };

	is_int(outcome_returncode(&r), 3, "an exit status");
	r = (struct cell_result){ .reason = REASON_SIGNAL, .signal = 11 };
	is_int(outcome_returncode(&r), 139, "a signal");
	r.reason = REASON_TIME;
	is_int(outcome_returncode(&r), 137, "the time");
	r.reason = REASON_MEMORY;
	is_int(outcome_returncode(&r), 137, "the memory");
	is_str(outcome_reason(&r), "memory", "has a name");
	r.reason = REASON_OUTPUT;
	is_int(outcome_returncode(&r), 143, "the output");
	r.reason = REASON_ERROR;
	is_int(outcome_returncode(&r), 255, "our own fault");
}

static void
test_answer(void)
{
	struct eval_output output = { .text = BUF_INIT(1000) };
	struct run_files files = { .count = 0 };
	struct cell_result cell = { .reason = REASON_EXIT,
		.wall_us = 12999,
		.cpu_us = 5000,
		.max_rss = 1 << 20 };
	struct eval_result result = { .text = &output.text, .cell = &cell };

	ok(eval_output_add(&output, "é\r", 3) &&
		eval_output_add(&output, "\n\"\0\x7f", 4),
	    "it is printed");
	eval_output_end(&output);
	is_str(answer(&result),
	    "{\"stdout\": \"é\\n\\\"\\u0000\x7f\", \"returncode\": 0, "
	    "\"files\": []}",
	    "no files");
	add_file(&files, "é", "four");
	add_file(&files, "b", "");
	add_file(&files, "a/\"", "fives");
	add_file(&files, "a", "sixsix");
	(void)run_files_add(&files, "big", 1 << 30, "size");
	run_files_sort(&files);
	result.files = &files;
	buf_reset(&output.text);
	is_str(answer(&result),
	    "{\"stdout\": \"\", \"returncode\": 0, \"files\": ["
	    "{\"path\": \"a\", \"size\": 6, \"content\": \"c2l4c2l4\"}, "
	    "{\"path\": \"a/\\\"\", \"size\": 5, \"content\": \"Zml2ZXM=\"}, "
	    "{\"path\": \"b\", \"size\": 0, \"content\": \"\"}, "
	    "{\"path\": \"é\", \"size\": 4, \"content\": \"Zm91cg==\"}]}",
	    "files in order");
	result.null_text = EVAL_NULL_OUTPUT;
	result.extras = true;
	is_str(answer(&result),
	    "{\"stdout\": \"UnicodeDecodeError: invalid Unicode in output "
	    "pipe\", \"returncode\": null, \"files\": [], \"duration_ms\": 12, "
	    "\"cpu_ms\": 5, \"max_rss_bytes\": 1048576, \"reason\": \"exit\", "
	    "\"left_out\": [{\"path\": \"big\", \"size\": 1073741824, "
	    "\"why\": \"size\"}], \"more_left_out\": false}",
	    "null, with the extras");
	cell.cut = true;
	ok(strstr(answer(&result), ", \"more_left_out\": true}") != NULL,
	    "more was left out than is listed");
	run_files_release(&files);
	buf_release(&output.text);
}

int
main(void)
{
	test_wants();
	test_returncode();
	test_answer();
	return tap_done();
}
