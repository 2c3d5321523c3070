/* SPDX-License-Identifier: MIT */
#include "upload.h"

#include <string.h>

#include "../../pytext/pyjson_tree.h"
#include "../../pytext/pyutf8.h"

/* Any part called "file" takes the place of what came before it.  True: it is a
 * file. */
static bool
begin(struct upload *up)
{
	up->into = strcmp(buf_str(&up->form.name), "file") == 0;
	if (!up->into)
		return false;
	up->have = up->form.is_file;
	up->have_text = !up->have;
	up->size = 0;
	buf_reset(&up->name);
	buf_reset(&up->text);
	buf_adds(&up->name,
	    up->form.filename.len > 0 ? buf_str(&up->form.filename) :
					"unnamed");
	return up->have;
}

/* True: it is the file's.  What is too much is read on, and dropped. */
static bool
take(struct upload *up)
{
	if (up->into && up->have_text)
		buf_add(&up->text, up->form.data, up->form.data_len);
	if (!up->into || up->have_text)
		return false;
	up->size += (int64_t)up->form.data_len;
	return up->size <= up->max;
}

bool
upload_open(struct upload *up, const char *content_type, int64_t max,
    struct detail *d)
{
	*up = (struct upload){ .max = max,
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

enum multipart_event
upload_next(struct upload *up)
{
	enum multipart_event event;
	bool told;

	do {
		event = multipart_next(&up->form);
		told = event == MULTIPART_PART ? begin(up) :
		    event == MULTIPART_SLICE   ? take(up) :
						 true;
	} while (!told);
	return event;
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
