/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

#include "tap.h"

static void
test_utf8(void)
{
	static const struct {
		const char *s;
		size_t step;
		const char *what;
	} rows[] = {
		{ "a", 1, "ASCII" },
		{ "\xc3\xa4", 2, "two bytes" },
		{ "\xe2\x82\xac", 3, "three bytes" },
		{ "\xf0\x9f\x90\x8d", 4, "four bytes" },
		{ "\xc0\xaf", 0, "overlong, two bytes" },
		{ "\xc1\xbf", 0, "overlong, C1" },
		{ "\xe0\x9f\xbf", 0, "overlong, three bytes" },
		{ "\xf0\x8f\xbf\xbf", 0, "overlong, four bytes" },
		{ "\xed\xa0\x80", 0, "first surrogate" },
		{ "\xed\x9f\xbf", 3, "last before the surrogates" },
		{ "\xf4\x8f\xbf\xbf", 4, "U+10FFFF" },
		{ "\xf4\x90\x80\x80", 0, "U+110000" },
		{ "\xf5\x80\x80\x80", 0, "F5" },
		{ "\x80", 0, "a tail alone" },
		{ "\xe2\x82", 0, "cut off" },
		{ "\xe2\x82z", 0, "tail missing" },
		{ "\xff", 0, "FF" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(utf8_step(rows[i].s, strlen(rows[i].s)), rows[i].step,
		    rows[i].what);
	is_int(utf8_step("", 0), 0, "no bytes");
	is_int(utf8_step("\0", 1), 1, "NUL is a character");
	ok(utf8_valid("a\xc3\xa4z", 4), "valid");
	ok(!utf8_valid("a\xc3", 2), "not valid");
	ok(utf8_valid("", 0), "nothing is valid");
}

int
main(void)
{
	test_utf8();
	return tap_done();
}
