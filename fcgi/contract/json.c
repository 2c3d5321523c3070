/* SPDX-License-Identifier: MIT */
#include "contract/json.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "protocol/cell.h"

#define CHUNK 65536
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free
#define BOM "\xef\xbb\xbf"
#define UNIT 6			   /* bytes of \uXXXX */
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* ---- bodies ---- */

void *
jtree_array(struct jtree *doc, size_t count, size_t size)
{
	assert(count < INT_MAX / size);
	if (doc->memory == NULL) {
		doc->memory = xmalloc(sizeof(*doc->memory));
		obstack_begin(doc->memory, CHUNK);
	}
	return memset(obstack_alloc(doc->memory, (int)(count * size)), 0,
	    count * size);
}

void
jtree_release(struct jtree *doc)
{
	json_decref(doc->root);
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	*doc = (struct jtree){ .root = NULL };
}

const char *
jtree_text(const json_t *value)
{
	const char *text = json_string_value(value);

	return text != NULL && strlen(text) == json_string_length(value) ?
	    text :
	    NULL;
}

bool
jtree_is(const json_t *value, const char *text)
{
	const char *own = jtree_text(value);

	return own != NULL && strcmp(own, text) == 0;
}

/* The bound that a text is beyond, or NULL.  A parser that has no bounds would
 * take memory of a hundred times its length. */
static const char *
find_excess(const char *s, size_t len)
{
	size_t values = 0;
	size_t depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (quoted) {
			quoted = s[i] != '"';
			i += s[i] == '\\' ? 1 : 0;
			continue;
		}
		quoted = s[i] == '"';
		if (s[i] == '[' || s[i] == '{')
			depth++;
		else if ((s[i] == ']' || s[i] == '}') && depth > 0)
			depth--;
		else if (s[i] != ',' && s[i] != ':')
			continue;
		if (depth > JTREE_DEPTH_MAX)
			return "it is nested too deeply";
		if (++values > JTREE_VALUES_MAX)
			return "there are too many values";
	}
	return NULL;
}

/* Is a half there, the first (0xd8) or the second (0xdc) of a pair? */
static bool
is_half(const char *at, const char *end, unsigned char kind)
{
	unsigned char unit[2];

	return end - at >= UNIT && memcmp(at, "\\u", 2) == 0 &&
	    text_parse_hex(at + 2, 4, unit, sizeof(unit)) &&
	    (unit[0] & 0xfc) == kind;
}

/* Overwrite each half that stands alone.  False: there is none. */
static bool
mend_halves(char *at, size_t len)
{
	const char *end = at + len;
	bool found = false;

	while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
		bool first = is_half(at, end, 0xd8);

		if (first && is_half(at + UNIT, end, 0xdc)) {
			at += 2 * UNIT;
			continue;
		}
		if (first || is_half(at, end, 0xdc)) {
			memcpy(at + 2, "fffd", 4);
			found = true;
		}
		at += end - at > 1 ? 2 : 1;
	}
	return found;
}

bool
jtree_parse(struct jtree *doc, const char *body, size_t len,
    struct jtree_error *error)
{
	const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY;
	const char *wrong = find_excess(body, len);
	json_error_t fault = { .line = 0 };

	*doc = (struct jtree){ .root = NULL };
	if (len >= strlen(BOM) && memcmp(body, BOM, strlen(BOM)) == 0) {
		body += strlen(BOM);
		len -= strlen(BOM);
	}
	if (wrong == NULL)
		doc->root = json_loadb(body, len, flags, &fault);
	if (wrong == NULL && doc->root == NULL &&
	    memchr(body, '\\', len) != NULL) {
		auto_free char *copy = memcpy(xmalloc(len), body, len);

		if (mend_halves(copy, len))
			doc->root = json_loadb(copy, len, flags, &fault);
	}
	/* jansson ends at a NUL as if it were the end */
	if (doc->root != NULL && memchr(body, '\0', len) == NULL)
		return true;
	if (doc->root != NULL)
		fault = (json_error_t){ .text = "a NUL byte", .line = 1 };
	jtree_release(doc);
	if (wrong == NULL && json_error_code(&fault) == json_error_invalid_utf8)
		wrong = "it is not in UTF-8";
	error->is_syntax = wrong == NULL;
	if (error->is_syntax)
		(void)snprintf(error->text, sizeof(error->text),
		    "%s at line %d, column %d", fault.text, fault.line,
		    fault.column);
	else
		(void)snprintf(error->text, sizeof(error->text), "%s", wrong);
	return false;
}

