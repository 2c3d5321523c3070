/* SPDX-License-Identifier: MIT */
/* Typed results as people read them: render_*.c. */
#include "worker/render/render_files.h"

#include <jansson.h>
#include <signal.h>

#include "base/config.h"
#include "base/text.h"
#include "protocol/lease.h"
#include "store/sandbox.h"
#include "tap.h"

static const struct config config = { .timeout_ms = 30000,
	.memory = 256 << 20,
	.output_limit = 1 << 20,
	.quota = 256 << 20,
	.tmp_size = 64 << 20,
	.files = 10000,
	.retention_seconds = 604800,
	.milli_cpus = 1000,
	.pip_timeout_ms = 300000,
	.pip_memory = 512 << 20,
	.pip_quota = 512 << 20 };
static struct message m;
static struct collect c;
static struct render_env env = { .message = &m,
	.collect = &c,
	.path = "",
	.config = &config,
	.reference = 4711,
	.file_most = 10 << 20,
	.may_attach = true };
static char *content;

static void
reset(void)
{
	message_release(&m);
	collect_release(&c);
	collect_init(&c, 4 << 20, 24 << 20);
}

static const char *
shown(bool with_files)
{
	char *text = message_json(&m, with_files);
	json_t *root = json_loads(text, 0, NULL);

	free(content);
	content = strdup(json_string_value(json_object_get(root, "content")));
	json_decref(root);
	free(text);
	if (text_codepoints(content, strlen(content)) > 2000)
		note("over 2,000 code points");
	return content;
}

static void
has(const char *part, const char *name)
{
	bool good = strstr(shown(true), part) != NULL;

	ok(good, name);
	if (!good)
		note("in: %s", content);
}

static void
lacks(const char *part, const char *name)
{
	ok(strstr(shown(true), part) == NULL, name);
}

static void
output(const char *text)
{
	struct cell_event event = { .kind = CELL_OUTPUT,
		.stream = 1,
		.data = (const unsigned char *)text,
		.len = strlen(text) };

	collect_event(&c, &event);
}

/* From now on they are pictures that a run has displayed. */
static bool displayed;

static void
file(const char *name, const char *data)
{
	struct cell_event event = { .kind = CELL_FILE,
		.size = (int64_t)strlen(data),
		.displayed = displayed };

	(void)snprintf(event.name, sizeof(event.name), "%s", name);
	collect_event(&c, &event);
	event.kind = CELL_BYTES;
	event.data = (const unsigned char *)data;
	event.len = strlen(data);
	collect_event(&c, &event);
}

static void
left_out(const char *name, int64_t size, enum left_out why)
{
	struct cell_event event = { .kind = CELL_LEFT_OUT,
		.size = size,
		.why = why,
		.displayed = displayed };

	(void)snprintf(event.name, sizeof(event.name), "%s", name);
	collect_event(&c, &event);
}

static struct run_outcome
result(enum run_reason reason)
{
	return (struct run_outcome){
		.end = RUN_RESULT,
		.result = { .reason = reason,
		    .wall_us = 12345,
		    .max_rss = 9 << 20,
		    .used_bytes = 1 << 20,
		    .used_files = 3 },
	};
}

/* Render the result of a run, or of pip. */
static void
ended(const struct run_outcome *outcome, char *const *words)
{
	env.run = outcome;
	if (words != NULL)
		render_pip(&env, words);
	else
		render_run(&env);
}

