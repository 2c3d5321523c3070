/* SPDX-License-Identifier: MIT */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "../../base/buf.h"
#include "../render/slip.h"

/*
 * The code in a message that somebody wrote for others to read: blocks in
 * fences, with text around them.  Those of Python and those without a language
 * are one program, in their order; blocks of other languages are named.  In a
 * message without a block it is what stands in back-ticks, or all of it if it
 * looks like Python.
 */
#define BLOCKS_MAX 40
#define BLOCKS_OTHERS_MAX 4

struct blocks {
	struct buf code; /* ends with a line end if there is any */
	size_t count;	 /* of blocks, and of other pieces of code */
	bool too_many;	 /* more than BLOCKS_MAX: code has not all of them */
	/* SLIP_LANGUAGE, each once; further ones are not named */
	struct slip others[BLOCKS_OTHERS_MAX];
	size_t other_count;
};

/* Release it in any case. */
void blocks_find(struct blocks *blocks, const char *text);
void blocks_release(struct blocks *blocks);
#define auto_blocks __attribute__((cleanup(blocks_release)))
/* One more piece of the program. */
void blocks_add(struct blocks *blocks, const char *code, size_t len);

#endif
