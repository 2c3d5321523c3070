/* SPDX-License-Identifier: MIT */
#include "protocol/frame.h"

#include <endian.h>
#include <string.h>

#define FIELD_HEAD 5 /* u8 tag, u32 length */
#define INT_SIZE 8

enum field_type { FIELD_UNKNOWN, FIELD_INT, FIELD_BYTES, FIELD_REPEATED };

/* known_kinds and field_types, made from frame.h by header.py. */
#include "frame_tables.h"

void
frame_start(struct frame *f, enum frame_kind kind)
{
	f->overflow = false;
	f->data[0] = (unsigned char)kind;
	f->len = 1;
}

void
frame_add_bytes(struct frame *f, enum frame_tag tag, const void *data,
    size_t len)
{
	unsigned char *at = f->data + f->len;
	uint32_t size = htole32((uint32_t)len);

	if (f->overflow || len > FRAME_MAX - FIELD_HEAD ||
	    f->len > FRAME_MAX - FIELD_HEAD - len) {
		f->overflow = true;
		return;
	}
	at[0] = (unsigned char)tag;
	memcpy(at + 1, &size, sizeof(size));
	if (len > 0)
		memcpy(at + FIELD_HEAD, data, len);
	f->len += FIELD_HEAD + len;
}

void
frame_add_int(struct frame *f, enum frame_tag tag, int64_t value)
{
	uint64_t bits = htole64((uint64_t)value);

	frame_add_bytes(f, tag, &bits, sizeof(bits));
}

void
frame_add_nonzero(struct frame *f, enum frame_tag tag, int64_t value)
{
	if (value != 0)
		frame_add_int(f, tag, value);
}

void
frame_add_text(struct frame *f, enum frame_tag tag, const char *text)
{
	if (text != NULL)
		frame_add_bytes(f, tag, text, strlen(text));
}

/* One field at *pos, in a packet that nobody has checked yet. */
static bool
frame_step(const struct frame_view *view, size_t *pos,
    struct frame_field *field)
{
	const unsigned char *at = view->data + *pos;
	size_t left = view->len - *pos;
	uint32_t size;
	size_t len;

	if (left < FIELD_HEAD)
		return false;
	memcpy(&size, at + 1, sizeof(size));
	len = le32toh(size);
	if (len > left - FIELD_HEAD)
		return false;
	field->tag = (enum frame_tag)at[0];
	field->data = at + FIELD_HEAD;
	field->len = len;
	*pos += FIELD_HEAD + len;
	return true;
}

/* seen: one byte for each tag, 1 when it was there already. */
static bool
frame_field_good(const struct frame_field *field, unsigned char *seen)
{
	unsigned char before = seen[field->tag];

	seen[field->tag] = 1;
	switch ((enum field_type)field_types[field->tag]) {
	case FIELD_INT:
		return before == 0 && field->len == INT_SIZE;
	case FIELD_BYTES:
		return before == 0;
	case FIELD_REPEATED:
	case FIELD_UNKNOWN:
		return true;
	}
	return false;
}

bool
frame_parse(struct frame_view *view, const void *packet, size_t len)
{
	unsigned char seen[256] = { 0 };
	const unsigned char *data = packet;
	struct frame_field field;
	size_t pos = 1;

	if (len == 0 || len > FRAME_MAX || !known_kinds[data[0]])
		return false;
	view->kind = (enum frame_kind)data[0];
	view->data = data;
	view->len = len;
	while (pos < len)
		if (!frame_step(view, &pos, &field) ||
		    !frame_field_good(&field, seen))
			return false;
	return true;
}

bool
frame_next(const struct frame_view *view, size_t *pos,
    struct frame_field *field)
{
	if (*pos == 0)
		*pos = 1; /* over the kind */
	if (*pos >= view->len)
		return false;
	return frame_step(view, pos, field);
}

bool
frame_get_bytes(const struct frame_view *view, enum frame_tag tag,
    const unsigned char **data, size_t *len)
{
	struct frame_field field;
	size_t pos = 0;

	while (frame_next(view, &pos, &field)) {
		if (field.tag != tag)
			continue;
		*data = field.data;
		*len = field.len;
		return true;
	}
	return false;
}

bool
frame_get_int(const struct frame_view *view, enum frame_tag tag, int64_t *value)
{
	const unsigned char *data;
	uint64_t bits;
	size_t len;

	if (!frame_get_bytes(view, tag, &data, &len) || len != INT_SIZE)
		return false;
	memcpy(&bits, data, sizeof(bits));
	*value = (int64_t)le64toh(bits);
	return true;
}

bool
frame_get_text(const struct frame_view *view, enum frame_tag tag, char *text,
    size_t size)
{
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, tag, &data, &len) || len >= size ||
	    memchr(data, '\0', len) != NULL)
		return false;
	memcpy(text, data, len);
	text[len] = '\0';
	return true;
}