static void
test_ends(void)
{
	struct run_outcome o = result(REASON_EXIT);

	reset();
	output("4\n");
	ended(&o, NULL);
	is_str(shown(true), "```\n4\n```", "a run that went well is quiet");
	reset();
	output("4\n");
	o.result.wall_us = 1250000;
	ended(&o, NULL);
	is_str(shown(true), "```\n4\n```\n-# 1.25 s", "a long one");
	reset();
	output("4\n");
	o.result.max_rss = 80 << 20;
	ended(&o, NULL);
	is_str(shown(true), "```\n4\n```\n-# 1.25 s · 80 MiB", "a large one");
	reset();
	o.result.wall_us = 1000000;
	ended(&o, NULL);
	is_str(shown(true), "No output.\n-# 80 MiB", "one that is only large");
	reset();
	output("4\n");
	o = result(REASON_EXIT);
	left_out("big.bin", 30 << 20, LEFT_OUT_SIZE);
	ended(&o, NULL);
	is_str(shown(true),
	    "```\n4\n```\nNot attached: `big.bin` (30 MiB, too large). An "
	    "attached file may have 10 MiB.",
	    "no line is empty");

	reset();
	o.result.status = 3;
	o.result.disk_full = DISK_FULL_FILES;
	ended(&o, NULL);
	has("No output.", "no output says so");
	has("\n-# exit 3\nThe disk", "exit status, and nothing that is usual");
	has("disk quota is used up (10,000 files):", "number of files");

	reset();
	o = result(REASON_SIGNAL);
	o.result.signal = SIGSEGV;
	ended(&o, NULL);
	has("killed by SIGSEGV", "a signal by name");
	reset();
	o.result.signal = 63;
	ended(&o, NULL);
	has("killed by signal 63", "a signal without one");

	reset();
	o = result(REASON_TIME);
	ended(&o, NULL);
	has("stopped at the time limit of 30 s", "time limit");
	reset();
	o = result(REASON_MEMORY);
	ended(&o, NULL);
	has("stopped at the memory limit of 256 MiB", "memory limit");
	reset();
	o = result(REASON_OUTPUT);
	ended(&o, NULL);
	has("stopped at the output limit of 1 MiB", "output limit");
}

/* The hint for an error at the end of the output. */
static void
hint(const char *said, enum slip_kind kind, const char *want, const char *name)
{
	struct run_outcome o = result(REASON_EXIT);

	o.result.status = 1;
	env.slip = (struct slip){
		.kind = kind,
		.word = "js",
		.line = 7,
		.point = 0xa0,
	};
	reset();
	output("Traceback\n");
	output(said);
	ended(&o, NULL);
	env.slip = (struct slip){ .kind = SLIP_NONE };
	if (want != NULL)
		has(want, name);
	else
		ok(strcmp(strrchr(shown(true), '\n'), "\n-# exit 1") == 0,
		    name);
}

