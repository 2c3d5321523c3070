/* SPDX-License-Identifier: MIT */
#include "contract/mcp/mcp_media.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/utf8.h"

#define PNG_MAGIC "\x89PNG\r\n\x1a\n"
#define PNG_MAGIC_LEN 8
#define PNG_AROUND 12 /* length, type and checksum of a chunk */
#define PNG_CRC 0xedb88320u
#define PREFIX "inline://files/"

/* The bytes that are left to read; width and height as far as they are known.
 * A read beyond the end sets broken and yields zeros. */
struct reader {
	const unsigned char *at;
	size_t len;
	size_t width;
	size_t height;
	bool large;
	bool broken;
};

/* ---- pictures: reading ---- */

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

/* A number of up to four bytes, the highest or the lowest byte first. */
static size_t
number_high(const unsigned char *p, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n = n << 8 | p[i];
	return n;
}

static size_t
number_low(const unsigned char *p, size_t len)
{
	size_t n = 0;

	while (len > 0)
		n = n << 8 | p[--len];
	return n;
}

static unsigned char
read_byte(struct reader *r)
{
	return *skip(r, 1);
}

/* The picture, or one of its frames, has this size. */
static void
note_size(struct reader *r, size_t width, size_t height)
{
	r->width = width;
	r->height = height;
	if (width == 0 || height == 0)
		r->broken = true;
	if (width > MCP_PICTURE_SIDE || height > MCP_PICTURE_SIDE)
		r->large = true;
}

/* ---- PNG ---- */

static uint32_t
png_checksum(const unsigned char *p, size_t len)
{
	uint32_t table[16];
	uint32_t crc = 0xffffffffu;

	for (uint32_t i = 0; i < 16; i++) {
		table[i] = i;
		for (int bit = 0; bit < 4; bit++)
			table[i] = table[i] >> 1 ^
			    ((table[i] & 1) != 0 ? PNG_CRC : 0);
	}
	for (size_t i = 0; i < len; i++) {
		crc = crc >> 4 ^ table[(crc ^ p[i]) & 15];
		crc = crc >> 4 ^ table[(crc ^ p[i] >> 4) & 15];
	}
	return crc ^ 0xffffffffu;
}

/* A PNG begins with IHDR, ends with IEND, and has pixels between them. */
static void
check_png(struct reader *r)
{
	bool has_data = false;

	(void)skip(r, PNG_MAGIC_LEN);
	for (bool first = true; !r->broken; first = false) {
		size_t len = r->len < PNG_AROUND ? SIZE_MAX - PNG_AROUND :
						   number_high(r->at, 4);
		const unsigned char *chunk = skip(r, len + PNG_AROUND);
		const unsigned char *data = chunk + 8;

		if (r->broken ||
		    png_checksum(chunk + 4, len + 4) !=
			number_high(data + len, 4) ||
		    first != (memcmp(chunk + 4, "IHDR", 4) == 0) ||
		    (first && len != 13)) {
			r->broken = true;
			return;
		}
		if (first)
			note_size(r, number_high(data, 4),
			    number_high(data + 4, 4));
		has_data |= memcmp(chunk + 4, "IDAT", 4) == 0 && len > 0;
		if (memcmp(chunk + 4, "IEND", 4) == 0) {
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
		c = read_byte(r);
		if (c != 0xff && !in_scan)
			r->broken = true;
		while (c != 0xff && !r->broken)
			c = read_byte(r);
		while (c == 0xff && !r->broken)
			c = read_byte(r);
	} while (!r->broken && in_scan && (c == 0 || (c >= 0xd0 && c <= 0xd7)));
	return c;
}

static bool
is_jpeg_frame(unsigned char marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
	    marker != 0xc8 && marker != 0xcc;
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
			r->broken |= !has_scan || r->width == 0;
			return;
		}
		len = number_high(skip(r, 2), 2);
		data = skip(r, len < 2 ? SIZE_MAX : len - 2);
		if (is_jpeg_frame(marker) && len >= 8 && !r->broken)
			note_size(r, number_high(data + 3, 2),
			    number_high(data + 1, 2));
		in_scan = marker == 0xda;
		has_scan |= in_scan;
	}
}

