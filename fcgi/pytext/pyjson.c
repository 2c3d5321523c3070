/* SPDX-License-Identifier: MIT */
#include "pytext/pyjson.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pytext/pyutf8.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define CHUNK 65536
/* All values and texts lie in an obstack, which goes as a whole. */
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free
#define INT_DIGITS_MAX 4300 /* CPython's sys.get_int_max_str_digits() */
#define BOM "\xef\xbb\xbf"

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Sets the highest bit of the first byte that is less than n, which is 0x80 at
 * most, and no bit before it. */
static uint64_t
less(uint64_t word, unsigned char n)
{
	return (word - EACH(n)) & ~word & EACH(0x80);
}

/* Looks at eight bytes at a time.  A byte is equal to another if their XOR is
 * less than 1. */
size_t
pyplain_span(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;
	uint64_t found;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		word = le64toh(word); /* the first byte is the lowest */
		found = (word & EACH(0x80)) | less(word, 0x20) |
		    less(word ^ EACH('"'), 1) | less(word ^ EACH('\\'), 1) |
		    less(word ^ EACH(0x7f), 1);
		if (found != 0)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && is_plain((unsigned char)s[i]))
		i++;
	return i;
}

/* ---- the tree ---- */

void
pyjson_tree_init(struct pyjson *doc)
{
	memset(doc, 0, sizeof(*doc));
	doc->memory = xmalloc(sizeof(*doc->memory));
	obstack_begin(doc->memory, CHUNK);
}

struct pyvalue *
pyjson_tree_add(struct pyjson *doc, struct pyvalue *whole)
{
	struct pyvalue *part = obstack_alloc(doc->memory, sizeof(*part));

	*part = (struct pyvalue){ .prev = whole->u.parts.last };
	if (whole->count++ == 0)
		whole->u.parts.first = part;
	else
		part->prev->next = part;
	whole->u.parts.last = part;
	return part;
}

void
pyvalue_set(struct pyvalue *part, const struct pyvalue *value)
{
	part->type = value->type;
	part->count = value->count;
	part->u = value->u;
}

/* Any order will do: only whether they are equal is of interest. */
static int
compare_names(const void *a, const void *b)
{
	const struct pyvalue *x = a;
	const struct pyvalue *y = b;

	if (x->name_len != y->name_len)
		return x->name_len < y->name_len ? -1 : 1;
	return memcmp(x->name, y->name, x->name_len);
}

/* A tdestroy() callback: the members live on. */
static void
keep(void *member)
{
	(void)member;
}

/* Merge members with equal names: the first keeps its place and gets the last
 * one's value.  The tree of names lives for this call only. */
static void
pyjson_tree_drop_repeated(struct pyvalue *object)
{
	struct pyvalue *member = object->u.parts.first;
	struct pyvalue **first;
	void *names = NULL;

	for (; member != NULL && object->count > 1; member = member->next) {
		first = tsearch(member, &names, compare_names);
		if (first == NULL)
			log_fatal(1, "out of memory");
		if (*first == member)
			continue;
		pyvalue_set(*first, member);
		member->prev->next = member->next;
		if (member->next != NULL)
			member->next->prev = member->prev;
		else
			object->u.parts.last = member->prev;
		object->count--;
	}
	tdestroy(names, keep);
}

void *
pyjson_tree_array(struct pyjson *doc, size_t count, size_t size)
{
	assert(count < INT_MAX / size);
	return memset(obstack_alloc(doc->memory, (int)(count * size)), 0,
	    count * size);
}

