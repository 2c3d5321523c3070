/* SPDX-License-Identifier: MIT */
#include "pyplain.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* The highest bit set in the first byte that is less than n, which is 0x80 at
 * most; in those before it, none. */
static uint64_t
less(uint64_t word, unsigned char n)
{
	return (word - EACH(n)) & ~word & EACH(0x80);
}

/* Eight at a time.  What is equal to a byte differs from it by less than 1. */
size_t
pyplain_span(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;
	uint64_t found;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		word = le64toh(word); /* the first byte is the lowest */
		found = (word & EACH(0x80)) | less(word, 0x20) |
		    less(word ^ EACH('"'), 1) | less(word ^ EACH('\\'), 1) |
		    less(word ^ EACH(0x7f), 1);
		if (found != 0)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && is_plain((unsigned char)s[i]))
		i++;
	return i;
}
