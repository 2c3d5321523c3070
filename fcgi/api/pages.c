#include "pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <sodium.h>

#include "../contract/base64.h"
#include "../pytext/pydump.h"
#include "../pytext/pyjson.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/log.h"

/* clang-format off */
__asm__(".section .rodata\n"
	".global pages_openapi\n"
	".global pages_openapi_len\n"
	"pages_openapi:\n"
	".incbin \"fcgi/api/openapi.json\"\n"
	"pages_openapi_end:\n"
	".byte 0\n"
	".balign 8\n"
	"pages_openapi_len:\n"
	".quad pages_openapi_end - pages_openapi\n"
	".previous\n");
/* clang-format on */

static const char style[] =
    ":root{color-scheme:light dark;--line:#8884;--soft:#8882;--blue:#0b63c5}"
    "@media(prefers-color-scheme:dark){:root{--blue:#6cb2ff}}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;"
    "padding:1.5rem}"
    "h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid "
    "var(--line)}"
    "h3{margin:2rem 0 .3rem;font-size:1.05rem}"
    "h4{margin:1rem 0 .2rem;font-size:.9rem}"
    "code,pre{font:.875em/1.45 ui-monospace,monospace;background:var(--soft);"
    "border-radius:4px}"
    "code{padding:.1em .3em;overflow-wrap:anywhere}"
    "pre{padding:.7rem;overflow-x:auto;margin:.3rem 0}"
    "h3 code{background:none;padding:0;font-size:1em}"
    ".method{display:inline-block;min-width:4rem;font-weight:700;"
    "color:var(--blue)}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "td,th{border-top:1px solid var(--line);padding:.3rem .6rem .3rem 0;"
    "text-align:left;vertical-align:top}"
    "a{color:var(--blue)}nav ul{list-style:none;padding:0}"
    "nav .method{font-size:.8rem}"
    "section{scroll-margin-top:1rem}"
    /* Where three columns are too many, each is a line. */
    "@media(max-width:40rem){body{padding:1rem}td{display:block;border:0;"
    "padding:.1rem 0}td:first-child{border-top:1px solid var(--line);"
    "padding-top:.5rem}td:last-child{padding-bottom:.5rem}"
    "td:empty{display:none}}";

struct page {
	struct buf *out;
	const struct pyvalue *root;
};

/* ---- text ---- */

static void
add_char(struct buf *out, char c)
{
	switch (c) {
	case '&':
		buf_adds(out, "&amp;");
		break;
	case '<':
		buf_adds(out, "&lt;");
		break;
	case '>':
		buf_adds(out, "&gt;");
		break;
	case '"':
		buf_adds(out, "&quot;");
		break;
	default:
		buf_addc(out, c);
		break;
	}
}

static void
add_text(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++)
		add_char(out, *s);
}

/* A description: `…` is code, an empty line ends a paragraph. */
static void
add_prose(struct buf *out, const char *s)
{
	bool code = false;

	for (; *s != '\0'; s++) {
		if (*s == '`') {
			code = !code;
			buf_adds(out, code ? "<code>" : "</code>");
		} else if (strncmp(s, "\n\n", 2) == 0) {
			buf_adds(out, "</p><p>");
			s++;
		} else {
			add_char(out, *s);
		}
	}
}

/* A member that is a text; "" when there is none. */
static const char *
text_of(const struct pyvalue *object, const char *name)
{
	const struct pyvalue *value = object == NULL ?
	    NULL :
	    pyvalue_get(object, name);

	return value != NULL && value->type == PYVALUE_STRING ? value->u.text :
								"";
}

static void
add_paragraph(struct buf *out, const char *text)
{
	if (text[0] == '\0')
		return;
	buf_adds(out, "<p>");
	add_prose(out, text);
	buf_adds(out, "</p>\n");
}

/* ---- schemas ---- */

