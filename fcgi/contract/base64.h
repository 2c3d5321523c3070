/* SPDX-License-Identifier: MIT */
#ifndef BASE64_H
#define BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Decode as CPython's base64.b64decode() does for a str: what is not of the
 * alphabet is skipped, what follows a full pad is not looked at; false: wrong
 * padding, or not ASCII.  out may be the text itself (*len <= text_len). */
bool base64_decode(const char *text, size_t text_len, char *out, size_t *len);
/* Append the encoded data, with padding, without line breaks. */
void base64_add(struct buf *out, const void *data, size_t len);

#endif