char *
pyjson_tree_copy(struct pyjson *doc, const char *s, size_t len)
{
	char *copy;

	assert(len < INT_MAX);
	copy = obstack_alloc(doc->memory, (int)len + 1);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void
pyjson_release(struct pyjson *doc)
{
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	memset(doc, 0, sizeof(*doc));
}

const struct pyvalue *
pyvalue_get(const struct pyvalue *object, const char *name)
{
	return pyvalue_find(object, name, strlen(name));
}

struct pyvalue *
pyvalue_find(const struct pyvalue *object, const char *name, size_t len)
{
	struct pyvalue *part = NULL;

	if (object != NULL && object->type == PYVALUE_OBJECT)
		part = object->u.parts.first;
	while (part != NULL &&
	    (part->name_len != len || memcmp(part->name, name, len) != 0))
		part = part->next;
	return part;
}

bool
pyvalue_is(const struct pyvalue *value, const char *text)
{
	return value != NULL && value->type == PYVALUE_STRING &&
	    value->count == strlen(text) &&
	    memcmp(value->u.text, text, value->count) == 0;
}

const char *
pyvalue_text(const struct pyvalue *value)
{
	return value != NULL && value->type == PYVALUE_STRING &&
		strlen(value->u.text) == value->count &&
		!pyutf8_has_surrogate(value->u.text, value->count) ?
	    value->u.text :
	    NULL;
}

bool
pyvalue_integer(const struct pyvalue *value, int64_t *number)
{
	if (value->type == PYVALUE_INT)
		*number = value->u.integer;
	else if (value->type == PYVALUE_BIG)
		*number = value->u.text[0] == '-' ? INT64_MIN : INT64_MAX;
	return value->type == PYVALUE_INT || value->type == PYVALUE_BIG;
}

/* The places in what follows are those where _json.c finds a fault, which are
 * not always where one would look for it. */
struct parser {
	const char *s; /* followed by a NUL, which nothing here goes past */
	size_t len;
	size_t at;
	unsigned depth;
	size_t words; /* how many names of values are known */
	size_t left;  /* values and names that may still come */
	struct pyjson *doc;
	struct buf scratch; /* of a string */
	struct pyjson_error *error;
};

/* Always false; `at` is where in bytes, which becomes a line, a column and a
 * position in code points. */
static bool
fail(struct parser *p, enum pyjson_fault fault, const char *text, size_t at)
{
	struct pyjson_error *error = p->error;
	const char *line = memrchr(p->s, '\n', at);

	line = line == NULL ? p->s : line + 1;
	*error = (struct pyjson_error){ .fault = fault, .line = 1 };
	(void)snprintf(error->text, sizeof(error->text), "%s", text);
	error->position = text_codepoints(p->s, at);
	error->column = 1 + text_codepoints(line, (size_t)(p->s + at - line));
	for (const char *s = p->s; s < line; s++)
		error->line += *s == '\n' ? 1 : 0;
	return false;
}

static bool
fail_syntax(struct parser *p, const char *text, size_t at)
{
	return fail(p, PYJSON_SYNTAX, text, at);
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void
skip_blanks(struct parser *p)
{
	while (is_blank(p->s[p->at]))
		p->at++;
}

/* Go over a mark and the blanks after it. */
static void
pass(struct parser *p)
{
	p->at++;
	skip_blanks(p);
}

/* ---- strings ---- */

/* Are there more than n characters after `from`? */
static bool
has_more(const struct parser *p, size_t from, size_t n)
{
	size_t len = p->len - from;

	return text_prefix(p->s + from, len, n) < len;
}

/* Four hex digits, with at least one more character after them. */
static bool
read_unit(const struct parser *p, size_t from, uint32_t *unit)
{
	unsigned char bytes[2];

	if (!has_more(p, from, 4) ||
	    !text_parse_hex(p->s + from, 4, bytes, sizeof(bytes)))
		return false;
	*unit = (uint32_t)bytes[0] << 8 | bytes[1];
	return true;
}

/* After "\u" at p->at; the second of a pair may follow. */
static bool
read_unicode(struct parser *p, uint32_t *code)
{
	size_t digits = p->at;
	uint32_t second;

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

/* Read what follows the backslash at p->at - 1, in a string that starts at
 * begin. */
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
		buf_add(&p->scratch, bytes, utf8_encode(code, bytes));
		return true;
	}
	found = c == '\0' ? NULL : strchr(marks, c);
	if (found == NULL)
		return fail_syntax(p, "Invalid \\escape", p->at - 2);
	buf_addc(&p->scratch, plain[found - marks]);
	return true;
}

/* Go over what stands for itself. */
static void
pass_plain(struct parser *p)
{
	for (;;) {
		p->at += pyplain_span(p->s + p->at, p->len - p->at);
		if ((unsigned char)p->s[p->at] < 0x7f)
			break; /* the NUL at the end as well */
		p->at++;
	}
}

/* The rest of a string that starts at begin and has an escape at p->at; what is
 * before that is in the scratch. */
static bool
read_escaped(struct parser *p, size_t begin)
{
	while (p->s[p->at] == '\\') {
		size_t start;

		p->at++;
		if (!read_escape(p, begin))
			return false;
		start = p->at;
		pass_plain(p);
		buf_add(&p->scratch, p->s + start, p->at - start);
	}
	return true;
}

/* A string, p->at on its opening quote.  One without escapes is copied once. */
static bool
read_string(struct parser *p, char **text, size_t *len)
{
	size_t begin = p->at++;
	const char *plain = p->s + p->at;

	pass_plain(p);
	*len = p->at - begin - 1;
	if (p->s[p->at] == '\\') {
		buf_reset(&p->scratch);
		buf_add(&p->scratch, plain, *len);
		if (!read_escaped(p, begin))
			return false;
		plain = buf_str(&p->scratch);
		*len = p->scratch.len;
	}
	if (p->at == p->len)
		return fail_syntax(p, "Unterminated string starting at", begin);
	if (p->s[p->at] != '"')
		return fail_syntax(p, "Invalid control character at", p->at);
	p->at++;
	*text = pyjson_tree_copy(p->doc, plain, *len);
	return true;
}

/* ---- numbers and words ---- */

/* An integer of any size that CPython would take. */
static bool
read_integer(struct parser *p, struct pyvalue *value, const char *text,
    size_t len)
{
	size_t digits = len - (text[0] == '-' ? 1 : 0);
	char why[160];

	errno = 0;
	value->type = PYVALUE_INT;
	value->u.integer = strtoll(text, NULL, 10);
	if (errno == ERANGE && digits > INT_DIGITS_MAX) {
		(void)snprintf(why, sizeof(why),
		    "Exceeds the limit (%d digits) for integer string "
		    "conversion: value has %zu digits; use "
		    "sys.set_int_max_str_digits() to increase the limit",
		    INT_DIGITS_MAX, digits);
		return fail(p, PYJSON_VALUE, why, p->at);
	}
	if (errno == ERANGE) {
		value->type = PYVALUE_BIG;
		value->count = len;
		value->u.text = pyjson_tree_copy(p->doc, text, len);
	}
	return true;
}

/* Read a number: a value that begins neither as a string nor as a whole nor as
 * a word. */
static bool
read_number(struct parser *p, struct pyvalue *value)
{
	static const char digits[] = "0123456789";
	const char *start = p->s + p->at;
	const char *end = start + (start[0] == '-' ? 1 : 0);
	const char *more;
	size_t count = end[0] == '0' ? 1 : strspn(end, digits);

	if (count == 0)
		return fail_syntax(p, "Expecting value", p->at);
	end += count;
	more = end;
	if (more[0] == '.' && (count = strspn(more + 1, digits)) > 0)
		more += 1 + count;
	if (more[0] == 'e' || more[0] == 'E') {
		size_t sign = more[1] == '-' || more[1] == '+' ? 1 : 0;

		count = strspn(more + 1 + sign, digits);
		more += count > 0 ? 1 + sign + count : 0;
	}
	p->at += (size_t)(more - start);
	if (more == end)
		return read_integer(p, value, start, (size_t)(end - start));
	value->type = PYVALUE_FLOAT;
	value->u.real = strtod(start, NULL);
	return true;
}

#define JSON_WORDS 3
#define PYTHON_WORDS 6

/* The values that have names; else a number. */
static bool
read_word(struct parser *p, struct pyvalue *value)
{
	static const struct {
		const char *text;
		enum pyvalue_type type;
		bool truth;
		double real;
	} words[PYTHON_WORDS] = {
		{ "null", PYVALUE_NULL, false, 0 },
		{ "true", PYVALUE_BOOL, true, 0 },
		{ "false", PYVALUE_BOOL, false, 0 },
		/* JSON_WORDS; Python knows more. */
		{ "NaN", PYVALUE_FLOAT, false, (double)NAN },
		{ "Infinity", PYVALUE_FLOAT, false, (double)INFINITY },
		{ "-Infinity", PYVALUE_FLOAT, false, -(double)INFINITY },
	};

	for (size_t i = 0; i < p->words; i++) {
		size_t n = strlen(words[i].text);

		if (strncmp(p->s + p->at, words[i].text, n) != 0)
			continue;
		p->at += n;
		value->type = words[i].type;
		if (value->type == PYVALUE_BOOL)
			value->u.truth = words[i].truth;
		else
			value->u.real = words[i].real;
		return true;
	}
	return read_number(p, value);
}

/* ---- arrays, objects ---- */

static bool read_value(struct parser *p, struct pyvalue *value);

/* The name of a member, up to its value. */
static bool
read_name(struct parser *p, struct pyvalue *member)
{
	if (p->s[p->at] != '"')
		return fail_syntax(p,
		    "Expecting property name enclosed in double quotes", p->at);
	if (!read_string(p, &member->name, &member->name_len) || p->left-- == 0)
		return false;
	skip_blanks(p);
	if (p->s[p->at] != ':')
		return fail_syntax(p, "Expecting ':' delimiter", p->at);
	pass(p);
	return true;
}

/* An array or an object, p->at on what opens it. */
static bool
read_parts(struct parser *p, struct pyvalue *whole)
{
	bool object = p->s[p->at] == '{';
	char end = object ? '}' : ']';

	whole->type = object ? PYVALUE_OBJECT : PYVALUE_ARRAY;
	pass(p);
	for (bool more = p->s[p->at] != end; more;) {
		struct pyvalue *part = pyjson_tree_add(p->doc, whole);

		if ((object && !read_name(p, part)) || !read_value(p, part))
			return false;
		skip_blanks(p);
		more = p->s[p->at] != end;
		if (more && p->s[p->at] != ',')
			return fail_syntax(p, "Expecting ',' delimiter", p->at);
		if (more)
			pass(p);
	}
	p->at++;
	if (object)
		pyjson_tree_drop_repeated(whole);
	return true;
}

/* Any value, p->at on its first character.  It counts when it is whole. */
static bool
read_value(struct parser *p, struct pyvalue *value)
{
	bool good;

	switch (p->s[p->at]) {
	case '"':
		value->type = PYVALUE_STRING;
		good = read_string(p, &value->u.text, &value->count);
		break;
	case '[':
	case '{':
		if (p->depth == PYJSON_DEPTH_MAX)
			return fail(p, PYJSON_LIMIT, "Nested too deeply",
			    p->at);
		p->depth++;
		good = read_parts(p, value);
		p->depth--;
		break;
	default:
		good = read_word(p, value);
		break;
	}
	return good && p->left-- > 0;
}

/* ---- the whole ---- */

/* Check the encoding, as str and bytes are decoded before they are parsed. */
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
	if (source != PYJSON_BYTES)
		return fail_syntax(p,
		    "Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
	p->s += strlen(BOM);
	p->len -= strlen(BOM);
	return true;
}

/* Each step says false where it fails, and fills in the error unless there are
 * too many values. */
bool
pyjson_parse(struct pyjson *doc, const char *body, size_t len,
    enum pyjson_source source, struct pyjson_error *error)
{
	struct parser p = { .s = body,
		.len = len,
		.left = PYJSON_VALUES_MAX,
		.words = source == PYJSON_STRICT ? JSON_WORDS : PYTHON_WORDS,
		.doc = doc,
		.error = error };
	bool good;

	assert(body[len] == '\0');
	memset(error, 0, sizeof(*error));
	buf_init(&p.scratch, len);
	pyjson_tree_init(doc);
	good = check_encoding(&p, source);
	skip_blanks(&p);
	good = good && read_value(&p, &doc->root);
	if (!good && error->text[0] == '\0')
		(void)fail(&p, PYJSON_LIMIT, "Too many values", p.at);
	skip_blanks(&p);
	if (good && p.at < p.len)
		good = fail_syntax(&p, "Extra data", p.at);
	buf_release(&p.scratch);
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
