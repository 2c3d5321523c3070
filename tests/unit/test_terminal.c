/* SPDX-License-Identifier: MIT */
/* A terminal's picture of any bytes: terminal.c. */
#include "worker/render/terminal.h"

#include "base/basics.h"
#include "base/utf8.h"
#include "tap.h"

#define MIB (1024 * 1024)

static void
shows(const char *in, const char *want, const char *name)
{
	auto_buf struct buf out = BUF_INIT(TERMINAL_SHOWN_MAX(strlen(in)));

	(void)terminal_show(&out, in, strlen(in), TERMINAL_COLOURS);
	is_str(buf_str(&out), want, name);
}

static void
test_plain(void)
{
	shows("", "", "nothing");
	shows("1\n", "1\n", "a line");
	shows("a\tb\n\nc", "a\tb\n\nc", "tabs and empty lines stay");
	shows("a  \n", "a  \n", "so do blanks at an end");
	shows("gr\xc3\xb6\xc3\x9f"
	      "e\t5  \n",
	    "gr\xc3\xb6\xc3\x9f"
	    "e\t5  \n",
	    "beside other letters, too");
	shows("a\r\nb\r\n", "a\nb\n", "\\r\\n is one line end");
	shows("a\001\a\vb\177\f", "ab", "control characters are taken out");
	shows("a\xc2\x9b"
	      "31mb\xc2\x85",
	    "a31mb", "C1, too");
	shows("a\xff\xfe z\xc3", "a\xef\xbf\xbd\xef\xbf\xbd z\xef\xbf\xbd",
	    "bytes that are no UTF-8");
}

static void
test_drawn_again(void)
{
	shows(" 10%\r 50%\r100%\n", "100%\n", "a progress bar is one line");
	shows("10%|#   |\r50%\n", "50%|#   |\n", "what is not overwritten");
	shows("loading\r       \rdone\n", "done\n", "wiped out with blanks");
	shows("loading\r       \r", "", "and nothing instead");
	shows("abc\b\bX\n", "aXc\n", "backspaces");
	shows("\b\b\bx", "x", "not beyond the beginning");
	shows("a\rx\ty\n", "x\ty\n", "a tab at the end of a line");
	shows("abcdefghijkl\rx\ty\n", "xbcdefghyjkl\n", "a tab over letters");
	shows("a\tb\r..X\n", "..X     b\n", "a tab of which a part goes");
	shows("a\tb\r\033[8Cc\n", "a\tc\n", "one that stays");
}

static void
test_sequences(void)
{
	shows("abcdef\033[3D\033[K\n", "abc\n", "K: to the end");
	shows("abcdef\033[3D\033[0KX\n", "abcX\n", "0K");
	shows("abcdef\033[3D\033[1K\n", "    ef\n", "1K: from the beginning");
	shows("abcdef\033[2KX\n", "      X\n", "2K: all, the cursor stays");
	shows("abcdef\r\033[2KX\n", "X\n", "2K after \\r");
	shows("a\tbc\033[4D\033[KX", "a     X", "K within a tab");
	shows("abc\033[2GX\033[CY\033[9DZ\n", "ZXcY\n", "G, C, D");
	shows("a\033[4Cb\n", "a    b\n", "beyond the end: blanks");
	shows("one\ntwo\n\033[2A1\033[B\r2\n\n", "1ne\n2wo\n\n", "A and B");
	shows("one\ntwo\033[FX\033[EY\n", "Xne\nYwo\n", "F and E");
	shows("a\nb\nc\033[9A\rX\n", "X\nb\nc", "not above the first");
	shows("a: 1\nb: 1\n\033[2A\033[Ka: 2\n\033[Kb: 2\n", "a: 2\nb: 2\n",
	    "two bars");
	shows("a\nb\nc\033[2F\033[JX\n", "X\n", "J: to the end of all");
	shows("a\033[2J\033[Hb", "ab", "a cleared screen takes nothing away");
	shows("\033[?25la\033[?25h\033[1 qb\033[>4;2m", "ab",
	    "private sequences");
	shows("\033]0;title\ax\033]8;;http://e\033\\y\033P1\033\\z", "xyz",
	    "titles, links, control strings");
	shows("x\033[12", "x", "cut off");
	shows("x\033", "x", "cut off at once");
	shows("\033(B\0337\0338x", "x", "others");
}

