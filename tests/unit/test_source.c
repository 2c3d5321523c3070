/* SPDX-License-Identifier: MIT */
/* Code as people send it: source.c and its parts. */
#include "worker/commands/source.h"

#include <glob.h>
#include <string.h>

#include "base/utf8.h"
#include "tap.h"

#define F "```"
#define A "\xc2\xb4"
#define W "\xef\xbd\x80"
#define BLOCK F "py\nx\n" F "\n"
#define TEN BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK
#define NBSP "\xc2\xa0"
#define NARROW "\xe2\x80\xaf"
#define FIGURE "\xe2\x80\x87"
#define THIN "\xe2\x80\x89"
#define WIDE "\xe3\x80\x80"
#define ZERO "\xe2\x80\x8b"
#define MARK "\xef\xbb\xbf"
#define LTR "\xe2\x80\x8e"
#define ISOLATE "\xe2\x81\xa6"

/* A text, the program in it, its standard input and the slip in it. */
struct row {
	const char *name;
	const char *text;
	const char *code;
	const char *input;
	enum slip_kind slip;
	bool uncertain; /* prose, for whoever did not say that it is code */
};

#define ROW(what, in, ...) \
	{ \
		.name = what, .text = in, .code = __VA_ARGS__ \
	}

static const struct row plain[] = {
	ROW("bare", "print(1)", "print(1)"),
	ROW("with a line end", "print(1)\n", "print(1)\n"),
	ROW("nothing", "", "", .uncertain = true),
	ROW("line ends", "a = 1\r\nb = 2\rc = 3\n", "a = 1\nb = 2\nc = 3\n"),
	ROW("an empty line first", "\n\nprint(1)", "\n\nprint(1)"),
	ROW("a fence in a string", "x = '" F "'", "x = '" F "'"),
	ROW("a block in a docstring",
	    "def f():\n    \"\"\"\n" F "py\nx\n" F "\n    \"\"\"\n",
	    "def f():\n    \"\"\"\n" F "py\nx\n" F "\n    \"\"\"\n"),
	ROW("a fence in a comment", "x = 1  # " F "js" F, "x = 1  # " F "js" F),
	ROW("back-ticks in strings", "print('`a`', \"`b`\", f'`{1}`')",
	    "print('`a`', \"`b`\", f'`{1}`')"),
	ROW("a prompt in a docstring",
	    "def f():\n    '''\n    >>> f()\n    '''\n",
	    "def f():\n    '''\n    >>> f()\n    '''\n"),
	ROW("odd blanks in a string", "x = '" NBSP ZERO WIDE "'",
	    "x = '" NBSP ZERO WIDE "'"),
	ROW("and where a line of it begins", "x = '''\n" WIDE "a\n" NBSP "b'''",
	    "x = '''\n" WIDE "a\n" NBSP "b'''"),
	ROW("line ends as they are typed",
	    "for i in 1, 2:\\n  print('\\n')\\nprint(i)",
	    "for i in 1, 2:\n  print('\\n')\nprint(i)"),
	ROW("a line end in a string", "print('a\\nb', r'\\n')",
	    "print('a\\nb', r'\\n')"),
	ROW("accents in a string", "x = '" A A A "'", "x = '" A A A "'"),
	ROW("an apostrophe in a comment", "# don't\nx = 1", "# don't\nx = 1"),
	ROW("a variable named py", "py = 3\nprint(py)", "py = 3\nprint(py)"),
	ROW("py as a name", "python.x()\npy, b = 1, 2",
	    "python.x()\npy, b = 1, 2"),
	ROW("a command with back-ticks", "!echo `date`", "!echo `date`"),
	ROW("only a name", "x", "x", .uncertain = true),
	ROW("another language", "let x", "let x", .uncertain = true),
	ROW("a text alone", "'a `b` c'", "'a `b` c'", .uncertain = true),
};

