/* SPDX-License-Identifier: MIT */
#ifndef JSON_MEND_H
#define JSON_MEND_H

#include <stddef.h>

/*
 * JSON that a parser refuses as its values cannot hold it: half a surrogate
 * pair, a number of thirty digits, 1e400, and NaN and Infinity as Python writes
 * them.  A value that nobody reads must not refuse the whole.
 *
 * The copy has a NUL in the place of such a half, in a name U+FFFD.  A number
 * becomes null or an empty list, so the reader of such a number still refuses
 * it.  Lines keep their numbers.
 */

/* A mended copy of len bytes and a NUL; heap, the caller frees.  Parse it with
 * JSON_ALLOW_NUL. */
char *json_mend(const char *json, size_t len);

#endif
