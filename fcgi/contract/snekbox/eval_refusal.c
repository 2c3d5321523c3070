/* SPDX-License-Identifier: MIT */
#include "eval_refusal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../pytext/pydump.h"

#include "../../../sandbox/base/utf8.h"

#define TYPE_JSON "application/json"
#define TYPE_XML "application/xml"

bool
eval_refuse(struct eval_refusal *refusal, int status, const char *title)
{
	*refusal = (struct eval_refusal){ status, title,
		BUF_INIT(EVAL_DESCRIPTION_MAX) };
	return false;
}

bool
eval_refuse_with(struct eval_refusal *refusal, int status, const char *title,
    const char *fmt, ...)
{
	va_list ap;

	(void)eval_refuse(refusal, status, title);
	va_start(ap, fmt);
	buf_addv(&refusal->description, fmt, ap);
	va_end(ap);
	return false;
}

bool
eval_refuse_value(struct eval_refusal *refusal, const struct pyvalue *value,
    const char *why, ...)
{
	va_list ap;

	(void)eval_refuse(refusal, 400, EVAL_TITLE_INVALID);
	pydump_add_repr(&refusal->description, value);
	va_start(ap, why);
	buf_addv(&refusal->description, why, ap);
	va_end(ap);
	return false;
}

/* ---- what the client takes ---- */

static bool
is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

/* The number after ";q=" among the parameters of a range. */
static double
range_quality(const char *s, const char *end)
{
	for (; end - s > 2; s++)
		if ((s[0] == ';' || s[0] == ' ') && (s[1] | 0x20) == 'q' &&
		    s[2] == '=')
			return strtod(s + 3, NULL);
	return 1;
}

/* The quality of the range of an Accept header that fits a type best: exactly,
 * "<main>/" and "*", or any. */
static double
accept_quality(const char *accept, const char *type, const char *main)
{
	int best = 0;
	double quality = 0;

	while (*accept != '\0') {
		const char *range = accept + strspn(accept, " \t");
		size_t len = strcspn(range, ",; \t");
		bool any = is(range, len, "*/*") || is(range, len, "*");
		int fit = is(range, len, type) ? 3 :
		    is(range, len, main)       ? 2 :
						 any;

		accept = range + strcspn(range, ",");
		if (fit > best) {
			best = fit;
			quality = range_quality(range + len, accept);
		}
		accept += *accept == ',' ? 1 : 0;
	}
	return quality;
}

/* Of equal qualities the first counts, in the order of the original. */
const char *
eval_refusal_type(const char *accept)
{
	static const char *const types[][2] = {
		{ TYPE_JSON, "application/*" },
		{ "text/xml", "text/*" },
		{ TYPE_XML, "application/*" },
	};
	const char *type = NULL;
	double best = 0;

	if (accept == NULL || accept[0] == '\0')
		return TYPE_JSON;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		double quality = accept_quality(accept, types[i][0],
		    types[i][1]);

		if (quality > best) {
			best = quality;
			type = types[i][0];
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
		    ((unsigned char)*s < 0x20 && *s != '\t' && *s != '\n' &&
			*s != '\r'))
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
	if (text->len > 0) {
		buf_adds(out, xml ? "<description>" : ", \"description\": \"");
		add_text(out, xml, buf_str(text), text->len);
		/* It was cut where it had become too long. */
		if (text->overflow)
			add_text(out, xml, "…", strlen("…"));
		buf_adds(out, xml ? "</description>" : "\"");
	}
	buf_adds(out, xml ? "</error>" : "}");
}