static const struct row blocks[] = {
	ROW("a block", F "py\nprint(1)\n" F, "print(1)\n"),
	ROW("text around it", "Look:\n" F "py\nx = 1\n" F "\nThat's it, don't.",
	    "x = 1\n"),
	ROW("two", F "python\nx = 1\n" F "\nand then\n" F "py\nx\n" F "\nDone.",
	    "x = 1\nx\n"),
	ROW("without a mark", F "\nprint(1)\n" F, "print(1)\n"),
	ROW("in a line", "a " F "x" F " b", "x"),
	ROW("in one line with its mark", F "py print(1)" F, "print(1)"),
	ROW("made one line by a client", F "python x = 1 " F, "x = 1 "),
	ROW("py as a variable", F "py = 3\nprint(py)" F, "py = 3\nprint(py)"),
	ROW("a mark alone is code", F "py" F, "py"),
	ROW("a name alone is code", F "x\n" F, "x\n"),
	ROW("the mark before the fence", "py " F "print(1)" F, "print(1)"),
	ROW("in the line above", "python\n" F "\nprint(1)\n" F, "print(1)\n"),
	ROW("with a colon", "out:\n" F "\n1\n" F "\nPython:\n" F "\nx = 1\n" F,
	    "x = 1\n"),
	ROW("and within it", F "\npython\nx = 1\n" F, "x = 1\n"),
	ROW("four back-ticks", F "`py\nprint('" F "')\n" F "`",
	    "print('" F "')\n"),
	ROW("a block in four back-ticks", F "`\n" F "py\nx\n" F "\n" F "`",
	    "x\n"),
	ROW("not closed", F "py\nprint(1)", "print(1)"),
	ROW("closed by two", F "py\nprint(1)\n``", "print(1)\n"),
	ROW("not opened", "print(1)\n" F, "print(1)\n"),
	ROW("not opened, with its mark", "py\nprint(1)\n" F, "print(1)\n"),
	ROW("closed in the last line", F "py\nprint(1)" F, "print(1)"),
	ROW("closed in a comment", F "py\nprint(1) # it's" F,
	    "print(1) # it's"),
	ROW("a fence in a string", F "py\nprint('" F "')\n" F,
	    "print('" F "')\n"),
	ROW("in a docstring",
	    F "py\nx = '''\n" F "js\n1\n" F "\n'''\n" F "\nwords",
	    "x = '''\n" F "js\n1\n" F "\n'''\n"),
	ROW("a string that is not closed", F "py\nprint('it's)\n" F "\nit's",
	    "print('it's)\n"),
	ROW("acute accents", A A A "py\nprint(1)\n" A A A, "print(1)\n"),
	ROW("in a line", A A A "print('" A A A "')" A A A,
	    "print('" A A A "')"),
	ROW("wide ones", W W W "py\nx = 1\n" W W W " ok", "x = 1\n"),
	ROW("back to back", F "n = 0" F F "n += 1" F, "n = 0\nn += 1"),
	ROW("other line ends", F "py\r\nx = 1\r\n" F "\r\n", "x = 1\n"),
	ROW("blank", F F, "", .uncertain = true),
	ROW("blank with a mark", F "py\n\n" F, "", .uncertain = true),
	ROW("behind a number sign", "Problem #3: " F "py\nx = 1\n" F,
	    "x = 1\n"),
	ROW("as our own messages show a fence",
	    F "py\nx = '`" ZERO "`" ZERO "`'\n" F, "x = '" F "'\n"),
};

