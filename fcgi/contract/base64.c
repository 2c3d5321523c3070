/* SPDX-License-Identifier: MIT */
#include "contract/base64.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

/* without a NUL, which is no digit */
static const char alphabet[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#define NO_DIGIT 0xff

/* What each byte stands for; NO_DIGIT: none. */
struct digits {
	unsigned char of[256];
};

static void
digits_fill(struct digits *digits)
{
	memset(digits->of, NO_DIGIT, sizeof(digits->of));
	for (size_t i = 0; i < sizeof(alphabet); i++)
		digits->of[(unsigned char)alphabet[i]] = (unsigned char)i;
}

/* Whole groups without anything else, three bytes for each; how many bytes of
 * the text they are.  What is written never overtakes what is read. */
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

/* libsodium's decoder refuses what CPython passes over, so this is our own. */
bool
base64_decode(const char *text, size_t text_len, char *out, size_t *len)
{
	struct digits digits;
	unsigned bits = 0;
	size_t place = 0; /* in the group of four */
	size_t pads = 0;
	size_t n = 0;

	/* Only ASCII may stand anywhere, also after the pad. */
	if (utf8_ascii(text, text_len) < text_len)
		return false;
	digits_fill(&digits);
	for (size_t i = 0; i < text_len; i++) {
		unsigned digit;

		if (place == 0) {
			size_t done = decode_groups(&digits, text + i,
			    text_len - i, out + n);

			i += done;
			n += done / 4 * 3;
			if (i == text_len)
				break;
		}
		digit = digits.of[(unsigned char)text[i]];
		if (text[i] == '=' && place >= 2 && place + ++pads >= 4) {
			*len = n;
			return true;
		}
		if (digit == NO_DIGIT)
			continue;
		pads = 0;
		bits = (bits << 6 | digit) & 0xffffff;
		if (place > 0)
			out[n++] = (char)(bits >> (6 - 2 * place) & 0xff);
		place = (place + 1) % 4;
	}
	*len = n;
	return place == 0;
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
