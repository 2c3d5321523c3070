/* SPDX-License-Identifier: MIT */
#include "discord/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "discord/suggest.h"
#include "locale/locale.h"
#include "store/editor.h"

enum callback {
	CALLBACK_MESSAGE = 4,
	CALLBACK_UPDATE = 7,
	CALLBACK_CHOICES = 8,
};

enum component {
	COMPONENT_ROW = 1,
	COMPONENT_BUTTON = 2,
};

enum { STYLE_PRIMARY = 1, STYLE_SECONDARY = 2, STYLE_DANGER = 4 };

#define FLAG_EPHEMERAL 64
#define ARGUMENT_MAX 100
#define CONTENT_MAX 2000 /* code points of a message */

static const char *const texts[TEXT_COUNT] = {
#define TEXT(id, text) [TEXT_##id] = (text),
#include "discord/texts.def"
};

const char *
text_of(enum text_id id)
{
	return _(texts[id]);
}

void
text_add(struct buf *out, enum text_id id, const char *argument)
{
	auto_buf struct buf clean = BUF_INIT(2048);
	const char *text = text_of(id);
	const char *place = strstr(text, "{}");

	if (place == NULL) {
		buf_adds(out, text);
		return;
	}
	argument = locale_text(argument); /* an option has a name in each */
	text_add_clean(&clean, argument,
	    text_prefix(argument, strlen(argument), ARGUMENT_MAX));
	/* In our texts it stands in back-ticks, so it may not hold any. */
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '`' || clean.data[i] == '\n')
			clean.data[i] = ' ';
	buf_add(out, text, (size_t)(place - text));
	buf_add(out, buf_str(&clean), clean.len);
	buf_adds(out, place + 2);
}

/* The text of a value that json_pack() made; NULL means that it could not. */
static char *
answer_dump(json_t *value)
{
	char *text = value == NULL ? NULL : json_dumps(value, JSON_COMPACT);

	json_decref(value);
	if (text == NULL)
		log_fatal(1, "out of memory for an answer");
	return text;
}

/* components: stolen; NULL: none. */
static char *
private_message(const char *text, json_t *components)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:i, s:{s:[]}, s:o*}}",
	    "type", CALLBACK_MESSAGE, "data", "content", text, "flags",
	    FLAG_EPHEMERAL, "allowed_mentions", "parse", "components",
	    components));
}

char *
answer_message(const char *text)
{
	return private_message(text, NULL);
}

char *
answer_message_public(const char *text)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:{s:[]}}}", "type",
	    CALLBACK_MESSAGE, "data", "content", text, "allowed_mentions",
	    "parse"));
}

char *
answer_update(const char *text)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:[], s:{s:[]}}}", "type",
	    CALLBACK_UPDATE, "data", "content", text, "components",
	    "allowed_mentions", "parse"));
}

char *
answer_below(char *json, const char *words)
{
	json_t *root = json_loads(json, 0, NULL);
	json_t *data = json_object_get(root, "data");
	const char *said = json_string_value(json_object_get(data, "content"));
	auto_free char *more = NULL;

	if (said != NULL)
		more = xprintf("%s%s", said, words);
	if (more == NULL || text_codepoints(more, strlen(more)) > CONTENT_MAX) {
		json_decref(root);
		return json;
	}
	free(json);
	json_object_set_new(data, "content", json_string(more));
	return answer_dump(root);
}

char *
answer_choices(const struct suggestion *list, size_t count)
{
	json_t *choices = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(choices,
		    json_pack("{s:s, s:s}", "name", list[i].value, "value",
			list[i].value));
	return answer_dump(json_pack("{s:i, s:{s:o}}", "type", CALLBACK_CHOICES,
	    "data", "choices", choices));
}

static json_t *
button(int style, const char *label, enum action action, int64_t id)
{
	auto_free char *custom_id = xprintf("%s:%" PRId64,
	    command_actions[action].name, id);

	return json_pack("{s:i, s:i, s:s, s:s}", "type", COMPONENT_BUTTON,
	    "style", style, "label", label, "custom_id", custom_id);
}

char *
answer_delete_question(enum text_id question, int64_t view_id)
{
	return private_message(text_of(question),
	    json_pack("[{s:i, s:[o, o]}]", "type", COMPONENT_ROW, "components",
		button(STYLE_DANGER, text_of(TEXT_DELETE_YES),
		    ACTION_DELETE_YES, view_id),
		button(STYLE_SECONDARY, text_of(TEXT_DELETE_NO),
		    ACTION_DELETE_NO, view_id)));
}

char *
answer_examples(const char *text, int count)
{
	json_t *buttons = json_array();

	for (int i = 1; i <= count; i++) {
		auto_free char *label = xprintf("%d", i);

		json_array_append_new(buttons,
		    button(STYLE_PRIMARY, label, ACTION_EXAMPLE, i));
	}
	return private_message(text,
	    json_pack("[{s:i, s:o}]", "type", COMPONENT_ROW, "components",
		buttons));
}

/* A private message with one button. */
static char *
message_with(const char *text, int style, enum text_id label,
    enum action action, int64_t id)
{
	return private_message(text,
	    json_pack("[{s:i, s:[o]}]", "type", COMPONENT_ROW, "components",
		button(style, text_of(label), action, id)));
}

char *
answer_running(int64_t job_id, bool fault)
{
	auto_buf struct buf text = BUF_INIT(4 * CONTENT_MAX);
	auto_free char *reference = xprintf("%" PRId64, job_id);

	if (fault) {
		text_add(&text, TEXT_OUR_FAULT, reference);
		buf_adds(&text, "\n");
	}
	text_add(&text, TEXT_RUNNING, "");
	return message_with(buf_str(&text), STYLE_DANGER, TEXT_CANCEL,
	    ACTION_CANCEL_OTHER, job_id);
}

char *
answer_editor_later(enum action action, int64_t view_id)
{
	return message_with(text_of(TEXT_EDITOR_LATER), STYLE_PRIMARY,
	    TEXT_EDITOR_OPEN, action, view_id);
}

char *
answer_editor(int64_t view_id, const char *input)
{
	auto_free char *custom_id = editor_id(ACTION_PY, view_id);
	json_t *inputs = json_pack("[o, o]",
	    editor_input("code", text_of(TEXT_EDITOR_CODE),
		text_of(TEXT_EDITOR_CODE_HINT), true, NULL),
	    editor_input("stdin", text_of(TEXT_EDITOR_INPUT),
		text_of(TEXT_EDITOR_INPUT_HINT), false, input));

	return answer_dump(editor_open(custom_id, text_of(TEXT_EDITOR_TITLE),
	    inputs));
}
