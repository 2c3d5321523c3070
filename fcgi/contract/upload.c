/* SPDX-License-Identifier: MIT */
#include "upload.h"

#include <string.h>

#include "../pytext/pyjson_tree.h"
#include "../pytext/pyutf8.h"

/* Any part called "file" takes the place of what came before it. */
static bool
begin(struct upload *up)
{
	up->into = strcmp(buf_str(&up->form.name), "file") == 0;
	if (!up->into)
		return true;
	up->have = up->form.is_file;
	up->have_text = !up->have;
	up->size = 0;
	buf_reset(&up->name);
	buf_reset(&up->text);
	if (up->have_text)
		return true;
	buf_adds(&up->name,
	    up->form.filename.len > 0 ? buf_str(&up->form.filename) :
					"unnamed");
	return up->sink->begin(up->arg);
}

/* What is too much is read on, and dropped. */
static bool
take(struct upload *up)
{
	if (!up->into)
		return true;
	if (up->have_text) {
		buf_add(&up->text, up->form.data, up->form.data_len);
		return true;
	}
	up->size += (int64_t)up->form.data_len;
	return up->size > up->max ||
	    up->sink->data(up->arg, up->form.data, up->form.data_len);
}

bool
upload_open(struct upload *up, const char *content_type, int64_t max,
    const struct upload_sink *sink, void *arg, struct detail *d)
{
	*up = (struct upload){ .sink = sink,
		.arg = arg,
		.max = max,
		.name = BUF_INIT(2 * MULTIPART_HEAD_MAX),
		.text = BUF_INIT(MULTIPART_FIELD_MAX) };
	return multipart_open(&up->form, content_type) ||
	    detail_text(d, 400, MULTIPART_MISSING_BOUNDARY);
}

void
upload_release(struct upload *up)
{
	multipart_release(&up->form);
	buf_release(&up->name);
	buf_release(&up->text);
}

/* A slice may hold the end of one part and the whole of others. */
bool
upload_add(struct upload *up, const void *bytes, size_t len)
{
	enum multipart_event event;
	bool good = true;

	multipart_add(&up->form, bytes, len);
	while (good && (event = multipart_next(&up->form)) != MULTIPART_MORE)
		good = event == MULTIPART_PART ? begin(up) :
		    event == MULTIPART_SLICE   ? take(up) :
						 false;
	return good;
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

/* The order of the checks is the contract's. */
bool
upload_end(struct upload *up, struct detail *d)
{
	const char *error = multipart_end(&up->form);

	if (error != NULL)
		return detail_text(d, 400, "%s", error);
	if (!up->have)
		return refuse_field(d, up->have_text ? &up->text : NULL);
	if (up->size > up->max)
		return detail_text(d, 413,
		    "File size exceeds maximum of %lld MB",
		    (long long)(up->max >> 20));
	return true;
}