/* ---- members ---- */

/* An object that is read; the error's place is that of the present value. */
struct reading {
	struct jtree *doc;
	struct field_error *error;
};

/* Always false. */
static bool __attribute__((format(printf, 3, 4)))
fields_refuse(struct field_error *error, enum field_fault fault,
    const char *fmt, ...)
{
	va_list ap;

	error->fault = fault;
	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return false;
}

static bool
check_type(struct field_error *error, const json_t *value, json_type type)
{
	static const char *const names[] = {
		[JSON_TRUE] = "true or false",
		[JSON_REAL] = "a number",
		[JSON_STRING] = "a string",
		[JSON_ARRAY] = "an array",
		[JSON_OBJECT] = "an object",
	};

	error->value = value;
	error->type = type;
	return json_typeof(value) == type ||
	    (type == JSON_TRUE && json_is_false(value)) ||
	    (type == JSON_REAL && json_is_integer(value)) ||
	    fields_refuse(error, FIELD_TYPE, "must be %s", names[type]);
}

static bool
fields_read_text(struct field_error *error, const struct field *row,
    const json_t *value, struct cell_bytes *text)
{
	if (!check_type(error, value, JSON_STRING))
		return false;
	*text = (struct cell_bytes){ json_string_value(value),
		json_string_length(value) };
	if (row->max > 0 && text->len > (size_t)row->max)
		return fields_refuse(error, FIELD_VALUE,
		    "must have at most %" PRId64 " bytes", row->max);
	if (row->kind == FIELD_WORD && text->len == 0)
		return fields_refuse(error, FIELD_VALUE, "must not be empty");
	return row->kind == FIELD_TEXT || strlen(text->data) == text->len ||
	    fields_refuse(error, FIELD_VALUE,
		"must not contain a NUL character");
}

static bool
fields_read_int(struct field_error *error, const struct field *row,
    const json_t *value, int64_t *number)
{
	double real = json_real_value(value); /* 0 of anything else */
	bool whole = row->kind == FIELD_WHOLE && json_is_real(value) &&
	    fabs(real) < 1e15 && (double)(int64_t)real == real;
	enum field_fault fault = whole || json_is_integer(value) ? FIELD_VALUE :
								   FIELD_TYPE;

	*number = whole ? (int64_t)real : json_integer_value(value);
	error->value = value;
	error->type = JSON_INTEGER;
	if (fault == FIELD_VALUE && *number >= row->min &&
	    (row->max == 0 || *number <= row->max))
		return true;
	return row->max == 0 ?
	    fields_refuse(error, fault,
		"must be an integer of at least %" PRId64, row->min) :
	    fields_refuse(error, fault,
		"must be an integer from %" PRId64 " to %" PRId64, row->min,
		row->max);
}

static bool
fields_read_number(struct field_error *error, const struct field *row,
    const json_t *value, double *number)
{
	if (!check_type(error, value, JSON_REAL))
		return false;
	*number = json_number_value(value);
	if (*number < (double)row->min)
		return fields_refuse(error, FIELD_VALUE,
		    "must be at least %" PRId64, row->min);
	return row->max == 0 || *number <= (double)row->max ||
	    fields_refuse(error, FIELD_VALUE, "must be at most %" PRId64,
		row->max);
}

static bool read_object(struct reading *r, const struct field *rows,
    const json_t *object, void *into);
