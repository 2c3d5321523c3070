/* SPDX-License-Identifier: MIT */
#include "nodes_slots.h"

#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/text.h"

#define BLANKS " \t\r"

bool
slots_read(const char *text, bool slots[SLOTS])
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;

	for (char *part = strsep(&rest, ","); part != NULL;
	     part = strsep(&rest, ",")) {
		const char *first = strsep(&part, "-");
		int64_t from;
		int64_t to;

		if (!text_parse_int(first, 0, SLOTS - 1, &from) ||
		    !text_parse_int(part != NULL ? part : first, from,
			SLOTS - 1, &to))
			return false;
		while (from <= to)
			slots[from++] = true;
	}
	return true;
}

size_t
slots_add(struct buf *out, const bool slots[SLOTS])
{
	const char *comma = "";
	size_t count = 0;

	for (int i = 0; i < SLOTS; i++) {
		int first = i;

		if (!slots[i])
			continue;
		while (i + 1 < SLOTS && slots[i + 1])
			i++;
		buf_addf(out, first == i ? "%s%d" : "%s%d-%d", comma, first, i);
		count += (size_t)(i - first) + 1;
		comma = ",";
	}
	return count;
}

/* The words of a line, up to `most`; the others stay in the last one. */
static size_t
split(char *line, char *words[], size_t most)
{
	size_t count = 0;

	for (char *word = strsep(&line, BLANKS); word != NULL && count < most;
	     word = strsep(&line, BLANKS))
		if (*word != '\0')
			words[count++] = word;
	return count;
}

/* Is it "<kind> … NAME …", with the name as its place-th word? */
static bool
is_of(char *const words[], size_t count, const char *kind, size_t place,
    const char *name)
{
	return count > place && strcmp(words[0], kind) == 0 &&
	    (name == NULL || strcmp(words[place], name) == 0);
}

/* A line of slots without these. */
static void
add_without(struct buf *out, char *const words[], const bool slots[SLOTS])
{
	bool left[SLOTS] = { false };
	auto_buf struct buf list = BUF_INIT(NODES_FILE_MAX);

	(void)slots_read(words[1], left);
	for (int i = 0; i < SLOTS; i++)
		left[i] = left[i] && !slots[i];
	if (slots_add(&list, left) > 0)
		buf_addf(out, "slots %s %s\n", buf_str(&list), words[2]);
}

void
slots_give(struct buf *out, const char *text, const bool slots[SLOTS],
    const char *name)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	bool all[SLOTS];

	memcpy(all, slots, sizeof(all));
	for (const char *line = strsep(&rest, "\n"); line != NULL;
	     line = strsep(&rest, "\n")) {
		auto_free char *parts = xstrdup(line);
		char *words[4] = { NULL };
		size_t count = split(parts, words, 4);

		if (is_of(words, count, "slots", 2, name))
			(void)slots_read(words[1], all);
		else if (is_of(words, count, "slots", 2, NULL))
			add_without(out, words, slots);
		else if (*line != '\0' || rest != NULL)
			buf_addf(out, "%s\n", line);
	}
	buf_adds(out, "slots ");
	(void)slots_add(out, all);
	buf_addf(out, " %s\n", name);
}

void
slots_settle(struct buf *out, const char *text, const char *name,
    bool takes_part)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;

	for (char *line = strsep(&rest, "\n"); line != NULL;
	     line = strsep(&rest, "\n")) {
		auto_free char *parts = xstrdup(line);
		char *words[5] = { NULL };
		size_t count = split(parts, words, 5);
		bool has_address = count > 2 &&
		    strcmp(words[2], "joining") != 0;

		if (is_of(words, count, "node", 1, name))
			buf_addf(out, "node %s %s %s\n", name,
			    has_address ? words[2] : "",
			    takes_part ? "" : "joining");
		else if (takes_part || !is_of(words, count, "slots", 2, name))
			buf_addf(out, "%s\n", line);
	}
}
