/* SPDX-License-Identifier: MIT */
#ifndef JTREE_H
#define JTREE_H

#include <obstack.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/*
 * The JSON of a request (RFC 8259), with or without a byte order mark, and
 * memory that lives as long.  All zero there is nothing to release.
 *
 * Half of a surrogate pair, which only \ud800 can write, becomes U+FFFD, as in
 * the encoder of browsers.
 */
struct jtree {
	json_t *root;
	struct obstack *memory;
};

#define JTREE_DEPTH_MAX 1000
#define JTREE_VALUES_MAX 1000000 /* with names, and what begins a list */

struct jtree_error {
	/* "unexpected token near 'x' at line 1, column 2" */
	char text[JSON_ERROR_TEXT_LENGTH + 64];
	bool is_syntax; /* else the encoding or one of the bounds, without a
			 * place */
};

/* Parse a body, which is not needed afterwards.  On false there is nothing to
 * release; else jtree_release(). */
bool jtree_parse(struct jtree *doc, const char *body, size_t len,
    struct jtree_error *error);
void jtree_release(struct jtree *doc);
/* An array of zeros that the document owns. */
void *jtree_array(struct jtree *doc, size_t count, size_t size);

/* Is there no value, or null? */
static inline bool
jtree_is_absent(const json_t *value)
{
	return value == NULL || json_is_null(value);
}

/* The text of a string without NUL; NULL: it is something else, or NULL. */
const char *jtree_text(const json_t *value);
/* Is the value that text?  NULL is none. */
bool jtree_is(const json_t *value, const char *text);

#endif