static void
test_hints(void)
{
	struct run_outcome o = result(REASON_EXIT);
	static const char syntax[] = "SyntaxError: invalid syntax\n";

	hint("socket.gaierror: [Errno -3] Try again\n", SLIP_NONE,
	    "-# exit 1\nCode has no network here", "no network");
	hint("OSError: [Errno 101] Network is unreachable", SLIP_NONE,
	    "Code has no network here", "none to an address");
	hint("[Errno -3]\nKeyError: 1\n", SLIP_NONE, NULL,
	    "it is not what it ended in");
	hint("EOFError: EOF when reading a line\n", SLIP_NONE,
	    "asks for input, and there was none", "input() without input");
	env.has_input = true;
	hint("EOFError: EOF when reading a line\n", SLIP_NONE,
	    "asks for more input than it was given", "with too little");
	env.has_input = false;
	hint("EOFError: mine\n", SLIP_NONE, NULL, "an EOFError of the code's");
	hint("MemoryError\n", SLIP_NONE, "Keep less in memory", "MemoryError");
	hint("OSError: [Errno 28] No space left on device: '/tmp/x'\n",
	    SLIP_NONE, "`/tmp` holds 64 MiB", "/tmp is full");
	hint("TabError: inconsistent use\n", SLIP_NONE, "Tabs and spaces",
	    "tabs in a file");
	hint("IndentationError: unindent\n", SLIP_TABS, "Tabs and spaces",
	    "tabs in code");
	hint(syntax, SLIP_QUOTES, "curly quotes", "quotes");
	hint(syntax, SLIP_FENCE, "a back-tick left over", "a fence");
	hint(syntax, SLIP_LANGUAGE, "marked `js`, and only Python", "a tag");
	hint("NameError: name 'console' is not defined\n", SLIP_LANGUAGE,
	    "marked `js`", "a tag, and it could be read");
	hint(syntax, SLIP_ODD,
	    "Line 7 has a character that looks like a blank "
	    "or like nothing (U+00A0)",
	    "an odd blank");
	hint("NameError: name 'x' is not defined\n", SLIP_ODD, NULL,
	    "another error");
	hint("ValueError: 1\n", SLIP_STRING, "between quotes",
	    "quotes for "
	    "back-ticks");
	hint("ValueError: 1\n", SLIP_QUOTES, NULL, "another error");
	hint("", SLIP_NONE, NULL, "none");

	reset();
	output("[Errno -3]\n");
	ended(&o, NULL);
	is_str(shown(true), "```\n[Errno -3]\n```", "it went well");
	reset();
	o = result(REASON_TIME);
	o.result.wall_us = 30000000;
	ended(&o, NULL);
	has("time limit of 30 s · 30.00 s\nThe run waited", "it waited");
	reset();
	o.result.cpu_us = 9000000;
	ended(&o, NULL);
	has("\nSplit the work", "it was busy");
	reset();
	o = result(REASON_MEMORY);
	ended(&o, NULL);
	has("of 256 MiB\nKeep less in memory", "memory");
	reset();
	o = result(REASON_OUTPUT);
	ended(&o, NULL);
	has("of 1 MiB\nPrint less", "output");
}

static void
test_our_faults(void)
{
	struct run_outcome o = { .end = RUN_BROKEN };

	reset();
	output("so far\n");
	ended(&o, NULL);
	has("so far", "what came is shown");
	has("Sandbox error, reference 4711", "our fault has a reference");
	lacks("exit", "and no exit status");
	reset();
	o.end = RUN_STOPPED;
	ended(&o, NULL);
	has("restarted", "the worker ends");
	reset();
	render_lost(&m, JOB_PIP, 4711);
	has("interrupted", "lost");
	has("4711", "lost, with a reference");
}

static void
test_long_output(void)
{
	struct run_outcome o = result(REASON_EXIT);

	reset();
	for (int i = 0; i < 5000; i++)
		output("line ```\n");
	ended(&o, NULL);
	is_int(m.file_count, 1, "long output becomes a file");
	is_str(m.files[0].name, "output.txt", "of that name");
	is_int(m.files[0].len, 5000 * 9, "with all of it");
	has("`output.txt` has all of it", "it says so");
	ok(strstr(shown(false), "`output.txt` could not be attached") != NULL,
	    "and when it could not be sent");

	reset();
	for (int i = 0; i < 100; i++)
		output("\033[31m1%\r\033[K\xe2\x80\x8b"
		       "2%\xff\n\033[0m");
	ended(&o, NULL);
	has("```ansi\n\033[31m\\u200b2%", "as a terminal shows it");
	is_int(m.file_count, 1, "its file is, too,");
	is_mem(m.files[0].data, m.files[0].len < 12 ? 0 : 12,
	    "\\u200b2%\xef\xbf\xbd\n", 12, "without colours");
	is_int(m.files[0].len, 1200, "all of it");
	reset();
	env.file_most = 1198;
	for (int i = 0; i < 100; i++)
		output("\033[31m1%\r\033[K\xe2\x80\x8b"
		       "2%\xff\n\033[0m");
	ended(&o, NULL);
	env.file_most = 10 << 20;
	is_int(m.files[0].len, 1196, "as much as may be sent, no half letter");
	has("`output.txt` has more", "it says so");

	reset();
	env.may_attach = false;
	for (int i = 0; i < 5000; i++)
		output("line\n");
	file("a.txt", "x");
	ended(&o, NULL);
	env.may_attach = true;
	is_int(m.file_count, 0, "no permission, no files");
	has("may not attach", "and it says so");
	has("`a.txt` (1 B)", "what was made is named");
}