static const struct row marks[] = {
	ROW("capitals", F "Python\nx = 1\n" F, "x = 1\n"),
	ROW("in one line", F "Python print(1)" F, "print(1)"),
	ROW("shouted", F "PY\nx = 1\n" F, "x = 1\n"),
	ROW("a version", F "py3.11\nx = 1\n" F, "x = 1\n"),
	ROW("another", F "Python3\nx = 1\n" F, "x = 1\n"),
	ROW("jupyter", F "jupyter\nx = 1\n" F, "x = 1\n"),
	ROW("ipython", F "ipython\nx = 1\n" F, "x = 1\n"),
	ROW("a slip", F "pyhton\nx = 1\n" F, "x = 1\n"),
	ROW("a letter less", F "pyton\nx = 1\n" F, "x = 1\n"),
	ROW("a letter more", F "pythonn\nx = 1\n" F, "x = 1\n"),
	ROW("in braces", F "{python}\nx = 1\n" F, "x = 1\n"),
	ROW("with a blank", F "python \nx = 1\n" F, "x = 1\n"),
	ROW("with an unseen one", F "py" ZERO "\nx = 1\n" F, "x = 1\n"),
	ROW("no fence at all", "Python print(1)", "print(1)"),
	ROW("as the first line", "python\nprint(1)", "print(1)"),
	ROW("in back-ticks", "`py print(1)`", "print(1)"),
	ROW("no call", "py (1)", "py (1)", .uncertain = true),
	ROW("with the command", "/il py code:print(1)", "print(1)"),
	ROW("the short one", "/py print(1)", "print(1)"),
	ROW("and its options",
	    "/il py code:print(input()) stdin:a b timeit:True",
	    "print(input())", .input = "a b"),
	ROW("options behind the input",
	    "/il py code:print(input()) stdin:5 share:True version:3.13",
	    "print(input())", .input = "5"),
	ROW("options before it",
	    "/il py code:input() keep:True share:True "
	    "version:3.13 timeit:False stdin:5",
	    "input()", .input = "5"),
	ROW("an input in a string", "/il py code:print(\" stdin:x\") stdin:5",
	    "print(\" stdin:x\")", .input = "5"),
	ROW("nothing but that", "/il py code:print(\" stdin:x\")",
	    "print(\" stdin:x\")"),
	ROW("an input of no code", "say `/il py code:/il stdin:a`",
	    "say `/il py code:/il stdin:a`", .slip = SLIP_FENCE,
	    .uncertain = true),
	ROW("back-ticks in an input", "/il py code:say hi stdin:a `b`",
	    "say hi", .input = "a `b`", .uncertain = true),
	ROW("plain code before its input",
	    "    x = input()\n    print(x)\n" F "stdin\n5\n" F,
	    "x = input()\nprint(x)\n", .input = "5\n"),
	ROW("words around an input", "Give it\n" F "stdin\n5\n" F " please",
	    "Give it\nplease", .input = "5\n", .uncertain = true),
	ROW("an input with an apostrophe", "/il py code:input() stdin:it's x",
	    "input()", .input = "it's x"),
	ROW("cython", F "cython\nx\n" F, "x\n", .slip = SLIP_LANGUAGE,
	    .uncertain = true),
	ROW("js", F "js\nlet x\n" F, "let x\n", .slip = SLIP_LANGUAGE,
	    .uncertain = true),
};

static const struct row outputs[] = {
	ROW("an untagged output", F "py\nx = 1\n" F "\n" F "\n42\n" F,
	    "x = 1\n"),
	ROW("the output first", F "\n42\n" F "\n" F "py\nx = 1\n" F, "x = 1\n"),
	ROW("text and ansi",
	    F "txt\na\n" F F "ansi\nb\n" F F "\nx = 1\n" F F "text\nc\n" F,
	    "x = 1\n"),
	ROW("a traceback",
	    F "\nx = 1\n" F "\n" F "\nTraceback (most recent call last):\n  "
	      "x\nE: y\n" F,
	    "x = 1\n"),
	ROW("a transcript", F "py\nx = 1\n" F F "pycon\n>>> 1\n1\n" F,
	    "x = 1\n"),
	ROW("other languages", F "js\n1\n" F F "py\n2\n" F, "2\n"),
	ROW("text alone that is code", F "txt\nprint(1)\n" F, "print(1)\n"),
	ROW("text alone that is none", F "txt\nhello you\n" F, "hello you\n",
	    .uncertain = true),
	ROW("the input", F "py\nprint(input())\n" F "\n" F "stdin\nAda\n" F,
	    "print(input())\n", .input = "Ada\n"),
	ROW("the input first", F "input\n1\n2\n" F F "\ninput()\n" F,
	    "input()\n", .input = "1\n2\n"),
	ROW("the input in a quote",
	    "> " F "py\r\n> input()\r\n> " F "\r\n> " F
	    "stdin\r\n> 1\r\n>  2\r\n> " F,
	    "input()\n", .input = "1\n 2\n"),
	ROW("the input in a list",
	    "1. " F "py\n   input()\n   " F "\n   " F
	    "stdin\n   1\n     2\n   " F,
	    "input()\n   ", .input = "1\n  2\n"),
	ROW("an input that looks like a quote",
	    F "py\ninput()\n" F "\n" F "stdin\n> 1\n> 2\n" F, "input()\n",
	    .input = "> 1\n> 2\n"),
	ROW("the input in a block in four back-ticks",
	    F "`\n" F "py\ninput()\n" F "\n" F "stdin\nAda\n" F "\n" F "`",
	    "input()\n", .input = "Ada\n"),
};

