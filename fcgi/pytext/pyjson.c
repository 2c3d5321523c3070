#include "pyjson.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pyjson_tree.h"
#include "pyutf8.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"

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

static bool
fail(struct parser *p, enum pyjson_fault fault, const char *text, size_t at)
{
	struct pyjson_error *error = p->error;
	size_t line_start = 0;

	error->fault = fault;
	(void)snprintf(error->text, sizeof(error->text), "%s", text);
	error->line = 1;
	error->position = 0;
	error->column = 1;
	for (size_t i = 0; i < at; i++) {
		if (((unsigned char)p->s[i] & 0xc0) == 0x80)
			continue;
		error->position++;
		if (p->s[i] == '\n') {
			error->line++;
			line_start = error->position;
		}
	}
	error->column = error->position - line_start + 1;
	return false;
}

static bool
fail_syntax(struct parser *p, const char *text, size_t at)
{
	return fail(p, PYJSON_SYNTAX, text, at);
}

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
	while (p->at < p->len &&
	    (p->s[p->at] == ' ' || p->s[p->at] == '\t' || p->s[p->at] == '\n' ||
		p->s[p->at] == '\r'))
		p->at++;
}

static bool
next_is(const struct parser *p, char c)
{
	return p->at < p->len && p->s[p->at] == c;
}

/* ---- strings ---- */

static bool
hex_digit(char c, uint32_t *unit)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF";
	const char *found = c == '\0' ? NULL : strchr(digits, c);

	if (found == NULL)
		return false;
	*unit = *unit << 4 | (uint32_t)((found - digits) % 16);
	return true;
}

/* The code units are counted as CPython does it: `end` moves, in bytes, only
 * over ASCII here, so bytes and characters are the same. */
static bool
read_unit(struct parser *p, size_t from, uint32_t *unit)
{
	*unit = 0;
	for (size_t i = 0; i < 4; i++)
		if (!hex_digit(p->s[from + i], unit))
			return false;
	return true;
}

/* Are there n more characters after `from`, and one more? */
static bool
has_more(const struct parser *p, size_t from, size_t n)
{
	size_t i = from;

	for (size_t k = 0; k <= n; k++) {
		if (i >= p->len)
			return false;
		i++;
		while (i < p->len && ((unsigned char)p->s[i] & 0xc0) == 0x80)
			i++;
	}
	return true;
}

/* After "\u" at p->at; the second of a pair may follow. */
static bool
read_unicode(struct parser *p, uint32_t *code)
{
	size_t digits = p->at;
	uint32_t second;

	if (!has_more(p, digits, 4))
		return fail_syntax(p, "Invalid \\uXXXX escape", digits - 1);
	if (!read_unit(p, digits, code))
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

/* After the backslash at p->at - 1. */
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
	size_t exponent;

	*is_float = false;
	if (!is_digit(p, at))
		return p->at;
	at = p->s[at] == '0' ? at + 1 : skip_digits(p, at);
	if (at < p->len && p->s[at] == '.' && is_digit(p, at + 1)) {
		*is_float = true;
		at = skip_digits(p, at + 1);
	}
	if (at < p->len && (p->s[at] == 'e' || p->s[at] == 'E')) {
		exponent = at + 1;
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

struct word {
	const char *text;
	enum pyvalue_type type;
	bool truth;
	double real;
};

static bool
read_word(struct parser *p)
{
	static const struct word words[] = {
		{ "null", PYVALUE_NULL, false, 0 },
		{ "true", PYVALUE_BOOL, true, 0 },
		{ "false", PYVALUE_BOOL, false, 0 },
		{ "NaN", PYVALUE_FLOAT, false, __builtin_nan("") },
		{ "Infinity", PYVALUE_FLOAT, false, __builtin_inf() },
		{ "-Infinity", PYVALUE_FLOAT, false, -__builtin_inf() },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);
		struct pyvalue value = { .type = words[i].type };

		if (p->len - p->at < n ||
		    memcmp(p->s + p->at, words[i].text, n) != 0)
			continue;
		if (value.type == PYVALUE_BOOL)
			value.u.truth = words[i].truth;
		else
			value.u.real = words[i].real;
		p->at += n;
		return put(p, value);
	}
	return read_number(p);
}

/* ---- arrays, objects ---- */

static bool read_value(struct parser *p);

static bool
read_array(struct parser *p)
{
	size_t base = p->tree.depth;

	p->at++;
	skip_blanks(p);
	while (!next_is(p, ']')) {
		if (!read_value(p))
			return false;
		skip_blanks(p);
		if (next_is(p, ']'))
			break;
		if (!next_is(p, ','))
			return fail_syntax(p, "Expecting ',' delimiter", p->at);
		p->at++;
		skip_blanks(p);
		if (next_is(p, ']'))
			return fail_syntax(p, "Expecting value", p->at);
	}
	p->at++;
	return fits(p, pyjson_tree_close_array(&p->tree, base));
}

/* One `"name": value` and the blanks after it. */
static bool
read_member(struct parser *p)
{
	if (!next_is(p, '"'))
		return fail_syntax(p,
		    "Expecting property name enclosed in double quotes", p->at);
	if (!read_string(p))
		return false;
	skip_blanks(p);
	if (!next_is(p, ':'))
		return fail_syntax(p, "Expecting ':' delimiter", p->at);
	p->at++;
	skip_blanks(p);
	if (!read_value(p))
		return false;
	skip_blanks(p);
	return true;
}

static bool
read_object(struct parser *p)
{
	size_t base = p->tree.depth;

	p->at++;
	skip_blanks(p);
	if (!next_is(p, '}')) {
		for (;;) {
			if (!read_member(p))
				return false;
			if (next_is(p, '}'))
				break;
			if (!next_is(p, ','))
				return fail_syntax(p, "Expecting ',' delimiter",
				    p->at);
			p->at++;
			skip_blanks(p);
		}
	}
	p->at++;
	return fits(p, pyjson_tree_close_object(&p->tree, base));
}

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
	good = p->s[p->at] == '[' ? read_array(p) : read_object(p);
	p->depth--;
	return good;
}

/* ---- the whole ---- */

/* What str and bytes become before they are parsed. */
static bool
check_encoding(struct parser *p, enum pyjson_source source)
{
	auto_buf struct buf why = BUF_INIT(sizeof(p->error->text));
	bool wide = (p->len >= 4 && (p->s[0] == '\0' || p->s[1] == '\0')) ||
	    (p->len == 2 && (p->s[0] == '\0' || p->s[1] == '\0'));
	bool has_bom = p->len >= 3 && memcmp(p->s, BOM, 3) == 0;
	size_t at;

	if (source == PYJSON_BYTES && wide)
		return fail(p, PYJSON_VALUE, "not in UTF-8", 0);
	if (!pyutf8_valid(p->s, p->len, source == PYJSON_BYTES, &at)) {
		pyutf8_explain(&why, p->s, p->len, at);
		return fail(p, PYJSON_VALUE, buf_str(&why), at);
	}
	if (has_bom && source == PYJSON_DECODED)
		return fail_syntax(p,
		    "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
	if (has_bom) {
		p->s += 3;
		p->len -= 3;
	}
	return true;
}

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
	if (good) {
		skip_blanks(&p);
		good = read_value(&p);
	}
	if (good) {
		skip_blanks(&p);
		if (p.at < p.len)
			good = fail_syntax(&p, "Extra data", p.at);
	}
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
