/* SPDX-License-Identifier: MIT */
/* LibreChat's contract, as bytes: ids, names, requests, answers. */
#include "contract/json.h"
#include "contract/media.h"
#include "contract/librechat/libre_message.h"

#include "protocol/cell.h"
#include "tap.h"

#define UUID "01234567-89ab-4cde-bf01-23456789abcd"
#define S "SSSSSSSSSSSSSSSSSSSSS"
#define OWN_UUID "00000000-0000-4000-8000-000000000000"
#define OWN "AAAAAAAAAAAAAAAAAAAAA"
#define F "FFFFFFFFFFFFFFFFFFFFF"
#define FILE_REST "\"id\":\"" F "\",\"storage_session_id\":\"" S "\"}"

static void
test_ids(void)
{
	char id[LIBRE_ID_LEN + 1];
	char uuid[LIBRE_UUID_LEN + 1] = "";

	libre_id_of_file(id, UUID);
	ok(libre_is_id(id), "of the form that links take");
	ok(libre_id_to_file(uuid, id), "and back");
	is_str(uuid, UUID, "to the same file");
	libre_id_of_file(id, "00000000-0000-4000-8000-000000000000");
	is_str(id, "AAAAAAAAAAAAAAAAAAAAA", "the first of all");
	libre_id_of_file(id, "ffffffff-ffff-4fff-bfff-ffffffffffff");
	is_str(id, "D____________________", "the last of all");
	ok(!libre_id_to_file(uuid, "E____________________"),
	    "no file has more bits");
	libre_make_id(id);
	ok(libre_is_id(id), "a session's is of that form");
	ok(!libre_is_id("AAAAAAAAAAAAAAAAAAAAA.") &&
		!libre_is_id("AAAAAAAAAAAAAAAAAAAA") &&
		!libre_is_id("AAAAAAAAAAAAAAAAAAAA."),
	    "nothing else is an id");
}

static void
test_names(void)
{
	static const char segments[] =
	    "must not contain empty, current, or parent path segments";
	static const struct {
		const char *name;
		const char *fault;
	} names[] = {
		{ "a", NULL },
		{ "a/b c/é.csv", NULL },
		{ ".hidden/...", NULL },
		{ "", "must not be empty" },
		{ "/a", "must be a relative path" },
		{ "a/", "must be canonical and file-like" },
		{ "..", segments },
		{ "a/../b", segments },
		{ "./a", segments },
		{ "a//b", segments },
		{ "a\nb", NULL },
		{ "a\\b", NULL },
		{ "a\x7f", NULL },
	};
	char longer[LIBRE_NAME_MAX + 2];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is_str(libre_name_fault(names[i].name), names[i].fault,
		    names[i].name);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	is_str(libre_name_fault(longer), "is too long", "long");
	longer[256] = '\0';
	is_str(libre_name_fault(longer), "is too long", "a long part");
	longer[255] = '\0';
	is_str(libre_name_fault(longer), NULL, "the longest part");
	is_str(libre_name_extension("a.b/c"), "",
	    "a folder's is not the file's");
	is_str(libre_name_extension("c.tar.gz"), ".gz", "the last one");
	is_str(libre_name_extension("c.a-b"), "",
	    "no dot or dash gets into a name");
	is_str(media_of_name("x.PNG"), "image/png", "in any case");
}

/* The refusal of a request; "" for a request that runs. */
static const char *
refusal(const char *body)
{
	static struct buf text = BUF_INIT(4096);
	struct api_error error;
	struct libre_exec exec;

	buf_reset(&text);
	if (libre_exec_parse(&exec, body, strlen(body), &error))
		jtree_release(&exec.doc);
	else
		buf_addf(&text, "%d %s", error.status, error.text);
	return buf_str(&text);
}

/* Of the files of a request. */
static const char *
files_refusal(const char *files)
{
	auto_buf struct buf body = BUF_INIT(65536);

	buf_addf(&body, "{\"lang\":\"py\",\"code\":\"\",\"files\":%s}", files);
	return refusal(buf_str(&body));
}

