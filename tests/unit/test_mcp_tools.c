/* SPDX-License-Identifier: MIT */
/* The tools' arguments, their list, and what of a run's output is shown. */
#include "contract/media.h"
#include "contract/mcp/mcp_message.h"
#include "contract/mcp/mcp_result.h"
#include "contract/mcp/mcp_tools.h"

#include "base/basics.h"
#include "protocol/frame_limits.h"
#include "contract/json.h"
#include "tap.h"

static const char *const interpreters[] = { "3.11", "3.13", NULL };
static json_t *list;
static struct buf why = BUF_INIT(65536);
static struct buf out = BUF_INIT(MCP_ANSWER_MAX);
static struct mcp_message m;
static struct mcp_call call;

/* "fine", the fault's text, or what the model is told. */
static const char *
look(const char *params)
{
	const struct mcp_head head = { .content_type = "application/json",
		.version = "2025-11-25" };
	auto_buf struct buf body = BUF_INIT(1 << 20);

	mcp_message_release(&m);
	buf_addf(&body,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":%s}",
	    params);
	buf_reset(&why);
	if (!mcp_message_parse(&m, &head, buf_str(&body), body.len))
		return "no message";
	if (mcp_call_parse(&call, &m, list, &why))
		return "fine";
	if (why.len == 0)
		buf_addf(&why, "%d %s",
		    (int)json_integer_value(json_object_get(m.error, "code")),
		    json_string_value(json_object_get(m.error, "message")));
	return buf_str(&why);
}

#define RUN(arguments) "{\"name\":\"run_python\",\"arguments\":{" arguments "}}"
#define FILES(files) RUN("\"code\":\"1\",\"files\":" files)

static void
test_calls(void)
{
	is_str(look(RUN("\"code\":\"1\"")), "fine", "code alone");
	is_int(call.timeout_s, 30, "with the usual time");
	ok(call.session.data == NULL && call.argv == NULL, "and nothing else");
	is_str(look(RUN("\"code\":\"1\",\"stdin\":null,\"args\":[\"a\"],"
			"\"python\":\"3.13\",\"timeout_seconds\":5.0")),
	    "fine", "null is left out, 5.0 is 5");
	is_int(call.timeout_s, 5, "seconds");
	is_str(call.argv[0], "a", "an argument");
	is_str(look("{}"),
	    "-32602 Invalid params: name must be a string, arguments an object",
	    "no name");
	is_str(look("{\"name\":\"x\"}"), "-32602 Unknown tool: x",
	    "an unknown tool");
	is_str(look("{\"name\":\"run_python\"}"),
	    "run_python: argument code is missing.", "no arguments");
	is_str(look(RUN("\"cod\":\"1\"")),
	    "run_python: there is no argument 'cod'; there are code, stdin, "
	    "files, args, session, python, timeout_seconds.",
	    "one that is misspelt");
	is_str(look(RUN("\"code\":1")),
	    "run_python: argument code must be a string.", "no text");
	is_str(look(RUN("\"code\":\"1\",\"timeout_seconds\":121")),
	    "run_python: argument timeout_seconds must be an integer from 1 to "
	    "120.",
	    "too long");
	is_str(look(RUN("\"code\":\"1\",\"timeout_seconds\":1.5")),
	    "run_python: argument timeout_seconds must be an integer from 1 to "
	    "120.",
	    "no integer");
	is_str(look(RUN("\"code\":\"1\",\"python\":\"2.7\"")),
	    "run_python: argument python must be one of \"3.11\", \"3.13\".",
	    "another version");
	is_str(look(RUN("\"code\":\"1\",\"args\":[\"a\\u0000\"]")),
	    "run_python: argument args must be Unicode text without NUL "
	    "characters, and have 16384 bytes at most.",
	    "a NUL");
	is_str(
	    look(RUN("\"code\":\"1\",\"python\":\"3.11\",\"session\":\"s\"")),
	    "run_python: argument python belongs to create_session where there "
	    "is a session.",
	    "a version in a session");
}