static const struct row indents[] = {
	ROW("all of it", "    def f():\n        return 1\n    print(f())",
	    "def f():\n    return 1\nprint(f())"),
	ROW("one line", "   print(1)", "print(1)"),
	ROW("by tabs", "\tif 1:\n\t\tx = 1\n", "if 1:\n\tx = 1\n"),
	ROW("all but the first line",
	    "def f():\n        return 1\n    print(f())",
	    "def f():\n    return 1\nprint(f())"),
	ROW("of which none opens a block", "x = 1\n    y = 2\n    print(x)",
	    "x = 1\ny = 2\nprint(x)"),
	ROW("a block is no slip", "if x:\n    a = 1\n    b = 2",
	    "if x:\n    a = 1\n    b = 2"),
	ROW("nor is a bracket", "x = [\n    1,\n    2,\n    ]",
	    "x = [\n    1,\n    2,\n    ]"),
	ROW("nor a backslash", "x = 1 + \\\n    2", "x = 1 + \\\n    2"),
	ROW("only the first line", "  x = 1\ny = 2", "x = 1\ny = 2"),
	ROW("a string with it", "    x = '''\n    a\n    '''\n    y = 1",
	    "x = '''\na\n'''\ny = 1"),
	ROW("a string without it", "    x = '''\na\n'''\n    y = 1",
	    "x = '''\na\n'''\ny = 1"),
	ROW("in a list item", "- " F "py\n  x = 1\n  if x:\n    x\n  " F,
	    "x = 1\nif x:\n  x\n"),
	ROW("in quotes", "> " F "py\n> if 1:\n>     x = 1\n> " F,
	    "if 1:\n    x = 1\n"),
	ROW("quotes below text", "so:\n> " F "\n> x = 1\n>\n> y = 2\n> " F,
	    "x = 1\n\ny = 2\n"),
	ROW("quotes in quotes", "> > x = 1\n> > y = 2", "x = 1\ny = 2"),
	ROW("quotes without a block", "> x = 1\n> y = 2", "x = 1\ny = 2"),
	ROW("not all of them", F "py\nx = 1\n> y\n" F, "x = 1\n> y\n"),
	ROW("a quote of many lines", ">>> " F "py\nx = 1\n" F, "x = 1\n"),
};

static const struct row prompts[] = {
	ROW("prompts", ">>> x = 1\n>>> x\n1", "x = 1\nx\n"),
	ROW("blocks",
	    ">>> for i in 1, 2:\n...     print(i)\n...\n1\n2\n>>> i\n2",
	    "for i in 1, 2:\n    print(i)\n\ni\n"),
	ROW("a traceback between",
	    ">>> 1/0\nTraceback (most recent call last):\n  File\nE: x\n>>> 2",
	    "1/0\n2"),
	ROW("a banner",
	    "Python 3.11.2 (main) on linux\nType \"help\"\n>>> x = 1\n",
	    "x = 1\n"),
	ROW("IDLE", ">>> def f():\n\treturn 1\n\n>>> f()\n1",
	    "def f():\n\treturn 1\nf()\n"),
	ROW("numbered", "In [1]: x = 1\n\nIn [2]: x\nOut[2]: 1", "x = 1\nx\n"),
	ROW("and goes on",
	    "In [3]: for i in 1, 2:\n   ...:     print(i)\n   ...: \n1\n2",
	    "for i in 1, 2:\n    print(i)\n\n"),
	ROW("a marked block", F "pycon\nhere:\n>>> x = 1\n1\n" F, "x = 1\n"),
	ROW("in a block of Python", F "py\n>>> x = 1\n>>> x\n1\n" F,
	    "x = 1\nx\n"),
	ROW("indented", "    >>> x = 1\n    >>> x\n    1\n", "x = 1\nx\n"),
	ROW("as Discord quotes", ">>> print(1)", "print(1)"),
	ROW("as Discord quotes all that follows", ">>> x = 1\nprint(x)",
	    "x = 1\nprint(x)"),
	ROW("one prompt and what it printed", ">>> 2+2\n4", "2+2\n"),
	ROW("prose", ">>> hello there", "hello there", .uncertain = true),
};

