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
/* Its name does not say that it is Python, and neither does its content. */
void render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count);
/* line: where its JSON is wrong; 0: it is JSON, but no notebook. */
void render_not_notebook(struct message *message, const char *name, int line);
void render_no_cells(struct message *message, const char *name);
void render_large_notebook(struct message *message, const char *name);
/* The code follows as a file. */
void render_too_long_to_edit(struct message *message);

#endif
