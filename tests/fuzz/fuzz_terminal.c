/* SPDX-License-Identifier: MIT */
/* A terminal shows any bytes as a bounded text; only sequences of colours are
 * left in it. */
#include "fuzz.h"

#include <string.h>

#include "base/basics.h"
#include "base/utf8.h"
#include "worker/render/terminal.h"

/* The sequence at s, which is one that sgr_add() writes. */
static size_t
check_sequence(const char *s)
{
	size_t n = strspn(s + 1, "[01234567;") + 1;

	fuzz_holds(s[1] == '[' && s[n] == 'm', "a colour");
	fuzz_holds(n < SGR_MAX, "a short one");
	return n + 1;
}

static void
check_text(const struct buf *out, bool coloured)
{
	const char *s = buf_str(out);
	bool any = false;
	bool begun = false; /* a sequence that nothing was shown in */

	fuzz_holds(!out->overflow, "within its bounds");
	fuzz_holds(utf8_valid(s, out->len), "UTF-8");
	for (size_t i = 0; i < out->len;) {
		if (s[i] == '\033') {
			fuzz_holds(!begun, "no two sequences for one text");
			i += check_sequence(s + i);
			begun = true;
			any = true;
			continue;
		}
		fuzz_holds((unsigned char)s[i] >= 0x20 || s[i] == '\n' ||
			s[i] == '\t',
		    "no control characters");
		begun = false;
		i++;
	}
	fuzz_holds(!begun, "no sequence at the end");
	fuzz_holds(any == coloured, "it says whether there are colours");
}

/* Is the one the other without sequences? */
static bool
is_same_text(const char *coloured, const char *plain)
{
	for (; *coloured != '\0'; coloured++, plain++) {
		while (*coloured == '\033')
			coloured += strcspn(coloured, "m") + 1;
		if (*coloured != *plain)
			return false;
	}
	return *plain == '\0';
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *in = (const char *)data;
	auto_buf struct buf coloured = BUF_INIT(TERMINAL_SHOWN_MAX(size));
	auto_buf struct buf plain = BUF_INIT(TERMINAL_SHOWN_MAX(size));
	auto_buf struct buf again = BUF_INIT(0);

	check_text(&coloured,
	    terminal_show(&coloured, in, size, TERMINAL_COLOURS));
	fuzz_holds(!terminal_show(&plain, in, size, TERMINAL_PLAIN),
	    "no colours in plain text");
	check_text(&plain, false);
	fuzz_holds(is_same_text(buf_str(&coloured), buf_str(&plain)),
	    "colours change no text");
	buf_init(&again, TERMINAL_SHOWN_MAX(plain.len));
	(void)terminal_show(&again, buf_str(&plain), plain.len,
	    TERMINAL_COLOURS);
	fuzz_holds(again.len == plain.len &&
		memcmp(buf_str(&again), buf_str(&plain), plain.len) == 0,
	    "what is shown is shown as it is");
	return 0;
}