/* What a {"$ref": "#/components/schemas/…"} stands for. */
static const struct pyvalue *
resolve(const struct page *page, const struct pyvalue *schema)
{
	static const char prefix[] = "#/components/schemas/";
	const char *ref = text_of(schema, "$ref");
	const struct pyvalue *components = pyvalue_get(page->root,
	    "components");

	if (strncmp(ref, prefix, strlen(prefix)) != 0 || components == NULL)
		return schema;
	components = pyvalue_get(components, "schemas");
	return components == NULL ?
	    schema :
	    pyvalue_get(components, ref + strlen(prefix));
}

/* "string", "integer or null", "list of object". */
static void
add_type(const struct page *page, const struct pyvalue *schema)
{
	const struct pyvalue *type;

	schema = resolve(page, schema);
	type = schema == NULL ? NULL : pyvalue_get(schema, "type");
	if (type == NULL) {
		buf_adds(page->out, "any");
		return;
	}
	if (type->type == PYVALUE_ARRAY) {
		for (size_t i = 0; i < type->count; i++) {
			buf_adds(page->out, i > 0 ? " or " : "");
			add_text(page->out, type->u.items[i].u.text);
		}
		return;
	}
	if (strcmp(type->u.text, "array") != 0) {
		add_text(page->out, type->u.text);
		return;
	}
	buf_adds(page->out, "list of ");
	type = pyvalue_get(schema, "items");
	if (type != NULL)
		add_type(page, type);
}

static bool
is_required(const struct pyvalue *schema, const char *name)
{
	const struct pyvalue *list = pyvalue_get(schema, "required");

	for (size_t i = 0; list != NULL && i < list->count; i++)
		if (strcmp(list->u.items[i].u.text, name) == 0)
			return true;
	return false;
}

/* A bound or a default: `1 … 86400`, `= 900`. */
static void
add_value(const struct page *page, const struct pyvalue *schema,
    const char *member, const char *before)
{
	const struct pyvalue *value = pyvalue_get(schema, member);
	auto_buf struct buf json = BUF_INIT(1000);

	if (value == NULL)
		return;
	pydump_add(&json, value);
	buf_adds(page->out, before);
	buf_adds(page->out, "<code>");
	add_text(page->out, buf_str(&json));
	buf_adds(page->out, "</code>");
}

static void
add_member(const struct page *page, const struct pyvalue *schema,
    const struct pymember *member, const char *before)
{
	buf_adds(page->out, "<tr><td><code>");
	add_text(page->out, before);
	add_text(page->out, member->name);
	buf_adds(page->out, "</code></td><td>");
	add_type(page, &member->value);
	buf_adds(page->out,
	    is_required(schema, member->name) ? ", required</td><td>" :
						"</td><td>");
	add_prose(page->out, text_of(&member->value, "description"));
	add_value(page, &member->value, "minimum", " At least ");
	add_value(page, &member->value, "maximum", " At most ");
	add_value(page, &member->value, "default", " Default ");
	buf_adds(page->out, "</td></tr>\n");
}

/* The members of an object, and one level of those of its lists. */
static void
add_members(const struct page *page, const struct pyvalue *schema,
    const char *before, bool deeper)
{
	const struct pyvalue *members;

	schema = resolve(page, schema);
	members = schema == NULL ? NULL : pyvalue_get(schema, "properties");
	for (size_t i = 0; members != NULL && i < members->count; i++) {
		const struct pymember *member = &members->u.members[i];
		const struct pyvalue *items = pyvalue_get(&member->value,
		    "items");
		auto_buf struct buf path = BUF_INIT(200);

		add_member(page, schema, member, before);
		buf_addf(&path, "%s%s[].", before, member->name);
		if (items != NULL && deeper)
			add_members(page, items, buf_str(&path), false);
	}
}

/* ---- operations ---- */

