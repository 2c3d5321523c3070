/* SPDX-License-Identifier: MIT */
/*
 * Pictures that may be put before a model.  The samples have 5 x 3 pixels; the
 * numbers say where their width and height stand, and how.
 */
#include "contract/media.h"

#include <stdint.h>

#include "base/text.h"
#include "tap.h"

#define BYTES_MAX 1024

enum form { BIG, HIGH, LOW, BITS, LESS_ONE };

static const struct {
	const char *name;
	const char *type;
	const char *hex;
	size_t width;
	size_t height;
	enum form form;
} samples[] = {
	{ "PNG", "image/png",
	    "89504e470d0a1a0a0000000d4948445200000005000000030802000000d45452"
	    "af0000001a49444154789c633c2167c38004981818182c1e1e81f319d1e40177"
	    "830426c78ef5e70000000049454e44ae426082",
	    16, 20, BIG },
	{ "JPEG", "image/jpeg",
	    "ffd8ffe000104a46494600010100000100010000ffdb004300a06e788c7864a0"
	    "8c828cb4aaa0bef0fffff0dcdcf0ffffffffffffffffffffffffffffffffffff"
	    "ffffffffffffffffffffffffffffffffffffffffffffffffffffc0000b080003"
	    "000501011100ffc40014000100000000000000000000000000000000ffc40014"
	    "100100000000000000000000000000000000ffda0008010100003f003fffd9",
	    96, 94, HIGH },
	{ "progressive JPEG", "image/jpeg",
	    "ffd8ffe000104a46494600010100000100010000ffdb004300a06e788c7864a0"
	    "8c828cb4aaa0bef0fffff0dcdcf0ffffffffffffffffffffffffffffffffffff"
	    "ffffffffffffffffffffffffffffffffffffffffffffffffffffc2000b080003"
	    "000501011100ffc40014000100000000000000000000000000000000ffda0008"
	    "0101000000017fffc40014100100000000000000000000000000000000ffda00"
	    "080101000105027fffc40014100100000000000000000000000000000000ffda"
	    "0008010100063f027fffc40014100100000000000000000000000000000000ff"
	    "da0008010100013f217fffda00080101000000107fffc4001410010000000000"
	    "0000000000000000000000ffda0008010100013f107fffd9",
	    96, 94, HIGH },
	{ "GIF", "image/gif",
	    "4749463837610500030081000000ff00c81e3c0000000000002c000000000500"
	    "030000080b0003081c0860a0c1000101003b",
	    6, 8, LOW },
	{ "animated GIF", "image/gif",
	    "4749463837610500030081000000ff00c81e3c0000000000002c000000000500"
	    "030000080b0003081c0860a0c1000101002c01000100030001008100ff00c81e"
	    "3c0000000000000806000304001010003b",
	    6, 8, LOW },
	{ "WebP", "image/webp",
	    "524946464800000057454250565038203c0000001002009d012a050003000140"
	    "2625b00274ba00033bfee8520000fef149d31e9a324ab9fe00b1ebbc5a34bffd"
	    "daf47c391804cffb8cfffb8cffe44000",
	    26, 28, LOW },
	{ "lossless WebP", "image/webp",
	    "5249464622000000574542505650384c150000002f048000000ff08fff411e9e"
	    "f98f34bce323a2ff5100",
	    21, 21, BITS },
	{ "animated WebP", "image/webp",
	    "524946461a01000057454250565038580a00000002000000040000020000414e"
	    "494d06000000000000000000414e4d4654000000000000000000040000020000"
	    "00000002565038203c0000005001009d012a0500030001402625b00004740000"
	    "fef0d79cf1e47e4dfb5b2ce79c39bfebd696e6e13ffffddaf47c391804cfffb6"
	    "4ffffb64ffe30000414e4d469200000000000000000003000001000000000000"
	    "565038207a0000005401009d012a0400020000002625a800058c0000fe67fffb"
	    "ed7e8cfff3ffffcfd437f82335a1fff938dd3efefe516f700fc17ff9f8d5ffaa"
	    "17ff9f8d5ffaa17ff9f8d5ffadfff0b7f89d58bffc2dfe27594ffc2dfe27594f"
	    "ffdacc5bf2b5f660c2a13ffff9cc6332f4fff06fff02bff72bbb7e3ffc1bf180"
	    "0000",
	    24, 27, LESS_ONE },
};