static bool fields_read_value(struct reading *r, const struct field *row,
    const json_t *value, void *place);

static bool
fields_read_list(struct reading *r, const struct field *row,
    const json_t *value, struct field_list *list)
{
	static const struct field text = { .kind = FIELD_TEXT };
	static const struct field string = { .kind = FIELD_STRING };
	const struct field *one = row->kind == FIELD_STRINGS ? &string : &text;
	size_t size = row->items != NULL ? row->size :
	    one == &string		 ? sizeof(const char *) :
					   sizeof(struct cell_bytes);
	struct field_place *place = &r->error->place;
	const json_t *item;

	if (!check_type(r->error, value, JSON_ARRAY))
		return false;
	list->count = json_array_size(value);
	if (row->max > 0 && list->count > (size_t)row->max)
		return fields_refuse(r->error, FIELD_VALUE,
		    "must have at most %" PRId64 " items", row->max);
	/* One more, so that the address says that there is a list. */
	list->items = jtree_array(r->doc, list->count + 1, size);
	place->indexed = true;
	json_array_foreach(value, place->index, item) {
		void *into = (char *)list->items + place->index * size;

		place->inner = NULL;
		if (!(row->items == NULL ?
			    fields_read_value(r, one, item, into) :
			    read_object(r, row->items, item, into)))
			return false;
	}
	*place = (struct field_place){ .member = row->name };
	return true;
}

static bool
fields_read_value(struct reading *r, const struct field *row,
    const json_t *value, void *place)
{
	struct field_list list = { .items = NULL };
	struct cell_bytes text = { NULL, 0 };
	bool good;

	switch (row->kind) {
	case FIELD_ANY:
		*(const json_t **)place = value;
		break;
	case FIELD_TEXT:
	case FIELD_WORD:
		return fields_read_text(r->error, row, value, place);
	case FIELD_STRING:
		good = fields_read_text(r->error, row, value, &text);
		*(const char **)place = text.data;
		return good;
	case FIELD_INT:
	case FIELD_WHOLE:
		return fields_read_int(r->error, row, value, place);
	case FIELD_NUMBER:
		return fields_read_number(r->error, row, value, place);
	case FIELD_BOOL:
		*(bool *)place = json_is_true(value);
		return check_type(r->error, value, JSON_TRUE);
	case FIELD_LIST:
		return fields_read_list(r, row, value, place);
	case FIELD_STRINGS:
		good = fields_read_list(r, row, value, &list);
		*(const char ***)place = list.items;
		return good;
	}
	return true;
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

	if (r->error->place.indexed)
		r->error->place.inner = row->name;
	else
		r->error->place.member = row->name;
	if (value != NULL && !(row->nullable && json_is_null(value)))
		return fields_read_value(r, row, value, place);
	set_standard(row, place);
	r->error->value = object;
	return !row->required ||
	    fields_refuse(r->error, FIELD_MISSING, "is missing");
}

static bool
read_object(struct reading *r, const struct field *row, const json_t *object,
    void *into)
{
	if (!check_type(r->error, object, JSON_OBJECT))
		return false;
	while (row->name != NULL && read_member(r, row, object, into))
		row++;
	return row->name == NULL;
}

bool
field_read(struct jtree *doc, const struct field *row, const json_t *object,
    void *into, struct field_error *error)
{
	struct reading r = { doc, error };

	error->place = (struct field_place){ .member = NULL };
	return read_member(&r, row, object, into);
}