static void
add_content(const struct page *page, const struct pyvalue *content)
{
	const struct pymember *first;
	const struct pyvalue *schema;
	const struct pyvalue *example;
	auto_buf struct buf json = BUF_INIT(10000);
	size_t before;

	if (content == NULL || content->count == 0)
		return;
	first = &content->u.members[0];
	schema = pyvalue_get(&first->value, "schema");
	buf_adds(page->out, "<table>\n");
	before = page->out->len;
	if (schema != NULL)
		add_members(page, schema, "", true);
	if (page->out->len == before)
		buf_cut(page->out, before - strlen("<table>\n"));
	else
		buf_adds(page->out, "</table>\n");
	example = pyvalue_get(&first->value, "example");
	if (example == NULL)
		return;
	if (example->type == PYVALUE_STRING)
		buf_add(&json, example->u.text, example->count);
	else
		pydump_add(&json, example);
	buf_adds(page->out, "<pre>");
	add_text(page->out, buf_str(&json));
	buf_adds(page->out, "</pre>\n");
}

static void
add_parameters(const struct page *page, const struct pyvalue *list)
{
	for (size_t i = 0; list != NULL && i < list->count; i++) {
		const struct pyvalue *p = &list->u.items[i];

		buf_adds(page->out, "<p><code>");
		add_text(page->out, text_of(p, "name"));
		buf_adds(page->out, "</code> (");
		add_text(page->out, text_of(p, "in"));
		buf_adds(page->out, "): ");
		add_prose(page->out, text_of(p, "description"));
		buf_adds(page->out, "</p>\n");
	}
}

static void
add_responses(const struct page *page, const struct pyvalue *responses)
{
	bool good = true;

	for (size_t i = 0; i < responses->count; i++) {
		const struct pymember *r = &responses->u.members[i];
		bool success = r->name[0] == '2';

		if (!success && good)
			buf_adds(page->out, "<h4>Errors</h4>\n<table>\n");
		good = success;
		if (success) {
			buf_adds(page->out, "<h4>");
			add_text(page->out, r->name);
			buf_adds(page->out, ": ");
			add_prose(page->out, text_of(&r->value, "description"));
			buf_adds(page->out, "</h4>\n");
			add_content(page, pyvalue_get(&r->value, "content"));
			continue;
		}
		buf_adds(page->out, "<tr><td>");
		add_text(page->out, r->name);
		buf_adds(page->out, "</td><td>");
		add_prose(page->out, text_of(&r->value, "description"));
		buf_adds(page->out, "</td></tr>\n");
	}
	if (!good)
		buf_adds(page->out, "</table>\n");
}

static void
add_method(const struct page *page, const char *name)
{
	buf_adds(page->out, "<span class=\"method\">");
	for (const char *c = name; *c != '\0'; c++)
		buf_addc(page->out, (char)(*c & ~0x20));
	buf_adds(page->out, "</span>");
}

static void
add_operation(const struct page *page, const struct pymember *path,
    const struct pymember *method)
{
	const struct pyvalue *op = &method->value;
	const struct pyvalue *body = pyvalue_get(op, "requestBody");
	const struct pyvalue *responses = pyvalue_get(op, "responses");

	buf_adds(page->out, "<section id=\"");
	add_text(page->out, text_of(op, "operationId"));
	buf_adds(page->out, "\">\n<h3>");
	add_method(page, method->name);
	buf_adds(page->out, " <code>");
	add_text(page->out, path->name);
	buf_adds(page->out, "</code></h3>\n");
	add_paragraph(page->out, text_of(op, "summary"));
	add_paragraph(page->out, text_of(op, "description"));
	add_parameters(page, pyvalue_get(&path->value, "parameters"));
	add_parameters(page, pyvalue_get(op, "parameters"));
	if (body != NULL) {
		buf_adds(page->out, "<h4>Request</h4>\n");
		add_content(page, pyvalue_get(body, "content"));
	}
	if (responses != NULL)
		add_responses(page, responses);
	buf_adds(page->out, "</section>\n");
}

