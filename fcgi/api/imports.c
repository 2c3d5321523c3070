/* SPDX-License-Identifier: MIT */
#include "imports.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../../sandbox/base/preload.h"
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

/* Those whose packages it names. */
static uint32_t
named_in(const char *modules, const char *text, size_t len)
{
	uint32_t mask = 0;
	const char *name;
	size_t name_len;

	if (len > LOOKED_AT)
		len = LOOKED_AT;
	if (text == NULL || !has_word(text, len, "import", strlen("import")))
		return 0;
	for (size_t i = 0; (name = preload_next(&modules, &name_len)) != NULL;
	     i++)
		if (has_word(text, len, name, strcspn(name, ".,")))
			mask |= preload_bit(i);
	return mask;
}

/* Is it the program itself, which nobody imports? */
static bool
is_program(const char *path, const struct cell_request *request)
{
	return (request->path != NULL && strcmp(request->path, path) == 0) ||
	    (request->word_count > 0 && request->words[0].len == strlen(path) &&
		memcmp(request->words[0].data, path, strlen(path)) == 0);
}

static bool
is_own_module(const char *path)
{
	static const char *const ends[] = { ".py", ".pyc", ".so",
		"matplotlibrc" };
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (len >= strlen(ends[i]) &&
		    strcmp(path + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

int64_t
imports_of(const char *modules, const struct cell_request *request)
{
	uint32_t mask;

	for (size_t i = 0; i < request->input_count; i++)
		if (is_own_module(request->inputs[i].path) &&
		    !is_program(request->inputs[i].path, request))
			return PRELOAD_APART;
	mask = named_in(modules, request->source, request->source_len);

	for (size_t i = 0; i < request->word_count && i < PARTS_LOOKED_AT; i++)
		mask |= named_in(modules, request->words[i].data,
		    request->words[i].len);
	for (size_t i = 0; i < request->input_count && i < PARTS_LOOKED_AT; i++)
		mask |= named_in(modules, request->inputs[i].content.data,
		    request->inputs[i].content.len);
	return mask;
}
