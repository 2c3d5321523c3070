/* SPDX-License-Identifier: MIT */
/* Text from strangers: what a run prints, file names, install logs. */
#include "fuzz.h"

#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"

static void
check_clean(const struct buf *clean)
{
	const char *s = buf_str(clean);

	fuzz_holds(!clean->overflow, "at most three bytes for each");
	fuzz_holds(utf8_valid(s, clean->len), "clean text is UTF-8");
	for (size_t i = 0; i < clean->len; i++)
		fuzz_holds((unsigned char)s[i] >= 0x20 || s[i] == '\n' ||
			s[i] == '\t',
		    "clean text has no control characters");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf clean = BUF_INIT(3 * size);
	auto_buf struct buf twice = BUF_INIT(3 * size);
	size_t points;
	size_t half;

	text_add_clean(&clean, (const char *)data, size);
	check_clean(&clean);
	text_add_clean(&twice, buf_str(&clean), clean.len);
	fuzz_holds(clean.len == twice.len &&
		memcmp(buf_str(&clean), buf_str(&twice), clean.len) == 0,
	    "cleaning twice changes nothing");
	points = text_codepoints(buf_str(&clean), clean.len);
	fuzz_holds(text_prefix(buf_str(&clean), clean.len, points) == clean.len,
	    "a prefix of all is all");
	half = text_prefix(buf_str(&clean), clean.len, points / 2);
	fuzz_holds(utf8_valid(buf_str(&clean), half) &&
		text_codepoints(buf_str(&clean), half) == points / 2,
	    "half of the code points is a text");
	return 0;
}
