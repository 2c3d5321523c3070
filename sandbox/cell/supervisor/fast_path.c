/* SPDX-License-Identifier: MIT */
#include "fast_path.h"

#include <string.h>

#include "base.h"

#include "../../protocol/frame.h"

/* A process has one run. */
struct supervisor_fast supervisor_fast;

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
take_field(struct supervisor *k, const struct frame_field *field)
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
	if (k->reads == SUPERVISOR_READS_SOURCE)
		return field->tag == TAG_NAME ?
		    take_name(&supervisor_fast, field) :
		    field->tag == TAG_ECHO;
	if (field->tag == TAG_FOLDER)
		return take_folder(field, &k->plan.folder);
	if (field->tag == TAG_ENV)
		return take_variable(&supervisor_fast, field);
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
take_numbers(struct supervisor *k, const struct frame_view *view)
{
	struct supervisor_plan *plan = &k->plan;

	plan->wall_ms = number(view, TAG_WALL_MS);
	plan->output_max = number(view, TAG_OUTPUT_MAX);
	plan->drains = number(view, TAG_OUTPUT_MODE) == OUTPUT_DRAIN;
	plan->files = number(view, TAG_COLLECT_FILES);
	plan->bytes = number(view, TAG_COLLECT_BYTES);
	plan->total = number(view, TAG_COLLECT_TOTAL);
	plan->how = number(view, TAG_COLLECT_HOW);
	plan->ms = number(view, TAG_COLLECT_MS);
	k->merge = number(view, TAG_MERGE) != 0;
	supervisor_fast.echo = number(view, TAG_ECHO) != 0;
	k->limits[FAST_MEMORY] = number(view, TAG_LIMIT_MEMORY);
	k->limits[FAST_FILES] = number(view, TAG_LIMIT_FILES);
	k->limits[FAST_CPU] = number(view, TAG_LIMIT_CPU);
	k->limits[FAST_PROCESSES] = number(view, TAG_LIMIT_PROCESSES);
}

/* With a time and a name or an environment, and nothing negative. */
static bool
are_usual(const struct supervisor *k)
{
	const struct supervisor_plan *plan = &k->plan;
	uint64_t all = plan->output_max | plan->files | plan->bytes |
	    plan->total | plan->how | plan->ms;

	for (int i = 0; i < FAST_LIMITS; i++)
		all |= k->limits[i];
	return all <= INT64_MAX && plan->wall_ms > 0 &&
	    plan->wall_ms <= LIMIT_WALL_MS &&
	    plan->folder < SUPERVISOR_FOLDER_COUNT &&
	    supervisor_fast.env_len > 0;
}

bool
fast_read_head(struct supervisor *k, const void *packet, size_t len)
{
	struct frame_view view;
	struct frame_field field;
	size_t at = 0;
	bool personal = k->reads == SUPERVISOR_READS_SOURCE;

	k->plan = (struct supervisor_plan){ .folder = personal ?
		    SUPERVISOR_WORKSPACE :
		    SUPERVISOR_FOLDER_COUNT };
	supervisor_fast.words_len = supervisor_fast.env_len = 0;
	if (!frame_parse(&view, packet, len) || view.kind != FRAME_REQUEST)
		return false;
	while (frame_next(&view, &at, &field))
		if (!take_field(k, &field))
			return false;
	take_numbers(k, &view);
	return number(&view, TAG_OP) == OP_RUN &&
	    (personal || number(&view, TAG_PLAIN) != 0) && are_usual(k);
}

bool
fast_read_piece(struct supervisor *k, const void *packet, size_t len)
{
	struct supervisor_fast *text = &supervisor_fast;
	struct frame_view view;
	const unsigned char *data = NULL;
	size_t size = 0;
	const uint64_t words = k->reads == SUPERVISOR_READS_SOURCE ?
	    PART_SOURCE :
	    PART_ARGS;
	uint64_t part;

	if (!frame_parse(&view, packet, len) || view.kind != FRAME_BYTES ||
	    !frame_get_bytes(&view, TAG_DATA, &data, &size) || size == 0)
		return false;
	part = number(&view, TAG_PART);
	if (part == words && text->words_len == 0 &&
	    size <= sizeof(text->words)) {
		memcpy(text->words, data, size);
		text->words_len = size;
		return true;
	}
	/* it stays in its packet, which the caller keeps */
	if (part == PART_STDIN && k->plan.input == 0) {
		k->input = data;
		k->plan.input = size;
		return true;
	}
	return false;
}

bool
fast_is_whole(const struct supervisor *k)
{
	static const char option[] = "-c"; /* and the end of the word */
	const struct supervisor_fast *text = &supervisor_fast;

	if (k->reads == SUPERVISOR_READS_SOURCE)
		return text->words_len > 0;
	return text->words_len > sizeof(option) &&
	    memcmp(text->words, option, sizeof(option)) == 0 &&
	    text->words[text->words_len - 1] == '\0';
}