bool
fields_read(struct jtree *doc, const struct field *rows, const json_t *object,
    void *into, struct field_error *error)
{
	struct reading r = { doc, error };

	error->place = (struct field_place){ .member = NULL };
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

bool
api_error_set(struct api_error *error, int status, const char *fmt, ...)
{
	va_list ap;

	error->status = status;
	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return false;
}

bool
fields_accept(struct jtree *doc, const struct field *rows, void *into,
    struct api_error *error)
{
	auto_buf struct buf text = BUF_INIT(1024);
	struct field_error wrong;

	if (fields_read(doc, rows, doc->root, into, &wrong))
		return true;
	field_error_add(&text, &wrong);
	return api_error_set(error, 400, "%s", buf_str(&text));
}

/* ---- answers ---- */

/* Sets the highest bit of the first byte that is less than n, which is 0x80 at
 * most, and no bit before it. */
static uint64_t
mark_less(uint64_t word, unsigned char n)
{
	return (word - EACH(n)) & ~word & EACH(0x80);
}

/* Bytes of s before the first that does not stand for itself in a JSON string:
 * a control character (DEL is one), '"', '\\', or what is not ASCII.  Eight
 * bytes are compared at a time; two are equal if their XOR is less than 1. */
static size_t
plain_span(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;
	uint64_t found;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		word = le64toh(word); /* the first byte is the lowest */
		found = (word & EACH(0x80)) | mark_less(word, 0x20) |
		    mark_less(word ^ EACH('"'), 1) |
		    mark_less(word ^ EACH('\\'), 1) |
		    mark_less(word ^ EACH(0x7f), 1);
		if (found != 0)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' &&
	    s[i] != '\\')
		i++;
	return i;
}

/* Append \uXXXX; without printf, as there may be a million of them. */
static void
add_unit(struct buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	const char text[] = { '\\', 'u', hex[unit >> 12 & 15],
		hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15] };

	buf_add(out, text, sizeof(text));
}

/* Append the text of the character at s; how many bytes it was. */
static size_t
add_step(struct buf *out, const char *s, size_t len, enum jtext_style style)
{
	/* characters with a letter of their own */
	static const char marks[256] = {
		['"'] = '"',
		['\\'] = '\\',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
		['\f'] = 'f',
		['\b'] = 'b',
	};
	const char escape[] = { '\\', marks[(unsigned char)s[0]] };
	enum utf8_fault fault;
	char bytes[4];
	uint32_t code;
	size_t step;

	if (escape[1] != '\0') {
		buf_add(out, escape, sizeof(escape));
		return 1;
	}
	step = utf8_look(s, len, &fault);
	code = fault == UTF8_FINE ? utf8_decode(s, step) : 0xfffd;
	if (style == JTEXT_UTF8 && code >= 0x7f) {
		buf_add(out, bytes, utf8_encode(code, bytes));
	} else if (code < 0x10000) {
		add_unit(out, code);
	} else {
		add_unit(out, 0xd800 + ((code - 0x10000) >> 10));
		add_unit(out, 0xdc00 + (code & 0x3ff));
	}
	return step;
}

/* Bytes that stand for themselves are added in one piece. */
static void
jtext_add_text(struct buf *out, const char *s, size_t len,
    enum jtext_style style)
{
	size_t i = 0;

	while (i < len && !out->overflow) {
		size_t plain = plain_span(s + i, len - i);

		buf_add(out, s + i, plain);
		i += plain;
		if (i < len)
			i += add_step(out, s + i, len - i, style);
	}
}

void
jtext_add_string(struct buf *out, const char *s, size_t len,
    enum jtext_style style)
{
	buf_addc(out, '"');
	jtext_add_text(out, s, len, style);
	buf_addc(out, '"');
}

json_t *
jtext_pack(const char *s, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * len);

	utf8_decoder_add_whole(&text, s, len);
	return json_stringn(buf_str(&text), text.len);
}

/* A value that does not fit is written no further. */
static int
jtext_write(const char *data, size_t len, void *arg)
{
	struct buf *out = arg;

	buf_add(out, data, len);
	return out->overflow ? -1 : 0;
}

void
jtext_add(struct buf *out, const json_t *value, size_t flags)
{
	(void)json_dump_callback(value, jtext_write, out,
	    flags | JSON_ENCODE_ANY);
}

