/* SPDX-License-Identifier: MIT */
/* Code as people paste it: source.c. */
#include "sandbox/worker/commands/source.h"

#include "tap.h"

static void
code(const char *text, const char *want, const char *name)
{
	size_t len = 0;
	char *got = source_code(text, &len);

	is_str(got, want, name);
	is_int(len, strlen(want), name);
	free(got);
}

static void
content(const char *text, const char *want, const char *name)
{
	size_t len = 0;
	char *got = source_content(text, &len);

	is_str(got, want, name);
	free(got);
}

static void
slip(const char *text, enum slip_kind kind, const char *word, const char *name)
{
	struct slip slip = source_slip(text);

	is_int(slip.kind, kind, name);
	is_str(slip.word, word, name);
}

static void
test_slips(void)
{
	slip("print(1)", SLIP_NONE, "", "nothing is wrong");
	slip("", SLIP_NONE, "", "nothing at all");
	slip("python print(1)", SLIP_WORD, "python", "a tag as a word");
	slip(" Py\nprint(1)", SLIP_WORD, "Py", "in a line of its own");
	slip("```\npython\nx\n```", SLIP_WORD, "python", "in the block");
	slip("py = 3\nprint(py)", SLIP_NONE, "", "a variable");
	slip("python.x()\npy, b = 1", SLIP_NONE, "", "another");
	slip("python", SLIP_NONE, "", "alone");
	slip("py\nprint(1)\n```", SLIP_WORD, "py", "first things first");
	slip("print(1)\n```", SLIP_FENCE, "", "the first fence is missing");
	slip("print(1)`", SLIP_FENCE, "", "or a back-tick");
	slip("``x = 1\n```", SLIP_FENCE, "", "two and three");
	slip("x = '``` `'", SLIP_NONE, "", "some in a text");
	slip("```js\nlet x\n```", SLIP_LANGUAGE, "js", "another language");
	slip("```Python\nx\n```", SLIP_NONE, "", "this one");
	slip("```txt\nx\n```", SLIP_NONE, "", "none");
	slip("print(\xe2\x80\x9chi\xe2\x80\x9d)", SLIP_QUOTES, "",
	    "curly quotes");
	slip("x = 1 \xe2\x80\x94 1 \xe2\x80", SLIP_NONE, "", "a dash");
	slip("if x:\n\ty\n    z", SLIP_TABS, "", "tabs and spaces");
	slip("if x:\n\ty\n\tz", SLIP_NONE, "", "tabs alone");
}

int
main(void)
{
	test_slips();
	code("print(1)", "print(1)", "bare");
	code("", "", "nothing");
	code("  if 1:\n    x", "  if 1:\n    x", "bare keeps its spaces");
	code("a\r\nb\rc\n", "a\nb\nc\n", "line ends");
	code("`print(1)`", "print(1)", "single back-ticks");
	code("``print('`')``", "print('`')", "double back-ticks");
	code("` 1 + 1 `", "1 + 1", "spaces inside");
	code("`print(1)", "print(1)", "not closed");
	code("`", "", "a back-tick alone");
	code("```py\nprint(1)\n```", "print(1)\n", "fence with tag");
	code("```python3 \nprint(1)\n```", "print(1)\n", "tag with a space");
	code("```py\r\nprint(1)\r\n```", "print(1)\n", "fence with CRLF");
	code("```\nprint(1)\n```", "print(1)\n", "fence without tag");
	code("```print(1)```", "print(1)", "one line");
	code("```py print(1)```", "print(1)", "one line with tag");
	code("```python x = 1 ```", "x = 1 ", "flattened by an old client");
	code("```py```", "py", "a tag alone is code");
	code("```py\n\n```", "py\n\n", "a tag over nothing is code");
	code("```x\n```", "x\n", "a name alone is code");
	code("```py = 3\nprint(py)```", "py = 3\nprint(py)",
	    "py as a variable is no tag");
	code("```py\nprint(1)", "print(1)", "fence not closed");
	code("  ```py\nx\n```  \n", "x\n", "space around the fence");
	code("```py\nx\n``` thanks", "x\n", "words after the fence");
	code("```py\nprint('```')\n```", "print('```')\n", "a fence inside");
	code("``````", "", "two fences, nothing between");
	code("````", "`", "four back-ticks");
	code("x = '```'", "x = '```'", "a fence in code is code");

	content("a\r\nb", "a\r\nb", "content stays as it is");
	content("```txt\nhello\n```", "hello\n", "one fence around it goes");
	content("```\nhello", "```\nhello", "half a fence is content");
	content("`x`", "`x`", "back-ticks are content");
	content("see ```x```", "see ```x```", "not around all of it");
	return tap_done();
}
