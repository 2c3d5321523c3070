/* SPDX-License-Identifier: MIT */
/* fcgi/discord/interaction.c: from JSON to a typed struct. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "discord/interaction.h"
#include "store/commands.h"
#include "tap.h"

#define HEAD "\"id\":\"11\",\"application_id\":\"22\",\"token\":\"tok\","
#define USER "\"user\":{\"id\":\"33\"},"
#define ANY "\"type\":2," HEAD USER "\"data\":{\"name\":\"il\"}"
#define LEAVES(l) \
	"{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"type\":1," \
	"\"options\":[{\"name\":\"py\",\"type\":1,\"options\":[" l "]}]}}"
#define MODAL(parts) \
	"{\"type\":5," HEAD USER "\"data\":{\"custom_id\":\"py:1\"," \
	"\"components\":[" parts "]}}"

static struct interaction in;

static bool
parses(const char *json)
{
	struct err err = { .code = ERR_NONE };
	int result = interaction_parse(&in, json, strlen(json), &err);

	if (result < 0 && err.code != ERR_INPUT)
		ok(false, "a failure is an ERR_INPUT");
	return result == 0;
}

static void
good(const char *json, const char *name)
{
	ok(parses(json), name);
}

static void
bad(const char *json, const char *name)
{
	bool parsed = parses(json);

	ok(!parsed, name);
	if (parsed)
		interaction_release(&in);
}

static void
test_ping(void)
{
	good("{\"type\":1}", "a PING needs nothing else");
	is_int(in.type, INTERACTION_PING, "and is one");
	is_str(in.token, "", "its strings are empty, not NULL");
	interaction_release(&in);
	interaction_release(&in);
	good("{\"type\":1,\"id\":\"9\",\"user\":3,\"data\":[]}",
	    "whatever else is in it");
	is_int(in.id, 9, "its id is known if it has one");
	interaction_release(&in);
}

static void
test_not_json(void)
{
	bad("", "empty");
	bad("{", "cut off");
	bad("{\"type\":1}x", "bytes after it");
	bad("[]", "an array");
	bad("3", "a number");
	bad("{\"type\":1,\"a\":\"\xff\"}", "invalid UTF-8");
	bad("{\"type\":1,\"a\":\"\\ud80\"}", "half an escape");
	bad("{\"type\":1,\"a\":1e}", "half a number");
	bad("{\"type\":1,\"a\":1e400.1}", "no number at all");
}

/* A value that jansson cannot hold, in a field that il-fcgi does not read. */
static void
test_unread(void)
{
	static const char *const values[] = { "\"\\ud800\"", "\"\\udc00x\"",
		"\"\\ud800\\u0041\"", "\"\\ud800\\ud800\\udc00\"",
		"\"\\\\\\ud800\"", "\"\\uD800", "99999999999999999999",
		"-999999999999999999999999999999", "1e400", "-1.5E+9999",
		"{\"b\":1,\"b\":2}", "{\"\\ud800\":1}", "{\"\\u0000\" : 1}",
		"[[1e309,\"\\udfff\"]]" };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char json[2048];
		bool whole = values[i][1] != '\\' ||
		    values[i][strlen(values[i]) - 1] == '"';

		(void)snprintf(json, sizeof(json), "{\"a\":%s," ANY "}",
		    values[i]);
		ok(parses(json) == whole, values[i]);
		if (whole) {
			is_str(in.name, "il", "and all else is read");
			interaction_release(&in);
		}
	}
	good(LEAVES("{\"name\":\"code\",\"type\":3,\"value\":"
		    "\"a\\ud800\\ud83d\\ude00b\\udc00\"}"),
	    "half a pair in a text that is read");
	is_mem(in.values[0].text, in.values[0].len,
	    "a\0\xf0\x9f\x98\x80"
	    "b\0",
	    8, "is a NUL there");
	interaction_release(&in);
	bad(LEAVES("{\"name\":\"page\",\"type\":4,\"value\":"
		   "99999999999999999999}"),
	    "a number that is read");
	bad("{\"type\":2," USER "\"token\":\"t\",\"application_id\":\"1\","
	    "\"id\":\"1\\ud800\",\"data\":{\"name\":\"il\"}}",
	    "half a pair in an id");
}

static void
test_deep(void)
{
	size_t depth = 100000;
	char *json = xmalloc(depth + 1);

	memset(json, '[', depth);
	json[depth] = '\0';
	bad(json, "100,000 deep");
	free(json);
}

