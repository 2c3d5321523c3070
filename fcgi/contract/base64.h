/* SPDX-License-Identifier: MIT */
#ifndef BASE64_H
#define BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Decode either alphabet of RFC 4648; blanks and ends of lines are passed over.
 * out may be the text itself (*len <= text_len).  Padding may be left out
 * unless padded is true.  False: another character, or wrong padding. */
bool base64_decode(const char *text, size_t text_len, bool padded, char *out,
    size_t *len);
/* Append the encoded data, with padding, without line breaks. */
void base64_add(struct buf *out, const void *data, size_t len);

#endif