static unsigned char bytes[BYTES_MAX];
static size_t len;

static void
load(size_t i)
{
	len = strlen(samples[i].hex) / 2;
	ok(len <= BYTES_MAX &&
		text_parse_hex(samples[i].hex, 2 * len, bytes, len),
	    samples[i].name);
}

/* "fine", or why it must not be shown. */
static const char *
judge(size_t length)
{
	const char *type = media_type("", bytes, length);
	const char *fault = media_is_picture(type) ?
	    media_picture_fault(&type, bytes, length) :
	    "no picture";

	return fault == NULL ? "fine" : fault;
}

/* A checksum of its own for each chunk. */
static void
seal_png_head(void)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 12; i < 29; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
	}
	for (size_t i = 0; i < 4; i++)
		bytes[29 + i] = (unsigned char)(~crc >> (24 - 8 * i));
}

static void
put(size_t at, size_t count, bool high, size_t value)
{
	for (size_t i = 0; i < count; i++)
		bytes[at + (high ? count - 1 - i : i)] =
		    (unsigned char)(value >> (8 * i));
}

static void
resize(size_t i, size_t width, size_t height)
{
	const size_t w = samples[i].width;
	const size_t h = samples[i].height;

	switch (samples[i].form) {
	case BIG:
		put(w, 4, true, width);
		put(h, 4, true, height);
		seal_png_head();
		break;
	case HIGH:
		put(w, 2, true, width);
		put(h, 2, true, height);
		break;
	case LOW:
		put(w, 2, false, width);
		put(h, 2, false, height);
		break;
	case BITS:
		put(w, 4, false, (width - 1) | (height - 1) << 14);
		break;
	case LESS_ONE:
		put(w, 3, false, width - 1);
		put(h, 3, false, height - 1);
		break;
	}
}

static void
test_cut(size_t i)
{
	const char *type;
	size_t shown = 0;

	load(i);
	is_str(media_type("x", bytes, len), samples[i].type, "its type");
	is_str(judge(len), "fine", "whole");
	for (size_t tenth = 1; tenth < 10; tenth++)
		shown += strcmp(judge(len * tenth / 10), "fine") == 0;
	for (size_t n = 0; n < len; n++)
		shown += strcmp(judge(n), "fine") == 0;
	is_int((int)shown, 0, "cut anywhere it is not shown");
	type = media_type("x", bytes, len);
	is_str(media_picture_fault(&type, bytes, len - 1),
	    "it is no whole picture", "and the model is told why");
	is_str(type, "application/octet-stream", "nor is it called a picture");
}

static void
test_size(size_t i)
{
	static const struct {
		size_t side;
		const char *verdict;
	} sides[] = {
		{ 1, "fine" },
		{ 2000, "fine" },
		{ 2001, "it has over 2,000 pixels in width or height" },
		{ 8001, "it has over 2,000 pixels in width or height" },
	};

	load(i);
	for (size_t s = 0; s < 4; s++) {
		resize(i, sides[s].side, 7);
		is_str(judge(len), sides[s].verdict, "so wide");
		resize(i, 7, sides[s].side);
		is_str(judge(len), sides[s].verdict, "so high");
	}
	if (samples[i].form == BITS || samples[i].form == LESS_ONE)
		return;
	resize(i, 0, 7);
	is_str(judge(len), "it is no whole picture", "without pixels");
}

/* The reader stays within a picture of any bytes. */
static void
test_any(size_t i)
{
	load(i);
	for (size_t at = 0; at < len; at++) {
		const unsigned char before = bytes[at];

		bytes[at] = 0xff;
		(void)judge(len);
		bytes[at] = 0;
		(void)judge(len);
		bytes[at] = before;
	}
	is_str(judge(len), "fine", "as it was");
}

int
main(void)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		test_cut(i);
		test_size(i);
		test_any(i);
	}
	return tap_done();
}
