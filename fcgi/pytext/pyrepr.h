#ifndef PYREPR_H
#define PYREPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct pyvalue;

/* Python's repr(), which validators put into what they say. */
void pyrepr_add(struct buf *out, const struct pyvalue *value);
void pyrepr_add_string(struct buf *out, const char *s, size_t len);
/* A finite number as repr() and JSON write it: the fewest digits that give the
 * same number back; "nan", "inf", "-inf". */
void pyrepr_add_float(struct buf *out, double real);

/* str.isprintable() of one code point, as of Unicode 14 (CPython 3.11). */
bool pyrepr_is_printable(uint32_t code);

/* For pyprintable.c: first and last of each printable range, in order. */
extern const uint32_t pyprintable[][2];
extern const size_t pyprintable_count;

#endif
