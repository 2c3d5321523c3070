/* SPDX-License-Identifier: MIT */
#include "contract/jtree.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#define CHUNK 65536
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free
#define BOM "\xef\xbb\xbf"
#define UNIT 6 /* bytes of \uXXXX */

void *
jtree_array(struct jtree *doc, size_t count, size_t size)
{
	assert(count < INT_MAX / size);
	if (doc->memory == NULL) {
		doc->memory = xmalloc(sizeof(*doc->memory));
		obstack_begin(doc->memory, CHUNK);
	}
	return memset(obstack_alloc(doc->memory, (int)(count * size)), 0,
	    count * size);
}

void
jtree_release(struct jtree *doc)
{
	json_decref(doc->root);
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	*doc = (struct jtree){ .root = NULL };
}

const char *
jtree_text(const json_t *value)
{
	const char *text = json_string_value(value);

	return text != NULL && strlen(text) == json_string_length(value) ?
	    text :
	    NULL;
}

bool
jtree_is(const json_t *value, const char *text)
{
	const char *own = jtree_text(value);

	return own != NULL && strcmp(own, text) == 0;
}

/* ---- parsing ---- */

/* The bound that a text is beyond, or NULL.  A parser that has no bounds would
 * take memory of a hundred times its length. */
static const char *
find_excess(const char *s, size_t len)
{
	size_t values = 0;
	size_t depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted) {
			quoted = s[i] != '"';
			i += s[i] == '\\' ? 1 : 0;
			continue;
		}
		quoted = s[i] == '"';
		if (s[i] == '[' || s[i] == '{')
			depth++;
		else if ((s[i] == ']' || s[i] == '}') && depth > 0)
			depth--;
		else if (s[i] != ',' && s[i] != ':')
			continue;
		if (depth > JTREE_DEPTH_MAX)
			return "it is nested too deeply";
		if (++values > JTREE_VALUES_MAX)
			return "there are too many values";
	}
	return NULL;
}

/* Is a half there, the first (0xd8) or the second (0xdc) of a pair? */
static bool
is_half(const char *at, const char *end, unsigned char kind)
{
	unsigned char unit[2];

	return end - at >= UNIT && memcmp(at, "\\u", 2) == 0 &&
	    text_parse_hex(at + 2, 4, unit, sizeof(unit)) &&
	    (unit[0] & 0xfc) == kind;
}

/* Overwrite each half that stands alone.  False: there is none. */
static bool
mend_halves(char *at, size_t len)
{
	const char *end = at + len;
	bool found = false;

	while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
		bool first = is_half(at, end, 0xd8);

		if (first && is_half(at + UNIT, end, 0xdc)) {
			at += 2 * UNIT;
			continue;
		}
		if (first || is_half(at, end, 0xdc)) {
			memcpy(at + 2, "fffd", 4);
			found = true;
		}
		at += end - at > 1 ? 2 : 1;
	}
	return found;
}

bool
jtree_parse(struct jtree *doc, const char *body, size_t len,
    struct jtree_error *error)
{
	const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY;
	const char *wrong = find_excess(body, len);
	json_error_t fault = { .line = 0 };

	*doc = (struct jtree){ .root = NULL };
	if (len >= strlen(BOM) && memcmp(body, BOM, strlen(BOM)) == 0) {
		body += strlen(BOM);
		len -= strlen(BOM);
	}
	if (wrong == NULL)
		doc->root = json_loadb(body, len, flags, &fault);
	if (wrong == NULL && doc->root == NULL &&
	    memchr(body, '\\', len) != NULL) {
		auto_free char *copy = memcpy(xmalloc(len), body, len);

		if (mend_halves(copy, len))
			doc->root = json_loadb(copy, len, flags, &fault);
	}
	/* jansson ends at a NUL as if it were the end */
	if (doc->root != NULL && memchr(body, '\0', len) == NULL)
		return true;
	if (doc->root != NULL)
		fault = (json_error_t){ .text = "a NUL byte", .line = 1 };
	jtree_release(doc);
	if (wrong == NULL && json_error_code(&fault) == json_error_invalid_utf8)
		wrong = "it is not in UTF-8";
	error->is_syntax = wrong == NULL;
	if (error->is_syntax)
		(void)snprintf(error->text, sizeof(error->text),
		    "%s at line %d, column %d", fault.text, fault.line,
		    fault.column);
	else
		(void)snprintf(error->text, sizeof(error->text), "%s", wrong);
	return false;
}
