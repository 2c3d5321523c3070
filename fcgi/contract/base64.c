/* SPDX-License-Identifier: MIT */
#include "contract/base64.h"

#include <string.h>

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

/* Decode whole groups without blanks, three bytes for each.  The bytes of text
 * that they are.  The output never overtakes the text. */
static size_t
decode_groups(const struct digits *digits, const char *text, size_t text_len,
    char *out)
{
	const unsigned char *in = (const unsigned char *)text;
	size_t i = 0;

	for (; text_len - i >= 4; i += 4) {
		unsigned a = digits->of[in[i]];
		unsigned b = digits->of[in[i + 1]];
		unsigned c = digits->of[in[i + 2]];
		unsigned d = digits->of[in[i + 3]];

		if ((a | b | c | d) > 63)
			break;
		*out++ = (char)(a << 2 | b >> 4);
		*out++ = (char)(b << 4 | c >> 2);
		*out++ = (char)(c << 6 | d);
	}
	return i;
}

/* libsodium's decoder takes the same time for all data, four times ours. */
bool
base64_decode(const char *text, size_t text_len, bool padded, char *out,
    size_t *len)
{
	struct digits digits;
	unsigned bits = 0;
	size_t place = 0; /* in the group of four */
	size_t pads = 0;
	size_t i;

	digits_fill(&digits);
	i = decode_groups(&digits, text, text_len, out);
	*len = i / 4 * 3;
	for (; i < text_len; i++) {
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

/* libsodium's encoder takes the same time for all data, four times ours. */
void
base64_add(struct buf *out, const void *data, size_t len)
{
	const unsigned char *in = data;
	char *room = buf_reserve(out, (len + 2) / 3 * 4);
	size_t n = 0;

	if (room == NULL)
		return;
	for (; len >= 3; in += 3, len -= 3) {
		unsigned bits = (unsigned)in[0] << 16 | (unsigned)in[1] << 8 |
		    in[2];

		room[n++] = alphabet[bits >> 18];
		room[n++] = alphabet[bits >> 12 & 63];
		room[n++] = alphabet[bits >> 6 & 63];
		room[n++] = alphabet[bits & 63];
	}
	if (len > 0) {
		unsigned bits = (unsigned)in[0] << 16;

		if (len == 2)
			bits |= (unsigned)in[1] << 8;
		room[n++] = alphabet[bits >> 18];
		room[n++] = alphabet[bits >> 12 & 63];
		room[n++] = len == 2 ? alphabet[bits >> 6 & 63] : '=';
		room[n++] = '=';
	}
	buf_commit(out, n);
}
