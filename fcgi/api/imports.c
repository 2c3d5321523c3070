/* SPDX-License-Identifier: MIT */
#include "imports.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "../../sandbox/protocol/cell.h"

#define LOOKED_AT 65536	   /* bytes of each text: imports stand at the top */
#define PARTS_LOOKED_AT 16 /* arguments, and files */

/* Is the name a word of the text? */
static bool
has_word(const char *text, size_t len, const char *name, size_t name_len)
{
	const char *end = text + len;
	const char *at = text;

	while ((at = memmem(at, (size_t)(end - at), name, name_len)) != NULL) {
		const char *after = at + name_len;

		if ((at == text ||
			(!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    (after == end ||
			(!isalnum((unsigned char)*after) && *after != '_')))
			return true;
		at++;
	}
	return false;
}

/* One of the packages that the modules are in. */
static bool
names_any(const char *modules, const char *text, size_t len)
{
	if (len > LOOKED_AT)
		len = LOOKED_AT;
	if (text == NULL || !has_word(text, len, "import", strlen("import")))
		return false;
	while (*modules != '\0') {
		size_t name_len = strcspn(modules, ".,");

		if (name_len > 0 && has_word(text, len, modules, name_len))
			return true;
		modules += strcspn(modules, ",");
		modules += strspn(modules, ",");
	}
	return false;
}

bool
imports_any(const char *modules, const struct cell_request *request)
{
	if (*modules == '\0')
		return false;
	if (names_any(modules, request->source, request->source_len))
		return true;
	for (size_t i = 0; i < request->word_count && i < PARTS_LOOKED_AT; i++)
		if (names_any(modules, request->words[i].data,
			request->words[i].len))
			return true;
	for (size_t i = 0; i < request->input_count && i < PARTS_LOOKED_AT; i++)
		if (names_any(modules, request->inputs[i].content.data,
			request->inputs[i].content.len))
			return true;
	return false;
}