/* The line between what can be reached and what cannot. */
static void
test_rows(void)
{
	auto_buf struct buf in = BUF_INIT(MIB);
	auto_buf struct buf want = BUF_INIT(MIB);

	for (int i = 0; i < 100; i++)
		buf_addf(&in, "%d\n", i);
	buf_adds(&in, "\033[999AX");
	for (int i = 0; i < 100; i++)
		buf_addf(&want, i == 51 ? "X1\n" : "%d\n", i);
	shows(buf_str(&in), buf_str(&want), "the last rows can be reached");
	buf_reset(&in);
	buf_reset(&want);
	for (int i = 0; i < TERMINAL_COLUMNS; i++)
		buf_adds(&in, "\xc3\xa4");
	buf_add(&want, buf_str(&in), in.len);
	buf_adds(&in, "b\rcd\n");
	buf_adds(&want, "cd\n");
	shows(buf_str(&in), buf_str(&want), "a long line is one line");
}

static void
test_colours(void)
{
	shows("\033[31mred\033[0m and \033[1;4;32;45mall\033[m\n",
	    "\033[31mred \033[0mand \033[1;4;32;45mall\n", "colours");
	shows("\033[31ma b\033[0m\n\033[31mc\033[0m\n", "\033[31ma b\nc\n",
	    "blanks and line ends need none");
	shows("\033[31ma\033[32mb\033[39mc", "\033[31ma\033[0;32mb\033[0mc",
	    "each sequence says all");
	shows("\033[44ma \033[0m b", "\033[44ma \033[0m b",
	    "a blank shows what is behind it");
	shows("\033[91ma\033[107mb", "\033[31ma\033[0;31;47mb", "bright ones");
	shows("\033[38;5;196ma\033[38;5;21mb\033[38;5;240mc\033[38;5;255md",
	    "\033[31ma\033[0;34mb\033[0;30mc\033[0;37md", "of the 256");
	shows("\033[38;5;9;1ma\033[48;5;11mb", "\033[1;31ma\033[0;1;31;43mb",
	    "their numbers are taken");
	shows("\033[38;2;255;165;0ma\033[38:2::0:0:255mb\033[38:2:9:200:9mc"
	      "\033[58;2;1;2;3;35md",
	    "\033[33ma\033[0;34mb\033[0;32mc\033[0;35md", "of 24 bits");
	shows("\033[38;2;300;0;0ma\033[38mb\033[38;5mc\033[3;7;8;9;48;9md",
	    "abcd", "what means nothing to us");
	shows("\033[4:3;31ma\033[4:0mb\033[1;22;31;39mc",
	    "\033[4;31ma\033[0;31mb\033[0mc", "what ends one");
	shows("\033[31mold\033[0m\rnew\n", "new\n", "overwritten colours");
	shows("\033[31m\033[0m", "", "a colour of nothing");
}

static void
test_plain_has_no_colours(void)
{
	auto_buf struct buf out = BUF_INIT(100);

	ok(!terminal_show(&out, "\033[31mred\033[0m", 12, TERMINAL_PLAIN),
	    "none were asked for");
	is_str(buf_str(&out), "red", "so there are none");
	buf_reset(&out);
	ok(terminal_show(&out, "\033[31mred\033[0m", 12, TERMINAL_COLOURS),
	    "there are some");
	ok(!terminal_show(&out, "\033[31m \033[0m\033[K", 12, TERMINAL_COLOURS),
	    "one that nobody sees is none");
}

