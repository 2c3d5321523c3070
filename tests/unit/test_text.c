/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "base/utf8.h"

#include <time.h>

#include "base/basics.h"
#include "tap.h"

static void
test_counting(void)
{
	const char *s = "a\xc3\xa4\xf0\x9f\x90\x8dz"; /* 1 + 2 + 4 + 1 */

	is_int(text_codepoints(s, 8), 4, "code points");
	is_int(text_prefix(s, 8, 0), 0, "prefix of 0");
	is_int(text_prefix(s, 8, 2), 3, "prefix of 2");
	is_int(text_prefix(s, 8, 3), 7, "prefix of 3");
	is_int(text_prefix(s, 8, 4), 8, "prefix of all");
	is_int(text_prefix(s, 8, 99), 8, "prefix of more than all");
}

static void
test_clean(void)
{
	static const struct {
		const char *in;
		const char *out;
		const char *what;
	} rows[] = {
		{ "plain\ttext\n", "plain\ttext\n", "tab and newline stay" },
		{ "a\r\nb\rc", "a\nb\nc", "carriage returns" },
		{ "a\001\b\177b", "ab", "control characters" },
		{ "a\xff\xfe z", "a\xef\xbf\xbd\xef\xbf\xbd z", "bad bytes" },
		{ "\033[1;31mred\033[0m", "red", "colours" },
		{ "\033]0;title\atext", "text", "a title, BEL" },
		{ "\033]8;;http://x\033\\text", "text", "a link, ST" },
		{ "\033]0;open\nnext", "0;open\nnext", "unfinished title" },
		{ "\033]0;a\nb\ac", "0;a\nbc", "a title ends with its line" },
		{ "\033Pq#0\033\\x", "x", "a control string" },
		{ "\033]0;a\033[1mb\ac", "0;abc", "an ESC ends a title" },
		{ "\033(Bx", "x", "a character set" },
		{ "\0337x\0338", "x", "save and restore" },
		{ "x\033", "x", "an escape at the end" },
		{ "x\033[12", "x", "a sequence cut off" },
		{ "\033[3\xc3\xa4", "\xc3\xa4", "broken by a character" },
		{ "a\xe2\x80\xae"
		  "b\xe2\x81\xa6"
		  "c\xe2\x80\x8f",
		    "a\\u202eb\\u2066c\\u200f", "bidirectional controls" },
		{ "a\xd8\x9c"
		  "b",
		    "a\\u061cb", "Arabic letter mark" },
		{ "\xe2\x9d\xa4\xef\xb8\x8f\r\xef\xb8\x8f",
		    "\xe2\x9d\xa4\xef\xb8\x8f\n\\ufe0f",
		    "a selector after its pictograph" },
		{ "a\xc2\x9b"
		  "31mb",
		    "a31mb", "C1 controls" },
		{ "\xc2\xa0\xe2\x80\x94", "\xc2\xa0\xe2\x80\x94", "others" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_buf struct buf b = BUF_INIT(200);

		text_add_clean(&b, rows[i].in, strlen(rows[i].in));
		is_str(buf_str(&b), rows[i].out, rows[i].what);
	}
}

static void
test_clean_all_bytes(void)
{
	auto_buf struct buf b = BUF_INIT(4000);
	char in[1024];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 37 + i / 7);
	text_add_clean(&b, in, sizeof(in));
	ok(utf8_valid(buf_str(&b), b.len), "what is cleaned is valid");
	ok(memchr(buf_str(&b), '\0', b.len) == NULL, "and has no NUL");
}

/* Output is chosen by whoever wrote the program: no text of it may keep us
 * busy. */
static void
test_clean_takes_no_longer(void)
{
	size_t len = 512 * 1024;
	auto_buf struct buf in = BUF_INIT(len);
	auto_buf struct buf out = BUF_INIT(3 * len);
	clock_t began = clock();

	for (size_t i = 0; i < len / 2; i++)
		buf_adds(&in, "\033]");
	text_add_clean(&out, buf_str(&in), in.len);
	is_int(out.len, 0, "titles that never end show nothing");
	ok(clock() - began < 2 * CLOCKS_PER_SEC, "and are looked at once");
}

