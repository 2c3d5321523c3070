/* SPDX-License-Identifier: MIT */
/* The code in a message: blocks.c. */
#include "sandbox/worker/commands/blocks.h"

#include <string.h>

#include "tap.h"

#define BLOCK "```py\nx\n```\n"
#define TEN BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK

static struct blocks blocks;

static void
code(const char *text, const char *want, const char *name)
{
	blocks_find(&blocks, text);
	is_str(buf_str(&blocks.code), want, name);
	is_int(blocks.other_count, 0, name);
	ok((blocks.count == 0) == (*want == '\0'), name);
	blocks_release(&blocks);
}

static void
test_fences(void)
{
	code("```py\nprint(1)\n```", "print(1)\n", "a block");
	code("Look:\n```python\nx = 1\n```\nand then\n```\nx\n```\nDone.",
	    "x = 1\nx\n", "several, one after another");
	code("a ```x``` b", "x\n", "in a line");
	code("```py\r\nx\r\n```", "x\n", "with other line ends");
	code("so ```py\nx\n", "x\n", "one that is not closed");
	code("``````", "", "an empty one");
	code("```\n  \n```", "", "blanks");
	code("```txt\nx\n```", "x\n", "a tag that says nothing");
	code("`a` and ```\nb\n```", "b\n", "back-ticks count for less");
}

static void
test_others(void)
{
	blocks_find(&blocks,
	    "```js\n1\n```\n```py\n2\n```\n```js\n3\n```\n```c++\n4\n```");
	is_str(buf_str(&blocks.code), "2\n", "what is not Python is left");
	is_int(blocks.other_count, 2, "and named once");
	is_str(blocks.others[0].word, "js", "in its order");
	is_str(blocks.others[1].word, "c++", "in its order");
	blocks_release(&blocks);
	blocks_find(&blocks,
	    "```a\n1\n```\n```b\n1\n```\n```c\n1\n```\n```d\n1\n```\n```e\n1\n"
	    "```\n`1`");
	is_int(blocks.count, 0, "only others");
	is_int(blocks.other_count, BLOCKS_OTHERS_MAX, "not all are named");
	blocks_release(&blocks);
}

static void
test_many(void)
{
	blocks_find(&blocks, TEN TEN TEN TEN);
	is_int(blocks.count, 40, "40 are taken");
	ok(!blocks.too_many, "all of them");
	is_int(blocks.code.len, 80, "all of them");
	blocks_release(&blocks);
	blocks_find(&blocks, TEN TEN TEN TEN BLOCK);
	ok(blocks.too_many, "41 are not");
	blocks_release(&blocks);
}

static void
test_without(void)
{
	code("", "", "nothing");
	code("hello, how are you?", "", "prose");
	code("try `print(1)` and ``x = '`'``, please", "print(1)\nx = '`'\n",
	    "in back-ticks");
	code("`print(1)`", "print(1)\n", "nothing else");
	code("`` ` ``", "`\n", "a back-tick");
	code("a ` b", "", "one back-tick");
	code("print(1)", "print(1)\n", "a call");
	code("for i in range(3):\n    print(i)\n\nx = [\n    1,\n]\nx[0]",
	    "for i in range(3):\n    print(i)\n\nx = [\n    1,\n]\nx[0]\n",
	    "a program");
	code("import os, sys", "import os, sys\n", "an import");
	code("import numpy as np\nnp.pi", "", "a name says too little");
	code("from x import y", "from x import y\n", "another");
	code("2 ** 10", "2 ** 10\n", "a calculation");
	code("a, b = 1, 2", "a, b = 1, 2\n", "two names");
	code("x += 1", "x += 1\n", "an assignment");
	code("@f\ndef g(): pass", "@f\ndef g(): pass\n", "a decorator");
}

/* Sentences that begin as Python does. */
static void
test_prose(void)
{
	static const char *const prose[] = { "import duties are high",
		"if you like it, say so", "for example this", "with regards",
		"from me to you", "well - yes", "Note: see below", "3 people",
		"2026-11-23 was cold", "hello (world)", "print it", "x", "a.b",
		"\"quoted\"", "  indented", "12", "1.",
		"print(1)\nis what I mean", "while we wait", NULL };

	for (int i = 0; prose[i] != NULL; i++)
		code(prose[i], "", "prose");
}

int
main(void)
{
	test_fences();
	test_others();
	test_many();
	test_without();
	test_prose();
	return tap_done();
}
