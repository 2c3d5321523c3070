/* SPDX-License-Identifier: MIT */
/* Frames: what a cell sends is hostile. */
#include "fuzz.h"

#include <string.h>

#include "protocol/frame.h"

static struct frame again;

/* Every field lies inside the packet, and together they are all of it. */
static void
walk(const struct frame_view *view)
{
	struct frame_field field;
	size_t used = 1;
	size_t pos = 0;

	frame_start(&again, view->kind);
	while (frame_next(view, &pos, &field)) {
		fuzz_holds(field.data >= view->data &&
			field.len <=
			    view->len - (size_t)(field.data - view->data),
		    "a field is inside the packet");
		used += 5 + field.len;
		frame_add_bytes(&again, field.tag, field.data, field.len);
	}
	fuzz_holds(used == view->len, "the fields fill the packet");
	fuzz_holds(!again.overflow && again.len == view->len &&
		memcmp(again.data, view->data, view->len) == 0,
	    "written again, it is the same packet");
}

static void
get(const struct frame_view *view, enum frame_tag tag)
{
	const unsigned char *data;
	char text[32];
	size_t len;
	int64_t v;

	if (frame_get_text(view, tag, text, sizeof(text)))
		fuzz_holds(strlen(text) < sizeof(text), "a text ends");
	if (frame_get_int(view, tag, &v))
		fuzz_holds(frame_get_bytes(view, tag, &data, &len) && len == 8,
		    "an integer has 8 bytes");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_view view;

	if (!frame_parse(&view, data, size))
		return 0;
	walk(&view);
	for (int tag = 0; tag < 256; tag++)
		get(&view, (enum frame_tag)tag);
	return 0;
}
