/* SPDX-License-Identifier: MIT */
#include "pyjson.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pyjson_tree.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/text.h"
#include "../../sandbox/base/utf8.h"

#define INT_DIGITS_MAX 4300 /* CPython's sys.get_int_max_str_digits() */
#define BOM "\xef\xbb\xbf"

/* The places in what follows are those where _json.c finds a fault, which are
 * not always where one would look for it. */
struct parser {
	const char *s;
	size_t len;
	size_t at;
	unsigned depth;
	struct pyjson_tree tree;
	struct buf scratch; /* of a string, or of a number that needs a NUL */
	struct pyjson_error *error;
};

/* Always false; `at` is where in bytes, which becomes a line, a column and a
 * position in code points. */
static bool
fail(struct parser *p, enum pyjson_fault fault, const char *text, size_t at)
{
	struct pyjson_error *error = p->error;

	*error = (struct pyjson_error){
		.fault = fault, .line = 1, .column = 1
	};
	(void)snprintf(error->text, sizeof(error->text), "%s", text);
	for (size_t i = 0; i < at; i++) {
		if (utf8_is_tail(p->s[i]))
			continue;
		error->position++;
		error->column++;
		if (p->s[i] == '\n') {
			error->line++;
			error->column = 1;
		}
	}
	return false;
}

static bool
fail_syntax(struct parser *p, const char *text, size_t at)
{
	return fail(p, PYJSON_SYNTAX, text, at);
}

/* False, and the fault, when there are too many values. */
static bool
fits(struct parser *p, bool fit)
{
	return fit || fail(p, PYJSON_LIMIT, "Too many values", p->at);
}

static bool
put(struct parser *p, struct pyvalue value)
{
	return fits(p, pyjson_tree_push(&p->tree, value));
}

static void
skip_blanks(struct parser *p)
{
	while (p->at < p->len && memchr(" \t\n\r", p->s[p->at], 4) != NULL)
		p->at++;
}

static bool
next_is(const struct parser *p, char c)
{
	return p->at < p->len && p->s[p->at] == c;
}

/* Go over a mark and the blanks after it. */
static void
pass(struct parser *p)
{
	p->at++;
	skip_blanks(p);
}

/* ---- strings ---- */

/* Four hex digits. */
static bool
read_unit(const struct parser *p, size_t from, uint32_t *unit)
{
	unsigned char bytes[2];

	if (!text_parse_hex(p->s + from, 4, bytes, sizeof(bytes)))
		return false;
	*unit = (uint32_t)bytes[0] << 8 | bytes[1];
	return true;
}

/* Are there n more characters after `from`, and one more? */
static bool
has_more(const struct parser *p, size_t from, size_t n)
{
	size_t len = p->len - from;
	size_t most = 4 * (n + 1);

	return text_codepoints(p->s + from, len < most ? len : most) > n;
}

/* After "\u" at p->at; the second of a pair may follow. */
static bool
read_unicode(struct parser *p, uint32_t *code)
{
	size_t digits = p->at;
	uint32_t second;

	if (!has_more(p, digits, 4) || !read_unit(p, digits, code))
		return fail_syntax(p, "Invalid \\uXXXX escape", digits - 1);
	p->at += 4;
	if (*code < 0xd800 || *code > 0xdbff || !has_more(p, p->at, 6) ||
	    p->s[p->at] != '\\' || p->s[p->at + 1] != 'u')
		return true;
	if (!read_unit(p, p->at + 2, &second))
		return fail_syntax(p, "Invalid \\uXXXX escape", p->at + 1);
	if (second >= 0xdc00 && second <= 0xdfff) {
		*code = 0x10000 + ((*code - 0xd800) << 10) + (second - 0xdc00);
		p->at += 6;
	}
	return true;
}

