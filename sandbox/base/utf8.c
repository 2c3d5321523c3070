/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

bool
utf8_is_tail(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* May this tail follow that first byte?  An overlong form, a surrogate and what
 * is above U+10FFFF show in the second byte. */
static bool
utf8_is_second(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second < 0xa0;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second < 0x90;
	default:
		return true;
	}
}

size_t
utf8_look(const char *s, size_t len, enum utf8_fault *fault)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n;

	assert(len > 0);
	*fault = UTF8_FINE;
	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4) {
		*fault = UTF8_WRONG;
		return 1;
	}
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < n; i++) {
		if (i == len)
			*fault = UTF8_END;
		else if (!utf8_is_tail(s[i]) ||
		    (i == 1 && !utf8_is_second(u[0], u[1])))
			*fault = UTF8_WRONG;
		if (*fault != UTF8_FINE)
			return i;
	}
	return n;
}

/* Eight at a time. */
size_t
utf8_ascii(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		if ((word & HIGH_BITS) != 0)
			break;
	}
	while (i < len && (s[i] & 0x80) == 0)
		i++;
	return i;
}

size_t
utf8_span(const char *s, size_t len)
{
	enum utf8_fault fault = UTF8_FINE;
	size_t i = 0;

	for (;;) {
		size_t step;

		/* Most of what there is. */
		i += utf8_ascii(s + i, len - i);
		if (i == len)
			return i;
		step = utf8_look(s + i, len - i, &fault);
		if (fault != UTF8_FINE)
			return i;
		i += step;
	}
}

size_t
utf8_step(const char *s, size_t len)
{
	enum utf8_fault fault = UTF8_END;
	size_t step = len > 0 ? utf8_look(s, len, &fault) : 0;

	return fault == UTF8_FINE ? step : 0;
}

/* The first byte says the length in its highest bits; six bits are in each of
 * the others. */
uint32_t
utf8_decode(const char *s, size_t step)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = (unsigned char)s[0] & masks[step];

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	return code;
}

size_t
utf8_encode(uint32_t code, char out[4])
{
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(marks[n] | code);
	return n;
}

bool
utf8_valid(const char *s, size_t len)
{
	return utf8_span(s, len) == len;
}

bool
utf8_is_blank(uint32_t code)
{
	return code == ' ' || code == 0xa0 || code == 0x1680 ||
	    (code >= 0x2000 && code <= 0x200a) || code == 0x202f ||
	    code == 0x205f || code == 0x2800 || code == 0x3000;
}
