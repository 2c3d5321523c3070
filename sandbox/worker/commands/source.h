/* SPDX-License-Identifier: MIT */
#ifndef SOURCE_H
#define SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/basics.h"
#include "worker/render/render.h"

/*
 * Grammar of the code that people send: the option `code:`, the editor, the
 * menu of a message and files all go through source_read().  It is pure: the
 * same text gives the same program, from whichever of them.
 *
 * A text with a fence outside of Python's strings is a message: its blocks are
 * the program, joined.  Blocks that are marked as Python go first, then those
 * without a mark, then transcripts of a shell, then `text`.  A block that is
 * marked `stdin` or `input` is the standard input.  In any other text the parts
 * between back-ticks are the code, or all of it is.  A notebook gives its code
 * cells.
 *
 * Then a block, or the whole, is brought into the shape of Python.  Quote marks
 * and prompts on all lines go, odd blanks at the begin of a line become blanks,
 * common indentation goes, and a declared encoding is disarmed.  Strings keep
 * every byte.  Valid Python keeps all but its line ends and its encoding.
 */
#define SOURCE_TEXT_MAX ((size_t)1 << 20)
#define SOURCE_PIECES_MAX 40
#define SOURCE_OTHERS_MAX 4
#define SOURCE_OBJECTS_MAX \
	20000 /* of a notebook: a parser needs 300 bytes each */

enum source_kind {
	SOURCE_TEXT,
	SOURCE_NOTEBOOK, /* the name says so: any other content is a fault */
};

struct source {
	struct buf code;  /* SOURCE_TEXT_MAX and the line ends between */
	struct buf input; /* standard input, if the text has one */
	size_t pieces;	  /* of code that are not blank */
	/* The code is marked, or looks like Python.  The option and the editor
	 * run uncertain code, too. */
	bool certain;
	/* Reading the code once more would not change it; false: messages are
	 * nested too deeply. */
	bool settled;
	bool unmarked; /* blocks, and none of them is marked as Python */
	bool too_many; /* more than SOURCE_PIECES_MAX, or a text too long */
	/* SLIP_LANGUAGE, each once: languages of blocks that were left out */
	struct slip others[SOURCE_OTHERS_MAX];
	size_t other_count;
	struct slip slip; /* a likely mistake in the code */
	enum source_fault fault;
	int fault_line;
};

/* Fill *source; release it in any case. */
void source_read(struct source *source, const char *text,
    enum source_kind kind);
void source_release(struct source *source);
#define auto_source __attribute__((cleanup(source_release)))

/* Append the code of one to that of all, and its left-out languages. */
void source_append(struct source *all, const struct source *one);

/* Content of a file: the text without a fence that encloses all of it.  Heap,
 * caller frees. */
char *source_content(const char *text, size_t *len);

#endif