/* What follows the backslash at p->at - 1, in a string that starts at begin. */
static bool
read_escape(struct parser *p, size_t begin)
{
	static const char marks[] = "\"\\/bfnrt";
	static const char plain[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char bytes[4];
	uint32_t code = 0;
	char c;

	if (p->at == p->len)
		return fail_syntax(p, "Unterminated string starting at", begin);
	c = p->s[p->at++];
	if (c == 'u') {
		if (!read_unicode(p, &code))
			return false;
		buf_add(&p->scratch, bytes, pyutf8_encode(code, bytes));
		return true;
	}
	found = c == '\0' ? NULL : strchr(marks, c);
	if (found == NULL)
		return fail_syntax(p, "Invalid \\escape", p->at - 2);
	buf_addc(&p->scratch, plain[found - marks]);
	return true;
}

/* With p->at on the opening quote: the text goes to the scratch buffer. */
static bool
read_text(struct parser *p)
{
	size_t begin = p->at++;

	buf_reset(&p->scratch);
	for (;;) {
		size_t start = p->at;

		while (p->at < p->len && (unsigned char)p->s[p->at] > 0x1f &&
		    p->s[p->at] != '"' && p->s[p->at] != '\\')
			p->at++;
		buf_add(&p->scratch, p->s + start, p->at - start);
		if (p->at == p->len)
			return fail_syntax(p, "Unterminated string starting at",
			    begin);
		if (p->s[p->at] == '"')
			break;
		if (p->s[p->at] != '\\')
			return fail_syntax(p, "Invalid control character at",
			    p->at);
		p->at++;
		if (!read_escape(p, begin))
			return false;
	}
	p->at++;
	return true;
}

/* A string as a value on the stack. */
static bool
read_string(struct parser *p)
{
	struct pyvalue value = { .type = PYVALUE_STRING };

	if (!read_text(p))
		return false;
	value.count = p->scratch.len;
	value.u.text = pyjson_tree_copy(&p->tree, buf_str(&p->scratch),
	    p->scratch.len);
	return put(p, value);
}

/* ---- numbers and words ---- */

static bool
is_digit(const struct parser *p, size_t at)
{
	return at < p->len && p->s[at] >= '0' && p->s[at] <= '9';
}

static size_t
skip_digits(const struct parser *p, size_t at)
{
	while (is_digit(p, at))
		at++;
	return at;
}

/* The end of the number at p->at; p->at when there is none. */
static size_t
number_end(const struct parser *p, bool *is_float)
{
	size_t at = p->at + (next_is(p, '-') ? 1 : 0);

	*is_float = false;
	if (!is_digit(p, at))
		return p->at;
	at = p->s[at] == '0' ? at + 1 : skip_digits(p, at);
	if (at < p->len && p->s[at] == '.' && is_digit(p, at + 1)) {
		*is_float = true;
		at = skip_digits(p, at + 1);
	}
	if (at < p->len && (p->s[at] | 0x20) == 'e') {
		size_t exponent = at + 1;

		if (exponent < p->len &&
		    (p->s[exponent] == '-' || p->s[exponent] == '+'))
			exponent++;
		if (is_digit(p, exponent)) {
			*is_float = true;
			at = skip_digits(p, exponent);
		}
	}
	return at;
}

/* An integer of any size that CPython would take. */
static bool
put_integer(struct parser *p, const char *text, size_t len)
{
	struct pyvalue value = { .type = PYVALUE_INT };
	size_t digits = len - (text[0] == '-' ? 1 : 0);
	char why[160];

	errno = 0;
	value.u.integer = strtoll(text, NULL, 10);
	if (errno == ERANGE && digits > INT_DIGITS_MAX) {
		(void)snprintf(why, sizeof(why),
		    "Exceeds the limit (%d digits) for integer string "
		    "conversion: value has %zu digits; use "
		    "sys.set_int_max_str_digits() to increase the limit",
		    INT_DIGITS_MAX, digits);
		return fail(p, PYJSON_VALUE, why, p->at);
	}
	if (errno == ERANGE) {
		value.type = PYVALUE_BIG;
		value.count = len;
		value.u.text = pyjson_tree_copy(&p->tree, text, len);
	}
	return put(p, value);
}

/* What begins neither a string nor a whole nor a word. */
static bool
read_number(struct parser *p)
{
	bool is_float;
	size_t start = p->at;
	size_t end = number_end(p, &is_float);

	if (end == start)
		return fail_syntax(p, "Expecting value", start);
	buf_reset(&p->scratch);
	buf_add(&p->scratch, p->s + start, end - start);
	p->at = end;
	if (!is_float)
		return put_integer(p, buf_str(&p->scratch), end - start);
	return put(p,
	    (struct pyvalue){ .type = PYVALUE_FLOAT,
		.u.real = strtod(buf_str(&p->scratch), NULL) });
}

/* The values that have names; else a number. */
static bool
read_word(struct parser *p)
{
	static const struct {
		const char *text;
		struct pyvalue value;
	} words[] = {
		{ "null", { .type = PYVALUE_NULL } },
		{ "true", { .type = PYVALUE_BOOL, .u.truth = true } },
		{ "false", { .type = PYVALUE_BOOL } },
		{ "NaN", { .type = PYVALUE_FLOAT, .u.real = (double)NAN } },
		{ "Infinity",
		    { .type = PYVALUE_FLOAT, .u.real = (double)INFINITY } },
		{ "-Infinity",
		    { .type = PYVALUE_FLOAT, .u.real = -(double)INFINITY } },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);

		if (p->len - p->at >= n &&
		    memcmp(p->s + p->at, words[i].text, n) == 0) {
			p->at += n;
			return put(p, words[i].value);
		}
	}
	return read_number(p);
}

