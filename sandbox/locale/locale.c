/* SPDX-License-Identifier: MIT */
#include "locale/locale.h"

#include <inttypes.h>
#include <string.h>

/*
 * Made of po/ (compile.py): languages[], LANGUAGES of them, and entries[], by
 * their English.  The forms of a plural stand one behind the other, each with a
 * NUL at its end.
 */
struct language {
	const char *name;
	size_t forms;
	size_t (*form)(uint64_t n);
};

#include "translations.h"

#define ENGLISH LANGUAGES

/* Language of the texts that are being made; ENGLISH where none is set. */
static size_t current = ENGLISH;

void
locale_set(const char *name)
{
	current = 0;
	while (current < LANGUAGES &&
	    (name == NULL || strcmp(name, languages[current].name) != 0))
		current++;
}

size_t
locale_count(void)
{
	return LANGUAGES;
}

const char *
locale_name(size_t index)
{
	return languages[index].name;
}

/* An answer has a few texts, and most comparisons end at the first
 * character. */
const char *
locale_text_in(size_t index, const char *text)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (strcmp(text, entries[i].english) == 0)
			return entries[i].in[index];
	return NULL;
}

const char *
locale_text(const char *text)
{
	const char *found = current == ENGLISH ? NULL :
						 locale_text_in(current, text);

	return found != NULL ? found : text;
}

const char *
locale_plural(const char *one, const char *many, int64_t n)
{
	const char *found = current == ENGLISH ? NULL :
						 locale_text_in(current, one);
	uint64_t amount = n < 0 ? -(uint64_t)n : (uint64_t)n;
	size_t form;

	if (found == NULL)
		return n == 1 ? one : many;
	form = languages[current].form(amount);
	if (form >= languages[current].forms)
		form = 0;
	while (form-- > 0)
		found += strlen(found) + 1;
	return found;
}
