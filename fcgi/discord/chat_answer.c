/* SPDX-License-Identifier: MIT */
#include "discord/chat_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "locale/locale.h"
#include "protocol/path.h"
#include "store/db.h"
#include "store/editor.h"
#include "store/sandbox.h"

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
#define SUGGEST_MOST 25	       /* Discord takes no more */
#define SUGGEST_CHARACTERS 100 /* of each */
#define CONTENT_MAX 2000       /* code points of a message */

static const struct {
	const char *outcome; /* of a refusal */
	const char *text;
} texts[TEXT_COUNT] = {
#define TEXT(id, text) REFUSAL(id, NULL, text)
#define REFUSAL(id, outcome, text) [TEXT_##id] = { outcome, text },
#include "discord/texts.def"
};

const char *
text_of(enum text_id id)
{
	return _(texts[id].text);
}

const char *
text_outcome(enum text_id id)
{
	return texts[id].outcome;
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
	/* an option has a name in each language */
	argument = locale_text(argument);
	text_add_clean(&clean, argument,
	    text_prefix(argument, strlen(argument), ARGUMENT_MAX));
	/* our texts put it between back-ticks, so it may not hold any */
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '`' || clean.data[i] == '\n')
			clean.data[i] = ' ';
	buf_add(out, text, (size_t)(place - text));
	buf_add(out, buf_str(&clean), clean.len);
	buf_adds(out, place + 2);
}

_Static_assert(COMMAND_SPELT_MAX <= NEAREST_NAME, "each has room");

#define EXAMPLE(line, kind, text, input, timeit) \
	{ \
		line, JOB_##kind, text, input, timeit \
	}

const struct help_example help_examples[HELP_EXAMPLES] = {
	EXAMPLE("/il py code:sum(range(101))", PY, "sum(range(101))", NULL,
	    false),
	EXAMPLE("/il py code:print(input()[::-1]) stdin:olleh", PY,
	    "print(input()[::-1])", "olleh", false),
	EXAMPLE("/il py code:import this", PY, "import this", NULL, false),
	EXAMPLE("/il py code:sorted(range(99)) timeit:True", PY,
	    "sorted(range(99))", NULL, true),
	EXAMPLE("/il look", LOOK, NULL, NULL, false),
};

/* ---- help ---- */

static void
near_add(struct buf *out, const struct nearest *near, const char *slash)
{
	if (near->count == 0)
		return;
	buf_addc(out, ' ');
	buf_adds(out, text_of(TEXT_NEAREST));
	for (size_t i = 0; i < near->count; i++)
		buf_addf(out, "%s `%s%s`", i > 0 ? "," : "", slash,
		    near->of[i].name);
}

void
help_add_near_command(struct buf *out, const char *name)
{
	struct nearest near = { .count = 0 };
	char spelt[COMMAND_SPELT_MAX];

	for (int kind = 0; kind < JOB_UNKNOWN; kind++) {
		if (command_spell((enum job_kind)kind, spelt))
			nearest_add(&near, name, commands[kind].name, spelt);
	}
	near_add(out, &near, "/");
}

void
help_add_near_option(struct buf *out, const struct command *command,
    const char *name)
{
	struct nearest near = { .count = 0 };

	for (int i = 0; i < COMMAND_OPTIONS_MAX; i++)
		if (command->options[i].name != NULL)
			nearest_add(&near, name, command->options[i].name,
			    command->options[i].name);
	near_add(out, &near, "");
}

void
help_add(struct buf *out)
{
	char spelt[COMMAND_SPELT_MAX];
	bool first = true;

	buf_adds(out, text_of(TEXT_HELP));
	for (int i = 0; i < HELP_EXAMPLES; i++)
		buf_addf(out, "\n%d. `%s`", i + 1, help_examples[i].line);
	buf_adds(out, "\n\n");
	buf_adds(out, text_of(TEXT_HELP_COMMANDS));
	for (int kind = 0; kind < JOB_UNKNOWN; kind++) {
		if (!command_spell((enum job_kind)kind, spelt))
			continue;
		buf_addf(out, "%s`/%s`", first ? " " : " · ", spelt);
		first = false;
	}
	buf_adds(out, "\n");
	buf_adds(out, text_of(TEXT_HELP_MENU));
}

/* ---- JSON ---- */

/* Returns the text of a value that json_pack() made, or could not: NULL. */
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
answer_dump_message(enum callback type, bool everybody, const char *text,
    json_t *components)
{
	return answer_dump(json_pack("{s:i, s:{s:s, s:o*, s:{s:[]}, s:o*}}",
	    "type", type, "data", "content", text, "flags",
	    everybody ? NULL : json_integer(FLAG_EPHEMERAL), "allowed_mentions",
	    "parse", "components", components));
}

char *
answer_message(const char *text, bool everybody)
{
	return answer_dump_message(CALLBACK_MESSAGE, everybody, text, NULL);
}

