/* SPDX-License-Identifier: MIT */
#include "upload.h"

#include <string.h>

#include "../pytext/pyjson_tree.h"
#include "../pytext/pyutf8.h"

/* Any part called "file" takes the place of what came before it. */
static bool
begin(void *arg, const struct multipart_part *part)
{
	struct upload *up = arg;

	up->into = up->into_text = false;
	if (strcmp(part->name, "file") != 0)
		return true;
	up->into = part->filename != NULL;
	up->into_text = !up->into;
	up->have = up->into;
	up->have_text = up->into_text;
	up->too_large = false;
	up->size = 0;
	buf_reset(&up->name);
	buf_reset(&up->text);
	if (part->filename != NULL) {
		buf_adds(&up->name,
		    part->filename[0] != '\0' ? part->filename : "unnamed");
		up->full = !up->sink->begin(up->arg);
	}
	return !up->full;
}

/* What is too much is read on, and dropped. */
static bool
data(void *arg, const void *bytes, size_t len)
{
	struct upload *up = arg;

	if (up->into_text)
		buf_add(&up->text, bytes, len);
	if (!up->into)
		return true;
	up->size += (int64_t)len;
	up->too_large = up->too_large || up->size > up->max;
	if (up->too_large)
		return true;
	up->full = !up->sink->data(up->arg, bytes, len);
	return !up->full;
}

/* What comes until the next part is nobody's. */
static bool
end(void *arg)
{
	struct upload *up = arg;

	up->into = up->into_text = false;
	return true;
}

static const struct multipart_calls calls = { begin, data, end };

bool
upload_open(struct upload *up, const char *content_type, int64_t max,
    const struct upload_sink *sink, void *arg, struct detail *d)
{
	enum multipart_kind kind;

	memset(up, 0, sizeof(*up));
	kind = multipart_open(&up->form, content_type, &calls, up);
	if (kind == MULTIPART_NO_BOUNDARY)
		return detail_text(d, 400, MULTIPART_MISSING_BOUNDARY);
	up->is_form = kind == MULTIPART_FINE;
	up->sink = sink;
	up->arg = arg;
	up->max = max;
	buf_init(&up->name, 2 * MULTIPART_HEAD_MAX);
	buf_init(&up->text, MULTIPART_FIELD_MAX);
	return true;
}

void
upload_release(struct upload *up)
{
	if (up->is_form)
		multipart_release(&up->form);
	buf_release(&up->name);
	buf_release(&up->text);
}

bool
upload_add(struct upload *up, const void *bytes, size_t len)
{
	return !up->is_form || multipart_add(&up->form, bytes, len);
}

/* The field `file` is not there, or a text is in its place. */
static bool
refuse_field(struct detail *d, const struct buf *text)
{
	const struct detail_place place = { .member = "file" };
	auto_buf struct buf clean = BUF_INIT(3 * MULTIPART_FIELD_MAX);
	struct pyvalue input = { .type = PYVALUE_STRING };

	detail_begin(d);
	if (text == NULL) {
		detail_add(d, DETAIL_MISSING, &place, NULL);
	} else {
		pyutf8_add_whole(&clean, buf_str(text), text->len);
		input.u.text = clean.data;
		input.count = clean.len;
		detail_add(d, DETAIL_NO_FILE, &place, &input);
	}
	return detail_end(d);
}

bool
upload_end(struct upload *up, struct detail *d)
{
	bool good = !up->is_form || multipart_end(&up->form);

	if (up->full)
		return detail_text(d, 507, "There is no room for the file");
	if (!good)
		return detail_text(d, 400, "%s", up->form.error);
	if (!up->have)
		return refuse_field(d, up->have_text ? &up->text : NULL);
	if (up->too_large)
		return detail_text(d, 413,
		    "File size exceeds maximum of %lld MB",
		    (long long)(up->max >> 20));
	return true;
}