/* ---- GIF ---- */

static void
skip_gif_blocks(struct reader *r)
{
	while (!r->broken) {
		size_t len = read_byte(r);

		if (len == 0)
			return;
		(void)skip(r, len);
	}
}

static void
skip_gif_colours(struct reader *r, unsigned char flags)
{
	if ((flags & 0x80) != 0)
		(void)skip(r, (size_t)3 << ((flags & 7) + 1));
}

/* A GIF has a frame at least, and the trailer. */
static void
check_gif(struct reader *r)
{
	const unsigned char *head = skip(r, 13);
	bool has_frame = false;

	note_size(r, number_low(head + 6, 2), number_low(head + 8, 2));
	skip_gif_colours(r, head[10]);
	while (!r->broken) {
		switch (read_byte(r)) {
		case ';':
			r->broken |= !has_frame;
			return;
		case '!':
			(void)skip(r, 1);
			skip_gif_blocks(r);
			break;
		case ',':
			head = skip(r, 9);
			note_size(r, number_low(head + 4, 2),
			    number_low(head + 6, 2));
			skip_gif_colours(r, head[8]);
			(void)skip(r, 1);
			skip_gif_blocks(r);
			has_frame = true;
			break;
		default:
			r->broken = true;
		}
	}
}

/* ---- WebP ---- */

/* A chunk that says how large the picture is.  True: it has pixels, too. */
static bool
read_webp_chunk(struct reader *r, const unsigned char *type,
    const unsigned char *data, size_t len)
{
	if (memcmp(type, "VP8X", 4) == 0 && len >= 10) {
		note_size(r, number_low(data + 4, 3) + 1,
		    number_low(data + 7, 3) + 1);
	} else if (memcmp(type, "VP8 ", 4) == 0 && len > 10 &&
	    memcmp(data + 3, "\x9d\x01\x2a", 3) == 0) {
		note_size(r, number_low(data + 6, 2) & 0x3fff,
		    number_low(data + 8, 2) & 0x3fff);
		return true;
	} else if (memcmp(type, "VP8L", 4) == 0 && len > 5 && data[0] == 0x2f) {
		note_size(r, (number_low(data + 1, 4) & 0x3fff) + 1,
		    (number_low(data + 1, 4) >> 14 & 0x3fff) + 1);
		return true;
	}
	/* A frame of an animation has 16 bytes and chunks of its own. */
	return memcmp(type, "ANMF", 4) == 0 && len > 24;
}

static void
check_webp(struct reader *r)
{
	const unsigned char *head = skip(r, 12);
	size_t size = number_low(head + 4, 4);
	bool has_pixels = false;

	if (size < 4 || size - 4 > r->len) {
		r->broken = true;
		return;
	}
	r->len = size - 4;
	while (r->len > 0 && !r->broken) {
		const unsigned char *type = skip(r, 8);
		size_t len = number_low(type + 4, 4);
		const unsigned char *data = skip(r, len + (len & 1));

		if (!r->broken)
			has_pixels |= read_webp_chunk(r, type, data, len);
	}
	r->broken |= !has_pixels || r->width == 0;
}

/* ---- pictures: any of them ---- */

static const struct {
	const char *type;
	void (*check)(struct reader *r);
} kinds[] = {
	{ "image/png", check_png },
	{ "image/jpeg", check_jpeg },
	{ "image/gif", check_gif },
	{ "image/webp", check_webp },
};

static bool
media_begins(const char *data, size_t len, const char *magic, size_t magic_len)
{
	return len >= magic_len && memcmp(data, magic, magic_len) == 0;
}