char *
answer_update(const char *text)
{
	return answer_dump_message(CALLBACK_UPDATE, true, text, json_array());
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

/* ---- suggestions ---- */

/* Would the path be read as another one?  "~" is the top, and Discord strips a
 * blank at the start. */
static bool
is_misread(const char *path)
{
	return (path[0] == '~' && (path[1] == '\0' || path[1] == '/')) ||
	    !name_is_fit(path, strlen(path));
}

/* Write a path relative to cwd, or from the top if it is elsewhere. */
static char *
write_path(const char *cwd, const char *path)
{
	size_t len = strlen(cwd);

	if (strncmp(path, cwd, len) != 0 || (len > 0 && path[len] != '/'))
		return xprintf("~/%s", path);
	path += len > 0 ? len + 1 : 0;
	return xprintf("%s%s", is_misread(path) ? "./" : "", path);
}

/* Append what is sent for a name, unless it is too long.  rest: the part that
 * replaces the typed one behind `folder` of its bytes; "": none does. */
static void
suggest_name(json_t *choices, const char *typed, int folder, const char *cwd,
    const char *name, const char *rest, bool directory)
{
	auto_free char *path = folder > 0 && *rest != '\0' ?
	    xprintf("%.*s%s", folder, typed, rest) :
	    write_path(cwd, name);
	auto_free char *value = xprintf("%s%s", path, directory ? "/" : "");

	if (text_codepoints(value, strlen(value)) <= SUGGEST_CHARACTERS)
		json_array_append_new(choices,
		    json_pack("{s:s, s:s}", "name", value, "value", value));
}

char *
answer_choices(struct db *db, const char *sandbox_id, const char *cwd,
    const char *kinds, const char *typed, struct err *err)
{
	const char *whole = strcmp(typed, "~") == 0 ? "~/" : typed;
	const char *last = path_name(whole);
	auto_free char *folder = xstrndup(whole, (size_t)(last - whole));
	json_auto_t *choices = json_array();
	char base[PATH_SIZE];

	if (path_resolve(cwd, folder, base) != PATH_OK)
		return NULL;
	auto_stmt struct stmt *s = db_bound(db, STATEMENT_NAMES_SUGGEST,
	    DB_VALUES(BIND(":sandbox_id", sandbox_id), BIND(":kinds", kinds),
		BIND(":base", base), BIND(":last", last),
		BIND(":needle",
		    whole + (strncmp(whole, "~/", 2) == 0 ? 2 : 0))));
	while (json_array_size(choices) < SUGGEST_MOST &&
	    db_step(db, s, err) == 1)
		suggest_name(choices, whole, (int)(last - whole), cwd,
		    db_column_text(s, 1), db_column_text(s, 2),
		    db_column_int(s, 0) != 0);
	if (json_array_size(choices) == 0)
		return NULL;
	return answer_dump(json_pack("{s:i, s:{s:O}}", "type", CALLBACK_CHOICES,
	    "data", "choices", choices));
}

/* ---- buttons ---- */

static json_t *
button(int style, const char *label, enum action action, int64_t id)
{
	auto_free char *custom_id = action_id(action, id);

	return json_pack("{s:i, s:i, s:s, s:s}", "type", COMPONENT_BUTTON,
	    "style", style, "label", label, "custom_id", custom_id);
}

/* A private message with a row of buttons, which are stolen. */
static char *
message_with(const char *text, json_t *buttons)
{
	return answer_dump_message(CALLBACK_MESSAGE, false, text,
	    json_pack("[{s:i, s:o}]", "type", COMPONENT_ROW, "components",
		buttons));
}

char *
answer_delete_question(enum text_id question, int64_t view_id)
{
	return message_with(text_of(question),
	    json_pack("[o, o]",
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
	return message_with(text, buttons);
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
	return message_with(buf_str(&text),
	    json_pack("[o]",
		button(STYLE_DANGER, text_of(TEXT_CANCEL), ACTION_CANCEL_OTHER,
		    job_id)));
}

char *
answer_editor_later(enum action action, int64_t view_id)
{
	return message_with(text_of(TEXT_EDITOR_LATER),
	    json_pack("[o]",
		button(STYLE_PRIMARY, text_of(TEXT_EDITOR_OPEN), action,
		    view_id)));
}

char *
answer_editor(int64_t view_id, const char *input)
{
	auto_free char *custom_id = action_id(ACTION_PY, view_id);
	json_t *inputs = json_pack("[o, o]",
	    editor_input("code", text_of(TEXT_EDITOR_CODE),
		text_of(TEXT_EDITOR_CODE_HINT), true, NULL),
	    editor_input("stdin", text_of(TEXT_EDITOR_INPUT),
		text_of(TEXT_EDITOR_INPUT_HINT), false, input));

	return answer_dump(editor_open(custom_id, text_of(TEXT_EDITOR_TITLE),
	    inputs));
}
