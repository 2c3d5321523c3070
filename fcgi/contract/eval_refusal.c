#include "eval_refusal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../pytext/pydump.h"
#include "../pytext/pyutf8.h"

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

/* XML cannot say control characters and lone surrogates. */
static void
add_xml(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		enum pyutf8_fault fault;
		size_t step = pyutf8_step(s + i, len - i, false, &fault);

		if (s[i] == '&')
			buf_adds(out, "&amp;");
		else if (s[i] == '<')
			buf_adds(out, "&lt;");
		else if (s[i] == '>')
			buf_adds(out, "&gt;");
		else if (fault != PYUTF8_FINE ||
		    ((unsigned char)s[i] < 0x20 &&
			strchr("\t\n\r", s[i]) == NULL) ||
		    s[i] == '\0')
			buf_adds(out, "\xef\xbf\xbd");
		else
			buf_add(out, s + i, step);
		i += step;
	}
}

/* The description, cut where it had become too long. */
static void
add_description(struct buf *out, const struct eval_refusal *refusal,
    void (*add)(struct buf *out, const char *s, size_t len))
{
	const struct buf *text = &refusal->description;

	add(out, buf_str(text), text->len);
	if (text->overflow)
		add(out, "…", strlen("…"));
}

static void
add_json(struct buf *out, const char *s, size_t len)
{
	pydump_add_text(out, s, len, PYDUMP_UTF8);
}

void
eval_refusal_add(struct buf *out, const struct eval_refusal *refusal,
    const char *type)
{
	if (type == NULL)
		return;
	if (strcmp(type, TYPE_JSON) == 0) {
		buf_addf(out, "{\"title\": \"%s\"", refusal->title);
		if (refusal->described) {
			buf_adds(out, ", \"description\": \"");
			add_description(out, refusal, add_json);
			buf_addc(out, '"');
		}
		buf_addc(out, '}');
		return;
	}
	buf_addf(out,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><error><title>%s"
	    "</title>",
	    refusal->title);
	if (refusal->described) {
		buf_adds(out, "<description>");
		add_description(out, refusal, add_xml);
		buf_adds(out, "</description>");
	}
	buf_adds(out, "</error>");
}