static void
test_files(void)
{
	const struct mcp_file *files;

	is_str(look(FILES("[{\"path\":\"a/./b\",\"text\":\"t\"},"
			  "{\"path\":\"/workspace/c\",\"base64\":\"AAE=\"},"
			  "{\"path\":\"d\",\"file_id\":\"x\"}]")),
	    "fine", "of all kinds");
	files = call.files.items;
	is_int(call.files.count, 3, "all of them");
	is_str(files[0].path.data, "a/b", "a path");
	is_str(files[1].path.data, "c", "one of the folder itself");
	is_mem(files[1].content.data, files[1].content.len, "\0\1", (size_t)2,
	    "decoded");
	is_str(look(FILES("[{\"path\":\"a\"}]")),
	    "run_python: argument files[0] must have path, exactly one of "
	    "text, base64 and file_id, and nothing else.",
	    "no content");
	is_str(look(FILES("[{\"path\":\"../a\",\"text\":\"\"}]")),
	    "run_python: argument files[0] must not hold '..'.", "up");
	is_str(look(FILES("[{\"path\":\"/etc/a\",\"text\":\"\"}]")),
	    "run_python: argument files[0] must be relative to the folder of "
	    "the run, /workspace.",
	    "elsewhere");
	is_str(look(FILES("[{\"path\":\"a\",\"base64\":\"A\"}]")),
	    "run_python: argument files[0] must be base64, with its padding.",
	    "no base64");
	is_str(look(FILES("[{\"path\":\"a\",\"text\":\"\"},"
			  "{\"path\":\"a/b\",\"text\":\"\"}]")),
	    "run_python: argument files[1] has a path below another file.",
	    "below a file");
	is_str(look(FILES("{}")),
	    "run_python: argument files must be an array.", "no list");
	is_str(look("{\"name\":\"write_file\",\"arguments\":{\"session\":\"s\","
		    "\"path\":\"a\"}}"),
	    "write_file: argument text or base64 must be given, and not both.",
	    "nothing");
	is_str(look("{\"name\":\"write_file\",\"arguments\":{\"session\":\"s\","
		    "\"path\":\".\",\"text\":\"\"}}"),
	    "write_file: argument path must name a file.", "no name");
	is_str(
	    look("{\"name\":\"list_files\",\"arguments\":{\"session\":\"\"}}"),
	    "list_files: argument session must not be empty.", "no session");
}

#define CALL(tool, arguments) \
	"{\"name\":\"" tool "\",\"arguments\":{\"session\":\"s\"," arguments

/* So many times a text between two others is as much as may be: the last of
 * them stands in what comes behind. */
static const struct {
	const char *before;
	const char *text;
	size_t most;
	const char *after;
} most[] = {
	{ CALL("run_python", "\"code\":\"\",\"args\":["), "\"\",", 64,
	    "\"\"]}}" },
	{ CALL("run_python", "\"code\":\"\",\"args\":[\""), "x", MCP_ARGS_BYTES,
	    "x\"]}}" },
	{ CALL("run_python", "\"code\":\"\",\"files\":["),
	    "{\"path\":\"a\",\"text\":\"\"},", 100,
	    "{\"path\":\"a\",\"text\":\"\"}]}}" },
	{ CALL("read_file", "\"path\":\""), "x/", LIMIT_PATH / 2, "x\"}}" },
	{ CALL("read_file", "\"path\":\""), "x", LIMIT_NAME, "x\"}}" },
	{ CALL("read_file", "\"path\":\""), "%FF", LIMIT_NAME, "x\"}}" },
	{ CALL("run_shell", "\"command\":\""), "x", MCP_COMMAND_MAX, "x\"}}" },
	{ "{\"name\":\"list_files\",\"arguments\":{\"session\":\"", "x", 256,
	    "x\"}}" },
};

static void
test_most(size_t i)
{
	auto_buf struct buf params = BUF_INIT(1 << 19);

	for (size_t more = 0; more < 2; more++) {
		buf_reset(&params);
		buf_adds(&params, most[i].before);
		for (size_t n = 1; n < most[i].most + more; n++)
			buf_adds(&params, most[i].text);
		buf_adds(&params, most[i].after);
		ok((strcmp(look(buf_str(&params)), "fine") == 0) == (more == 0),
		    more == 0 ? "as much as may be" : "one more");
	}
}

