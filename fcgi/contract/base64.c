/* SPDX-License-Identifier: MIT */
#include "base64.h"

#include <string.h>

#include "../../sandbox/base/buf.h"

/* without a NUL, which is no digit */
static const char alphabet[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* libsodium's decoder refuses what CPython passes over, so this is our own. */
bool
base64_decode(const char *text, size_t text_len, char *out, size_t *len)
{
	unsigned bits = 0;
	size_t place = 0; /* in the group of four */
	size_t pads = 0;
	size_t n = 0;

	/* Only ASCII may stand anywhere, also after the pad. */
	for (size_t i = 0; i < text_len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	for (size_t i = 0; i < text_len; i++) {
		const char *digit = memchr(alphabet, text[i], sizeof(alphabet));

		if (text[i] == '=' && place >= 2 && place + ++pads >= 4) {
			*len = n;
			return true;
		}
		if (digit == NULL)
			continue;
		pads = 0;
		bits = (bits << 6 | (unsigned)(digit - alphabet)) & 0xffffff;
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
	for (size_t i = 0; i < len; i += 3) {
		unsigned bits = (unsigned)in[i] << 16;

		if (i + 1 < len)
			bits |= (unsigned)in[i + 1] << 8;
		if (i + 2 < len)
			bits |= in[i + 2];
		room[n++] = alphabet[bits >> 18];
		room[n++] = alphabet[bits >> 12 & 63];
		room[n++] = i + 1 < len ? alphabet[bits >> 6 & 63] : '=';
		room[n++] = i + 2 < len ? alphabet[bits & 63] : '=';
	}
	buf_commit(out, n);
}
