/* SPDX-License-Identifier: MIT */
#include "contract/media.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define PNG_HEAD 8    /* bytes before the first chunk */
#define PNG_AROUND 12 /* length, type and checksum of a chunk */
#define PNG_CRC 0xedb88320u
#define OFFICE "application/vnd.openxmlformats-officedocument."

/* The bytes that are left to read.  A read beyond the end sets broken and
 * yields zeros. */
struct reader {
	const unsigned char *at;
	size_t len;
	bool sized;  /* a width and a height were there */
	bool large;  /* one of them is over MEDIA_PICTURE_SIDE */
	bool broken; /* it is no whole picture */
};

/* ---- reading ---- */

static const unsigned char *
skip(struct reader *r, size_t len)
{
	static const unsigned char none[16];
	const unsigned char *at = r->at;

	if (len > r->len) {
		r->broken = true;
		r->len = 0;
		return none;
	}
	r->at += len;
	r->len -= len;
	return at;
}

static unsigned char
read_byte(struct reader *r)
{
	return *skip(r, 1);
}

/* Byte that a number begins with. */
enum order { HIGHEST, LOWEST };

static size_t
read_number(const unsigned char *p, size_t len, enum order order)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n = n << 8 | p[order == HIGHEST ? i : len - 1 - i];
	return n;
}

/* The picture, or one of its frames, has these sides. */
static void
note_sides(struct reader *r, size_t one, size_t other)
{
	r->sized = true;
	r->broken |= one == 0 || other == 0;
	r->large |= one > MEDIA_PICTURE_SIDE || other > MEDIA_PICTURE_SIDE;
}

/* ---- PNG ---- */

static uint32_t
png_checksum(const unsigned char *p, size_t len)
{
	uint32_t table[16];
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; i < 16; i++) {
		table[i] = i;
		for (int bit = 0; bit < 4; bit++)
			table[i] = table[i] >> 1 ^
			    (PNG_CRC & (0 - (table[i] & 1)));
	}
	for (size_t i = 0; i < len; i++) {
		crc = crc >> 4 ^ table[(crc ^ p[i]) & 15];
		crc = crc >> 4 ^ table[(crc ^ p[i] >> 4) & 15];
	}
	return ~crc;
}

/* A PNG begins with IHDR, ends with IEND, and has pixels between them. */
static void
check_png(struct reader *r)
{
	bool has_data = false;

	(void)skip(r, PNG_HEAD);
	for (bool first = true; !r->broken; first = false) {
		size_t len = r->len < 4 ? 0 : read_number(r->at, 4, HIGHEST);
		const unsigned char *chunk = skip(r, len + PNG_AROUND);
		const unsigned char *type = chunk + 4;

		if (r->broken ||
		    png_checksum(type, len + 4) !=
			read_number(type + 4 + len, 4, HIGHEST) ||
		    first != (memcmp(type, "IHDR", 4) == 0) ||
		    (first && len != 13)) {
			r->broken = true;
			return;
		}
		if (first)
			note_sides(r, read_number(type + 4, 4, HIGHEST),
			    read_number(type + 8, 4, HIGHEST));
		has_data |= memcmp(type, "IDAT", 4) == 0 && len > 0;
		if (memcmp(type, "IEND", 4) == 0) {
			r->broken |= !has_data;
			return;
		}
	}
}

/* ---- JPEG ---- */

/* The next marker; the bytes before it are data of a scan. */
static unsigned char
next_jpeg_marker(struct reader *r, bool in_scan)
{
	unsigned char c;

	do {
		do {
			c = read_byte(r);
		} while (c != 0xff && in_scan && !r->broken);
		r->broken |= c != 0xff;
		do {
			c = read_byte(r);
		} while (c == 0xff);
	} while (!r->broken && in_scan && (c == 0 || (c & 0xf8) == 0xd0));
	return c;
}