static void
test_files(void)
{
	struct run_outcome o = result(REASON_EXIT);

	reset();
	file("data.csv", "1,2");
	file("sub/pl\xc3\xb6t.png", "PNG");
	left_out("big.bin", 30 << 20, LEFT_OUT_SIZE);
	left_out("late.png", 2, LEFT_OUT_TIME);
	left_out("deep.png", 3, LEFT_OUT_PATH);
	left_out("evil`\n@everyone", 1, LEFT_OUT_UNREADABLE);
	ended(&o, NULL);
	is_int(m.file_count, 2, "two files");
	is_str(m.files[0].name, "pl__t.png", "the image first");
	is_str(m.files[1].name, "data.csv", "then the other");
	is_mem(m.files[0].data, m.files[0].len, "PNG", 3, "with its bytes");
	is_str(m.titles[0], "pl\xc3\xb6t.png", "with its own name");
	has("`big.bin` (30 MiB, too large)", "left out, and why");
	has("`late.png` (2 B, no time was left)", "a look cut short");
	has("`deep.png` (3 B, path too long)", "a path that is too long");
	has("`evil\xcb\x8b @everyone` (1 B, not readable)",
	    "a hostile name is one line");
	ok(strstr(shown(false), "`data.csv` could not be attached") != NULL,
	    "without files: named");

	reset();
	for (int i = 0; i < 12; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d.gif", i);
		file(name, "x");
	}
	for (int i = 0; i < 3000; i++)
		output("x\n");
	ended(&o, NULL);
	is_int(m.file_count, 10, "ten files at most");
	is_str(m.files[9].name, "output.txt", "the output among them");
	has("`f10.gif`, `f11.gif`, `f9.gif`. A message takes 10 files",
	    "the others are named");

	reset();
	for (int i = 0; i < 500; i++)
		left_out("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.png", 1,
		    LEFT_OUT_COUNT);
	ended(&o, NULL);
	has("and 494 more. A message takes 10 files", "a long list is counted");

	reset();
	file("empty", "");
	ended(&o, NULL);
	is_int(m.file_count, 0, "an empty file is not attached");
	lacks("No output.", "a file is enough of an answer");
	has("Not attached: `empty` (empty)", "but named");
	lacks("A message takes", "and not for there being many");
}

static void
test_many_files(void)
{
	struct run_outcome o = result(REASON_EXIT);

	reset();
	for (int i = 0; i < 100; i++)
		left_out("data/x", i % 2, LEFT_OUT_COUNT);
	o.result.total = 200;
	ended(&o, NULL);
	has("200 new or changed files in `~/data`", "many");
}

static void
test_pictures(void)
{
	struct run_outcome o = result(REASON_EXIT);

	reset();
	displayed = true;
	file("picture-1.png", "PNG");
	file("picture-2.jpg", "JPG");
	displayed = false;
	file("picture-1.png", "saved");
	ended(&o, NULL);
	is_int(m.file_count, 3, "pictures and a file");
	is_str(m.files[0].name, "picture-1.png", "in their order");
	is_str(m.files[2].name, "picture-1-2.png", "names are unique");
	lacks("is kept if", "nothing is lost");
	ok(strstr(shown(false),
	       "`picture-1.png` could not be attached: still "
	       "in your sandbox") != NULL,
	    "a file is still there");
	ok(strstr(shown(false), " 2 pictures could not be attached.") != NULL,
	    "pictures are not");

	reset();
	displayed = true;
	left_out("picture-1.png", 30 << 20, LEFT_OUT_SIZE);
	for (int i = 0; i < 11; i++)
		file("p.png", "x");
	ended(&o, NULL);
	has("Not attached: `picture-1.png` (30 MiB, too large), `p.png`",
	    "one too large, one too many");
	has("A picture is kept if your code saves it", "what helps");
	lacks("/il get", "which no command does");
	displayed = false;
}

