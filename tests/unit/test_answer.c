/* SPDX-License-Identifier: MIT */
/* fcgi/discord/chat_answer.c: the exact JSON that goes to Discord, and
 * Discord's limits on what we say. */
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "discord/chat_answer.h"
#include "tap.h"

static void
is(char *got, const char *want, const char *name)
{
	is_str(got, want, name);
	free(got);
}

static void
test_answers(void)
{
	is_str(ANSWER_JSON_PONG, "{\"type\":1}", "pong");
	is_str(ANSWER_JSON_PRIVATE, "{\"type\":5,\"data\":{\"flags\":64}}",
	    "a private deferral");
	is_str(ANSWER_JSON_PUBLIC, "{\"type\":5}", "a public one");
	is_str(ANSWER_JSON_UPDATE, "{\"type\":6}", "a press is taken");
	is_str(ANSWER_JSON_NO_CHOICES, "{\"type\":8,\"data\":{\"choices\":[]}}",
	    "no suggestions");
	is(answer_message("\"\n@everyone\xc3\xa9", false),
	    "{\"type\":4,\"data\":{"
	    "\"content\":\"\\\"\\n@everyone\xc3\xa9\",\"flags\":64,"
	    "\"allowed_mentions\":{\"parse\":[]}}}",
	    "a private message that mentions nobody");
	is(answer_update("done"),
	    "{\"type\":7,\"data\":{\"content\":\"done\","
	    "\"allowed_mentions\":{\"parse\":[]},\"components\":[]}}",
	    "an update takes the buttons away");
}

static void
test_question(void)
{
	char *json = answer_delete_question(TEXT_DELETE_QUESTION, 42);

	ok(strstr(json, "\"custom_id\":\"delete-yes:42\"") != NULL, "yes");
	ok(strstr(json, "\"custom_id\":\"delete-no:42\"") != NULL, "no");
	ok(strstr(json, "\"flags\":64") != NULL, "is private");
	ok(strstr(json, "\"allowed_mentions\":{\"parse\":[]}") != NULL,
	    "and mentions nobody");
	free(json);
}

static void
test_editor(void)
{
	char *json = answer_editor(INT64_MAX, NULL);

	ok(strstr(json, "\"custom_id\":\"py:9223372036854775807\"") != NULL,
	    "the editor carries its view");
	ok(strstr(json, "\"value\"") == NULL, "and is empty");
	free(json);
	json = answer_editor(1, "a\nb");
	ok(strstr(json, "\"value\":\"a\\nb\"") != NULL,
	    "input that was given is kept");
	free(json);
}

static void
test_texts(void)
{
	for (int i = 0; i < TEXT_COUNT; i++) {
		const char *text = text_of((enum text_id)i);
		size_t max = 1800;

		if (i == TEXT_DELETE_YES || i == TEXT_DELETE_NO ||
		    i == TEXT_EDITOR_OPEN || i == TEXT_CANCEL)
			max = 80;
		if (i >= TEXT_EDITOR_TITLE)
			max = 45;
		if (text == NULL || text[0] == '\0' ||
		    !utf8_valid(text, strlen(text)) ||
		    text_codepoints(text, strlen(text)) > max)
			ok(false, "a text is missing or too long");
	}
	ok(true, "every text is there and within Discord's limits");
}

static void
test_arguments(void)
{
	struct buf out = BUF_INIT(8000);
	char many[4001];

	text_add(&out, TEXT_TOO_LONG, "`\n\x1b[31m@x");
	ok(strncmp(buf_str(&out), "`  @x` is too long.", 19) == 0,
	    "an argument cannot break out");
	note("%s", buf_str(&out));
	buf_reset(&out);
	memset(many, 'a', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	text_add(&out, TEXT_TOO_LONG, many);
	ok(!out.overflow && out.len < 300, "and is cut");
	buf_reset(&out);
	text_add(&out, TEXT_GONE, "ignored");
	is_str(buf_str(&out), text_of(TEXT_GONE), "no place, no argument");
	buf_release(&out);
}

int
main(void)
{
	test_answers();
	test_question();
	test_editor();
	test_texts();
	test_arguments();
	return tap_done();
}