/* A JPEG has a frame, a scan at least, and the mark of the end. */
static void
check_jpeg(struct reader *r)
{
	bool in_scan = false;
	bool has_scan = false;

	(void)skip(r, 2);
	while (!r->broken) {
		unsigned char marker = next_jpeg_marker(r, in_scan);
		const unsigned char *data;
		size_t len;

		if (marker == 0xd9) {
			r->broken |= !has_scan || !r->sized;
			return;
		}
		len = read_number(skip(r, 2), 2, HIGHEST);
		data = skip(r, len < 2 ? SIZE_MAX : len - 2);
		/* A frame: 0xc0 to 0xcf, without the tables among them. */
		if (!r->broken && len >= 8 &&
		    (marker == 0xc0 ||
			((marker & 0xf0) == 0xc0 && (marker & 3) != 0)))
			note_sides(r, read_number(data + 1, 2, HIGHEST),
			    read_number(data + 3, 2, HIGHEST));
		in_scan = marker == 0xda;
		has_scan |= in_scan;
	}
}

/* ---- GIF ---- */

static void
skip_gif_blocks(struct reader *r)
{
	size_t len;

	while ((len = read_byte(r)) > 0)
		(void)skip(r, len);
}

/* The screen, or a frame: its sides, then flags that announce colours. */
static void
read_gif_sides(struct reader *r, const unsigned char *at)
{
	note_sides(r, read_number(at, 2, LOWEST),
	    read_number(at + 2, 2, LOWEST));
	if ((at[4] & 0x80) != 0)
		(void)skip(r, (size_t)3 << ((at[4] & 7) + 1));
}

/* A GIF has a frame at least, and the trailer. */
static void
check_gif(struct reader *r)
{
	bool has_frame = false;

	read_gif_sides(r, skip(r, 13) + 6);
	while (!r->broken) {
		unsigned char mark = read_byte(r);

		if (mark == ';') {
			r->broken |= !has_frame;
			return;
		}
		r->broken |= mark != ',' && mark != '!';
		if (mark == ',') {
			read_gif_sides(r, skip(r, 9) + 4);
			has_frame = true;
		}
		(void)skip(r, 1);
		skip_gif_blocks(r);
	}
}

/* ---- WebP ---- */

/* A chunk that says how large the picture is.  True: it has pixels, too. */
static bool
read_webp_chunk(struct reader *r, const unsigned char *type,
    const unsigned char *data, size_t len)
{
	size_t sides;

	if (memcmp(type, "VP8X", 4) == 0 && len >= 10) {
		note_sides(r, read_number(data + 4, 3, LOWEST) + 1,
		    read_number(data + 7, 3, LOWEST) + 1);
	} else if (memcmp(type, "VP8 ", 4) == 0 && len > 10 &&
	    memcmp(data + 3, "\x9d\x01\x2a", 3) == 0) {
		note_sides(r, read_number(data + 6, 2, LOWEST) & 0x3fff,
		    read_number(data + 8, 2, LOWEST) & 0x3fff);
		return true;
	} else if (memcmp(type, "VP8L", 4) == 0 && len > 5 && data[0] == 0x2f) {
		sides = read_number(data + 1, 4, LOWEST);
		note_sides(r, (sides & 0x3fff) + 1, (sides >> 14 & 0x3fff) + 1);
		return true;
	}
	/* A frame of an animation has 16 bytes and chunks of its own. */
	return memcmp(type, "ANMF", 4) == 0 && len > 24;
}

static void
check_webp(struct reader *r)
{
	size_t size = read_number(skip(r, 12) + 4, 4, LOWEST);
	bool has_pixels = false;

	if (size < 4 || size - 4 > r->len) {
		r->broken = true;
		return;
	}
	r->len = size - 4;
	while (r->len > 0 && !r->broken) {
		const unsigned char *type = skip(r, 8);
		size_t len = read_number(type + 4, 4, LOWEST);
		const unsigned char *data = skip(r, len + (len & 1));

		if (!r->broken)
			has_pixels |= read_webp_chunk(r, type, data, len);
	}
	r->broken |= !has_pixels || !r->sized;
}

/* ---- pictures ---- */

