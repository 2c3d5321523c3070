/* SPDX-License-Identifier: MIT */
#include "texts.h"

#include <string.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"

#define ARGUMENT_MAX 100

const char *const texts[TEXT_COUNT] = {
#define TEXT(id, text) [TEXT_##id] = text,
#include "texts.def"
};

void
text_add(struct buf *out, enum text_id id, const char *argument)
{
	auto_buf struct buf clean = BUF_INIT(2048);
	const char *text = texts[id];
	const char *place = strstr(text, "{}");

	if (place == NULL) {
		buf_adds(out, text);
		return;
	}
	text_add_clean(&clean, argument,
	    text_prefix(argument, strlen(argument), ARGUMENT_MAX));
	/* In our texts it stands in back-ticks, so it may not hold any. */
	for (size_t i = 0; i < clean.len; i++)
		if (clean.data[i] == '`' || clean.data[i] == '\n')
			clean.data[i] = ' ';
	buf_add(out, text, (size_t)(place - text));
	buf_add(out, buf_str(&clean), clean.len);
	buf_adds(out, place + 2);
}
