/* SPDX-License-Identifier: MIT */
#include "protocol/frame.h"

#include "tap.h"

static struct frame frame;

static void
test_round_trip(void)
{
	static const int64_t values[] = { 0, 1, -1, 256, INT64_MAX, INT64_MIN };
	const unsigned char *data = NULL;
	struct frame_view view;
	char text[16];
	size_t len = 0;
	int64_t v = 0;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		frame_start(&frame, FRAME_RESULT);
		frame_add_int(&frame, TAG_STATUS, values[i]);
		ok(frame_parse(&view, frame.data, frame.len) &&
			frame_get_int(&view, TAG_STATUS, &v) && v == values[i],
		    "an integer comes back");
	}
	frame_start(&frame, FRAME_REQUEST);
	frame_add_text(&frame, TAG_NAME, "name");
	frame_add_bytes(&frame, TAG_DATA, "a\0b", 3);
	frame_add_bytes(&frame, TAG_PATH, NULL, 0);
	ok(frame_parse(&view, frame.data, frame.len), "a frame parses");
	is_int(view.kind, FRAME_REQUEST, "its kind");
	ok(frame_get_text(&view, TAG_NAME, text, sizeof(text)), "text");
	is_str(text, "name", "the text itself");
	ok(frame_get_text(&view, TAG_NAME, text, 5), "text that just fits");
	ok(!frame_get_text(&view, TAG_NAME, text, 4), "text that does not");
	ok(!frame_get_text(&view, TAG_DATA, text, 16), "text with a NUL");
	ok(frame_get_bytes(&view, TAG_DATA, &data, &len), "bytes");
	is_mem(data, len, "a\0b", (size_t)3, "the bytes themselves");
	ok(frame_get_bytes(&view, TAG_PATH, &data, &len) && len == 0, "empty");
	ok(frame_get_text(&view, TAG_PATH, text, 1) && *text == '\0',
	    "an empty text");
	ok(!frame_get_int(&view, TAG_NAME, &v), "a text is no integer");
	ok(!frame_get_int(&view, TAG_SIZE, &v), "an absent field");
}

static void
test_wire(void)
{
	static const char want[] = "\x31\x32\x08\0\0\0\x02\x01\0\0\0\0\0\0"
				   "\x31\x03\0\0\0out";

	frame_start(&frame, FRAME_OUTPUT);
	frame_add_int(&frame, TAG_STREAM, 258);
	frame_add_bytes(&frame, TAG_DATA, "out", 3);
	is_mem(frame.data, frame.len, want, sizeof(want) - 1,
	    "the bytes on the wire");
}

static void
test_walk(void)
{
	struct frame_field field;
	struct frame_view view;
	size_t pos = 0;
	char seen[16] = "";
	size_t n = 0;

	frame_start(&frame, FRAME_REQUEST);
	frame_add_text(&frame, TAG_ARG, "a");
	frame_add_text(&frame, TAG_ARG, "b");
	frame_add_text(&frame, TAG_ARG, "c");
	ok(frame_parse(&view, frame.data, frame.len), "a repeated tag");
	while (frame_next(&view, &pos, &field))
		seen[n++] = (char)field.data[0];
	is_str(seen, "abc", "is walked in order");
	frame_start(&frame, FRAME_GO);
	pos = 0;
	ok(frame_parse(&view, frame.data, frame.len), "no fields at all");
	ok(!frame_next(&view, &pos, &field), "nothing to walk");
}

static void
test_full(void)
{
	static char big[FRAME_MAX];
	struct frame_view view;

	frame_start(&frame, FRAME_OUTPUT);
	frame_add_bytes(&frame, TAG_DATA, big, FRAME_MAX - 6);
	ok(!frame.overflow && frame.len == FRAME_MAX, "a frame may be full");
	ok(frame_parse(&view, frame.data, frame.len), "and parses");
	frame_add_bytes(&frame, TAG_NAME, "", 0);
	ok(frame.overflow, "a field more overflows");
	is_int(frame.len, FRAME_MAX, "and is not written");
	frame_start(&frame, FRAME_OUTPUT);
	ok(!frame.overflow, "frame_start forgets the overflow");
	frame_add_bytes(&frame, TAG_DATA, big, FRAME_MAX - 5);
	ok(frame.overflow, "one byte too many");
	frame_add_int(&frame, TAG_STREAM, 1);
	is_int(frame.len, 1, "nothing is added after an overflow");
	frame_start(&frame, FRAME_OUTPUT);
	frame_add_bytes(&frame, TAG_DATA, big, SIZE_MAX - 2);
	ok(frame.overflow, "lengths do not wrap round");
}

#define REFUSED(bytes, name) \
	ok(!frame_parse(&view, (bytes), sizeof(bytes) - 1), (name))
#define TAKEN(bytes, name) \
	ok(frame_parse(&view, (bytes), sizeof(bytes) - 1), (name))

static void
test_hostile(void)
{
	static unsigned char big[FRAME_MAX + 1] = { FRAME_GO };
	struct frame_view view;

	REFUSED("", "an empty packet");
	REFUSED("\0", "kind 0");
	REFUSED("\xff", "an unknown kind");
	REFUSED("\x31\x31", "a tag without a length");
	REFUSED("\x31\x31\x01\0\0", "half a length");
	REFUSED("\x31\x31\x02\0\0\0a", "a length that runs out");
	REFUSED("\x31\x31\xff\xff\xff\xff"
		"a",
	    "a length of 4 GiB");
	REFUSED("\x31\x31\x01\0\0\0ab", "a rest of one byte");
	REFUSED("\x31\x32\x04\0\0\0\1\0\0\0", "an integer of 4 bytes");
	REFUSED("\x31\x32\0\0\0\0", "an integer of none");
	REFUSED("\x31\x31\x01\0\0\0a\x31\x01\0\0\0b", "a tag twice");
	TAKEN("\x31\xfe\x01\0\0\0a\xfe\0\0\0\0", "an unknown tag, twice");
	TAKEN("\x31\0\x01\0\0\0a", "tag 0 is an unknown one");
	ok(!frame_parse(&view, big, sizeof(big)), "a packet that is too long");
}

int
main(void)
{
	test_round_trip();
	test_wire();
	test_walk();
	test_full();
	test_hostile();
	return tap_done();
}
