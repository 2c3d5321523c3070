/* SPDX-License-Identifier: MIT */
#ifndef INVISIBLE_H
#define INVISIBLE_H

#include <stdint.h>

struct buf;

/*
 * Characters that nobody sees: of no width (U+200B), tags (U+E0041), those that
 * turn the direction of the text (U+202E), the soft hyphen, fillers.  What a
 * stranger wrote is shown with their names in their places, as Python writes
 * them: "\u200b".
 *
 * Two kinds stay as they are where they only shape what is seen beside them: a
 * variation selector after a pictograph, and a joiner between two pictographs
 * (a family, a profession) or between two letters of Arabic or of an Indic
 * script.  So such text stays whole, and a letter of ours cannot hide one: each
 * of them has a seen character of that kind on its side.  Flags that are
 * written in tags are not spared, as any number of tags can follow one.
 */

/* Append a character, or its name when nobody would see it: at most three bytes
 * for each of its own.  after: the next one, 0: none.  *before: the one before
 * it, 0 at the beginning of a text; this one afterwards. */
void invisible_add(struct buf *out, uint32_t *before, uint32_t code,
    uint32_t after);

#endif
