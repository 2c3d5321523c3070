/* SPDX-License-Identifier: MIT */
#include "sha1.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64
#define ROUNDS 80

static uint32_t
rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
add_block(uint32_t h[5], const unsigned char *block)
{
	uint32_t w[ROUNDS];
	uint32_t s[5];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 |
		    (uint32_t)block[4 * i + 1] << 16 |
		    (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(s, h, sizeof(s));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t f = i < 20 ?
		    ((s[1] & s[2]) | (~s[1] & s[3])) :
		    i >= 40 && i < 60 ?
		    ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) :
		    s[1] ^ s[2] ^ s[3];
		uint32_t k = i < 20 ? 0x5a827999 :
		    i < 40	    ? 0x6ed9eba1 :
		    i < 60	    ? 0x8f1bbcdc :
				      0xca62c1d6;
		uint32_t next = rotate(s[0], 5) + f + s[4] + k + w[i];

		s[4] = s[3];
		s[3] = s[2];
		s[2] = rotate(s[1], 30);
		s[1] = s[0];
		s[0] = next;
	}
	for (int i = 0; i < 5; i++)
		h[i] += s[i];
}

void
sha1(const void *data, size_t len, unsigned char hash[SHA1_LEN])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
		0xc3d2e1f0 };
	unsigned char last[2 * BLOCK] = { 0 };
	const unsigned char *in = data;
	size_t rest = len % BLOCK;
	size_t size = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	for (size_t at = 0; at + BLOCK <= len; at += BLOCK)
		add_block(h, in + at);
	memcpy(last, in + len - rest, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)((uint64_t)len * 8 >>
			8 * i &
		    0xff);
	for (size_t at = 0; at < size; at += BLOCK)
		add_block(h, last + at);
	for (size_t i = 0; i < SHA1_LEN; i++)
		hash[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