static void
test_types(void)
{
	bad("{}", "no type");
	bad("{\"type\":0}", "type 0");
	bad("{\"type\":6}", "type 6");
	bad("{\"type\":4294967297}", "a type that is 1 after a cut to 32 bits");
	bad("{\"type\":\"1\"}", "a type as text");
	bad("{\"type\":1.0}", "a type as a real number");
}

static void
test_envelope(void)
{
	good("{" ANY "}", "what is needed is enough");
	is_int(in.id, 11, "id");
	is_int(in.application_id, 22, "application");
	is_int(in.user_id, 33, "user");
	is_str(in.token, "tok", "token");
	is_str(in.locale, "", "no locale");
	is_int(in.attachment_limit, 10 << 20, "10 MiB is the default limit");
	ok(in.may_attach, "files may be attached by default");
	is_int(in.command_type, 1, "a slash command by default");
	is_str(in.sub, "", "no sub-command");
	interaction_release(&in);
	bad("{\"type\":2," USER "\"token\":\"t\",\"application_id\":\"1\","
	    "\"data\":{\"name\":\"il\"}}",
	    "no id");
	bad("{\"type\":2," USER "\"token\":\"t\",\"id\":\"1\","
	    "\"data\":{\"name\":\"il\"}}",
	    "no application");
	bad("{\"type\":2," HEAD "\"data\":{\"name\":\"il\"}}", "no user");
	bad("{\"type\":2," HEAD USER "\"x\":1}", "no data");
	bad("{\"type\":2," HEAD USER "\"data\":[]}", "data of another type");
	bad("{\"type\":2," HEAD USER "\"data\":{}}", "no name");
}

/* Fields that Discord added to its objects, and that may be null. */
static void
test_new_fields(void)
{
	good("{\"channel\":{\"type\":0,\"application_id\":null},"
	     "\"flags_new\":\"1\",\"member\":null," ANY "}",
	    "a channel of no application");
	ok(in.may_post, "may be posted in");
	interaction_release(&in);
	good("{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"resolved\":{"
	     "\"channels\":{\"1\":{\"app_permissions\":\"0\"}},\"attachments\":"
	     "{\"1\":{\"id\":\"1\",\"url\":\"u\",\"filename\":\"message.txt\","
	     "\"size\":5,\"flags\":8,\"description\":null}}}}}",
	    "an attachment without a type");
	ok(in.may_attach, "the permissions are the interaction's own");
	is_str(in.attachments[0].name, "message.txt", "it has its name");
	interaction_release(&in);
}

static void
test_token(void)
{
	static const char *const wrong[] = { "", "a/b", "..", "a b", "a?b",
		"a%2fb", "a#b", "a\\u0000b", "\xc3\xa9" };
	char json[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(json, sizeof(json),
		    "{\"type\":2,\"id\":\"1\","
		    "\"application_id\":\"1\",\"token\":\"%s\"," USER
		    "\"data\":{\"name\":\"il\"}}",
		    wrong[i]);
		bad(json, wrong[i]);
	}
}

static void
test_invoker(void)
{
	good("{\"type\":2," HEAD "\"member\":{\"user\":{\"id\":\"44\"}}," USER
	     "\"data\":{\"name\":\"il\"}}",
	    "a member and a user");
	is_int(in.user_id, 44, "the member's counts");
	interaction_release(&in);
	good("{\"type\":2," HEAD "\"member\":null," USER
	     "\"data\":{\"name\":\"il\"}}",
	    "a member that is null");
	is_int(in.user_id, 33, "the user's counts");
	interaction_release(&in);
	bad("{\"type\":2," HEAD "\"member\":{}," USER
	    "\"data\":{\"name\":\"il\"}}",
	    "a member without a user");
	bad("{\"type\":2," HEAD "\"user\":{\"id\":33},\"data\":{\"name\":"
	    "\"il\"}}",
	    "an id as a number");
	bad("{\"type\":2," HEAD "\"user\":{\"id\":\"-1\"},\"data\":{\"name\":"
	    "\"il\"}}",
	    "a negative id");
	bad("{\"type\":2," HEAD "\"user\":{\"id\":\"99999999999999999999\"},"
	    "\"data\":{\"name\":\"il\"}}",
	    "an id over 63 bits");
}

