/* SPDX-License-Identifier: MIT */
/* A message within Discord's limits, whatever it is made of: message.c. */
#include "worker/render/message.h"

#include <jansson.h>

#include "base/text.h"
#include "tap.h"
#include "worker/render/render.h"

static char *content; /* of the last message_json() */
static json_t *root;

static void
make(const struct message *m, bool with_files)
{
	char *text = message_json(m, with_files);

	free(content);
	json_decref(root);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	content = strdup(json_string_value(json_object_get(root, "content")));
	free(text);
}

static size_t
length(void)
{
	return text_codepoints(content, strlen(content));
}

static void
test_shape(void)
{
	struct message m;
	const json_t *parse;

	m = (struct message)MESSAGE_INIT;
	buf_addf(&m.lead, "Hello %d", 1);
	make(&m, true);
	parse = json_object_get(json_object_get(root, "allowed_mentions"),
	    "parse");
	is_str(content, "Hello 1", "a line");
	ok(json_is_array(parse) && json_array_size(parse) == 0,
	    "it mentions nobody");
	ok(json_is_array(json_object_get(root, "components")) &&
		json_array_size(json_object_get(root, "components")) == 0,
	    "old buttons go");
	is_int(json_array_size(json_object_get(root, "attachments")), 0,
	    "old files go");
	message_release(&m);
	make(&m, true);
	ok(length() > 0, "an empty message says something");
	message_release(&m);
}

static void
test_block(void)
{
	struct message m;

	m = (struct message)MESSAGE_INIT;
	buf_addf(&m.lead, "lead");
	buf_addf(&m.tail, "tail");
	message_set_block(&m, "x = 1\n\n", 7, "py", MESSAGE_CUT_END);
	make(&m, true);
	is_str(content, "lead\n```py\nx = 1\n```\ntail", "lead, block, tail");
	message_set_block(&m, "\x1b[31mred\x1b[0m\0\xff\r\n", 15, "",
	    MESSAGE_CUT_END);
	make(&m, true);
	is_str(content, "lead\n```\nred\xef\xbf\xbd\n```\ntail",
	    "colours, NUL and bad bytes");
	message_set_block(&m, "``````a``b`", 11, "", MESSAGE_CUT_END);
	make(&m, true);
	ok(strstr(content, "```") == content + 5, "the block opens once");
	ok(strstr(strstr(content, "```") + 3, "```") ==
		strrchr(content, '`') - 2,
	    "and is closed by us alone");
	message_release(&m);
}

static void
test_text(void)
{
	auto_buf struct buf text = BUF_INIT(65536);
	auto_message struct message m = MESSAGE_INIT;

	message_set_output(&m, "\033[31ma````\033[0mb``", 17,
	    MESSAGE_CUT_MIDDLE);
	buf_adds(&m.tail, "-# exit 0");
	buf_adds(&m.without, "`x` could not be attached");
	message_add_text(&text, &m);
	is_str(buf_str(&text),
	    "a````b``\n-# exit 0\n`x` could not be attached\n",
	    "as a text file: the block as it was");
}

static void
test_names(void)
{
	struct buf out = BUF_INIT(4096);

	message_add_name(&out, "a`b\nc\td", 20);
	is_str(buf_str(&out),
	    "`a\xcb\x8b"
	    "b c d`",
	    "one line, no markup");
	buf_reset(&out);
	message_add_name(&out, "0123456789", 4);
	is_str(buf_str(&out), "`0123\xe2\x80\xa6`", "cut");
	buf_reset(&out);
	message_add_name(&out, "a\xe2\x80\xae\xff", 20);
	is_str(buf_str(&out), "`a\\u202e\xef\xbf\xbd`",
	    "no bidi, no bad bytes");
	buf_reset(&out);
	message_add_name(&out, "", 20);
	is_str(buf_str(&out), "` `", "empty");
	buf_release(&out);
}

static void
fill(struct message *m, size_t lines, enum message_cut cut)
{
	struct buf text = BUF_INIT(1 << 22);

	for (size_t i = 0; i < lines; i++)
		buf_addf(&text, "line %zu \xf0\x9f\x90\x8d\n", i);
	message_set_block(m, buf_str(&text), text.len, "", cut);
	buf_release(&text);
}

