/* SPDX-License-Identifier: MIT */
#include "contract/base64.h"

#include <string.h>

#include <sodium.h>

#include "base/buf.h"

static const char alphabet[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#define BLANK 0xfe
#define NO_DIGIT 0xff

/* The number of each byte as a digit, in either alphabet. */
struct digits {
	unsigned char of[256];
};

static void
digits_fill(struct digits *digits)
{
	memset(digits->of, NO_DIGIT, sizeof(digits->of));
	for (size_t i = 0; i < sizeof(alphabet); i++)
		digits->of[(unsigned char)alphabet[i]] = (unsigned char)i;
	digits->of['-'] = digits->of['+'];
	digits->of['_'] = digits->of['/'];
	for (const char *c = " \t\r\n"; *c != '\0'; c++)
		digits->of[(unsigned char)*c] = BLANK;
}

/* libsodium's decoder knows one alphabet at a time, and no other end of the
 * last group than zeros. */
bool
base64_decode(const char *text, size_t text_len, bool padded, char *out,
    size_t *len)
{
	struct digits digits;
	unsigned bits = 0;
	size_t place = 0; /* in the group of four */
	size_t pads = 0;

	digits_fill(&digits);
	*len = 0;
	for (size_t i = 0; i < text_len; i++) {
		unsigned digit = digits.of[(unsigned char)text[i]];

		if (text[i] == '=')
			pads++;
		else if (digit == NO_DIGIT || (digit != BLANK && pads > 0))
			return false;
		if (digit > 63)
			continue;
		bits = (bits << 6 | digit) & 0xffffff;
		if (place > 0)
			out[(*len)++] = (char)(bits >> (6 - 2 * place) & 0xff);
		place = (place + 1) % 4;
	}
	return place != 1 &&
	    (pads == (4 - place) % 4 || (pads == 0 && !padded));
}

void
base64_add(struct buf *out, const void *data, size_t len)
{
	const int variant = sodium_base64_VARIANT_ORIGINAL;
	size_t size = sodium_base64_encoded_len(len, variant); /* and a NUL */
	char *room = buf_reserve(out, size - 1);

	if (room == NULL)
		return;
	(void)sodium_bin2base64(room, size, data, len, variant);
	buf_commit(out, size - 1);
}
