/* SPDX-License-Identifier: MIT */
#include "detail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "../../pytext/pydump.h"
#include "../../pytext/pyjson.h"

#include "../../../sandbox/base/text.h"
#include "../../../sandbox/base/utf8.h"

#define BAD_BODY "There was an error parsing the body"

/* What pydantic says of a fault; CONTEXT is NULL where there is none. */
enum { TYPE, MESSAGE, CONTEXT };

static const char *const faults[][3] = {
	[DETAIL_MISSING] = { "missing", "Field required" },
	[DETAIL_NO_OBJECT] = { "model_attributes_type",
	    "Input should be a valid dictionary or object to extract fields "
	    "from" },
	[DETAIL_NO_LIST] = { "list_type", "Input should be a valid list" },
	[DETAIL_NO_STRING] = { "string_type",
	    "Input should be a valid string" },
	[DETAIL_NO_UNICODE] = { "string_unicode",
	    "Input should be a valid string, unable to parse raw data as a "
	    "unicode string" },
	[DETAIL_NO_INT] = { "int_type", "Input should be a valid integer" },
	[DETAIL_BELOW_1] = { "greater_than_equal",
	    "Input should be greater than or equal to 1", "\"ge\":1" },
	[DETAIL_ABOVE_86400] = { "less_than_equal",
	    "Input should be less than or equal to 86400", "\"le\":86400" },
	[DETAIL_NO_BOOL] = { "bool_type", "Input should be a valid boolean" },
	[DETAIL_UNCLEAR_BOOL] = { "bool_parsing",
	    "Input should be a valid boolean, unable to interpret input" },
	[DETAIL_NO_FILE] = { "value_error",
	    "Value error, Expected UploadFile, received: <class 'str'>",
	    "\"error\":{}" },
};

/* A text is all of the answer: {"detail":"…"}. */
bool
detail_bytes(struct detail *d, int status, const char *text, size_t len)
{
	d->status = status;
	buf_init(&d->body, DETAIL_MAX);
	buf_adds(&d->body, "{\"detail\":");
	pydump_add_string(&d->body, text, len, PYDUMP_UTF8);
	buf_addc(&d->body, '}');
	return false;
}

bool
detail_text(struct detail *d, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(65536);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return detail_bytes(d, status, buf_str(&text), text.len);
}

/* A list of faults: {"detail":[{…},{…}]}. */
void
detail_begin(struct detail *d)
{
	d->status = 422;
	d->count = 0;
	buf_init(&d->body, DETAIL_MAX);
	buf_adds(&d->body, "{\"detail\":[");
}

/* Where something is wrong: ,"loc":["body","files",0,"path"]. */
static void
add_place(struct buf *out, const struct detail_place *place)
{
	buf_adds(out, ",\"loc\":[\"body\"");
	if (place->member != NULL)
		buf_addf(out, ",\"%s\"", place->member);
	if (place->indexed)
		buf_addf(out, ",%zu", place->index);
	if (place->inner != NULL)
		buf_addf(out, ",\"%s\"", place->inner);
	buf_addc(out, ']');
}

/* One fault with its place, its message and what was sent. */
void
detail_add(struct detail *d, enum detail_fault fault,
    const struct detail_place *place, const struct pyvalue *input)
{
	static const struct pyvalue null = { .type = PYVALUE_NULL };
	size_t before = d->body.len;

	if (d->count == DETAIL_COUNT_MAX)
		return;
	buf_addf(&d->body, "%s{\"type\":\"%s\"", d->count > 0 ? "," : "",
	    faults[fault][TYPE]);
	add_place(&d->body, place);
	buf_addf(&d->body,
	    ",\"msg\":\"%s\",\"input\":", faults[fault][MESSAGE]);
	pydump_add(&d->body, input == NULL ? &null : input);
	if (faults[fault][CONTEXT] != NULL)
		buf_addf(&d->body, ",\"ctx\":{%s}", faults[fault][CONTEXT]);
	buf_addc(&d->body, '}');
	/* What does not fit is not told at all. */
	if (d->body.overflow) {
		d->body.overflow = false;
		buf_cut(&d->body, before);
	} else {
		d->count++;
	}
}

bool
detail_end(struct detail *d)
{
	if (d->count == 0) {
		buf_release(&d->body);
		return true;
	}
	buf_adds(&d->body, "]}");
	return false;
}

/* ---- the body of a request ---- */

/* One error about the body as a whole. */
static bool
refuse_body(struct detail *d, enum detail_fault fault,
    const struct pyvalue *input)
{
	detail_begin(d);
	detail_add(d, fault, &(struct detail_place){ .member = NULL }, input);
	return detail_end(d);
}

/* The only error with texts of its own. */
static bool
refuse_syntax(struct detail *d, const struct pyjson_error *error)
{
	detail_begin(d);
	pydump_addf(&d->body, PYDUMP_UTF8,
	    "{\"type\":\"json_invalid\",\"loc\":[\"body\",%" PRId64 "],"
	    "\"msg\":\"JSON decode error\",\"input\":{},"
	    "\"ctx\":{\"error\":\"%s\"}}",
	    (int64_t)error->position, error->text);
	d->count = 1;
	return detail_end(d);
}

/* application/json or application/…+json, in any case, with any parameters. */
static bool
is_json(const char *type)
{
	static const char prefix[] = "application/";
	size_t len;

	type += strspn(type, " \t");
	if (strncasecmp(type, prefix, strlen(prefix)) != 0)
		return false;
	type += strlen(prefix);
	len = strcspn(type, ";");
	while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t'))
		len--;
	return memchr(type, '/', len) == NULL &&
	    (text_is(type, len, "json") ||
		(len >= 5 && text_is(type + len - 5, 5, "+json")));
}

/* Empty, of another type, no JSON, no object: one refusal for each. */
bool
detail_parse(struct pyjson *doc, const char *content_type, const char *body,
    size_t len, struct detail *d)
{
	struct pyjson_error error;

	if (len == 0)
		return refuse_body(d, DETAIL_MISSING, NULL);
	/* What was sent as something else is told back as a text. */
	if (content_type == NULL || !is_json(content_type)) {
		const struct pyvalue text = { .type = PYVALUE_STRING,
			.count = len,
			.u.text = (char *)(uintptr_t)body };

		return utf8_valid(body, len) ?
		    refuse_body(d, DETAIL_NO_OBJECT, &text) :
		    detail_text(d, 400, BAD_BODY);
	}
	if (!pyjson_parse(doc, body, len, PYJSON_BYTES, &error))
		return error.fault == PYJSON_SYNTAX ?
		    refuse_syntax(d, &error) :
		    detail_text(d, 400, BAD_BODY);
	if (doc->root.type == PYVALUE_OBJECT)
		return true;
	(void)refuse_body(d,
	    doc->root.type == PYVALUE_NULL ? DETAIL_MISSING : DETAIL_NO_OBJECT,
	    &doc->root);
	pyjson_release(doc);
	return false;
}