static const struct row odd[] = {
	ROW("as indentation",
	    "if 1:\n" NBSP NBSP "a = 1\n" NARROW FIGURE "b = 2\n" THIN WIDE
	    "c = 3",
	    "if 1:\n  a = 1\n  b = 2\n  c = 3"),
	ROW("a line of nothing else", "a = 1\n" NBSP "\nb = 2",
	    "a = 1\n \nb = 2"),
	ROW("unseen ones before lines", MARK "x = 1\n" ZERO LTR "y = 2",
	    "x = 1\ny = 2"),
	ROW("around it", ISOLATE "x = 1\n" ZERO, "x = 1\n"),
	ROW("around fences", ZERO F "py\nx = 1\n" F ZERO, "x = 1\n"),
	ROW("within a line", "x = 1\ny =" NBSP "2", "x = 1\ny =" NBSP "2",
	    .slip = SLIP_ODD),
	ROW("unseen within a line", "x" ZERO " = 1", "x" ZERO " = 1",
	    .slip = SLIP_ODD),
	ROW("in a bracket", "x = [\n" NBSP "1]", "x = [\n 1]"),
};

static const struct row encodings[] = {
	ROW("an encoding", "# -*- coding: latin-1 -*-\nprint('\xc3\xa9')",
	    "# -*- coding  latin-1 -*-\nprint('\xc3\xa9')"),
	ROW("in the second line",
	    "#!/usr/bin/python\n# vim: fileencoding=cp1252",
	    "#!/usr/bin/python\n# vim: fileencoding cp1252", .uncertain = true),
	ROW("of this text", "# coding: utf-8\nx = 1", "# coding: utf-8\nx = 1"),
	ROW("further down", "x = 1\n# coding: latin-1",
	    "x = 1\n# coding: latin-1"),
	ROW("in a string", "'''\n# coding: latin-1'''\nx = 1",
	    "'''\n# coding: latin-1'''\nx = 1"),
};

static const struct row ticks[] = {
	ROW("single", "`print(1)`", "print(1)"),
	ROW("double", "``print('`')``", "print('`')"),
	ROW("blanks inside", "` 1 + 1 `", "1 + 1"),
	ROW("not closed", "`print(1)", "print(1)", .uncertain = true),
	ROW("several", "try `print(1)` and ``x = '`'``, please",
	    "print(1)\nx = '`'"),
	ROW("after an apostrophe", "don't use `x`, it's bad", "x"),
	ROW("a command of ours", "`/il look` and `/il py code:1 + 1`", "1 + 1"),
	ROW("what answers name", "`~/a.py` has 3 B, `1`, `~/x`", "1"),
	ROW("a script's name", "`main.py`: `x.py()` and `b/a.ipynb`", "x.py()"),
	ROW("one that is left", "a ` b", "a ` b", .slip = SLIP_FENCE,
	    .uncertain = true),
	ROW("beside code", "print(1)`", "print(1)`", .slip = SLIP_FENCE),
};

static const struct row slips[] = {
	ROW("quotes for back-ticks", "'''py\nprint(1)\n'''",
	    "'''py\nprint(1)\n'''", .slip = SLIP_STRING, .uncertain = true),
	ROW("a docstring", "'''python is fun\n'''\nx = 1",
	    "'''python is fun\n'''\nx = 1"),
	ROW("curly quotes", "print(\xe2\x80\x9chi\xe2\x80\x9d)",
	    "print(\xe2\x80\x9chi\xe2\x80\x9d)", .slip = SLIP_QUOTES),
	ROW("in a string", "x = '\xe2\x80\x9c'", "x = '\xe2\x80\x9c'"),
	ROW("tabs and blanks", "if x:\n\ty = 1\n    z = 1",
	    "if x:\n\ty = 1\n    z = 1", .slip = SLIP_TABS),
};