static void
test_invisible(void)
{
	shows("a\xe2\x80\x8b"
	      "b\xc2\xad\xef\xbb\xbf",
	    "a\\u200bb\\u00ad\\ufeff", "no width");
	shows("\xe2\x80\xae"
	      "evil\xe2\x81\xa6\xd8\x9c",
	    "\\u202eevil\\u2066\\u061c", "directions");
	shows("\xf3\xa0\x81\x81\xf3\xa0\x84\x80", "\\U000e0041\\U000e0100",
	    "tags");
	shows("\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029", "separators");
	shows("a\xe2\x80\x8d"
	      "b\xef\xb8\x8f",
	    "a\\u200db\\ufe0f", "joiner and selector between letters");
	shows("\xe2\x9d\xa4\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x94\xa5",
	    "\xe2\x9d\xa4\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x94\xa5",
	    "a pictograph of several");
	shows("\xf0\x9f\x91\xa9\xf0\x9f\x8f\xbd\xe2\x80\x8d\xf0\x9f\x92\xbb",
	    "\xf0\x9f\x91\xa9\xf0\x9f\x8f\xbd\xe2\x80\x8d\xf0\x9f\x92\xbb",
	    "one with a colour of skin");
	shows("1\xef\xb8\x8f\xe2\x83\xa3", "1\xef\xb8\x8f\xe2\x83\xa3",
	    "a keycap");
	shows("\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x94\xa5",
	    "\\ufe0f\\u200d\xf0\x9f\x94\xa5", "a named one is no neighbour");
	shows("\xf0\x9f\x94\xa5\xef\xb8\x8f\xef\xb8\x8f\xef\xb8\x8e",
	    "\xf0\x9f\x94\xa5\xef\xb8\x8f\\ufe0f\\ufe0e",
	    "one selector, not a row of them");
	shows("\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae",
	    "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "as Persian is spelt");
}

/* Its time is linear, its memory bounded: piece is repeated up to len. */
static void
lasts(const char *piece, size_t len, const char *want, const char *name)
{
	size_t step = strlen(piece);
	auto_buf struct buf in = BUF_INIT(len + step);
	auto_buf struct buf out = BUF_INIT(TERMINAL_SHOWN_MAX(len + step));
	int64_t began = clock_monotonic_ms();
	bool good;

	while (in.len < len)
		buf_add(&in, piece, step);
	(void)terminal_show(&out, in.data, in.len, TERMINAL_COLOURS);
	good = !out.overflow && utf8_valid(buf_str(&out), out.len);
	if (want != NULL)
		good = good && strcmp(buf_str(&out), want) == 0;
	ok(good, name);
	note("%s: %zu bytes, %" PRId64 " ms", name, out.len,
	    clock_monotonic_ms() - began);
}

static void
test_floods(void)
{
	lasts("\r", 1000000, "", "1e6 carriage returns");
	lasts("x\r", 2000000, "x", "1e6 of a bar");
	lasts("\033[", 10 * MIB, "", "10 MiB of CSI");
	lasts("\033[1;", 10 * MIB, NULL, "10 MiB of numbers");
	lasts("\033]", 10 * MIB, "", "10 MiB of titles without an end");
	lasts("\033[A", 10 * MIB, "", "10 MiB of going up");
	lasts("\n\033[A", 10 * MIB, NULL, "and down");
	lasts("\033[999Gx\033[1K", 10 * MIB, NULL, "10 MiB of wiping");
	lasts("\033[999Gx\n", 10 * MIB, NULL, "10 MiB of blanks to make");
	lasts("\033[31mx\033[32my", 10 * MIB, NULL, "10 MiB of colours");
	lasts("\xc3\xa4", 5 * MIB, NULL, "a line of 5 MiB");
	lasts("\xc2\xad", 5 * MIB, NULL, "5 MiB of soft hyphens");
	lasts("\t\b", 5 * MIB, NULL, "5 MiB of tabs and backspaces");
	lasts("\xff", 5 * MIB, NULL, "5 MiB of what is no UTF-8");
	lasts("\033[1;4;31;41mx\033[Cy\033[m\033[D\033[D.\033[Cz", 2 * MIB,
	    NULL, "2 MiB of everything");
	lasts("\033[31mxx\b\033[1;4;32;44my", 64, NULL, "a few colours");
	lasts("\033[1;4;37;41mxxxxxxxx\r\033[1;4;36;42m\033[Cx\033[Cx"
	      "\033[Cx\033[Cx\n",
	    2 * MIB, NULL, "2 MiB of colours over others");
}

int
main(void)
{
	test_plain();
	test_drawn_again();
	test_sequences();
	test_rows();
	test_colours();
	test_plain_has_no_colours();
	test_invisible();
	test_floods();
	return tap_done();
}