static void
test_limits(void)
{
	good("{" ANY ",\"attachment_size_limit\":1000,\"app_permissions\":"
	     "\"32768\",\"locale\":\"de\"}",
	    "limits");
	is_int(in.attachment_limit, 1000, "of attachments");
	ok(in.may_attach, "bit 15 allows files");
	is_str(in.locale, "de", "locale");
	interaction_release(&in);
	good("{" ANY ",\"attachment_size_limit\":99999999999,"
	     "\"app_permissions\":\"0\"}",
	    "extremes");
	is_int(in.attachment_limit, 500 << 20, "500 MiB at most");
	ok(!in.may_attach, "no bit, no files");
	interaction_release(&in);
	good("{" ANY ",\"attachment_size_limit\":-5,\"app_permissions\":7,"
	     "\"locale\":\"much-too-long-for-a-locale\"}",
	    "nonsense");
	is_int(in.attachment_limit, 10 << 20, "is as good as nothing");
	is_str(in.locale, "", "a long locale too");
	interaction_release(&in);
}

static void
test_options(void)
{
	const struct interaction_value *value;

	good(LEAVES("{\"name\":\"code\",\"type\":3,\"value\":\"a\\nb\"},"
		    "{\"name\":\"page\",\"type\":4,\"value\":-3},"
		    "{\"name\":\"share\",\"type\":5,\"value\":true},"
		    "{\"name\":\"file\",\"type\":11,\"value\":\"77\"},"
		    "{\"name\":\"who\",\"type\":6,\"value\":\"5\"}"),
	    "options of all types");
	is_str(in.name, "il", "command");
	is_str(in.sub, "py", "sub-command");
	is_int(in.value_count, 5, "five of them");
	value = interaction_value(&in, "code");
	is_str(value->text, "a\nb", "a string");
	is_int(value->len, 3, "and its length");
	is_int(interaction_value(&in, "page")->number, -3, "an integer");
	is_int(interaction_value(&in, "share")->number, 1, "a boolean");
	is_int(interaction_value(&in, "file")->number, 77, "an attachment");
	is_int(interaction_value(&in, "who")->type, 6,
	    "a user is of no use to us");
	ok(interaction_value(&in, "other") == NULL, "what is not there");
	interaction_release(&in);
	bad(LEAVES("{\"name\":\"code\",\"type\":3,\"value\":1}"),
	    "a string that is a number");
	bad(LEAVES("{\"name\":\"page\",\"type\":4,\"value\":\"1\"}"),
	    "an integer that is a string");
	bad(LEAVES("{\"name\":\"share\",\"type\":5,\"value\":1}"),
	    "a boolean that is a number");
	bad(LEAVES("{\"name\":\"code\",\"type\":3}"), "no value");
	bad(LEAVES("{\"type\":3,\"value\":\"x\"}"), "no name");
	bad(LEAVES("3"), "an option that is a number");
}

static void
test_nul(void)
{
	good(LEAVES("{\"name\":\"code\",\"type\":3,\"value\":\"a\\u0000b\"}"),
	    "a NUL in a value");
	is_int(in.values[0].len, 3, "the length says so");
	interaction_release(&in);
	bad("{\"type\":2," HEAD USER "\"data\":{\"name\":\"i\\u0000l\"}}",
	    "a NUL in a name");
	bad(LEAVES("{\"name\":\"a\\u0000\",\"type\":3,\"value\":\"x\"}"),
	    "a NUL in an option's name");
}

static void
test_many_options(void)
{
	struct buf json = BUF_INIT(65536);

	buf_adds(&json,
	    "{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"options\":[");
	for (int i = 0; i < INTERACTION_VALUES_MAX + 1; i++)
		buf_addf(&json,
		    "%s{\"name\":\"o%d\",\"type\":5,\"value\":true}",
		    i == 0 ? "" : ",", i);
	buf_adds(&json, "]}}");
	bad(buf_str(&json), "one option too many");
	buf_release(&json);
}

static void
test_groups(void)
{
	good(
	    "{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"options\":[{"
	    "\"name\":\"g\",\"type\":2,\"options\":[{\"name\":\"s\",\"type\":1,"
	    "\"options\":[{\"name\":\"x\",\"type\":5,\"value\":true}]}]}]}}",
	    "a group");
	is_str(in.sub, "g/s", "group and sub-command");
	is_int(in.value_count, 1, "and the leaf");
	interaction_release(&in);
}

