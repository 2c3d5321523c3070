#include "utf8.h"

bool
utf8_is_tail(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Overlong, surrogate or out of range: the second byte tells. */
static bool
utf8_second_good(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second <= 0x9f;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second <= 0x8f;
	default:
		return true;
	}
}

size_t
utf8_step(const char *s, size_t len)
{
	unsigned char first;
	size_t n;

	if (len == 0)
		return 0;
	first = (unsigned char)s[0];
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (!utf8_is_tail(s[i]))
			return 0;
	return utf8_second_good(first, (unsigned char)s[1]) ? n : 0;
}

bool
utf8_valid(const char *s, size_t len)
{
	while (len > 0) {
		size_t step = utf8_step(s, len);

		if (step == 0)
			return false;
		s += step;
		len -= step;
	}
	return true;
}
