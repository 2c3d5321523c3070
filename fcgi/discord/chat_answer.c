/* SPDX-License-Identifier: MIT */
#include "discord/chat_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
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

const char *
text_outcome(enum text_id id)
{
	static const char *const outcomes[TEXT_COUNT] = {
#define TEXT(id, text)
#define REFUSAL(id, outcome, text) [TEXT_##id] = (outcome),
#include "discord/texts.def"
	};

	return outcomes[id];
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

/* ---- suggestions ---- */

/* Ranks of names that fit.  The first two complete the typed text as the
 * commands resolve it. */
enum rank {
	RANK_BEGINS,
	RANK_BEGINS_CASELESS,
	RANK_NAME, /* the last name of the path begins with it */
	RANK_INSIDE,
};

void
suggest_begin(struct suggest *s, const char *cwd, const char *typed)
{
	char folder[PATH_SIZE];

	if (strcmp(typed, "~") == 0)
		typed = "~/";
	*s = (struct suggest){ .cwd = cwd, .typed = typed };
	s->last = path_name(typed);
	s->needle = strncmp(typed, "~/", 2) == 0 ? typed + 2 : typed;
	if (s->last - typed >= PATH_SIZE)
		return;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(s->last - typed),
	    typed);
	s->has_base = path_resolve(cwd, folder, s->base) == PATH_OK;
}

/* The part of a path below a directory, "" being the top; NULL: the path is
 * elsewhere. */
static const char *
below(const char *folder, const char *path)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) != 0)
		return NULL;
	if (len == 0)
		return path;
	return path[len] == '/' ? path + len + 1 : NULL;
}

static int
depth_of(const char *path)
{
	int depth = 0;

	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth;
}

/* Would the path be read as another one?  "~" is the top, and Discord strips a
 * blank at the start. */
static bool
is_misread(const char *path)
{
	return (path[0] == '~' && (path[1] == '\0' || path[1] == '/')) ||
	    !name_is_fit(path, strlen(path));
}

/* Write a path relative to cwd, or from the top if it is elsewhere. */
static int
write_path(const struct suggest *s, const char *path, const char *end,
    char *value)
{
	const char *rest = below(s->cwd, path);

	if (rest == NULL)
		return snprintf(value, SUGGEST_BYTES, "~/%s%s", path, end);
	return snprintf(value, SUGGEST_BYTES, "%s%s%s",
	    is_misread(rest) ? "./" : "", rest, end);
}

/* Find how the name fits, and the text to send for it.  False: it does not. */
static bool
match(const struct suggest *s, const struct name *name, struct suggestion *it)
{
	const char *rest = below(s->base, name->text);
	size_t len = strlen(s->last);
	const char *end = name->kind == NAME_DIRECTORY ? "/" : "";
	int folder = (int)(s->last - s->typed);
	int written;

	*it = (struct suggestion){ .kind = name->kind };
	if (rest != NULL && strncasecmp(rest, s->last, len) == 0) {
		it->rank = strncmp(rest, s->last, len) == 0 ?
		    RANK_BEGINS :
		    RANK_BEGINS_CASELESS;
		it->depth = depth_of(rest);
		written = folder == 0 ?
		    write_path(s, name->text, end, it->value) :
		    snprintf(it->value, SUGGEST_BYTES, "%.*s%s%s", folder,
			s->typed, rest, end);
	} else if (*s->needle != '\0' &&
	    strcasestr(name->text, s->needle) != NULL) {
		const char *own = path_name(name->text);

		it->rank = strncasecmp(own, s->needle, strlen(s->needle)) == 0 ?
		    RANK_NAME :
		    RANK_INSIDE;
		it->depth = depth_of(name->text);
		written = write_path(s, name->text, end, it->value);
	} else {
		return false;
	}
	return written >= 0 && written < SUGGEST_BYTES &&
	    text_codepoints(it->value, strlen(it->value)) <= SUGGEST_CHARACTERS;
}

static int
compare_suggestions(const struct suggestion *a, const struct suggestion *b)
{
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->depth != b->depth)
		return a->depth - b->depth;
	if (a->kind != b->kind)
		return (int)a->kind - (int)b->kind;
	return strcmp(a->value, b->value);
}

void
suggest_consider(void *suggest, const struct name *name)
{
	struct suggest *s = suggest;
	struct suggestion it;
	size_t at;

	if (!s->has_base || !match(s, name, &it))
		return;
	at = s->count;
	while (at > 0 && compare_suggestions(&it, &s->best[at - 1]) < 0)
		at--;
	/* a package of two Pythons has one name */
	if (at == SUGGEST_MOST ||
	    (at > 0 && compare_suggestions(&it, &s->best[at - 1]) == 0))
		return;
	if (s->count < SUGGEST_MOST)
		s->count++;
	memmove(&s->best[at + 1], &s->best[at],
	    (s->count - 1 - at) * sizeof(s->best[0]));
	s->best[at] = it;
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
answer_choices(const struct suggest *s)
{
	json_t *choices = json_array();

	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(choices,
		    json_pack("{s:s, s:s}", "name", s->best[i].value, "value",
			s->best[i].value));
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
