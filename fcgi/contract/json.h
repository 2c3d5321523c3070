/* SPDX-License-Identifier: MIT */
#ifndef JSON_H
#define JSON_H

#include <obstack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct buf;

/*
 * The JSON of requests and answers: a body as a tree of values, within bounds;
 * the members of an object as a struct, by a table; texts and values as they
 * are written.  Then base64, and UTF-8 that comes in pieces.
 */

/* ---- bodies ---- */

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

/* ---- members ---- */

/*
 * The body of a request, read by a table: each row is a member of an object,
 * with its bounds and with the place in a struct where its value goes.
 */
enum field_kind {
	FIELD_ANY,     /* the value as it is: const json_t * */
	FIELD_TEXT,    /* any string: struct cell_bytes */
	FIELD_WORD,    /* the same, not empty and without NUL */
	FIELD_STRING,  /* a string without NUL: const char * */
	FIELD_INT,     /* int64_t */
	FIELD_WHOLE,   /* int64_t; 5.0 is 5 */
	FIELD_NUMBER,  /* double */
	FIELD_BOOL,    /* bool */
	FIELD_LIST,    /* struct field_list */
	FIELD_STRINGS, /* const char **, of FIELD_STRING; NULL at the end */
};

/* Members that are not there leave their place alone, but for numbers and
 * truths, which are set to `standard`. */
struct field {
	const char *name; /* NULL: the end of the table */
	enum field_kind kind;
	size_t offset;
	bool required;
	bool nullable; /* null is as if it were not there */
	int64_t standard;
	int64_t min; /* of a number */
	int64_t max; /* of a number, of bytes, of items; 0: no bound */
	/* Of a list: the rows of its items, which are objects, and the size of
	 * the struct of an item.  NULL: the items are strings. */
	const struct field *items;
	size_t size;
};

/* A list of the document's own; items NULL: it was not sent. */
struct field_list {
	void *items;
	size_t count;
};

/* A place in a body: {"files", true, 0, "path"}, {"code"}, or nothing. */
struct field_place {
	const char *member; /* NULL: the body itself */
	bool indexed;
	size_t index;
	const char *inner; /* of the item; NULL: the item itself */
};

enum field_fault { FIELD_MISSING, FIELD_TYPE, FIELD_VALUE };

struct field_error {
	enum field_fault fault;
	json_type type; /* that belongs there; JSON_TRUE: or JSON_FALSE */
	struct field_place place;
	/* The value that was sent; where a member is missing, the object around
	 * it. */
	const json_t *value;
	char text[80]; /* "must be a string", "is missing" */
};

/* Read an object into a struct.  False: the first fault in the order of the
 * table. */
bool fields_read(struct jtree *doc, const struct field *rows,
    const json_t *object, void *into, struct field_error *error);
/* The same for one member. */
bool field_read(struct jtree *doc, const struct field *row,
    const json_t *object, void *into, struct field_error *error);
/* Refusal of a request: a status, and a text for its client, cut to fit.  Its
 * setter is always false. */
struct api_error {
	int status;
	char text[2048];
};
bool api_error_set(struct api_error *error, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* As fields_read() of the whole document.  False: 400, and the error. */
bool fields_accept(struct jtree *doc, const struct field *rows, void *into,
    struct api_error *error);
/* Is a Content-Type application/json, with any parameters?  NULL is none. */
bool fields_is_json(const char *content_type);
/* Append the place ("files[0].path"); the error ("files[0] is missing"). */
void field_place_add(struct buf *out, const struct field_place *place);
void field_error_add(struct buf *out, const struct field_error *error);

/* ---- answers ---- */

/*
 * Strings and values as JSON.  Bytes of a string that are no UTF-8 become
 * U+FFFD.
 */
enum jtext_style {
	JTEXT_UTF8,
	JTEXT_ASCII, /* everything beyond ASCII, and DEL, as \uXXXX */
};

/* With its quotes. */
void jtext_add_string(struct buf *out, const char *s, size_t len,
    enum jtext_style style);
/* A text as a value, which the caller owns. */
json_t *jtext_pack(const char *s, size_t len);
/* A value; flags: JSON_COMPACT, JSON_ENSURE_ASCII. */
void jtext_add(struct buf *out, const json_t *value, size_t flags);
/* Append an answer by its form, as buf_addf() takes it.  A %s between quotes is
 * a text of JSON; any other %s is added as it is.  %.*s is the same for so many
 * bytes, NUL too.  The only other conversion is PRId64. */
void jtext_addf(struct buf *out, enum jtext_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- bytes ---- */

/* Decode either alphabet of RFC 4648; blanks and ends of lines are passed over.
 * out may be the text itself (*len <= text_len).  Padding may be left out
 * unless padded is true.  False: another character, or wrong padding. */
bool base64_decode(const char *text, size_t text_len, bool padded, char *out,
    size_t *len);
/* Append the encoded data, with padding, without line breaks. */
void base64_add(struct buf *out, const void *data, size_t len);

/*
 * UTF-8 that comes in pieces.  U+FFFD takes the place of faulty bytes, as many
 * as CPython's codec writes.  All zero at the start.
 */
struct utf8_decoder {
	char pending[4]; /* the beginning of a sequence */
	size_t count;
};

void utf8_decoder_add(struct utf8_decoder *d, struct buf *out, const char *data,
    size_t len);
/* No more comes. */
void utf8_decoder_end(struct utf8_decoder *d, struct buf *out);
/* Decode a whole text; out takes 3 * len bytes. */
void utf8_decoder_add_whole(struct buf *out, const char *data, size_t len);

#endif