static void
test_refusals(void)
{
	is_str(refusal("{"), "400 The body is not valid JSON", "no JSON");
	is_str(refusal(""), "400 The body is not valid JSON", "nothing");
	is_str(refusal("[]"), "400 The body must be an object", "a list");
	is_str(refusal("{\"code\":\"\"}"), "400 lang is missing",
	    "no language");
	is_str(refusal("{\"lang\":1,\"code\":\"\"}"),
	    "400 lang must be a string", "a number for one");
	is_str(refusal("{\"lang\":\"rs\",\"code\":\"\"}"),
	    "400 Unsupported language: rs", "another language");
	is_str(refusal("{\"lang\":\"py\"}"), "400 code is missing", "no code");
	is_str(refusal("{\"lang\":\"py\",\"code\":1}"),
	    "400 code must be a string", "a number for code");
	is_str(refusal("{\"lang\":\"bash\",\"code\":\"a\\u0000b\"}"),
	    "400 code must not contain a NUL character", "a NUL in a command");
	is_str(refusal("{\"lang\":\"py\",\"code\":\"\",\"args\":\"a\"}"),
	    "400 args must be an array", "a text for arguments");
	is_str(
	    refusal("{\"lang\":\"py\",\"code\":\"\",\"args\":[\"\\u0000\"]}"),
	    "400 args[0] must not contain a NUL character", "a NUL in one");
	is_str(refusal("{\"lang\":\"py\",\"code\":\"\",\"x\":[{}],"
		       "\"args\":null,\"files\":null,\"timeout\":\"x\"}"),
	    "", "what is not known does not matter");
}

static void
test_file_refusals(void)
{
	static const char *const long_ones[] = { "resource_id", "version",
		NULL };

	is_str(files_refusal("{}"), "400 files must be an array", "no list");
	is_str(files_refusal("[1]"), "400 files[0] must be an object",
	    "no file");
	is_str(files_refusal("[{" FILE_REST "]"),
	    "400 files[0].name is missing", "no name");
	is_str(files_refusal("[{\"name\":\"\"," FILE_REST "]"),
	    "400 files[0].name must not be empty", "an empty name");
	is_str(files_refusal("[{\"name\":\"a/../b\"," FILE_REST "]"),
	    "400 files[0].name must not contain empty, current, or parent path "
	    "segments",
	    "a name that leads out");
	is_str(files_refusal("[{\"name\":\"a\\u0000\"," FILE_REST "]"),
	    "400 files[0].name must not contain a NUL character", "a NUL");
	is_str(files_refusal("[{\"name\":\"a\",\"kind\":\"x\"," FILE_REST "]"),
	    "400 files[0].kind must be one of: skill, agent, user", "a kind");
	is_str(files_refusal("[{\"name\":\"a\",\"kind\":\"skill\"," FILE_REST
			     "]"),
	    "400 files[0].version is required for kind: 'skill'", "a skill");
	is_str(files_refusal("[{\"name\":\"a\",\"kind\":\"\"," FILE_REST "]"),
	    "400 files[0].kind must be one of: skill, agent, user", "no kind");
	is_str(files_refusal("[{\"name\":\"a\",\"resource_id\":7," FILE_REST
			     "]"),
	    "", "a number for a resource's id is ignored");
	for (const char *const *name = long_ones; *name != NULL; name++) {
		auto_buf struct buf files = BUF_INIT(4096);

		buf_addf(&files,
		    "[{\"name\":\"a\",\"%s\":\"%0257d\"," FILE_REST "]", *name,
		    0);
		is_str(files_refusal(buf_str(&files)),
		    "400 files[0].resource_id is too long", *name);
	}
	is_str(files_refusal("[{\"name\":\"a\"}]"),
	    "403 Unauthorized file reference", "no ids");
	is_str(files_refusal("[{\"name\":\"a\",\"id\":\"" UUID
			     "\",\"session_id\":\"" S "\"}]"),
	    "403 Unauthorized file reference", "an id of another form");
	is_str(files_refusal("[{\"name\":\"a\"," FILE_REST
			     ",{\"name\":\"a\"," FILE_REST "]"),
	    "", "two of one name");
}