static void
not_done(enum cell_error error, const char *path, const char *want)
{
	struct run_outcome o = result(REASON_ERROR);

	reset();
	o.result.error = error;
	o.result.total = 3 << 20;
	(void)strcpy(o.result.error_text, "/secret/internal");
	env.run = &o;
	env.path = path;
	render_not_done(&env);
	has(want, want);
	lacks("secret", "no internal text");
}

static void
test_not_done(void)
{
	not_done(ERROR_NOT_INSIDE, "a", "not inside your sandbox");
	not_done(ERROR_NOT_FOUND, "a/b", "`~/a/b` does not exist");
	not_done(ERROR_IS_DIRECTORY, "", "`~` is a directory");
	not_done(ERROR_NOT_DIRECTORY, "a", "a part of that path is a file");
	not_done(ERROR_TOO_LARGE, "a", "`~/a` is too large (3 MiB)");
	not_done(ERROR_NO_SPACE, "a", "no room");
	not_done(ERROR_NOT_EMPTY, "a", "`recursive:True`");
	not_done(ERROR_NOT_REGULAR, "a", "neither a file nor a directory");
	not_done(ERROR_PERMISSION, "a", "permissions that forbid that");
	not_done(ERROR_REQUEST, "a", "Sandbox error, reference 4711");
	not_done(ERROR_FAILED, "a", "Sandbox error, reference 4711");
	not_done(ERROR_READ_ONLY, "a", "Nothing can be written there");
	not_done(ERROR_READ_ONLY, ".site-packages/a", "`/il pip` installs");
}

static void
test_refusals(void)
{
	static const struct {
		enum refusal refusal;
		const char *text;
		const char *word;
	} rows[] = {
		{ REFUSAL_INPUT, "Sandbox error", "refused input" },
		{ REFUSAL_BUSY, "busy", "refused busy" },
		{ REFUSAL_FULL, "Too much", "refused full" },
		{ REFUSAL_ENGINE, "Docker does not answer", "refused engine" },
		{ REFUSAL_IMAGE, "image", "refused image" },
		{ REFUSAL_NO_WORKSPACE, "`/il create`",
		    "refused no workspace" },
		{ REFUSAL_DISK, "disk", "refused disk" },
		{ REFUSAL_SANDBOXES, "limit of", "refused sandboxes" },
		{ REFUSAL_START, "could not be started", "refused start" },
		{ REFUSAL_UNREACHABLE, "restarted", "refused unreachable" },
		{ REFUSAL_TIME, "Too much", "refused timed out" },
	};
	char word[WORD_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run_outcome o = { .end = RUN_REFUSED,
			.refusal = rows[i].refusal };

		reset();
		env.run = &o;
		render_not_done(&env);
		has(rows[i].text, rows[i].text);
		is_str(render_word(&o, word), rows[i].word, "its word");
	}
}

/* A button of the first row. */
static const json_t *
button(size_t i)
{
	return json_array_get(json_object_get(json_array_get(m.rows, 0),
				  "components"),
	    i);
}

/* May nobody press this button? */
static bool
is_disabled(size_t i)
{
	return json_is_true(json_object_get(button(i), "disabled"));
}