const char *
mcp_picture_type(const char *data, size_t len)
{
	if (media_begins(data, len, PNG_MAGIC, PNG_MAGIC_LEN))
		return kinds[0].type;
	if (media_begins(data, len, "\xff\xd8\xff", 3))
		return kinds[1].type;
	if (media_begins(data, len, "GIF87a", 6) ||
	    media_begins(data, len, "GIF89a", 6))
		return kinds[2].type;
	if (media_begins(data, len, "RIFF", 4) && len >= 12 &&
	    memcmp(data + 8, "WEBP", 4) == 0)
		return kinds[3].type;
	return NULL;
}

const char *
mcp_picture_fault(const char **type, const char *data, size_t len)
{
	struct reader r = { .at = (const unsigned char *)data, .len = len };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (*type == kinds[i].type)
			kinds[i].check(&r);
	if (r.broken) {
		*type = "application/octet-stream";
		return "it is no whole picture";
	}
	if (r.large)
		return "it has over 2,000 pixels in width or height";
	return len > MCP_PICTURE_BYTES ? MCP_PICTURE_TOO_LONG : NULL;
}

/* ---- any file ---- */

/* Types by the end of a name.  Other files are known by their bytes. */
static const struct {
	const char *ending;
	const char *type;
} endings[] = {
	{ "csv", "text/csv" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "html", "text/html" },
	{ "css", "text/css" },
	{ "js", "text/javascript" },
	{ "py", "text/x-python" },
	{ "json", "application/json" },
	{ "jsonl", "application/jsonl" },
	{ "xml", "application/xml" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
	{ "svg", "image/svg+xml" },
	{ "pdf", "application/pdf" },
	{ "zip", "application/zip" },
	{ "gz", "application/gzip" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "xlsx",
	    "application/vnd.openxmlformats-officedocument.spreadsheetml."
	    "sheet" },
	{ "docx",
	    "application/vnd.openxmlformats-officedocument.wordprocessingml."
	    "document" },
	{ "wav", "audio/wav" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
};

const char *
mcp_media_type(const char *name, const void *data, size_t len)
{
	const char *type = mcp_picture_type(data, len);
	const char *dot = strrchr(name, '.');
	size_t n = sizeof(endings) / sizeof(endings[0]);

	if (type != NULL)
		return type;
	for (size_t i = 0; dot != NULL && i < n; i++)
		if (strcasecmp(dot + 1, endings[i].ending) == 0)
			return endings[i].type;
	/* The last character may be cut. */
	if ((len == 0 || memchr(data, '\0', len) == NULL) &&
	    utf8_span(data, len) + 3 >= len)
		return "text/plain";
	return "application/octet-stream";
}

const char *
mcp_media_of_name(const char *name)
{
	static const char *const pictures[][2] = { { ".png", "image/png" },
		{ ".jpg", "image/jpeg" }, { ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" }, { ".webp", "image/webp" } };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < 5; i++)
		if (strcasecmp(dot, pictures[i][0]) == 0)
			return pictures[i][1];
	return mcp_media_type(name, "\0", 1);
}

bool
mcp_media_is_picture(const char *type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(type, kinds[i].type) == 0)
			return true;
	return false;
}

bool
mcp_media_is_text(const char *type)
{
	return strncmp(type, "text/", 5) == 0 ||
	    strcmp(type, "application/json") == 0 ||
	    strcmp(type, "application/jsonl") == 0 ||
	    strcmp(type, "application/xml") == 0 ||
	    strcmp(type, "application/yaml") == 0 ||
	    strcmp(type, "image/svg+xml") == 0;
}

void
mcp_add_uri(struct buf *out, const char *id, const char *name)
{
	buf_addf(out, PREFIX "%s/", id);
	text_add_escaped(out, name, strlen(name), "-._~");
}

size_t
mcp_uri_id(const char *uri, size_t len, const char **id)
{
	const size_t prefix = strlen(PREFIX);
	const char *slash;

	if (!media_begins(uri, len, PREFIX, prefix))
		return 0;
	*id = uri + prefix;
	slash = memchr(*id, '/', len - prefix);
	return slash == NULL ? 0 : (size_t)(slash - *id);
}
