/* SPDX-License-Identifier: MIT */
#include "contract/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "protocol/cell.h"

/* An object that is read. */
struct reading {
	struct jtree *doc;
	struct field_error *error;
	struct field_place place;
};

/* Always false. */
static bool __attribute__((format(printf, 5, 6)))
fields_refuse(struct reading *r, enum field_fault fault, enum field_kind kind,
    const json_t *value, const char *fmt, ...)
{
	va_list ap;

	*r->error = (struct field_error){ fault, kind, r->place, value, "" };
	va_start(ap, fmt);
	(void)vsnprintf(r->error->text, sizeof(r->error->text), fmt, ap);
	va_end(ap);
	return false;
}

/* Is the value of that type, which belongs to the kind? */
static bool
check_kind(struct reading *r, const json_t *value, json_type type,
    enum field_kind kind)
{
	static const char *const names[] = {
		[JSON_TRUE] = "true or false",
		[JSON_REAL] = "a number",
		[JSON_STRING] = "a string",
		[JSON_ARRAY] = "an array",
		[JSON_OBJECT] = "an object",
	};

	return json_typeof(value) == type ||
	    (type == JSON_TRUE && json_is_false(value)) ||
	    (type == JSON_REAL && json_is_integer(value)) ||
	    fields_refuse(r, FIELD_TYPE, kind, value, "must be %s",
		names[type]);
}

/* ---- values ---- */

static bool
fields_read_text(struct reading *r, const struct field *row,
    const json_t *value, struct cell_bytes *text)
{
	if (!check_kind(r, value, JSON_STRING, row->kind))
		return false;
	*text = (struct cell_bytes){ json_string_value(value),
		json_string_length(value) };
	if (row->max > 0 && text->len > (size_t)row->max)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must have at most %" PRId64 " bytes", row->max);
	if (row->kind == FIELD_TEXT)
		return true;
	if (text->len == 0)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must not be empty");
	return strlen(text->data) == text->len ||
	    fields_refuse(r, FIELD_VALUE, row->kind, value,
		"must not hold a NUL character");
}

static bool
fields_read_int(struct reading *r, const struct field *row, const json_t *value,
    int64_t *number)
{
	enum field_fault fault = FIELD_TYPE;
	double real = json_real_value(value);

	*number = json_integer_value(value);
	if (json_is_real(value) && fabs(real) < 1e15)
		*number = (int64_t)real;
	if (json_is_integer(value) ||
	    (row->kind == FIELD_WHOLE && json_is_real(value) &&
		(double)*number == real))
		fault = FIELD_VALUE;
	if (fault == FIELD_VALUE && *number >= row->min &&
	    (row->max == 0 || *number <= row->max))
		return true;
	if (row->max == 0)
		return fields_refuse(r, fault, row->kind, value,
		    "must be an integer of at least %" PRId64, row->min);
	return fields_refuse(r, fault, row->kind, value,
	    "must be an integer from %" PRId64 " to %" PRId64, row->min,
	    row->max);
}

static bool
fields_read_number(struct reading *r, const struct field *row,
    const json_t *value, double *number)
{
	if (!check_kind(r, value, JSON_REAL, row->kind))
		return false;
	*number = json_number_value(value);
	if (*number < (double)row->min)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must be at least %" PRId64, row->min);
	return row->max == 0 || *number <= (double)row->max ||
	    fields_refuse(r, FIELD_VALUE, row->kind, value,
		"must be at most %" PRId64, row->max);
}

static bool read_object(struct reading *r, const struct field *rows,
    const json_t *object, void *into);

