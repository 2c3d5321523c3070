#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the valid UTF-8 sequence at s (len bytes there), or 0 when
 * it is not one (overlong, surrogate, above U+10FFFF, cut off). */
size_t utf8_step(const char *s, size_t len);
bool utf8_valid(const char *s, size_t len);
/* A byte that continues a character. */
bool utf8_is_tail(char c);

#endif
