/* SPDX-License-Identifier: MIT */
#ifndef SOURCE_H
#define SOURCE_H

#include <stddef.h>

#include "../render/slip.h"

/*
 * What people paste: code in a fence with or without a language tag, in single
 * back-ticks, or bare.
 */

/* The code in it, line ends as \n.  Heap, NUL-terminated, caller frees; never
 * longer than the text. */
char *source_code(const char *text, size_t *len);

/* What may be wrong with it when Python does not understand it; the first that
 * is found of the list. */
struct slip source_slip(const char *text);

/* SLIP_LANGUAGE when the fence around the text says that it is no Python. */
struct slip source_language(const char *text);

/* A file's content: as given, but without the one fence that encloses all of
 * it.  Heap, caller frees. */
char *source_content(const char *text, size_t *len);

#endif
