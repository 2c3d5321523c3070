/* SPDX-License-Identifier: MIT */
#include "eval_refusal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../pytext/pydump.h"

#include "../../sandbox/base/utf8.h"

#define TYPE_JSON "application/json"
#define TYPE_XML "application/xml"
#define TYPE_TEXT_XML "text/xml"

bool
eval_refuse(struct eval_refusal *refusal, int status, const char *title)
{
	refusal->status = status;
	refusal->title = title;
	refusal->described = false;
	buf_init(&refusal->description, EVAL_DESCRIPTION_MAX);
	return false;
}

bool
eval_refuse_with(struct eval_refusal *refusal, int status, const char *title,
    const char *fmt, ...)
{
	va_list ap;

	(void)eval_refuse(refusal, status, title);
	refusal->described = true;
	va_start(ap, fmt);
	buf_addv(&refusal->description, fmt, ap);
	va_end(ap);
	return false;
}

void
eval_refusal_release(struct eval_refusal *refusal)
{
	buf_release(&refusal->description);
}

/* ---- what the client takes ---- */

/* How well the range of an Accept header, blanks cut, fits the type: 0 not at
 * all, 3 exactly. */
static int
range_fit(const char *range, size_t len, const char *type)
{
	size_t main_len = strcspn(type, "/") + 1;

	if (len == strlen(type) && strncmp(range, type, len) == 0)
		return 3;
	if (len == main_len + 1 && strncmp(range, type, main_len) == 0 &&
	    range[main_len] == '*')
		return 2;
	return (len == 3 && memcmp(range, "*/*", 3) == 0) ||
	    (len == 1 && range[0] == '*');
}

/* The number after ";q=" among the parameters of a range. */
static double
range_quality(const char *parameters, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		if ((parameters[i] == ';' || parameters[i] == ' ') &&
		    (parameters[i + 1] | 0x20) == 'q' &&
		    parameters[i + 2] == '=')
			return strtod(parameters + i + 3, NULL);
	return 1;
}

/* The quality of the range that fits best. */
static double
accept_quality(const char *accept, const char *type)
{
	int best = 0;
	double quality = 0;

	while (*accept != '\0') {
		size_t len = strcspn(accept, ",");
		size_t blank = strspn(accept, " \t");
		size_t name;
		int fit;

		blank = blank < len ? blank : len;
		name = strcspn(accept + blank, ",; \t");
		fit = range_fit(accept + blank, name, type);
		if (fit > best) {
			best = fit;
			quality = range_quality(accept + blank + name,
			    len - blank - name);
		}
		accept += len;
		accept += *accept == ',' ? 1 : 0;
	}
	return quality;
}

/* Of equal qualities the first counts, in the order of the original. */
const char *
eval_refusal_type(const char *accept)
{
	static const char *const types[] = { TYPE_JSON, TYPE_TEXT_XML,
		TYPE_XML };
	const char *type = NULL;
	double best = 0;

	if (accept == NULL || accept[0] == '\0')
		return TYPE_JSON;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		double quality = accept_quality(accept, types[i]);

		if (quality > best) {
			best = quality;
			type = types[i];
		}
	}
	if (type == NULL && strcasestr(accept, "+json") != NULL)
		return TYPE_JSON;
	if (type == NULL && strcasestr(accept, "+xml") != NULL)
		return TYPE_XML;
	return type;
}

/* ---- the body ---- */

/* For JSON, or for XML, which cannot say control characters and lone
 * surrogates. */
static void
add_text(struct buf *out, bool xml, const char *s, size_t len)
{
	size_t step = len;

	if (!xml)
		pydump_add_text(out, s, len, PYDUMP_UTF8);
	for (; xml && len > 0; s += step, len -= step) {
		enum utf8_fault fault;

		step = utf8_look(s, len, false, &fault);
		if (*s == '&')
			buf_adds(out, "&amp;");
		else if (*s == '<')
			buf_adds(out, "&lt;");
		else if (*s == '>')
			buf_adds(out, "&gt;");
		else if (fault != UTF8_FINE ||
		    ((unsigned char)*s < 0x20 &&
			memchr("\t\n\r", *s, 3) == NULL))
			buf_adds(out, "\xef\xbf\xbd");
		else
			buf_add(out, s, step);
	}
}

void
eval_refusal_add(struct buf *out, const struct eval_refusal *refusal,
    const char *type)
{
	const struct buf *text = &refusal->description;
	bool xml = type != NULL && strcmp(type, TYPE_JSON) != 0;

	if (type == NULL)
		return;
	buf_addf(out,
	    xml ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?><error>"
		  "<title>%s</title>" :
		  "{\"title\": \"%s\"",
	    refusal->title);
	if (refusal->described) {
		buf_adds(out, xml ? "<description>" : ", \"description\": \"");
		add_text(out, xml, buf_str(text), text->len);
		/* It was cut where it had become too long. */
		if (text->overflow)
			add_text(out, xml, "…", strlen("…"));
		buf_adds(out, xml ? "</description>" : "\"");
	}
	buf_adds(out, xml ? "</error>" : "}");
}