/* Sentences that begin as Python does. */
static const char *const prose[] = { "import duties are high",
	"if you like it, say so", "for example this", "with regards",
	"from me to you", "well - yes", "Note: see below", "3 people",
	"2026-11-23 was cold", "hello (world)", "print it", "a.b", "\"quoted\"",
	"12", "1.", "print(1)\nis what I mean", "while we wait",
	"import numpy as np\nnp.pi", "# a heading", "return to sender",
	"[a link](https://example.org)", "\xe4\xbd\xa0\xe5\xa5\xbd(\xe4)",
	"not bad", "good morning", "Continue", NULL };

static const char *const python[] = {
	"for i in range(3):\n    print(i)\n\nx = [\n    1,\n]\nx[0]",
	"import os, sys", "from x import y", "2 ** 10", "a, b = 1, 2", "x += 1",
	"@f\ndef g(): pass", "'''Some words\nof prose.'''\nx = 1",
	"[i for i in range(3)]", "assert f(1) == 2", "raise ValueError('x')",
	"\xd0\xb8\xd0\xbc\xd1\x8f = 1", "print \"x\"", "def f(\na, b):\n  pass",
	NULL
};

static void
check_row(const struct row *row)
{
	auto_source struct source source;
	auto_source struct source again;

	source_read(&source, row->text, SOURCE_TEXT);
	is_str(buf_str(&source.code), row->code, row->name);
	is_str(buf_str(&source.input), row->input == NULL ? "" : row->input,
	    row->name);
	is_int(source.slip.kind, row->slip, row->name);
	is_int(source.certain, !row->uncertain, row->name);
	ok(source.fault == SOURCE_FINE && !source.too_many, row->name);
	/* code that is given back, by the editor say, is the same code */
	source_read(&again, buf_str(&source.code), SOURCE_TEXT);
	is_str(buf_str(&again.code), row->code, row->name);
}