/* Up to each conversion what stands there is added as it is. */
void
jtext_addf(struct buf *out, enum jtext_style style, const char *fmt, ...)
{
	static const char wide[] = "%" PRId64;
	va_list ap;

	va_start(ap, fmt);
	for (;;) {
		size_t plain = strcspn(fmt, "%");
		bool quoted = plain > 0 && fmt[plain - 1] == '"';

		buf_add(out, fmt, plain);
		fmt += plain;
		if (*fmt == '\0')
			break;
		if (strncmp(fmt, "%s", 2) == 0 ||
		    strncmp(fmt, "%.*s", 4) == 0) {
			bool counted = fmt[1] == '.';
			size_t len = counted ? (size_t)va_arg(ap, int) : 0;
			const char *text = va_arg(ap, const char *);

			len = counted ? len : strlen(text);
			if (quoted)
				jtext_add_text(out, text, len, style);
			else
				buf_add(out, text, len);
			fmt += counted ? 4 : 2;
		} else {
			assert(strncmp(fmt, wide, strlen(wide)) == 0);
			buf_addf(out, wide, va_arg(ap, int64_t));
			fmt += strlen(wide);
		}
	}
	va_end(ap);
}

/* ---- bytes ---- */

/* The number of a digit in either alphabet; -1: it is none. */
static int
base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* libsodium's decoder knows one alphabet at a time, and no other end of the
 * last group than zeros. */
bool
base64_decode(const char *text, size_t text_len, bool padded, char *out,
    size_t *len)
{
	unsigned bits = 0;
	size_t place = 0; /* in the group of four */
	size_t pads = 0;

	*len = 0;
	for (size_t i = 0; i < text_len; i++) {
		char c = text[i];
		int digit = base64_digit(c);

		if (c == '=')
			pads++;
		else if (digit >= 0 ? pads > 0 :
				      c == '\0' || strchr(" \t\r\n", c) == NULL)
			return false;
		if (digit < 0)
			continue;
		bits = (bits << 6 | (unsigned)digit) & 0xffffff;
		if (place > 0)
			out[(*len)++] = (char)(bits >> (6 - 2 * place) & 0xff);
		place = (place + 1) % 4;
	}
	return place != 1 &&
	    (pads == (4 - place) % 4 || (pads == 0 && !padded));
}

void
base64_add(struct buf *out, const void *data, size_t len)
{
	const int variant = sodium_base64_VARIANT_ORIGINAL;
	size_t size = sodium_base64_encoded_len(len, variant); /* and a NUL */
	char *room = buf_reserve(out, size - 1);

	if (room == NULL)
		return;
	(void)sodium_bin2base64(room, size, data, len, variant);
	buf_commit(out, size - 1);
}

/* Bytes that may begin a character wait for the next piece. */
void
utf8_decoder_add(struct utf8_decoder *d, struct buf *out, const char *data,
    size_t len)
{
	auto_buf struct buf joined = BUF_INIT(sizeof(d->pending) + len);
	enum utf8_fault fault;
	size_t step;

	if (d->count > 0) {
		buf_add(&joined, d->pending, d->count);
		buf_add(&joined, data, len);
		data = joined.data;
		len = joined.len;
		d->count = 0;
	}
	while (len > 0) {
		step = utf8_span(data, len);
		buf_add(out, data, step);
		data += step;
		len -= step;
		if (len == 0)
			break;
		step = utf8_look(data, len, &fault);
		if (fault == UTF8_END) {
			memcpy(d->pending, data, len);
			d->count = len;
			break;
		}
		buf_adds(out, REPLACEMENT);
		data += step;
		len -= step;
	}
}

void
utf8_decoder_end(struct utf8_decoder *d, struct buf *out)
{
	if (d->count > 0)
		buf_adds(out, REPLACEMENT);
	d->count = 0;
}

void
utf8_decoder_add_whole(struct buf *out, const char *data, size_t len)
{
	struct utf8_decoder decoder = { .count = 0 };

	utf8_decoder_add(&decoder, out, data, len);
	utf8_decoder_end(&decoder, out);
}