static void
test_request(void)
{
	static const char body[] =
	    "{\"lang\":\"bash\",\"code\":\"ls\",\"args\":[\"-l\",\"é\"],"
	    "\"timeout\":99999999,\"files\":["
	    "{\"name\":\"__main__.py\"," FILE_REST
	    ",{\"name\":\"s/a\",\"kind\":\"skill\",\"version\":3,"
	    "\"resource_id\":\"r\"," FILE_REST
	    ",{\"name\":\"__main__.py\"," FILE_REST "]}";
	struct api_error error;
	struct libre_exec exec;

	ok(libre_exec_parse(&exec, body, strlen(body), &error), "it is taken");
	ok(exec.is_bash, "a command");
	is_int(exec.timeout_ms, LIBRE_TIMEOUT_MAX_MS, "no longer than that");
	is_str(exec.args[1], "é", "its words");
	ok(exec.args[2] == NULL, "and their end");
	is_int((int64_t)exec.file_count, 3, "its files");
	ok(exec.files[0].replaced && !exec.files[2].replaced, "the last wins");
	is_str(exec.files[1].resource.kind, "skill", "of a skill");
	is_str(exec.files[1].resource.version, "3", "in a version");
	is_str(exec.files[1].resource.id, "r", "by its id");
	is_str(exec.files[0].session, S, "in a session");
	is_str(exec.entry, "__main_1__.py", "and the code elsewhere");
	jtree_release(&exec.doc);
}

/* Marks the files that are replaced with 'x', the others with '-'. */
static const char *
replaced(const char *const *names)
{
	static char marks[8];
	auto_buf struct buf body = BUF_INIT(4096);
	static struct api_error error;
	const char *comma = "";
	struct libre_exec exec;
	size_t n = 0;

	buf_adds(&body, "{\"lang\":\"py\",\"code\":\"\",\"files\":[");
	for (; *names != NULL; names++, comma = ",")
		buf_addf(&body, "%s{\"name\":\"%s\"," FILE_REST, comma, *names);
	buf_adds(&body, "]}");
	if (!libre_exec_parse(&exec, buf_str(&body), body.len, &error))
		return error.text;
	for (; n < exec.file_count && n + 1 < sizeof(marks); n++)
		marks[n] = exec.files[n].replaced ? 'x' : '-';
	marks[n] = '\0';
	jtree_release(&exec.doc);
	return marks;
}

static void
test_places(void)
{
	is_str(replaced((const char *[]){ "a", "a/b", "a.b", NULL }), "x--",
	    "a file that is below an earlier one now");
	is_str(replaced((const char *[]){ "a/b/c", "ab", "a/d", "a", NULL }),
	    "x-x-", "a folder that is a file now");
	is_str(replaced((const char *[]){ "a", "a/b", "a", NULL }), "xx-",
	    "and one that is a file again");
}

static void
test_hint(void)
{
	static const char body[] = "{\"lang\":\"py\",\"code\":\"\","
				   "\"runtime_session_hint\":\"c:1\"}";
	struct api_error error;
	struct libre_exec exec;

	ok(libre_exec_parse(&exec, body, strlen(body), &error), "it is taken");
	is_str(exec.hint, "c:1", "a conversation");
	jtree_release(&exec.doc);
}

static void
test_query(void)
{
	char out[LIBRE_RESOURCE_MAX + 1] = "";
	char longer[400] = "id=";

	ok(libre_query_get("kind=user&id=a%20b+c%C3%A9", "id", out),
	    "a parameter");
	is_str(out, "a b cé", "decoded");
	ok(libre_query_get("id=&x", "id", out) && out[0] == '\0',
	    "an empty one");
	ok(!libre_query_get("kid=1", "id", out) &&
		!libre_query_get("", "id", out) &&
		!libre_query_get("id=%", "id", out) &&
		!libre_query_get("id=%0", "id", out) &&
		!libre_query_get("id=%00", "id", out) &&
		!libre_query_get("id=%zz", "id", out),
	    "none, or none that makes sense");
	memset(longer + 3, 'a', 300);
	ok(!libre_query_get(longer, "id", out), "a long one");
}

/* A value's text, until the next one; the value is released. */
static const char *
text_of(json_t *value)
{
	static struct buf text = BUF_INIT(1 << 20);

	buf_reset(&text);
	jtext_add(&text, value, JSON_COMPACT);
	json_decref(value);
	return buf_str(&text);
}

