#include "answer.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "texts.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/store/commands.h"

enum callback {
	CALLBACK_PONG = 1,
	CALLBACK_MESSAGE = 4,
	CALLBACK_DEFERRAL = 5,
	CALLBACK_DEFERRED_UPDATE = 6,
	CALLBACK_UPDATE = 7,
	CALLBACK_CHOICES = 8,
	CALLBACK_MODAL = 9,
};

enum component {
	COMPONENT_ROW = 1,
	COMPONENT_BUTTON = 2,
	COMPONENT_TEXT_INPUT = 4,
	COMPONENT_LABEL = 18,
};

enum { STYLE_SECONDARY = 2, STYLE_DANGER = 4, STYLE_PARAGRAPH = 2 };

#define FLAG_EPHEMERAL 64
#define EDITOR_MAX 4000
#define CUSTOM_ID_SIZE 64

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

char *
answer_pong(void)
{
	return answer_dump(json_pack("{s:i}", "type", CALLBACK_PONG));
}

char *
answer_message(const char *text)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:i, s:{s:[]}}}", "type",
	    CALLBACK_MESSAGE, "data", "content", text, "flags", FLAG_EPHEMERAL,
	    "allowed_mentions", "parse"));
}

char *
answer_deferral(bool is_private)
{
	if (!is_private)
		return answer_dump(json_pack("{s:i}", "type",
		    CALLBACK_DEFERRAL));
	return answer_dump(json_pack("{s:i, s:{s:i}}", "type",
	    CALLBACK_DEFERRAL, "data", "flags", FLAG_EPHEMERAL));
}

char *
answer_deferred_update(void)
{
	return answer_dump(json_pack("{s:i}", "type",
	    CALLBACK_DEFERRED_UPDATE));
}

char *
answer_update(const char *text)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:[], s:{s:[]}}}", "type",
	    CALLBACK_UPDATE, "data", "content", text, "components",
	    "allowed_mentions", "parse"));
}

char *
answer_no_choices(void)
{
	return answer_dump(json_pack("{s:i, s:{s:[]}}", "type",
	    CALLBACK_CHOICES, "data", "choices"));
}

static json_t *
button(int style, const char *label, enum action action, int64_t view_id)
{
	char custom_id[CUSTOM_ID_SIZE];

	(void)snprintf(custom_id, sizeof(custom_id), "%s:%" PRId64,
	    command_actions[action].name, view_id);
	return json_pack("{s:i, s:i, s:s, s:s}", "type", COMPONENT_BUTTON,
	    "style", style, "label", label, "custom_id", custom_id);
}

char *
answer_delete_question(const char *locale, int64_t view_id)
{
	json_t *yes = button(STYLE_DANGER, text_get(locale, TEXT_DELETE_YES),
	    ACTION_DELETE_YES, view_id);
	json_t *no = button(STYLE_SECONDARY, text_get(locale, TEXT_DELETE_NO),
	    ACTION_DELETE_NO, view_id);

	return answer_dump(
	    json_pack("{s:i, s:{s:s, s:i, s:{s:[]}, s:[{s:i, s:[o, o]}]}}",
		"type", CALLBACK_MESSAGE, "data", "content",
		text_get(locale, TEXT_DELETE_QUESTION), "flags", FLAG_EPHEMERAL,
		"allowed_mentions", "parse", "components", "type",
		COMPONENT_ROW, "components", yes, no));
}

/* value: what it is filled with, or NULL. */
static json_t *
editor_input(const char *name, const char *label, const char *hint,
    bool required, const char *value)
{
	return json_pack("{s:i, s:s, s:{s:i, s:s, s:i, s:i, s:b, s:s, s:s*}}",
	    "type", COMPONENT_LABEL, "label", label, "component", "type",
	    COMPONENT_TEXT_INPUT, "custom_id", name, "style", STYLE_PARAGRAPH,
	    "max_length", EDITOR_MAX, "required", required, "placeholder", hint,
	    "value", value);
}

char *
answer_editor(const char *locale, int64_t view_id, const char *input)
{
	char custom_id[CUSTOM_ID_SIZE];
	json_t *code = editor_input("code", text_get(locale, TEXT_EDITOR_CODE),
	    text_get(locale, TEXT_EDITOR_CODE_HINT), true, NULL);
	json_t *stdin_box = editor_input("stdin",
	    text_get(locale, TEXT_EDITOR_INPUT),
	    text_get(locale, TEXT_EDITOR_INPUT_HINT), false,
	    input[0] == '\0' ? NULL : input);

	(void)snprintf(custom_id, sizeof(custom_id), "%s:%" PRId64,
	    command_actions[ACTION_PY].name, view_id);
	return answer_dump(json_pack("{s:i, s:{s:s, s:s, s:[o, o]}}", "type",
	    CALLBACK_MODAL, "data", "custom_id", custom_id, "title",
	    text_get(locale, TEXT_EDITOR_TITLE), "components", code,
	    stdin_box));
}