static void
test_cut(void)
{
	struct message m;

	m = (struct message)MESSAGE_INIT;
	buf_addf(&m.tail, "exit 0");
	fill(&m, 10000, MESSAGE_CUT_MIDDLE);
	ok(!message_fits(&m), "it does not fit");
	make(&m, true);
	ok(length() <= 2000 && length() > 1700, "cut in the middle");
	ok(strstr(content, "```\nline 0 ") != NULL, "the start is there");
	ok(strstr(content, "line 9999 ") != NULL, "the end is there");
	ok(strstr(content, " lines left out") != NULL, "it says so");
	ok(strcmp(content + strlen(content) - 10, "```\nexit 0") == 0,
	    "the tail stands");

	fill(&m, 10000, MESSAGE_CUT_END);
	make(&m, true);
	ok(length() <= 2000 && strstr(content, "line 9999 ") == NULL &&
		strstr(content, "line 0 ") != NULL,
	    "cut at the end");
	fill(&m, 10000, MESSAGE_CUT_START);
	make(&m, true);
	ok(length() <= 2000 && strstr(content, "line 9999 ") != NULL &&
		strstr(content, "line 0 ") == NULL,
	    "cut at the start");
	message_release(&m);
}

static struct message
output(const char *text)
{
	struct message m = MESSAGE_INIT;

	message_set_output(&m, text, strlen(text), MESSAGE_CUT_MIDDLE);
	return m;
}

static void
test_output_lines(void)
{
	struct buf text = BUF_INIT(1 << 20);
	struct message m;

	for (int i = 1; i <= 20; i++)
		buf_addf(&text, "%d\n", i);
	m = output(buf_str(&text));
	ok(message_fits(&m), "twenty lines fit");
	make(&m, true);
	ok(strstr(content, "left out") == NULL, "all are shown");
	message_release(&m);
	buf_adds(&text, "21\n");
	m = output(buf_str(&text));
	ok(!message_fits(&m), "one more does not");
	make(&m, true);
	is_str(content,
	    "```\n1\n2\n3\n4\n5\n6\n\xe2\x80\xa6 2 lines left out "
	    "\xe2\x80\xa6\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n"
	    "20\n21\n```",
	    "both ends, twenty lines in all");
	message_release(&m);
	buf_reset(&text);
	for (int i = 0; i < 30; i++)
		buf_addf(&text, "%d%0250d\n", i, 0);
	m = output(buf_str(&text));
	make(&m, true);
	ok(length() <= 2000 && length() > 1000, "long lines: fewer of them");
	ok(strncmp(content, "```\n00000", 9) == 0 &&
		strstr(content, "\n290000") != NULL,
	    "still both ends");
	message_release(&m);
	message_set_output(&m, buf_str(&text), text.len, MESSAGE_CUT_START);
	make(&m, true);
	ok(strstr(content, "\n00000") == NULL &&
		strstr(content, "\n290000") != NULL,
	    "or one");
	message_release(&m);
	buf_release(&text);
}

static void
test_output_colours(void)
{
	struct buf text = BUF_INIT(1 << 20);
	struct message m = output("\033[31mred\033[0m ``\033[1m`\n");

	make(&m, true);
	is_str(content,
	    "```ansi\n\033[31mred \033[0m`\xe2\x80\x8b`\033[1m`\n```",
	    "colours, and no fence");
	message_release(&m);
	m = output("50%\r100%\033[31m\033[0m\n");
	make(&m, true);
	is_str(content, "```\n100%\n```", "none");
	message_release(&m);

	/* a colour that begins in the omitted part holds after it */
	buf_adds(&text, "\033[31m");
	for (int i = 1; i <= 30; i++)
		buf_addf(&text, "%d\n%s", i, i == 20 ? "\033[1;44m" : "");
	m = output(buf_str(&text));
	make(&m, true);
	ok(strstr(content,
	       "\n6\033[0m\n\xe2\x80\xa6 11 lines left out \xe2\x80\xa6"
	       "\n\033[31m18\n") != NULL,
	    "colours end before the line between, and go on after it");
	message_release(&m);

	/* each cut of each length */
	buf_reset(&text);
	for (int i = 0; i < 700; i++)
		buf_addf(&text, "\033[%d;%dm%d", 31 + i % 7, 1 + 3 * (i % 2),
		    i % 10);
	for (size_t n = text.len - 200; n < text.len; n++) {
		bool whole = true;

		message_set_output(&m, buf_str(&text), n, MESSAGE_CUT_MIDDLE);
		make(&m, true);
		for (const char *p = content; (p = strchr(p, '\033')) != NULL;)
			whole = whole && *++p == '[' &&
			    p[strspn(p, "[01234567;")] == 'm';
		if (!whole || length() > 2000 ||
		    strstr(content, " characters left out ") == NULL)
			ok(false, "a sequence is cut");
	}
	ok(true, "sequences count, and none is cut");
	message_release(&m);
	buf_release(&text);
}