static bool
has_tag(const struct pyvalue *op, const char *tag)
{
	const struct pyvalue *tags = pyvalue_get(op, "tags");

	return tags != NULL && tags->count > 0 &&
	    strcmp(tags->u.items[0].u.text, tag) == 0;
}

/* The operations of a tag, whole or, for the list of contents, as links. */
static void
add_operations(const struct page *page, const char *tag, bool whole)
{
	const struct pyvalue *paths = pyvalue_get(page->root, "paths");

	for (size_t i = 0; paths != NULL && i < paths->count; i++) {
		const struct pymember *path = &paths->u.members[i];

		for (size_t k = 0; k < path->value.count; k++) {
			const struct pymember *m = &path->value.u.members[k];

			if (!has_tag(&m->value, tag))
				continue;
			if (whole) {
				add_operation(page, path, m);
				continue;
			}
			buf_adds(page->out, "<li>");
			add_method(page, m->name);
			buf_adds(page->out, "<a href=\"#");
			add_text(page->out, text_of(&m->value, "operationId"));
			buf_adds(page->out, "\">");
			add_text(page->out, path->name);
			buf_adds(page->out, "</a> ");
			add_text(page->out, text_of(&m->value, "summary"));
			buf_adds(page->out, "</li>\n");
		}
	}
}

/* ---- the page ---- */

static void
add_body(const struct page *page)
{
	const struct pyvalue *info = pyvalue_get(page->root, "info");
	const struct pyvalue *tags = pyvalue_get(page->root, "tags");

	buf_adds(page->out, "<h1>");
	add_text(page->out, text_of(info, "title"));
	buf_adds(page->out, "</h1>\n");
	add_paragraph(page->out, text_of(info, "summary"));
	add_paragraph(page->out, text_of(info, "description"));
	add_paragraph(page->out,
	    "As a document for programs: `GET /openapi.json`.");
	buf_adds(page->out, "<nav><ul>\n");
	for (size_t i = 0; tags != NULL && i < tags->count; i++)
		add_operations(page, text_of(&tags->u.items[i], "name"), false);
	buf_adds(page->out, "</ul></nav>\n");
	for (size_t i = 0; tags != NULL && i < tags->count; i++) {
		buf_adds(page->out, "<h2>");
		add_text(page->out, text_of(&tags->u.items[i], "name"));
		buf_adds(page->out, "</h2>\n");
		add_paragraph(page->out,
		    text_of(&tags->u.items[i], "description"));
		add_operations(page, text_of(&tags->u.items[i], "name"), true);
	}
}

void
pages_add_docs(struct buf *out)
{
	struct pyjson doc;
	struct pyjson_error error;
	struct page page = { .out = out, .root = &doc.root };

	if (!pyjson_parse(&doc, pages_openapi, pages_openapi_len,
		PYJSON_DECODED, &error))
		log_fatal(1, "openapi.json line %zu: %s", error.line,
		    error.text);
	buf_adds(out,
	    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
	    "charset=\"utf-8\">\n<meta name=\"viewport\" "
	    "content=\"width=device-width\">\n<title>");
	add_text(out, text_of(pyvalue_get(page.root, "info"), "title"));
	buf_addf(out, "</title>\n<style>%s</style></head><body>\n", style);
	add_body(&page);
	buf_adds(out, "</body></html>\n");
	pyjson_release(&doc);
}

void
pages_add_headers(struct buf *out)
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, (const unsigned char *)style,
	    strlen(style));
	buf_adds(out,
	    "Content-Security-Policy: default-src 'none'; style-src 'sha256-");
	base64_add(out, hash, sizeof(hash));
	buf_adds(out,
	    "'; base-uri 'none'; form-action 'none'; frame-ancestors "
	    "'none'\r\nX-Content-Type-Options: nosniff\r\n"
	    "Referrer-Policy: no-referrer\r\n");
}
