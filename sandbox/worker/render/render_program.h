/* SPDX-License-Identifier: MIT */
#ifndef RENDER_PROGRAM_H
#define RENDER_PROGRAM_H

#include "render.h"

/*
 * Where a program comes from, which is a message or a file: what of it was run,
 * or why nothing was.
 */

/* Nothing is to be run; others: the languages of the code that there is. */
void render_no_code(struct message *message, const struct slip *others,
    size_t count);
/* After the answer: what was not run with the rest. */
void render_left_out(struct message *message, const struct slip *others,
    size_t count);
void render_too_many_blocks(struct message *message, int most);
/* name: of a file. */
void render_not_text(struct message *message, const char *name);
/* The code follows as a file. */
void render_too_long_to_edit(struct message *message);

#endif