/* Every length around the limit: it fits, or it is cut, but never too long. */
static void
test_edge(void)
{
	struct message m;
	char text[2100];
	bool good = true;
	bool fits_means_whole = true;

	memset(text, 'x', sizeof(text));
	for (size_t n = 1900; n < 2100; n++) {
		m = (struct message)MESSAGE_INIT;
		buf_addf(&m.tail, "exit 0");
		message_set_block(&m, text, n, "", MESSAGE_CUT_MIDDLE);
		make(&m, true);
		good = good && length() <= 2000;
		if (message_fits(&m) == (strstr(content, "left out") != NULL))
			fits_means_whole = false;
		message_release(&m);
	}
	ok(good, "never over 2,000");
	ok(fits_means_whole, "what fits is whole, what is cut says so");

	m = (struct message)MESSAGE_INIT;
	for (int i = 0; i < 1000; i++) {
		buf_addf(&m.lead, "lead %d ", i);
		buf_addf(&m.tail, "tail %d ", i);
		buf_addf(&m.without, "without %d ", i);
	}
	message_set_block(&m, text, sizeof(text), "python", MESSAGE_CUT_MIDDLE);
	make(&m, false);
	ok(length() <= 2000, "three long parts and a block");
	ok(strstr(content, "without 0") != NULL, "each has its place");
	make(&m, true);
	ok(strstr(content, "without 0") == NULL, "with files: not that part");
	message_release(&m);
	/* a name that is open would close in the next part */
	m = (struct message)MESSAGE_INIT;
	for (int i = 0; i < 893; i++)
		buf_addc(&m.tail, 'x');
	buf_adds(&m.tail, "`a`, `name`.");
	buf_adds(&m.without, "`<@1>`");
	make(&m, false);
	ok(strstr(content, "x`a`, \n`<@1>`") != NULL, "no name is cut open");
	message_release(&m);
	m = (struct message)MESSAGE_INIT;
	buf_adds(&m.tail, "use `a` or \\`\\`\\`");
	make(&m, true);
	ok(strstr(content, "or \\`\\`\\`") != NULL,
	    "a back-tick that is shown as it is opens nothing");
	message_release(&m);
}

static const char *
listed(size_t file, const char *key)
{
	return json_string_value(json_object_get(
	    json_array_get(json_object_get(root, "attachments"), file), key));
}

static const char *
attach(struct message *m, const char *path, const char *text)
{
	struct buf data = BUF_INIT(16);

	buf_adds(&data, text);
	return message_attach(m, path, &data);
}

static void
test_files(void)
{
	char long_name[4096] = "";
	struct buf large = { .data = malloc(1), .len = MESSAGE_BYTES_MAX + 1 };
	struct message m;
	const json_t *list;

	m = (struct message)MESSAGE_INIT;
	buf_addf(&m.lead, "x");
	is_str(attach(&m, "a/plot.png", "1"), "plot.png", "a file");
	is_str(attach(&m, "b/plot.png", "2"), "plot-2.png",
	    "another: names are unique");
	make(&m, true);
	list = json_object_get(root, "attachments");
	is_int(json_array_size(list), 2, "two are listed");
	is_str(json_string_value(json_object_get(json_array_get(list, 1),
		   "id")),
	    "1", "the id is a string");
	ok(listed(0, "title") == NULL, "whose name is its own has no title");
	is_str(listed(1, "title"), "plot.png", "the other has");
	make(&m, false);
	is_int(json_array_size(json_object_get(root, "attachments")), 0,
	    "none without files");
	is_int(m.file_count, 2, "two to upload");
	is_mem(m.files[1].data, m.files[1].len, "2", 1, "with their data");
	ok(json_object_get(json_array_get(list, 1), "description") == NULL,
	    "nothing is said of a file");
	memset(long_name, 'n', sizeof(long_name) - 1);
	message_describe(&m, "a picture: ", "b\x1b[1m\nplot.png");
	make(&m, true);
	is_str(listed(1, "description"), "a picture: b plot.png",
	    "unless it is");
	message_describe(&m, "a picture: ", long_name);
	make(&m, true);
	is_int(text_codepoints(listed(1, "description"),
		   strlen(listed(1, "description"))),
	    1024, "as much as Discord takes");
	for (int i = 2; i < 10; i++)
		(void)attach(&m, "f", "x");
	ok(attach(&m, "f", "x") == NULL, "ten at most");
	message_release(&m);
	ok(message_attach(&m, "f", &large) == NULL, "not too many bytes");
	message_release(&m);
}