static void
test_listing(void)
{
	struct run_outcome o = { .end = RUN_RESULT,
		.result = {
		    .total = 45, .used_bytes = 1 << 30, .used_files = 45 } };
	struct collected *entries = c.entries;
	char *longest = malloc(300);
	struct render_listing l = { .page = 2, .pages = 3, .view_id = 9 };
	size_t lines = 0;

	memset(longest, '`', 299);
	longest[299] = '\0';
	reset();
	env.run = &o;
	env.path = "a`b";
	c.entry_count = 20;
	for (size_t i = 0; i < 20; i++)
		entries[i] = (struct collected){ .path = longest,
			.kind = ENTRY_FILE,
			.size = INT64_MAX,
			.mtime = INT64_MIN };
	entries[0] = (struct collected){ .path = strdup("evil\nname"),
		.kind = ENTRY_DIRECTORY,
		.mtime = 1700000000 };
	entries[1].kind = ENTRY_LINK;
	render_listing(&env, &l);
	has("`~/a\xcb\x8b"
	    "b`: 45 entries, page 2 of 3",
	    "the head");
	has("\n    dir  2023-11-14 22:13  evil name/\n", "a directory");
	has("\n   link         ?          \xcb\x8b\xcb\x8b", "a link");
	has("-# 256 MiB of 256 MiB used, 45 of 10,000 files", "all used");
	for (const char *p = shown(true); *p != '\0'; p++)
		lines += *p == '\n';
	is_int(lines, 23, "twenty lines fit, each is one");
	ok(button(1) != NULL && button(2) == NULL, "two buttons");
	ok(!is_disabled(0) && !is_disabled(1), "both usable");
	message_release(&m);
	l.page = 1;
	render_listing(&env, &l);
	ok(is_disabled(0), "no page before the first");
	message_release(&m);
	l.page = 3;
	render_listing(&env, &l);
	ok(is_disabled(1), "none after the last");
	free(entries[0].path);
	c.entry_count = 0;
	reset();
	o.result = (struct cell_result){ .used_bytes = -1,
		.used_packages = -1 };
	env.path = "";
	l = (struct render_listing){ .page = 1, .pages = 1 };
	render_listing(&env, &l);
	is_str(shown(true), "`~` is empty.", "an empty sandbox");
	free(longest);
}

static void
show(const char *name, const char *data, int64_t total)
{
	static struct run_outcome o;

	o = (struct run_outcome){ .result = { .total = total } };
	reset();
	file(name, data);
	env.run = &o;
	render_file(&env);
}

static void
test_file(void)
{
	char *large = malloc(100001);

	show("a.py", "print(1)\n", 9);
	is_str(shown(true), "`~/a.py`: 9 B\n```py\nprint(1)\n```", "a text");
	is_int(m.file_count, 0, "is not attached");
	show("a.txt", "", 0);
	has("it is empty", "an empty one");
	show("a.png", "\x89PNG\r\n\xff", 7);
	is_int(m.file_count, 1, "an image is attached");
	lacks("```", "and not shown as text");

	memset(large, 'x', 100000);
	large[100000] = '\0';
	show("b.txt", large, 100000);
	is_int(m.file_count, 1, "a long text is attached");
	has("left out", "and shown in part");
	show("b.txt", large, 20 << 20);
	is_int(m.file_count, 0, "a text over the limit is not");
	has("too large to be attached: a file here may have at most 10 MiB",
	    "and that is said");
	free(large);

	reset();
	file("x y.bin", "\1\2");
	render_get(&env);
	is_str(m.files[0].name, "x_y.bin", "get attaches");
	is_str(m.titles[0], "x y.bin", "and keeps its name");
}