static bool
fields_read_list(struct reading *r, const struct field *row,
    const json_t *value, struct field_list *list)
{
	static const struct field string = { .kind = FIELD_TEXT };
	size_t size = row->items == NULL ? sizeof(struct cell_bytes) :
					   row->size;
	const json_t *item;
	size_t i;

	if (!check_kind(r, value, JSON_ARRAY, row->kind))
		return false;
	if (row->max > 0 && json_array_size(value) > (size_t)row->max)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must have at most %" PRId64 " items", row->max);
	/* One more, so that the address says that there is a list. */
	list->items = jtree_array(r->doc, json_array_size(value) + 1, size);
	list->count = json_array_size(value);
	r->place.indexed = true;
	json_array_foreach(value, i, item) {
		void *into = (char *)list->items + i * size;

		r->place.index = i;
		r->place.inner = NULL;
		if (!(row->items == NULL ?
			    fields_read_text(r, &string, item, into) :
			    read_object(r, row->items, item, into)))
			return false;
	}
	r->place.indexed = false;
	r->place.inner = NULL;
	return true;
}

/* ---- objects ---- */

static bool
fields_read_value(struct reading *r, const struct field *row,
    const json_t *value, void *place)
{
	switch (row->kind) {
	case FIELD_ANY:
		*(const json_t **)place = value;
		return true;
	case FIELD_TEXT:
	case FIELD_WORD:
		return fields_read_text(r, row, value, place);
	case FIELD_INT:
	case FIELD_WHOLE:
		return fields_read_int(r, row, value, place);
	case FIELD_NUMBER:
		return fields_read_number(r, row, value, place);
	case FIELD_BOOL:
		*(bool *)place = json_is_true(value);
		return check_kind(r, value, JSON_TRUE, row->kind);
	case FIELD_LIST:
		return fields_read_list(r, row, value, place);
	case FIELD_OBJECT:
		break;
	}
	return false;
}

static void
set_standard(const struct field *row, void *place)
{
	if (row->kind == FIELD_INT || row->kind == FIELD_WHOLE)
		*(int64_t *)place = row->standard;
	if (row->kind == FIELD_NUMBER)
		*(double *)place = (double)row->standard;
	if (row->kind == FIELD_BOOL)
		*(bool *)place = row->standard != 0;
}

static bool
read_member(struct reading *r, const struct field *row, const json_t *object,
    void *into)
{
	const json_t *value = json_object_get(object, row->name);
	void *place = (char *)into + row->offset;

	if (r->place.indexed)
		r->place.inner = row->name;
	else
		r->place.member = row->name;
	if (row->nullable && jtree_is_absent(value))
		value = NULL;
	if (value != NULL)
		return fields_read_value(r, row, value, place);
	set_standard(row, place);
	return !row->required ||
	    fields_refuse(r, FIELD_MISSING, row->kind, object, "is missing");
}

static bool
read_object(struct reading *r, const struct field *row, const json_t *object,
    void *into)
{
	if (!check_kind(r, object, JSON_OBJECT, FIELD_OBJECT))
		return false;
	while (row->name != NULL && read_member(r, row, object, into))
		row++;
	return row->name == NULL;
}

bool
field_read(struct jtree *doc, const struct field *row, const json_t *object,
    void *into, struct field_error *error)
{
	struct reading r = { doc, error, { .member = NULL } };

	return read_member(&r, row, object, into);
}

bool
fields_read(struct jtree *doc, const struct field *rows, const json_t *object,
    void *into, struct field_error *error)
{
	struct reading r = { doc, error, { .member = NULL } };

	return read_object(&r, rows, object, into);
}

bool
fields_is_json(const char *content_type)
{
	if (content_type == NULL)
		return false;
	content_type += strspn(content_type, " \t");
	return text_is(content_type, strcspn(content_type, "; \t"),
	    "application/json");
}

/* ---- errors ---- */

void
field_place_add(struct buf *out, const struct field_place *place)
{
	buf_adds(out, place->member == NULL ? "The body" : place->member);
	if (place->indexed)
		buf_addf(out, "[%zu]", place->index);
	if (place->inner != NULL)
		buf_addf(out, ".%s", place->inner);
}

void
field_error_add(struct buf *out, const struct field_error *error)
{
	field_place_add(out, &error->place);
	buf_addf(out, " %s", error->text);
}