/* ---- arrays, objects ---- */

static bool read_value(struct parser *p);

/* The name of a member, up to its value. */
static bool
read_name(struct parser *p)
{
	if (!next_is(p, '"'))
		return fail_syntax(p,
		    "Expecting property name enclosed in double quotes", p->at);
	if (!read_string(p))
		return false;
	skip_blanks(p);
	if (!next_is(p, ':'))
		return fail_syntax(p, "Expecting ':' delimiter", p->at);
	pass(p);
	return true;
}

/* An array or an object, p->at on what opens it. */
static bool
read_parts(struct parser *p)
{
	size_t base = p->tree.depth;
	bool object = p->s[p->at] == '{';
	char end = object ? '}' : ']';

	pass(p);
	if (!next_is(p, end)) {
		for (;;) {
			if ((object && !read_name(p)) || !read_value(p))
				return false;
			skip_blanks(p);
			if (next_is(p, end))
				break;
			if (!next_is(p, ','))
				return fail_syntax(p, "Expecting ',' delimiter",
				    p->at);
			pass(p);
		}
	}
	p->at++;
	return fits(p,
	    object ? pyjson_tree_close_object(&p->tree, base) :
		     pyjson_tree_close_array(&p->tree, base));
}

/* Any value, p->at on its first character. */
static bool
read_value(struct parser *p)
{
	bool good;

	if (next_is(p, '"'))
		return read_string(p);
	if (!next_is(p, '[') && !next_is(p, '{'))
		return read_word(p);
	if (p->depth == PYJSON_DEPTH_MAX)
		return fail(p, PYJSON_LIMIT, "Nested too deeply", p->at);
	p->depth++;
	good = read_parts(p);
	p->depth--;
	return good;
}

/* ---- the whole ---- */

/* What str and bytes become before they are parsed. */
static bool
check_encoding(struct parser *p, enum pyjson_source source)
{
	bool wide = (p->len >= 4 || p->len == 2) &&
	    (p->s[0] == '\0' || p->s[1] == '\0');
	size_t at;

	if (source == PYJSON_BYTES && wide)
		return fail(p, PYJSON_VALUE, "not in UTF-8", 0);
	at = utf8_span(p->s, p->len, source == PYJSON_BYTES);
	if (at < p->len) {
		auto_buf struct buf why = BUF_INIT(sizeof(p->error->text));

		pyutf8_explain(&why, p->s, p->len, at);
		return fail(p, PYJSON_VALUE, buf_str(&why), at);
	}
	if (p->len < strlen(BOM) || memcmp(p->s, BOM, strlen(BOM)) != 0)
		return true;
	if (source == PYJSON_DECODED)
		return fail_syntax(p,
		    "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
	p->s += strlen(BOM);
	p->len -= strlen(BOM);
	return true;
}

/* Each step fills in the error and says false where it fails. */
bool
pyjson_parse(struct pyjson *doc, const char *body, size_t len,
    enum pyjson_source source, struct pyjson_error *error)
{
	struct parser p = { .s = body, .len = len, .error = error };
	bool good;

	memset(error, 0, sizeof(*error));
	buf_init(&p.scratch, len);
	pyjson_tree_init(&p.tree, PYJSON_VALUES_MAX);
	good = check_encoding(&p, source);
	skip_blanks(&p);
	good = good && read_value(&p);
	skip_blanks(&p);
	if (good && p.at < p.len)
		good = fail_syntax(&p, "Extra data", p.at);
	buf_release(&p.scratch);
	pyjson_tree_finish(&p.tree, doc);
	if (!good)
		pyjson_release(doc);
	return good;
}

void
pyjson_explain(struct buf *out, const struct pyjson_error *error)
{
	buf_adds(out, error->text);
	if (error->fault != PYJSON_VALUE)
		buf_addf(out, ": line %zu column %zu (char %zu)", error->line,
		    error->column, error->position);
}