/* The least and the most, and what is beyond. */
static const struct {
	const char *before;
	int64_t least;
	int64_t most;
} numbers[] = {
	{ CALL("run_python", "\"code\":\"\",\"timeout_seconds\":"), 1,
	    MCP_TIMEOUT_MAX_S },
	{ CALL("read_file", "\"path\":\"a\",\"limit\":"), 4, MCP_READ_MAX },
	{ CALL("read_file", "\"path\":\"a\",\"offset\":"), 0, 100 << 20 },
	{ "{\"name\":\"create_session\",\"arguments\":{\"ttl_seconds\":", 1,
	    86400 },
};

static void
test_number(size_t i)
{
	const int64_t rows[] = { numbers[i].least - 1, numbers[i].least,
		numbers[i].most, numbers[i].most + 1 };
	char params[200];

	for (size_t n = 0; n < 4; n++) {
		(void)snprintf(params, sizeof(params), "%s%lld}}",
		    numbers[i].before, (long long)rows[n]);
		ok((strcmp(look(params), "fine") == 0) == (n == 1 || n == 2),
		    params);
	}
}

static bool
is_json(const struct buf *json)
{
	struct jtree doc;
	struct jtree_error error;
	bool good = jtree_parse(&doc, buf_str(json), json->len, &error);

	if (good)
		jtree_release(&doc);
	return good;
}

static void
test_list(void)
{
	buf_reset(&out);
	m.method = MCP_TOOLS_LIST;
	mcp_add_answer(&out, &m, mcp_pack_constant(&m, list));
	ok(is_json(&out), "the list is JSON");
	ok(strstr(buf_str(&out), "\"enum\":[\"3.11\",\"3.13\"]") != NULL,
	    "and names the interpreters");
}

static const char *
shown(const struct mcp_output *o)
{
	buf_reset(&out);
	mcp_output_text(&out, o);
	return buf_str(&out);
}

static void
test_output(void)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	auto_buf struct buf line = BUF_INIT(1000);

	mcp_output_add(&o, "a\xff", 2);
	is_str(shown(&o), "a\xef\xbf\xbd", "what is no UTF-8");
	buf_release(&o.kept);
	o = (struct mcp_output)MCP_OUTPUT_INIT;
	for (int i = 0; i < 10000; i++)
		mcp_output_add(&o, "\xc3\xa9", 2);
	ok(!mcp_output_is_cut(&o), "20,000 bytes are whole");
	ok(strstr(shown(&o), "left out") == NULL && out.len == 20000,
	    "and all there");
	for (int i = 0; i < 10001; i++)
		mcp_output_add(&o, "\xe2\x82\xac", 3);
	mcp_output_add(&o, "\nend\n", 5);
	ok(mcp_output_is_cut(&o), "more is cut");
	ok(strstr(shown(&o), "\xef\xbf\xbd") == NULL &&
		strstr(buf_str(&out),
		    "\n[... 30008 bytes are left out here ...]\n") != NULL,
	    "between two characters, and it says how much");
	ok(out.len > 19990 &&
		strcmp(buf_str(&out) + out.len - 5, "\nend\n") == 0,
	    "the end is there");
	mcp_output_last_line(&line, &o, 10);
	is_str(buf_str(&line), "end", "the last line");
	buf_release(&o.kept);
}

static void
test_media(void)
{
	const char *id = NULL;
	static const char uri[] = "inline://files/abc/na%20me";

	is_str(media_type("a.txt", "\x89PNG\r\n\x1a\n", 8), "image/png",
	    "a picture by its bytes");
	is_str(media_type("a.png", "hello", 5), "text/plain",
	    "a text that is called a picture");
	is_str(media_of_name("a.PNG"), "image/png", "by its name alone");
	is_str(media_type("a", "\0", 1), "application/octet-stream", "neither");
	buf_reset(&out);
	mcp_add_uri(&out, "abc", "na me\xff/");
	is_str(buf_str(&out), "inline://files/abc/na%20me%FF%2F", "a URI");
	is_int(mcp_uri_id(uri, strlen(uri), &id), 3, "its id");
	is_int(mcp_uri_id("inline://Files/abc/n", 20, &id), 0, "another one");
	is_int(mcp_uri_id("inline://files/abc", 18, &id), 0, "half of one");
}