static void
test_outcome(void)
{
	struct cell_result cell = { .reason = REASON_TIME };
	const struct libre_file was = { .id = F, .session = S };
	struct run_file made[] = {
		{ .path = "a\"", .id = OWN_UUID, .was = &was },
		{ .path = "big", .why = "too large" },
		{ .path = "b", .was = &was, .unchanged = true },
		{ .path = "gone", .why = LIBRE_MISSING, .unchanged = true },
		{ .path = "c", .why = RUN_FILE_REMOVED },
	};
	struct run_files files = { made, 5 };
	struct libre_outcome o = { .session = S,
		.out = BUF_INIT(4),
		.err = BUF_INIT(100),
		.cell = &cell,
		.timeout_ms = 1500,
		.wall_ms = 7,
		.files = &files };

	libre_stream_add(&o.out, "123", 3);
	libre_stream_add(&o.out, "456", 3);
	libre_stream_add(&o.err, "e\xff", 2);
	is_str(text_of(libre_pack_outcome(&o)),
	    "{\"session_id\":\"" S
	    "\",\"stdout\":\"1234\",\"stderr\":\"e\uFFFD\\n"
	    "[sandbox] stdout length exceeded: cut after 4 bytes\\n"
	    "[sandbox] Time limit exceeded: ended after 1.5 s\\n"
	    "[sandbox] This file does not come back, too large: big\\n"
	    "[sandbox] This input is not kept any more: gone\\n\","
	    "\"files\":[{\"id\":\"" F
	    "\",\"name\":\"b\",\"storage_session_id\":\"" S
	    "\",\"inherited\":true},{\"id\":\"" OWN "\",\"name\":\"a\\\"\","
	    "\"storage_session_id\":\"" S "\",\"modified_from\":{\"id\":\"" F
	    "\",\"storage_session_id\":\"" S
	    "\"}}],\"deleted_files\":[\"c\"],\"code\":null,"
	    "\"signal\":\"SIGKILL\","
	    "\"message\":\"Time limit exceeded\",\"status\":\"TO\","
	    "\"wall_time\":7}",
	    "an answer, with what was made last");
	buf_reset(&o.out);
	buf_reset(&o.err);
	o.runtime = "id";
	cell = (struct cell_result){ .reason = REASON_SIGNAL, .signal = 9999 };
	files.count = 0;
	is_str(text_of(libre_pack_outcome(&o)),
	    "{\"session_id\":\"" S "\",\"stdout\":\"\",\"stderr\":\"[sandbox] "
	    "The program was ended by SIG?\\n\",\"files\":[],"
	    "\"runtime_session_id\":\"id\",\"runtime_status\":\"reused\","
	    "\"code\":null,"
	    "\"signal\":\"SIG?\",\"message\":null,\"status\":\"SG\","
	    "\"wall_time\":7}",
	    "a signal that nobody knows");
	buf_release(&o.out);
	buf_release(&o.err);
}

static void
test_file_answers(void)
{
	is_str(text_of(libre_pack_stored(S, OWN_UUID, "d/é.csv", 5,
		   1786104000007, true, LIBRE_OBJECT)),
	    "{\"name\":\"" S "/" OWN ".csv\",\"originalFilename\":\"d/é.csv\","
	    "\"size\":5,\"lastModified\":\"2026-08-07T12:00:00.007Z\","
	    "\"etag\":\"" OWN "\",\"contentType\":\"text/csv\","
	    "\"readOnly\":true}",
	    "a probe");
	is_str(text_of(libre_pack_stored(S, OWN_UUID, "d/é.csv", 5,
		   1786104000007, true, LIBRE_FULL)),
	    "{\"name\":\"" S "/" OWN ".csv\",\"size\":5,"
	    "\"lastModified\":\"2026-08-07T12:00:00.007Z\",\"etag\":\"" OWN
	    "\",\"metadata\":{\"content-type\":\"text/csv\","
	    "\"original-filename\":\"d/é.csv\"},\"contentType\":\"text/csv\"}",
	    "in a list");
	is_str(text_of(libre_pack_stored(S, OWN_UUID, "d/é.csv", 5,
		   1786104000007, true, LIBRE_SIMPLE)),
	    "\"" S "/" OWN ".csv\"", "in a short one");
}

/* Bytes that are no UTF-8 are told with U+FFFD, as Python's decoder has it.
 * Half of a surrogate pair is three such bytes, a character's beginning is
 * one. */
static void
test_no_text(void)
{
	is_str(text_of(libre_pack_error("\xed\xa0\x80\"\xe2\x82",
		   "\xff\u20ac\x7f")),
	    "{\"error\":\"\ufffd\ufffd\ufffd\\\"\ufffd\","
	    "\"details\":\"\ufffd\u20ac\x7f\"}",
	    "what is no text");
}

int
main(void)
{
	test_ids();
	test_names();
	test_refusals();
	test_file_refusals();
	test_request();
	test_places();
	test_hint();
	test_query();
	test_outcome();
	test_file_answers();
	test_no_text();
	return tap_done();
}