static void
test_buttons(void)
{
	struct message m;
	const json_t *row;
	char *text;

	m = (struct message)MESSAGE_INIT;
	buf_addf(&m.lead, "x");
	message_add_button(&m, ACTION_LOOK_NEXT, INT64_MAX, "Next", 2, true);
	make(&m, true);
	row = json_object_get(json_array_get(json_object_get(root,
						 "components"),
				  0),
	    "components");
	is_str(json_string_value(json_object_get(json_array_get(row, 0),
		   "custom_id")),
	    "look-next:9223372036854775807", "its id");
	ok(json_is_true(json_object_get(json_array_get(row, 0), "disabled")),
	    "disabled");
	text = message_response_json(&m, ANSWER_DEFERRED);
	ok(strstr(text, "\"flags\":68") != NULL &&
		strstr(text, "\"type\":4") != NULL,
	    "as the first response it is private");
	free(text);
	text = message_response_json(&m, ANSWER_DEFERRED_UPDATE);
	ok(strstr(text, "\"flags\":4}") != NULL &&
		strstr(text, "\"type\":7") != NULL,
	    "or the new text of a button's message");
	free(text);
	message_release(&m);
}

/* As much output as may be set, none of it valid: three times as long when it
 * is cleaned. */
static void
test_huge(void)
{
	size_t len = (size_t)24 << 20;
	char *text = malloc(len);
	struct message m;

	if (text == NULL)
		abort();
	memset(text, 0xff, len);
	memcpy(text + len - 4, "end\n", 4);
	m = (struct message)MESSAGE_INIT;
	message_set_block(&m, text, len, "", MESSAGE_CUT_MIDDLE);
	free(text);
	make(&m, true);
	ok(length() <= MESSAGE_CONTENT_MAX, "a huge block fits");
	ok(strstr(content, "end\n```") != NULL, "and keeps its end");
	message_release(&m);
}

/* Sentences are put together, and a traceback gets its own line. */
static void
test_parts(void)
{
	auto_buf struct buf out = BUF_INIT(400);
	const struct run_outcome failed = { .end = RUN_RESULT,
		.result = { .reason = REASON_EXIT, .status = 1 } };

	buf_adds(&out, "One.");
	buf_adds(&out, message_part(&out, ". Two."));
	is_str(buf_str(&out), "One. Two.", "a full stop is not doubled");
	buf_reset(&out);
	buf_adds(&out, "1\xe3\x80\x82");
	buf_adds(&out,
	    message_part(&out,
		"\xe3\x80\x82"
		"2"));
	is_str(buf_str(&out),
	    "1\xe3\x80\x82"
	    "2",
	    "nor a wide one");
	buf_reset(&out);
	buf_adds(&out, message_part(&out, ". Two."));
	is_str(buf_str(&out), ". Two.", "nothing is before it");
	buf_reset(&out);
	buf_adds(&out,
	    "Traceback (most recent call last):\n? Traceback (most recent call "
	    "last):\nEOFError: EOF when reading a line\n");
	render_part_prompt(&failed, &out);
	ok(strstr(buf_str(&out), "\n? \nTraceback") != NULL,
	    "a question stands before the traceback that follows it");
}

int
main(void)
{
	test_shape();
	test_block();
	test_text();
	test_names();
	test_cut();
	test_output_lines();
	test_output_colours();
	test_edge();
	test_huge();
	test_files();
	test_buttons();
	free(content);
	json_decref(root);
	test_parts();
	return tap_done();
}
