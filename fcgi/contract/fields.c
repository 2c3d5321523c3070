/* SPDX-License-Identifier: MIT */
#include "contract/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "contract/utf8_decoder.h"

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
    const struct jvalue *value, const char *fmt, ...)
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
check_kind(struct reading *r, const struct jvalue *value, enum jvalue_type type,
    enum field_kind kind)
{
	static const char *const names[] = {
		[JVALUE_NULL] = "null",
		[JVALUE_BOOL] = "true or false",
		[JVALUE_NUMBER] = "a number",
		[JVALUE_STRING] = "a string",
		[JVALUE_ARRAY] = "an array",
		[JVALUE_OBJECT] = "an object",
	};

	return value->type == type ||
	    fields_refuse(r, FIELD_TYPE, kind, value, "must be %s",
		names[type]);
}

/* ---- values ---- */

static bool
fields_read_text(struct reading *r, const struct field *row,
    const struct jvalue *value, struct cell_bytes *text)
{
	if (!check_kind(r, value, JVALUE_STRING, row->kind))
		return false;
	*text = (struct cell_bytes){ value->u.text, value->count };
	if (row->max > 0 && text->len > (size_t)row->max)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must have at most %" PRId64 " bytes", row->max);
	if (row->kind == FIELD_RAW)
		return true;
	if (utf8_has_surrogate(text->data, text->len))
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must be Unicode text, and holds half of a surrogate pair");
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
fields_read_int(struct reading *r, const struct field *row,
    const struct jvalue *value, int64_t *number)
{
	enum field_fault fault = FIELD_TYPE;
	double real;

	if (jvalue_integer(value, number) ||
	    (row->kind == FIELD_WHOLE && jvalue_number(value, &real) &&
		fabs(real) < 1e15 && (double)(*number = (int64_t)real) == real))
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
    const struct jvalue *value, double *number)
{
	if (!check_kind(r, value, JVALUE_NUMBER, row->kind))
		return false;
	(void)jvalue_number(value, number);
	if (*number < (double)row->min)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must be at least %" PRId64, row->min);
	return row->max == 0 || *number <= (double)row->max ||
	    fields_refuse(r, FIELD_VALUE, row->kind, value,
		"must be at most %" PRId64, row->max);
}

static bool read_object(struct reading *r, const struct field *rows,
    const struct jvalue *object, void *into);

static bool
fields_read_list(struct reading *r, const struct field *row,
    const struct jvalue *value, struct field_list *list)
{
	static const struct field string = { .kind = FIELD_RAW };
	size_t size = row->items == NULL ? sizeof(struct cell_bytes) :
					   row->size;
	const struct jvalue *item = jvalue_first(value);

	if (!check_kind(r, value, JVALUE_ARRAY, row->kind))
		return false;
	if (row->max > 0 && value->count > (size_t)row->max)
		return fields_refuse(r, FIELD_VALUE, row->kind, value,
		    "must have at most %" PRId64 " items", row->max);
	/* One more, so that the address says that there is a list. */
	list->items = jtree_array(r->doc, value->count + 1, size);
	r->place.indexed = true;
	for (; item != NULL; item = item->next) {
		void *into = (char *)list->items + list->count * size;

		r->place.index = list->count++;
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
read_field(struct reading *r, const struct field *row,
    const struct jvalue *value, void *place)
{
	switch (row->kind) {
	case FIELD_ANY:
		*(const struct jvalue **)place = value;
		return true;
	case FIELD_RAW:
	case FIELD_TEXT:
	case FIELD_WORD:
		return fields_read_text(r, row, value, place);
	case FIELD_INT:
	case FIELD_WHOLE:
		return fields_read_int(r, row, value, place);
	case FIELD_NUMBER:
		return fields_read_number(r, row, value, place);
	case FIELD_BOOL:
		*(bool *)place = jvalue_is_true(value);
		return check_kind(r, value, JVALUE_BOOL, row->kind);
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
read_member(struct reading *r, const struct field *row,
    const struct jvalue *object, void *into)
{
	const struct jvalue *value = jvalue_get(object, row->name);
	void *place = (char *)into + row->offset;

	if (r->place.indexed)
		r->place.inner = row->name;
	else
		r->place.member = row->name;
	if (row->nullable && jvalue_is_absent(value))
		value = NULL;
	if (value != NULL)
		return read_field(r, row, value, place);
	set_standard(row, place);
	return !row->required ||
	    fields_refuse(r, FIELD_MISSING, row->kind, object, "is missing");
}

static bool
read_object(struct reading *r, const struct field *row,
    const struct jvalue *object, void *into)
{
	if (!check_kind(r, object, JVALUE_OBJECT, FIELD_OBJECT))
		return false;
	while (row->name != NULL && read_member(r, row, object, into))
		row++;
	return row->name == NULL;
}

bool
field_read(struct jtree *doc, const struct field *row,
    const struct jvalue *object, void *into, struct field_error *error)
{
	struct reading r = { doc, error, { .member = NULL } };

	return read_member(&r, row, object, into);
}

bool
fields_read(struct jtree *doc, const struct field *rows,
    const struct jvalue *object, void *into, struct field_error *error)
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