/* Every end of a run fits what tools/list promises. */
static void
test_run(void)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	struct cell_result cell = { .status = 3, .signal = 9 };
	char name[] = "\xff.png";
	char id[] = "i";
	char big[] = "big";
	struct run_file left[] = {
		{ .path = name, .id = id, .type = "image/png" },
		{ .path = big, .size = 5, .why = "w" },
	};
	struct run_files files = { left, 2 };
	const struct mcp_run run = {
		.out = &o, .err = &o, .cell = &cell, .files = &files
	};
	static const char *const codes[] = { "", "3,\"reason\":\"exit\"",
		"137,\"reason\":\"signal\"", "null,\"reason\":\"time\"",
		"137,\"reason\":\"memory\"", "null,\"reason\":\"output\"" };

	(void)look(RUN("\"code\":\"1\""));
	mcp_output_add(&o, "x", 1);
	for (int reason = REASON_EXIT; reason <= REASON_OUTPUT; reason++) {
		char want[80];

		cell.reason = (enum run_reason)reason;
		buf_reset(&out);
		mcp_add_answer(&out, &m, mcp_pack_run(&run));
		(void)snprintf(want, sizeof(want), "\"exit_code\":%s",
		    codes[reason]);
		ok(is_json(&out) && strstr(buf_str(&out), want) != NULL &&
			strstr(buf_str(&out), "\"isError\":true") != NULL,
		    want);
	}
	ok(strstr(buf_str(&out), "\"uri\":\"inline://files/i/%FF.png\"") !=
		NULL,
	    "a name that is no text");
	ok(strstr(buf_str(&out), "folder is full") == NULL, "there was room");
	cell.disk_full = DISK_FULL_BYTES;
	buf_reset(&out);
	mcp_add_answer(&out, &m, mcp_pack_run(&run));
	ok(strstr(buf_str(&out), "[its folder is full]") != NULL,
	    "there was none");
	buf_release(&o.kept);
}

/* The longest answers are whole: JSON that takes six bytes for one. */
static void
test_many_files(void)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	const struct cell_result cell = { .reason = REASON_EXIT };
	char name[] = "n";
	struct run_file left[21];
	struct run_files files = { .items = left };
	const struct mcp_run run = {
		.out = &o, .err = &o, .cell = &cell, .files = &files
	};

	for (size_t i = 0; i < 21; i++)
		left[i] = (struct run_file){
			.path = name, .type = "text/plain", .why = "w"
		};
	for (files.count = 20; files.count <= 21; files.count++) {
		buf_reset(&out);
		mcp_add_answer(&out, &m, mcp_pack_run(&run));
		ok((strstr(buf_str(&out), "there are more files") == NULL) ==
			(files.count == 20),
		    "twenty files are told in the text");
	}
}

/* The rest of a file is read by the next call. */
static void
test_long_read(const char *data, size_t len)
{
	char want[64];
	const char *next;
	long long end;

	buf_reset(&out);
	mcp_add_answer(&out, &m,
	    mcp_pack_read("a", data, len, 0, (int64_t)len));
	next = strstr(buf_str(&out), "\"next_offset\":");
	end = next == NULL ? -1 : strtoll(next + 14, NULL, 10);
	ok(is_json(&out) && out.len <= MCP_RESULT_MAX,
	    "a part of a file is no answer of over 1 MiB");
	(void)snprintf(want, sizeof(want), "it goes on at %lld", end);
	ok(len == 1 ? strncmp(next + 14, "null", 4) == 0 :
		      end > 80000 && end < (long long)len &&
		    (data[end] & 0xc0) != 0x80,
	    want);
}

static void
test_longest(void)
{
	static const char *const texts[] = { "\xd0\xb6", "\1", "a" };
	auto_buf struct buf content = BUF_INIT(MCP_RESOURCE_MAX);
	char folder[LIMIT_PATH + 1];
	char name[LIMIT_NAME + 1];
	struct mcp_listing folders = MCP_LISTING_INIT(folder);

	(void)look(RUN("\"code\":\"1\""));
	memset(folder, 1, LIMIT_PATH);
	memset(name, 1, LIMIT_NAME);
	folder[LIMIT_PATH] = name[LIMIT_NAME] = '\0';
	for (size_t i = 0; i < MCP_ENTRIES_MAX; i++)
		mcp_listing_add(&folders, name, ENTRY_FILE, INT64_MAX);
	buf_reset(&out);
	mcp_add_answer(&out, &m, mcp_pack_listing(&folders, MCP_ENTRIES_MAX));
	mcp_listing_release(&folders);
	ok(is_json(&out) && out.len <= MCP_RESULT_MAX &&
		strstr(buf_str(&out), "\"truncated\":true") != NULL,
	    "a folder of long names is cut, and says so");
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(texts[i]);

		buf_reset(&content);
		while (content.len + len <= MCP_RESOURCE_MAX)
			buf_add(&content, texts[i], len);
		buf_reset(&out);
		mcp_add_answer(&out, &m,
		    mcp_pack_contents(m.id, "a.txt", buf_str(&content),
			content.len));
		ok(!out.overflow && is_json(&out), "a text of 8 MiB");
		ok((strstr(buf_str(&out), "\"text\":") != NULL) == (i == 2),
		    "as text where that fits");
		test_long_read(buf_str(&content), MCP_READ_MAX);
	}
	test_long_read("\0", 1);
	buf_reset(&content);
	while (content.len < MCP_READ_MAX)
		buf_add(&content, "\0\xff", 2);
	test_long_read(buf_str(&content), MCP_READ_MAX);
}

