/* SPDX-License-Identifier: MIT */
#ifndef PYPLAIN_H
#define PYPLAIN_H

#include <stddef.h>

/* Bytes of s before the first that does not stand for itself in a JSON string:
 * a control character (DEL is one), '"', '\\', or what is not ASCII.  len when
 * there is none. */
size_t pyplain_span(const char *s, size_t len);

#endif