static void
test_rows(void)
{
	static const struct {
		const struct row *rows;
		size_t count;
	} tables[] = {
#define ROWS(table) { table, sizeof(table) / sizeof(table[0]) }
		ROWS(plain),
		ROWS(blocks),
		ROWS(marks),
		ROWS(outputs),
		ROWS(indents),
		ROWS(prompts),
		ROWS(odd),
		ROWS(encodings),
		ROWS(ticks),
		ROWS(slips),
#undef ROWS
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (size_t j = 0; j < tables[i].count; j++)
			check_row(&tables[i].rows[j]);
}

static void
test_looks(void)
{
	auto_source struct source source = { .pieces = 0 };

	for (int i = 0; prose[i] != NULL; i++) {
		source_read(&source, prose[i], SOURCE_TEXT);
		ok(!source.certain, prose[i]);
		is_str(buf_str(&source.code), prose[i], "but it is kept");
		source_release(&source);
	}
	for (int i = 0; python[i] != NULL; i++) {
		source_read(&source, python[i], SOURCE_TEXT);
		ok(source.certain, python[i]);
		is_str(buf_str(&source.code), python[i], "and not touched");
		source_release(&source);
	}
}

static void
test_others(void)
{
	auto_source struct source source = { .pieces = 0 };

	source_read(&source,
	    F "js\n1\n" F "\n" F "py\n2\n" F "\n" F "js\n3\n" F "\n" F
	      "c++\n4\n" F,
	    SOURCE_TEXT);
	is_str(buf_str(&source.code), "2\n", "what is not Python is left");
	is_int(source.other_count, 2, "and named once");
	is_str(source.others[0].word, "js", "in its order");
	is_str(source.others[1].word, "c++", "in its order");
	source_release(&source);
	source_read(&source,
	    F "a\n1\n" F F "b\n1\n" F F "c\n1\n" F F "d\n1\n" F F "e\n1\n" F,
	    SOURCE_TEXT);
	ok(!source.certain, "only others");
	is_int(source.other_count, SOURCE_OTHERS_MAX, "not all are named");
	source_release(&source);
	source_read(&source, "x = 1\ny = [" NBSP "2]", SOURCE_TEXT);
	is_int(source.slip.line, 2, "the line of an odd blank");
	is_int(source.slip.point, 0xa0, "and which it is");
}

#define ESCAPED 65536 /* bytes of one line that may be several */

static void
test_many(void)
{
	auto_source struct source source = { .pieces = 0 };
	char *large = malloc(SOURCE_TEXT_MAX + 2);

	source_read(&source, TEN TEN TEN TEN, SOURCE_TEXT);
	is_int(source.pieces, 40, "40 are taken");
	ok(!source.too_many, "all of them");
	is_int(source.code.len, 80, "all of them");
	source_release(&source);
	source_read(&source, TEN TEN TEN TEN BLOCK, SOURCE_TEXT);
	ok(source.too_many, "41 are not");
	source_release(&source);
	memset(large, '#', SOURCE_TEXT_MAX + 1);
	large[SOURCE_TEXT_MAX + 1] = '\0';
	source_read(&source, large, SOURCE_TEXT);
	ok(source.too_many && source.code.len == 0, "a text has its bound");
	source_release(&source);
	large[SOURCE_TEXT_MAX] = '\0';
	source_read(&source, large, SOURCE_TEXT);
	is_int(source.code.len, SOURCE_TEXT_MAX, "which it may reach");
	source_release(&source);
	/* milliseconds, not the 15 seconds of one search for each of them */
	for (size_t i = 0; i < ESCAPED; i += 4)
		memcpy(large + i, "x;\\n", 4);
	large[ESCAPED] = '\0';
	source_read(&source, large, SOURCE_TEXT);
	is_int(source.code.len, ESCAPED / 4 * 3, "one line with many escapes");
	source_release(&source);
	/* milliseconds, not minutes of a search from each of them */
	for (size_t i = 0; i < SOURCE_TEXT_MAX; i += 2)
		memcpy(large + i, "\xc2\xb4", 2);
	large[6] = large[7] = large[SOURCE_TEXT_MAX - 1] = 'x';
	large[SOURCE_TEXT_MAX - 2] = 'x';
	source_read(&source, large, SOURCE_TEXT);
	ok(source.code.len > SOURCE_TEXT_MAX / 2, "many that are no fence");
	free(large);
}

/* ---- notebooks ---- */

#define CELL(type, source) \
	"{\"cell_type\": \"" type "\", \"source\": " source "}"
#define NOTEBOOK(cells) "{\"nbformat\": 4, \"cells\": [" cells "]}"

static void
notebook(const char *text, const char *code, enum source_fault fault,
    const char *name)
{
	auto_source struct source source;

	source_read(&source, text, SOURCE_NOTEBOOK);
	is_str(buf_str(&source.code), code, name);
	is_int(source.fault, fault, name);
	is_int(source.certain, *code != '\0', name);
}

static void
test_notebooks(void)
{
	auto_source struct source source;
	char *deep = malloc(2 * SOURCE_OBJECTS_MAX + 8);

	notebook(NOTEBOOK(CELL("code",
		     "[\"x = 1\\n\", \"x\"]") ", " CELL("markdown",
		     "\"# hi\"") ", " CELL("code", "\"!ls\"")),
	    "x = 1\nx\n!ls", SOURCE_FINE, "code cells in their order");
	notebook(NOTEBOOK(CELL("code", "\"%%time\\nx = 1\"")), "%%time\nx = 1",
	    SOURCE_FINE, "the magic of the only cell");
	notebook(NOTEBOOK(CELL("code", "\"%%time\\nx = 1\"") ", " CELL("code",
		     "\"x\"")),
	    "# %%time\nx = 1\nx", SOURCE_FINE, "and of one among others");
	notebook(NOTEBOOK(CELL("code", "\"\"") ", " CELL("code", "\"x\"")), "x",
	    SOURCE_FINE, "the first cell is empty");
	notebook(NOTEBOOK(CELL("markdown", "\"x\"")), "", SOURCE_NO_CODE,
	    "no code");
	notebook("{\"cells\": 1}", "", SOURCE_NO_CELLS, "no list of cells");
	notebook("[]", "", SOURCE_NO_CELLS, "another JSON");
	notebook("{\"cells\": [", "", SOURCE_NOT_JSON, "cut off");
	notebook("print(1)", "", SOURCE_NOT_JSON, "a name that lies");
	notebook("{\"cells\": [{\"cell_type\": \"code\", \"source\": \"x\", "
		 "\"outputs\": [NaN, Infinity, -Infinity, 1e400, "
		 "123456789012345678901234567890, \"\\ud83d\", \"a\\u0000\", "
		 "{\"\\ude00\": 1}]}]}",
	    "x", SOURCE_FINE, "outputs that JSON has no values for");
	notebook(NOTEBOOK(CELL("code", "[\"'\\ud83d'\", \"'\\u0000'\"]")),
	    "'\xef\xbf\xbd''\xef\xbf\xbd'", SOURCE_FINE,
	    "half a surrogate pair in code is seen");
	notebook("{\"cells\": [xNaN]}", "", SOURCE_NOT_JSON,
	    "and what is no JSON is none");
	notebook(NOTEBOOK("1, null, " CELL("code", "3") ", " CELL("code",
		     "[1, \"x\"]")),
	    "x", SOURCE_FINE, "what is malformed is left out");
	source_read(&source,
	    NOTEBOOK(CELL("code", "\"%%bash\\nls\"") ", " CELL("code",
		"\"x\"")),
	    SOURCE_TEXT);
	is_str(buf_str(&source.code), "x", "a notebook as a text");
	is_str(source.others[0].word, "bash", "a cell in another language");
	source_release(&source);
	source_read(&source,
	    "{\"metadata\": {\"kernelspec\": {\"language\": \"R\"}}, "
	    "\"nbformat\": 4, \"cells\": [" CELL("code", "\"x\"") "]}",
	    SOURCE_NOTEBOOK);
	is_str(source.others[0].word, "R", "a notebook in another language");
	source_release(&source);
	source_read(&source, "{\"cells\": 1, \"nbformat\": 2}", SOURCE_TEXT);
	is_str(buf_str(&source.code), "{\"cells\": 1, \"nbformat\": 2}",
	    "a dict is no notebook");
	memset(deep, '{', 2 * SOURCE_OBJECTS_MAX);
	deep[2 * SOURCE_OBJECTS_MAX] = '\0';
	notebook(deep, "", SOURCE_TOO_DEEP, "its objects are bounded");
	memset(deep, '[', 2 * SOURCE_OBJECTS_MAX);
	notebook(deep, "", SOURCE_TOO_DEEP, "and its lists");
	*deep = '"';
	notebook(deep, "", SOURCE_NOT_JSON, "but not what a string shows");
	free(deep);
}

/* ---- real programs ---- */

static bool
has_encoding(const char *text)
{
	const char *at = strstr(text, "coding");

	return at != NULL && at - text < 200;
}

/* Python's own modules pass as they are: nothing in them is taken for markup.
 */
static void
test_modules(void)
{
	glob_t found = { 0 };
	size_t changed = 0;
	size_t seen = 0;

	(void)glob("/usr/lib/python3*/*.py", 0, NULL, &found);
	(void)glob("/usr/lib/python3*/*/*.py", GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		auto_source struct source source = { .pieces = 0 };
		FILE *file = fopen(found.gl_pathv[i], "r");
		char *text = calloc(1, SOURCE_TEXT_MAX + 1);
		size_t len = file == NULL ?
		    0 :
		    fread(text, 1, SOURCE_TEXT_MAX, file);

		if (file != NULL)
			(void)fclose(file);
		if (len > 0 && strlen(text) == len && utf8_valid(text, len) &&
		    !has_encoding(text) && strchr(text, '\r') == NULL &&
		    text[strspn(text, " \t\n")] != '\0') {
			seen++;
			source_read(&source, text, SOURCE_TEXT);
			if (strcmp(buf_str(&source.code), text) != 0) {
				changed++;
				printf("# %s\n", found.gl_pathv[i]);
			}
		}
		free(text);
	}
	globfree(&found);
	printf("# %zu modules\n", seen);
	is_int(changed, 0, "real modules are not touched");
}

int
main(void)
{
	test_rows();
	test_looks();
	test_others();
	test_many();
	test_notebooks();
	test_modules();
	return tap_done();
}
