/* SPDX-License-Identifier: MIT */
#include "fast_path.h"

#include <string.h>

#include "base.h"

#include "../../protocol/frame.h"

/* Shorter with its NUL than in the packet, so there is room for all. */
static bool
take_variable(struct supervisor_fast *text, const struct frame_field *field)
{
	const unsigned char *equals = memchr(field->data, '=', field->len);

	if (equals == NULL || equals == field->data ||
	    memchr(field->data, '\0', field->len) != NULL)
		return false;
	memcpy(text->env + text->env_len, field->data, field->len);
	text->env_len += field->len;
	text->env[text->env_len++] = '\0';
	return true;
}

/* A folder of an api cell's: the interpreter judges any other. */
static bool
take_folder(const struct frame_field *field, uint64_t *folder)
{
	for (size_t i = 0; i < SUPERVISOR_SITE; i++) {
		if (strlen(base_folders[i]) == field->len &&
		    memcmp(base_folders[i], field->data, field->len) == 0) {
			*folder = i;
			return true;
		}
	}
	return false;
}

/* What a person's source is called: one that is no file's name is judged
 * elsewhere. */
static bool
take_name(struct supervisor_fast *text, const struct frame_field *field)
{
	const char *name = (const char *)field->data;

	if (field->len == 0 || field->len > LIMIT_NAME || name[0] == '.' ||
	    memchr(name, '/', field->len) != NULL ||
	    memchr(name, '\0', field->len) != NULL)
		return false;
	memcpy(text->env, name, field->len);
	text->env_len = field->len;
	return true;
}

/* What is no number.  False: no fast request has that. */
static bool
take_field(struct fast_path *fast, const struct frame_field *field)
{
	/* all others, as an array of enum frame_tag would not warn */
	static const char numbers[] = { TAG_OP, TAG_MERGE, TAG_WALL_MS,
		TAG_OUTPUT_MAX, TAG_COLLECT_FILES, TAG_COLLECT_BYTES,
		TAG_COLLECT_TOTAL };
	static const char others[] = { TAG_PLAIN, TAG_OUTPUT_MODE,
		TAG_COLLECT_HOW, TAG_COLLECT_MS, TAG_LIMIT_MEMORY,
		TAG_LIMIT_FILES, TAG_LIMIT_CPU, TAG_LIMIT_PROCESSES };

	if (field->tag == TAG_CWD)
		return field->len == 0;
	if (memchr(numbers, (int)field->tag, sizeof(numbers)) != NULL)
		return true;
	if (fast->personal)
		return field->tag == TAG_NAME ? take_name(fast->text, field) :
						field->tag == TAG_ECHO;
	if (field->tag == TAG_FOLDER)
		return take_folder(field, &fast->plan.folder);
	if (field->tag == TAG_ENV)
		return take_variable(fast->text, field);
	return memchr(others, (int)field->tag, sizeof(others)) != NULL;
}

/* 0 when there is none; what is negative is larger than any limit. */
static uint64_t
number(const struct frame_view *view, enum frame_tag tag)
{
	int64_t value = 0;

	(void)frame_get_int(view, tag, &value);
	return (uint64_t)value;
}

/* A field that is absent, or not allowed here, stays 0. */
static void
take_numbers(struct fast_path *fast, const struct frame_view *view)
{
	struct supervisor_plan *plan = &fast->plan;

	plan->wall_ms = number(view, TAG_WALL_MS);
	plan->output_max = number(view, TAG_OUTPUT_MAX);
	plan->drains = number(view, TAG_OUTPUT_MODE) == OUTPUT_DRAIN;
	plan->files = number(view, TAG_COLLECT_FILES);
	plan->bytes = number(view, TAG_COLLECT_BYTES);
	plan->total = number(view, TAG_COLLECT_TOTAL);
	plan->how = number(view, TAG_COLLECT_HOW);
	plan->ms = number(view, TAG_COLLECT_MS);
	fast->merge = number(view, TAG_MERGE) != 0;
	fast->text->echo = number(view, TAG_ECHO) != 0;
	fast->limits[FAST_MEMORY] = number(view, TAG_LIMIT_MEMORY);
	fast->limits[FAST_FILES] = number(view, TAG_LIMIT_FILES);
	fast->limits[FAST_CPU] = number(view, TAG_LIMIT_CPU);
	fast->limits[FAST_PROCESSES] = number(view, TAG_LIMIT_PROCESSES);
}

/* With a time and a name or an environment, and nothing negative. */
static bool
are_usual(const struct fast_path *fast)
{
	const struct supervisor_plan *plan = &fast->plan;
	uint64_t all = plan->output_max | plan->files | plan->bytes |
	    plan->total | plan->how | plan->ms;

	for (int i = 0; i < FAST_LIMITS; i++)
		all |= fast->limits[i];
	return all <= INT64_MAX && plan->wall_ms > 0 &&
	    plan->wall_ms <= LIMIT_WALL_MS &&
	    plan->folder < SUPERVISOR_FOLDER_COUNT && fast->text->env_len > 0;
}

bool
fast_read_head(struct fast_path *fast, struct supervisor_fast *text,
    bool personal, const void *packet, size_t len)
{
	struct frame_view view;
	struct frame_field field;
	size_t at = 0;

	memset(fast, 0, sizeof(*fast));
	fast->text = text;
	fast->personal = personal;
	fast->plan.folder = personal ? SUPERVISOR_WORKSPACE :
				       SUPERVISOR_FOLDER_COUNT;
	text->words_len = text->env_len = 0;
	if (!frame_parse(&view, packet, len) || view.kind != FRAME_REQUEST)
		return false;
	while (frame_next(&view, &at, &field))
		if (!take_field(fast, &field))
			return false;
	take_numbers(fast, &view);
	return number(&view, TAG_OP) == OP_RUN &&
	    (personal || number(&view, TAG_PLAIN) != 0) && are_usual(fast);
}

bool
fast_read_piece(struct fast_path *fast, const void *packet, size_t len)
{
	struct supervisor_fast *text = fast->text;
	struct frame_view view;
	const unsigned char *data = NULL;
	size_t size = 0;
	uint64_t part;

	if (!frame_parse(&view, packet, len) || view.kind != FRAME_BYTES ||
	    !frame_get_bytes(&view, TAG_DATA, &data, &size) || size == 0)
		return false;
	part = number(&view, TAG_PART);
	if (part == (fast->personal ? PART_SOURCE : PART_ARGS) &&
	    text->words_len == 0 && size <= sizeof(text->words)) {
		memcpy(text->words, data, size);
		text->words_len = size;
		return true;
	}
	/* it stays in its packet, which the caller keeps */
	if (part == PART_STDIN && fast->input == NULL) {
		fast->input = data;
		fast->input_len = size;
		return true;
	}
	return false;
}

bool
fast_is_whole(const struct fast_path *fast)
{
	static const char option[] = "-c"; /* and the end of the word */
	const struct supervisor_fast *text = fast->text;

	if (fast->personal)
		return text->words_len > 0;
	return text->words_len > sizeof(option) &&
	    memcmp(text->words, option, sizeof(option)) == 0 &&
	    text->words[text->words_len - 1] == '\0';
}