static void
test_autocomplete(void)
{
	good("{\"type\":4," HEAD USER "\"data\":{\"name\":\"il\",\"options\":[{"
	     "\"name\":\"look\",\"type\":1,\"options\":[{\"name\":\"page\","
	     "\"type\":4,\"value\":\"1a\",\"focused\":true}]}]}}",
	    "a half-typed value of another type");
	is_int(in.type, INTERACTION_AUTOCOMPLETE, "is autocomplete");
	is_str(in.sub, "look", "of a sub-command");
	ok(in.focused == NULL, "no text is typed");
	interaction_release(&in);
	good("{\"type\":4," HEAD USER "\"data\":{\"name\":\"il\",\"options\":[{"
	     "\"name\":\"rm\",\"type\":1,\"options\":[{\"name\":\"other\","
	     "\"type\":3,\"value\":\"no\"},{\"name\":\"name\",\"type\":3,"
	     "\"value\":\"da\",\"focused\":true},{\"name\":\"more\","
	     "\"type\":3,\"value\":\"no\",\"focused\":true}]}]}}",
	    "a half-typed text");
	is_str(in.focused->name, "name", "the first that is typed");
	is_str(in.focused->text, "da", "as far as it is");
	is_str(in.values[0].text, "", "others are not kept");
	interaction_release(&in);
	good("{\"type\":4," HEAD USER "\"data\":{\"name\":\"il\",\"options\":[{"
	     "\"name\":\"rm\",\"type\":1,\"options\":[{\"name\":\"name\","
	     "\"type\":3,\"value\":[1],\"focused\":true}]}]}}",
	    "a text that is none");
	is_str(in.focused->text, "", "is empty");
	interaction_release(&in);
}

static void
test_attachments(void)
{
	const struct interaction_attachment *a;

	good(
	    "{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"resolved\":{"
	    "\"attachments\":{"
	    "\"1\":{\"id\":\"1\",\"url\":\"u\",\"filename\":\"f\",\"size\":5},"
	    "\"2\":{\"id\":\"2\",\"url\":\"u\",\"filename\":\"f\"},"
	    "\"3\":{\"id\":\"3\",\"filename\":\"f\",\"size\":5},"
	    "\"4\":{\"id\":\"4\",\"url\":\"u\",\"filename\":\"f\",\"size\":-1},"
	    "\"5\":7}}}}",
	    "attachments, good and bad");
	is_int(in.attachment_count, 1, "one is good");
	a = interaction_attachment(&in, 1);
	ok(a != NULL && strcmp(a->url, "u") == 0 && strcmp(a->name, "f") == 0 &&
		a->size == 5,
	    "this one");
	ok(interaction_attachment(&in, 2) == NULL, "the others are missing");
	interaction_release(&in);
}

/* The name of an attachment with this title and file name. */
static void
names(const char *title, const char *filename, const char *want)
{
	char json[2048];

	(void)snprintf(json, sizeof(json),
	    "{\"type\":2," HEAD USER "\"data\":{\"name\":\"il\",\"resolved\":{"
	    "\"attachments\":{\"1\":{\"id\":\"1\",\"url\":\"u\",\"title\":%s,"
	    "\"filename\":\"%s\",\"size\":5}}}}}",
	    title, filename);
	good(json, title);
	is_str(in.attachments[0].name, want, title);
	interaction_release(&in);
}

static void
test_titles(void)
{
	char text[400];

	names("\"\xd0\xb3 1.png\"", "png", "\xd0\xb3 1.png");
	names("\"\xd0\xb3\"", "file.png", "\xd0\xb3.png");
	names("\"v1.2 b\"", "v1.2_b", "v1.2 b");
	names("null", "a.b", "a.b");
	names("\"\"", "a.b", "a.b");
	names("7", "a.b", "a.b");
	names("\"../x\"", "x", "x");
	names("\"a\\nb\"", "ab", "ab");
	memset(text, 'l', sizeof(text));
	text[0] = text[298] = '"';
	text[299] = '\0';
	names(text, "l.txt", "l.txt");
}

static void
test_component(void)
{
	good("{\"type\":3," HEAD USER "\"data\":{\"custom_id\":\"a:1\","
	     "\"component_type\":2}}",
	    "a button");
	is_str(in.custom_id, "a:1", "its custom_id");
	interaction_release(&in);
	bad("{\"type\":3," HEAD USER "\"data\":{\"component_type\":2}}",
	    "without custom_id");
}

