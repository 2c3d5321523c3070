/* SPDX-License-Identifier: MIT */
#ifndef RENDER_PROGRAM_H
#define RENDER_PROGRAM_H

#include "render.h"

/*
 * Where a program comes from, which is a message or a file: what of it was run,
 * or why nothing was.
 */

#define SCRIPT_SHOWN 60 /* code points of a file's name */
#define TEXT_TOO_MANY_BLOCKS \
	N_("That message has more than %d pieces of code, and nothing of it " \
	   "was run. Put what you want to run into one block.")
#define TEXT_NOT_TEXT N_("%s is no text in UTF-8, so it was not run.")

/* Nothing is to be run; others: the languages of the code that there is. */
void render_no_code(struct message *message, const struct slip *others,
    size_t count);
/* After the answer: what was not run with the rest. */
void render_left_out(struct message *message, const struct slip *others,
    size_t count);
/* Its name does not say that it is Python, and neither does its content. */
void render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count);
/* line: where its JSON is wrong. */
void render_not_notebook(struct message *message, const char *name,
    enum source_fault fault, int line);

#endif
