/* SPDX-License-Identifier: MIT */
#include "told.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"
#include "../../sandbox/protocol/frame_limits.h"

/* Of one name at most so many bytes, of which none is half of a character. */
static void
add_name(struct buf *out, const char *name, size_t len, size_t most)
{
	const bool valid = utf8_valid(name, len);
	size_t total = 0;

	for (size_t i = 0, step; i < len; i += step) {
		char escape[4];
		const char *piece = name + i;
		size_t piece_len = step = utf8_step(name + i, len - i);

		if (!valid && (step == 0 || name[i] == '%')) {
			piece_len = (size_t)snprintf(escape, sizeof(escape),
			    "%%%02X", (unsigned char)name[i]);
			piece = escape;
			step = 1;
		}
		total += piece_len;
		if (total > most)
			break;
		buf_add(out, piece, piece_len);
	}
}

void
told_add_path(struct buf *out, const char *path, bool fits)
{
	const size_t before = out->len;
	const char *name = path;

	for (;;) {
		size_t len = strcspn(name, "/");

		add_name(out, name, len, fits ? LIMIT_NAME : SIZE_MAX);
		if (name[len] == '\0')
			break;
		buf_addc(out, '/');
		name += len + 1;
	}
	if (!fits || out->len - before <= LIMIT_PATH)
		return;
	/* Its folders are too long for it. */
	out->len = before;
	add_name(out, name, strlen(name), LIMIT_NAME);
}

bool
told_read_path(struct buf *out, const char *told)
{
	const size_t before = out->len;

	for (; *told != '\0'; told++) {
		unsigned char byte = (unsigned char)*told;

		if (byte == '%' && strnlen(told, 3) == 3 &&
		    text_parse_hex(told + 1, 2, &byte, 1) && byte != '\0' &&
		    byte != '/') {
			told += 2;
		} else {
			byte = (unsigned char)*told;
		}
		buf_addc(out, (char)byte);
	}
	return !utf8_valid(buf_str(out) + before, out->len - before);
}
