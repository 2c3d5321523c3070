/* SPDX-License-Identifier: MIT */
#ifndef TEXTS_H
#define TEXTS_H

struct buf;

/* The sentences of texts.def. */
enum text_id {
#define TEXT(id, ...) TEXT_##id,
#include "texts.def"
	TEXT_COUNT,
};

extern const char *const texts[TEXT_COUNT];

/* Append one with the argument in the place of "{}".  The argument is made safe
 * to show and cut at 100 code points. */
void text_add(struct buf *out, enum text_id id, const char *argument);

#endif
