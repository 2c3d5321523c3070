/* SPDX-License-Identifier: MIT */
#ifndef PYREPR_H
#define PYREPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct pyvalue;

/* How a value is written: repr() and JSON differ in these alone. */
struct pyrepr_style {
	const char *null;
	const char *truth[2]; /* false, true */
	const char *comma;
	const char *colon;
	const char *not_finite; /* NULL: as pyrepr_add_float() */
	void (*add_string)(struct buf *out, const char *s, size_t len);
};

void pyrepr_add_as(struct buf *out, const struct pyvalue *value,
    const struct pyrepr_style *style);

/* Python's repr(), which validators put into what they say. */
void pyrepr_add(struct buf *out, const struct pyvalue *value);
/* s: UTF-8, lone surrogates included. */
void pyrepr_add_string(struct buf *out, const char *s, size_t len);
/* A finite number as repr() and JSON write it: the fewest digits that give the
 * same number back; "nan", "inf", "-inf". */
void pyrepr_add_float(struct buf *out, double real);

/* str.isprintable() of one code point, as of Unicode 14 (CPython 3.11). */
bool pyrepr_is_printable(uint32_t code);

#endif