static void
test_modal(void)
{
	good(MODAL("{\"type\":18,\"component\":{\"type\":4,\"custom_id\":"
		   "\"code\",\"value\":\"1\"}},"
		   "{\"type\":18,\"component\":{\"type\":19,\"custom_id\":"
		   "\"files\",\"values\":[\"1\"]}},"
		   "{\"type\":10},{\"type\":99,\"x\":{}},7"),
	    "labels, and things unknown");
	is_int(in.value_count, 1, "one text input");
	is_str(interaction_value(&in, "code")->text, "1", "in a label");
	interaction_release(&in);
	good(MODAL("{\"type\":1,\"components\":[{\"type\":4,\"custom_id\":"
		   "\"code\",\"value\":\"2\"}]}"),
	    "rows");
	is_str(interaction_value(&in, "code")->text, "2", "in a row");
	interaction_release(&in);
	good(MODAL("{\"type\":18,\"component\":{\"type\":4,\"custom_id\":"
		   "\"code\"}}"),
	    "an input without a value");
	is_str(interaction_value(&in, "code")->text, "", "is empty");
	is_int(interaction_value(&in, "code")->type, OPTION_STRING, "a text");
	interaction_release(&in);
	good(MODAL("{\"type\":18,\"component\":{\"type\":4,\"custom_id\":"
		   "\"code\",\"value\":null}}"),
	    "a value that is null");
	is_str(interaction_value(&in, "code")->text, "", "is empty, too");
	interaction_release(&in);
	bad(MODAL("{\"type\":18,\"component\":{\"type\":4,\"custom_id\":"
		  "\"code\",\"value\":3}}"),
	    "a value that is a number");
	bad(MODAL("{\"type\":18,\"component\":{\"type\":4,\"value\":\"3\"}}"),
	    "an input without custom_id");
	bad("{\"type\":5," HEAD USER "\"data\":{\"custom_id\":\"py:1\"}}",
	    "no components");
}

#define MENU(resolved) \
	"{\"type\":2," HEAD USER "\"data\":{\"name\":\"Run Python\"," \
	"\"type\":3,\"target_id\":\"7\"" resolved "}}"
#define MESSAGE(fields) \
	MENU(",\"resolved\":{\"messages\":{\"7\":{" fields "}}}")
#define SCRIPT "{\"id\":\"9\",\"filename\":\"a.py\",\"size\":5,\"url\":\"u\"}"

static void
test_message(void)
{
	good(MESSAGE("\"content\":\"h\\u0000i\",\"attachments\":[" SCRIPT
		     ",{\"id\":4},3]"),
	    "the message of a menu");
	is_int(in.command_type, 3, "is that of a message");
	ok(in.message.found && !in.message.shows, "it is there");
	is_int(in.message.len, 3, "its text, with a NUL");
	is_int(in.attachment_count, 1, "its files, without odd ones");
	is_str(in.attachments[0].name, "a.py", "its files");
	interaction_release(&in);
	good(MESSAGE("\"content\":\"\",\"message_snapshots\":[{\"message\":{"
		     "\"content\":\"hi\",\"attachments\":[" SCRIPT "]}}]"),
	    "one that forwards another");
	is_str(in.message.text, "hi", "is what it forwards");
	is_int(in.attachment_count, 1, "with its files");
	interaction_release(&in);
	good(MESSAGE("\"embeds\":[{}],\"content\":3"), "an embed");
	ok(in.message.found && in.message.shows, "shows something");
	is_str(in.message.text, "", "and says nothing");
	interaction_release(&in);
	good(MENU(""), "a deleted message");
	ok(!in.message.found, "is not there");
	is_str(in.message.text, "", "and says nothing");
	interaction_release(&in);
	good(MENU(",\"resolved\":{\"messages\":{\"8\":{\"content\":\"x\"}}}"),
	    "another message");
	ok(!in.message.found, "is not the one");
	interaction_release(&in);
}

int
main(void)
{
	test_ping();
	test_not_json();
	test_unread();
	test_deep();
	test_types();
	test_envelope();
	test_message();
	test_new_fields();
	test_token();
	test_invoker();
	test_limits();
	test_options();
	test_nul();
	test_many_options();
	test_groups();
	test_autocomplete();
	test_attachments();
	test_titles();
	test_component();
	test_modal();
	is_int(interaction_created_ms(INT64_C(175928847299117063)),
	    INT64_C(1462015105796), "an id tells when it was made");
	return tap_done();
}