static void
test_pip(void)
{
	/* the cell's text, the text for people */
	static const char *const missing[][2] = {
		{ "Inline: no project nunpy\n",
		    "There is no project `nunpy`. Nearest to that: `numpy`" },
		{ "Inline: no project SKLearn_x\n",
		    "There is no project `SKLearn_x`." },
		{ "Inline: no project cv2\n",
		    "Nearest to that: `opencv-python-headless`" },
		{ "x\nInline: no project re`quests\n",
		    "There is no project `re\xcb\x8bquests`. Nearest to that: "
		    "`requests`" },
		{ "Inline: no version demo==9: 2.0, 1.0\n",
		    "There is no `demo==9`. There are: `2.0`, `1.0`." },
	};
	struct run_outcome o = result(REASON_EXIT);
	char one[] = "numpy";
	char two[] = "x`y";
	char *words[] = { one, two, NULL };

	reset();
	output("Collecting numpy\n");
	render_progress(&m, JOB_PIP, 5, &c.output, 6100);
	has("Installing … 6 s", "while it runs");
	is_str(json_string_value(json_object_get(button(0), "custom_id")),
	    "cancel:5", "with a button that ends it");
	reset();
	output("Downloading\n 1 MB\r 2 MB\r\033[K 3 MB\n");
	render_progress(&m, JOB_PY, 5, &c.output, 6100);
	has("\nDownloading\n 3 MB\n```", "a bar is one line");
	reset();
	output("Successfully installed\n");
	ended(&o, words);
	has("Installed `numpy`, `x\xcb\x8by`.", "what was installed");
	ok(strchr(content, '\n') == NULL && m.file_count == 0,
	    "in one line, and no more than that");
	o.result.status = 1;
	reset();
	output("ERROR: No matching distribution found for x\n");
	ended(&o, words);
	has("Not installed: ", "what was not");
	has("There is no `x` as a wheel", "and the likely cause");
	lacks("```", "in the place of the log");
	is_str(m.files[0].name, "pip.log", "which comes as a file");
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		reset();
		output(missing[i][0]);
		ended(&o, words);
		has(missing[i][1], missing[i][1]);
	}
	reset();
	output("x Inline: no project y\n");
	ended(&o, words);
	lacks("There is no", "but where the line begins so");
	reset();
	output("\033[31mERROR: x\rERROR: y\n");
	ended(&o, words);
	has("```ansi\n\033[31mERROR: y\n```\n-# exit 1", "no cause: its end");
	is_mem(m.files[0].data, m.files[0].len, "ERROR: y\n", 9, "and all");
	reset();
	env.may_attach = false;
	output("ERROR: y\n");
	ended(&o, words);
	env.may_attach = true;
	ok(m.file_count == 0, "unless I may not attach files");
	reset();
	output("SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] x\n");
	ended(&o, words);
	has("`IL_PIP_CA_BUNDLE`", "a certificate");
	reset();
	output("[Errno 28] No space left on device\n");
	ended(&o, words);
	has("room for packages is used up (512 MiB)", "no room");
	reset();
	output("Failed to establish a new connection\n");
	ended(&o, words);
	has("cannot be reached", "no network");
	reset();
	o = result(REASON_TIME);
	ended(&o, words);
	has("stopped at the time limit of 300 s", "its own time limit");
	reset();
	o = result(REASON_MEMORY);
	ended(&o, words);
	has("memory limit of 512 MiB", "its own memory limit");
}

static void
test_sandbox(void)
{
	struct sandbox sandbox = { .expires_at = 1800000000 };

	reset();
	render_created(&env, &sandbox, true);
	has("<t:1800000000:R>", "when it expires");
	has("keeps it for 7 days more", "how long a use keeps it");
	has("256 MiB in 10,000 files", "what it holds");
	sandbox.pinned = true;
	reset();
	render_created(&env, &sandbox, false);
	has("You have a sandbox already", "it is there already");
	has("does not expire", "pinned");
	reset();
	render_made(&m, 1800000000);
	has("expired <t:1800000000:R>", "expired");
	reset();
	render_made(&m, 0);
	has("-# A sandbox of your own", "the first one");
}

int
main(void)
{
	m = (struct message)MESSAGE_INIT;
	test_ends();
	test_hints();
	test_our_faults();
	test_long_output();
	test_files();
	test_many_files();
	test_pictures();
	test_not_done();
	test_refusals();
	test_listing();
	test_file();
	test_pip();
	test_sandbox();
	message_release(&m);
	collect_release(&c);
	free(content);
	return tap_done();
}