/* Kinds of pictures by their first bytes, where '?' is any byte. */
static const struct kind {
	const char *type;
	const char *magic;
	void (*check)(struct reader *r);
} kinds[] = {
	{ "image/png", "\x89PNG\r\n\x1a\n", check_png },
	{ "image/jpeg", "\xff\xd8\xff", check_jpeg },
	{ "image/gif", "GIF87a", check_gif },
	{ "image/gif", "GIF89a", check_gif },
	{ "image/webp", "RIFF????WEBP", check_webp },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool
kind_fits(const struct kind *kind, const char *data, size_t len)
{
	const char *magic = kind->magic;

	if (len < strlen(magic))
		return false;
	while (*magic != '\0' && (*magic == '?' || *magic == *data)) {
		magic++;
		data++;
	}
	return *magic == '\0';
}

static const struct kind *
find_picture_kind(const char *type)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(type, kinds[i].type) == 0)
			return &kinds[i];
	return NULL;
}

bool
media_is_picture(const char *type)
{
	return find_picture_kind(type) != NULL;
}

const char *
media_picture_fault(const char **type, const void *data, size_t len)
{
	const struct kind *kind = find_picture_kind(*type);
	struct reader r = { .at = data, .len = len };

	if (kind != NULL)
		kind->check(&r);
	if (r.broken) {
		*type = MEDIA_ANY;
		return "it is no whole picture";
	}
	if (r.large)
		return "it has over 2,000 pixels in width or height";
	return len > MEDIA_PICTURE_BYTES ? MEDIA_PICTURE_TOO_LONG : NULL;
}

/* ---- any file ---- */

/* Types by the end of a name; text: a file of it is, if it is UTF-8. */
static const struct {
	const char *ending;
	const char *type;
	bool text;
} types[] = {
	{ "csv", "text/csv", true },
	{ "tsv", "text/tab-separated-values", true },
	{ "txt", "text/plain", true },
	{ "log", "text/plain", true },
	{ "md", "text/markdown", true },
	{ "html", "text/html", true },
	{ "css", "text/css", true },
	{ "js", "text/javascript", true },
	{ "py", "text/x-python", true },
	{ "json", "application/json", true },
	{ "jsonl", "application/jsonl", true },
	{ "xml", "application/xml", true },
	{ "yaml", "application/yaml", true },
	{ "yml", "application/yaml", true },
	{ "svg", "image/svg+xml", true },
	{ "png", "image/png", false },
	{ "jpg", "image/jpeg", false },
	{ "jpeg", "image/jpeg", false },
	{ "gif", "image/gif", false },
	{ "webp", "image/webp", false },
	{ "pdf", "application/pdf", false },
	{ "zip", "application/zip", false },
	{ "gz", "application/gzip", false },
	{ "parquet", "application/vnd.apache.parquet", false },
	{ "xlsx", OFFICE "spreadsheetml.sheet", false },
	{ "docx", OFFICE "wordprocessingml.document", false },
	{ "wav", "audio/wav", false },
	{ "mp3", "audio/mpeg", false },
	{ "mp4", "video/mp4", false },
};
#define TYPES (sizeof(types) / sizeof(types[0]))

const char *
media_of_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < TYPES; i++)
		if (strcasecmp(dot + 1, types[i].ending) == 0)
			return types[i].type;
	return MEDIA_ANY;
}

bool
media_is_text(const char *type)
{
	for (size_t i = 0; i < TYPES; i++)
		if (strcmp(type, types[i].type) == 0)
			return types[i].text;
	return false;
}

const char *
media_type(const char *name, const void *data, size_t len)
{
	const char *type = media_of_name(name);

	for (size_t i = 0; i < KINDS; i++)
		if (kind_fits(&kinds[i], data, len))
			return kinds[i].type;
	if (strcmp(type, MEDIA_ANY) != 0 && !media_is_picture(type))
		return type;
	/* The last character may be cut. */
	if ((len == 0 || memchr(data, '\0', len) == NULL) &&
	    utf8_span(data, len) + 3 >= len)
		return "text/plain";
	return MEDIA_ANY;
}
