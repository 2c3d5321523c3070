#ifndef PYDUMP_H
#define PYDUMP_H

#include <stddef.h>

struct buf;
struct pyvalue;

/*
 * JSON as json.dumps() writes it.  A string is UTF-8, in which only a lone
 * surrogate may be wrong: it is written as \udXXX, since nothing else may carry
 * it.  What is neither becomes U+FFFD.
 */
enum pydump_style {
	PYDUMP_UTF8,  /* ensure_ascii=False */
	PYDUMP_ASCII, /* everything beyond ASCII, and DEL, as \uXXXX */
};

/* With its quotes. */
void pydump_add_string(struct buf *out, const char *s, size_t len,
    enum pydump_style style);
/* The same without quotes, for a string that is written in pieces. */
void pydump_add_text(struct buf *out, const char *s, size_t len,
    enum pydump_style style);
/* A value, without blanks, in UTF-8; NaN and the infinities, which JSON does
 * not have, as null. */
void pydump_add(struct buf *out, const struct pyvalue *value);

#endif