static void
test_snowflake(void)
{
	int64_t id = 0;

	ok(text_parse_snowflake("175928847299117063", &id), "a Discord id");
	is_int(id, INT64_C(175928847299117063), "its value");
	ok(text_parse_snowflake("9223372036854775807", &id), "the largest");
	ok(!text_parse_snowflake("9223372036854775808", &id), "one more");
	ok(!text_parse_snowflake("99999999999999999999", &id),
	    "20 digits, too large");
	ok(!text_parse_snowflake("0", &id), "0");
	ok(!text_parse_snowflake("012", &id), "leading zero");
	ok(!text_parse_snowflake("-1", &id), "sign");
	ok(!text_parse_snowflake("+1", &id), "plus");
	ok(!text_parse_snowflake("", &id), "empty");
	ok(!text_parse_snowflake(" 1", &id), "blank before");
	ok(!text_parse_snowflake("1 ", &id), "blank after");
	is_int(id, INT64_MAX, "a refused text leaves the value alone");
}

static void
test_numbers(void)
{
	int64_t v = 5;

	ok(text_parse_int("42", 0, 100, &v) && v == 42, "42");
	ok(text_parse_int("-3", -5, 5, &v) && v == -3, "-3");
	ok(text_parse_int("100", 0, 100, &v), "at the maximum");
	ok(!text_parse_int("101", 0, 100, &v), "over it");
	ok(!text_parse_int("-1", 0, 100, &v), "under the minimum");
	ok(!text_parse_int("", 0, 100, &v), "empty");
	ok(!text_parse_int("-", -9, 100, &v), "a sign alone");
	ok(!text_parse_int("--1", -9, 100, &v), "two signs");
	ok(!text_parse_int("1x", 0, 100, &v), "something after");
	ok(!text_parse_int("99999999999999999999", 0, INT64_MAX, &v),
	    "overflow");
	ok(text_parse_size("256m", &v) && v == 268435456, "256m");
	ok(text_parse_size("1G", &v) && v == 1073741824, "1G");
	ok(text_parse_size("4k", &v) && v == 4096, "4k");
	ok(text_parse_size("17", &v) && v == 17, "17");
	ok(!text_parse_size("m", &v), "a suffix alone");
	ok(!text_parse_size("1mm", &v), "two suffixes");
	ok(!text_parse_size("-1m", &v), "negative");
	ok(!text_parse_size("-0", &v), "negative zero");
	ok(!text_parse_thousandths("-0.0", &v), "and in thousandths");
	ok(!text_parse_size("", &v), "empty size");
	ok(!text_parse_size("9223372036854775807g", &v), "size overflow");
}

static void
test_hex(void)
{
	unsigned char out[3];
	char hex[17];
	char other[17];

	ok(text_parse_hex("00fFa1", 6, out, 3), "hex of either case");
	is_mem(out, sizeof(out), "\x00\xff\xa1", (size_t)3, "its bytes");
	ok(!text_parse_hex("00ff", 4, out, 3), "short");
	ok(!text_parse_hex("00ffa1b", 7, out, 3), "long");
	ok(!text_parse_hex("00fg00", 6, out, 3), "not hex");
	text_random_hex(hex, 16);
	text_random_hex(other, 16);
	ok(strlen(hex) == 16 && strspn(hex, "0123456789abcdef") == 16 &&
		strcmp(hex, other) != 0,
	    "random digits");
}

static void
test_size(void)
{
	static const struct {
		int64_t bytes;
		const char *want;
	} rows[] = {
		{ 0, "0 B" },
		{ 812, "812 B" },
		{ 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ 1572864, "1.5 MiB" },
		{ 1048575, "1023.9 KiB" },
		{ 268435456, "256 MiB" },
		{ INT64_MAX, "7.9 EiB" },
		{ -5, "0 B" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_str(text_size(rows[i].bytes).text, rows[i].want,
		    rows[i].want);
	is_str(text_time(1763695680).text, "2025-11-21 03:28", "a time");
	is_str(text_time(INT64_MAX).text, "?", "no time");
}

static void
test_clean_array(void)
{
	char cut[] = "sl\xc3\xb6\xc3";
	char whole[9] = "ab\xff\033[1mc";
	char longer[5] = "abc\xff";
	char full[2] = { '\xff', '\xff' };

	text_clean_array(cut, sizeof(cut));
	is_str(cut, "sl\xc3\xb6", "what has no room is no half character");
	text_clean_array(whole, sizeof(whole));
	is_str(whole,
	    "ab\xef\xbf\xbd"
	    "c",
	    "clean in its place");
	text_clean_array(longer, sizeof(longer));
	is_str(longer, "abc", "one that became longer ends before it");
	text_clean_array(full, sizeof(full));
	is_str(full, "", "no room, no end");
}

int
main(void)
{
	test_counting();
	test_clean();
	test_clean_array();
	test_clean_all_bytes();
	test_clean_takes_no_longer();
	test_snowflake();
	test_numbers();
	test_hex();
	test_size();
	return tap_done();
}
