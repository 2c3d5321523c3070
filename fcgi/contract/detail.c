#include "detail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../pytext/pydump.h"
#include "../pytext/pyjson.h"
#include "../pytext/pyutf8.h"

void
detail_release(struct detail *d)
{
	buf_release(&d->body);
}

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

void
detail_begin(struct detail *d)
{
	d->status = 422;
	d->count = 0;
	buf_init(&d->body, DETAIL_MAX);
	buf_adds(&d->body, "{\"detail\":[");
}

/* ,"loc":["body","files",0,"path"] */
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

void
detail_add(struct detail *d, const char *type, const struct detail_place *place,
    const char *message, const struct pyvalue *input, const char *bound_name,
    int64_t bound)
{
	static const struct pyvalue null = { .type = PYVALUE_NULL };
	size_t before = d->body.len;

	if (d->count == DETAIL_COUNT_MAX)
		return;
	if (d->count > 0)
		buf_addc(&d->body, ',');
	buf_addf(&d->body, "{\"type\":\"%s\"", type);
	add_place(&d->body, place);
	buf_addf(&d->body, ",\"msg\":\"%s\",\"input\":", message);
	pydump_add(&d->body, input == NULL ? &null : input);
	if (bound_name != NULL)
		buf_addf(&d->body, ",\"ctx\":{\"%s\":%" PRId64 "}", bound_name,
		    bound);
	buf_addc(&d->body, '}');
	if (d->body.overflow) {
		d->body.overflow = false;
		buf_cut(&d->body, before);
		return;
	}
	d->count++;
}

void
detail_add_upload(struct detail *d, const struct detail_place *place,
    const char *text, size_t len)
{
	buf_adds(&d->body, "{\"type\":\"value_error\"");
	add_place(&d->body, place);
	buf_adds(&d->body,
	    ",\"msg\":\"Value error, Expected UploadFile, received: "
	    "<class 'str'>\",\"input\":");
	pydump_add_string(&d->body, text, len, PYDUMP_UTF8);
	buf_adds(&d->body, ",\"ctx\":{\"error\":{}}}");
	d->count++;
}

bool
detail_end(struct detail *d)
{
	if (d->count == 0) {
		detail_release(d);
		return true;
	}
	buf_adds(&d->body, "]}");
	return false;
}

/* ---- the body of a request ---- */

/* One error about the body as a whole. */
static bool
refuse_body(struct detail *d, const char *type, const char *message,
    const struct pyvalue *input)
{
	const struct detail_place body = { .member = NULL };

	detail_begin(d);
	detail_add(d, type, &body, message, input, NULL, 0);
	return detail_end(d);
}

static bool
refuse_type(struct detail *d, const struct pyvalue *input)
{
	return refuse_body(d, "model_attributes_type",
	    "Input should be a valid dictionary or object to extract fields "
	    "from",
	    input);
}

static bool
refuse_syntax(struct detail *d, const struct pyjson_error *error)
{
	detail_begin(d);
	buf_addf(&d->body,
	    "{\"type\":\"json_invalid\",\"loc\":[\"body\",%zu],"
	    "\"msg\":\"JSON decode error\",\"input\":{},\"ctx\":{\"error\":",
	    error->position);
	pydump_add_string(&d->body, error->text, strlen(error->text),
	    PYDUMP_UTF8);
	buf_adds(&d->body, "}}");
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
	len = strcspn(type, ";");
	while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t'))
		len--;
	if (len < strlen(prefix) ||
	    strncasecmp(type, prefix, strlen(prefix)) != 0)
		return false;
	type += strlen(prefix);
	len -= strlen(prefix);
	if (memchr(type, '/', len) != NULL)
		return false;
	return (len == 4 && strncasecmp(type, "json", 4) == 0) ||
	    (len >= 5 && strncasecmp(type + len - 5, "+json", 5) == 0);
}

/* The body was sent as something else: it is told back as a text. */
static bool
refuse_text(struct detail *d, const char *body, size_t len)
{
	struct pyvalue text = { .type = PYVALUE_STRING, .count = len };
	bool result;
	size_t at;

	if (!pyutf8_valid(body, len, false, &at))
		return detail_text(d, 400,
		    "There was an error parsing the body");
	text.u.text = xmalloc(len);
	memcpy(text.u.text, body, len);
	result = refuse_type(d, &text);
	free(text.u.text);
	return result;
}

bool
detail_parse(struct pyjson *doc, const char *content_type, const char *body,
    size_t len, struct detail *d)
{
	struct pyjson_error error;
	bool null;

	if (len == 0)
		return refuse_body(d, "missing", "Field required", NULL);
	if (content_type == NULL || !is_json(content_type))
		return refuse_text(d, body, len);
	if (!pyjson_parse(doc, body, len, PYJSON_BYTES, &error)) {
		if (error.fault == PYJSON_SYNTAX)
			return refuse_syntax(d, &error);
		return detail_text(d, 400,
		    "There was an error parsing the body");
	}
	if (doc->root.type == PYVALUE_OBJECT)
		return true;
	null = doc->root.type == PYVALUE_NULL;
	(void)(null ? refuse_body(d, "missing", "Field required", NULL) :
		      refuse_type(d, &doc->root));
	pyjson_release(doc);
	return false;
}