/* Pictures and output share what the answer may have. */
static void
test_pictures(void)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	const struct cell_result cell = { .reason = REASON_EXIT };
	char name[] = "n.png";
	char id[] = "i";
	struct run_file left[2];
	struct run_files files = { left, 2 };
	const struct mcp_run run = {
		.out = &o, .err = &o, .cell = &cell, .files = &files
	};

	for (int noisy = 0; noisy < 2; noisy++) {
		for (size_t i = 0; i < 2; i++) {
			left[i] = (struct run_file){ .path = name,
				.id = id,
				.type = "image/png",
				.content = BUF_INIT(MEDIA_PICTURE_BYTES) };
			while (left[i].content.len < MEDIA_PICTURE_BYTES / 2)
				buf_addc(&left[i].content, 'x');
		}
		buf_reset(&out);
		mcp_add_answer(&out, &m, mcp_pack_run(&run));
		ok(is_json(&out) && out.len <= MCP_RESULT_MAX,
		    "no answer is over 1 MiB");
		ok(strstr(buf_str(&out), "\"image\"") != NULL &&
			left[0].hidden == NULL,
		    "the first picture is shown");
		ok((left[1].hidden == NULL) == (noisy == 0) &&
			(strstr(buf_str(&out), "; not shown: the rest") ==
			    NULL) == (noisy == 0) &&
			(strstr(buf_str(&out), "\"not_shown\":\"the rest") ==
			    NULL) == (noisy == 0),
		    "the second one where there is room; else it is told");
		for (size_t i = 0; i < 40000; i++)
			mcp_output_add(&o, "\1", 1);
		for (size_t i = 0; i < 2; i++)
			buf_release(&left[i].content);
	}
	buf_release(&o.kept);
}

/* A picture that is a text is measured as one, of which a byte may be six. */
static void
test_text_picture(void)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	const struct cell_result cell = { .reason = REASON_EXIT };
	char name[] = "n.svg";
	char id[] = "i";

	for (int wild = 0; wild < 2; wild++) {
		struct run_file left = { .path = name,
			.id = id,
			.type = "image/svg+xml",
			.content = BUF_INIT(MEDIA_PICTURE_BYTES) };
		struct run_files files = { &left, 1 };
		const struct mcp_run run = {
			.out = &o, .err = &o, .cell = &cell, .files = &files
		};

		for (size_t i = 0; i < 400000; i++)
			buf_addc(&left.content, wild ? '\1' : 'x');
		buf_reset(&out);
		mcp_add_answer(&out, &m, mcp_pack_run(&run));
		ok(is_json(&out) && out.len <= MCP_RESULT_MAX,
		    "no answer is over 1 MiB for a text's escapes");
		ok((strstr(buf_str(&out), "xxxxxxxx") != NULL) == (wild == 0) &&
			(left.content.len == 0) == (wild == 1),
		    "it is shown where there is room");
		buf_release(&left.content);
	}
	buf_release(&o.kept);
}

int
main(void)
{
	list = mcp_list_read(interpreters);
	test_calls();
	test_files();
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++)
		test_most(i);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		test_number(i);
	test_list();
	test_output();
	test_media();
	test_run();
	test_many_files();
	test_longest();
	test_pictures();
	test_text_picture();
	json_decref(list);
	mcp_message_release(&m);
	buf_release(&why);
	buf_release(&out);
	return tap_done();
}
