/* SPDX-License-Identifier: MIT */
#include "contract/jtree.h"

#include <assert.h>
#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "contract/utf8_decoder.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define CHUNK 65536
/* All values and texts lie in an obstack, which goes as a whole. */
#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free
#define BOM "\xef\xbb\xbf"

static bool
jtree_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Sets the highest bit of the first byte that is less than n, which is 0x80 at
 * most, and no bit before it. */
static uint64_t
jtree_less(uint64_t word, unsigned char n)
{
	return (word - EACH(n)) & ~word & EACH(0x80);
}

/* Looks at eight bytes at a time.  A byte is equal to another if their XOR is
 * less than 1. */
size_t
jtree_plain_span(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;
	uint64_t found;

	for (; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		word = le64toh(word); /* the first byte is the lowest */
		found = (word & EACH(0x80)) | jtree_less(word, 0x20) |
		    jtree_less(word ^ EACH('"'), 1) |
		    jtree_less(word ^ EACH('\\'), 1) |
		    jtree_less(word ^ EACH(0x7f), 1);
		if (found != 0)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < len && jtree_is_plain((unsigned char)s[i]))
		i++;
	return i;
}

/* ---- the tree ---- */

static struct jvalue *
add_part(struct jtree *doc, struct jvalue *whole)
{
	struct jvalue *part = obstack_alloc(doc->memory, sizeof(*part));

	*part = (struct jvalue){ .prev = whole->u.parts.last };
	if (whole->count++ == 0)
		whole->u.parts.first = part;
	else
		part->prev->next = part;
	whole->u.parts.last = part;
	return part;
}

void *
jtree_array(struct jtree *doc, size_t count, size_t size)
{
	assert(count < INT_MAX / size);
	return memset(obstack_alloc(doc->memory, (int)(count * size)), 0,
	    count * size);
}

char *
jtree_copy(struct jtree *doc, const char *s, size_t len)
{
	char *copy;

	assert(len < INT_MAX);
	copy = obstack_alloc(doc->memory, (int)len + 1);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void
jtree_release(struct jtree *doc)
{
	if (doc->memory != NULL)
		obstack_free(doc->memory, NULL);
	free(doc->memory);
	memset(doc, 0, sizeof(*doc));
}

const struct jvalue *
jvalue_get(const struct jvalue *object, const char *name)
{
	const struct jvalue *part = NULL;
	size_t len = strlen(name);

	if (jvalue_is_type(object, JVALUE_OBJECT))
		part = object->u.parts.last;
	while (part != NULL &&
	    (part->name_len != len || memcmp(part->name, name, len) != 0))
		part = part->prev;
	return part;
}

const struct jvalue *
jvalue_first(const struct jvalue *whole)
{
	return jvalue_is_type(whole, JVALUE_ARRAY) ||
		jvalue_is_type(whole, JVALUE_OBJECT) ?
	    whole->u.parts.first :
	    NULL;
}

bool
jvalue_is(const struct jvalue *value, const char *text)
{
	return jvalue_is_type(value, JVALUE_STRING) &&
	    value->count == strlen(text) &&
	    memcmp(value->u.text, text, value->count) == 0;
}

bool
jvalue_is_true(const struct jvalue *value)
{
	return jvalue_is_type(value, JVALUE_BOOL) && value->u.truth;
}

const char *
jvalue_text(const struct jvalue *value)
{
	return jvalue_is_type(value, JVALUE_STRING) &&
		strlen(value->u.text) == value->count &&
		!utf8_has_surrogate(value->u.text, value->count) ?
	    value->u.text :
	    NULL;
}

bool
jvalue_integer(const struct jvalue *value, int64_t *number)
{
	if (!jvalue_is_type(value, JVALUE_NUMBER) ||
	    strpbrk(value->u.text, ".eE") != NULL)
		return false;
	*number = strtoll(value->u.text, NULL, 10);
	return true;
}

bool
jvalue_number(const struct jvalue *value, double *number)
{
	if (!jvalue_is_type(value, JVALUE_NUMBER))
		return false;
	*number = strtod(value->u.text, NULL);
	return true;
}

/* ---- parsing ---- */

struct parser {
	const char *s; /* followed by a NUL, which nothing here goes past */
	size_t len;
	size_t at;
	unsigned depth;
	size_t left; /* values and names that may still come */
	struct jtree *doc;
	struct buf scratch; /* of a string */
	struct jtree_error *error;
};

/* Always false: what the parser is at is wrong. */
static bool
jtree_fail(struct parser *p, const char *text, bool is_syntax)
{
	*p->error = (struct jtree_error){ .text = text,
		.is_syntax = is_syntax };
	return false;
}

static bool
jtree_fail_syntax(struct parser *p, const char *text)
{
	return jtree_fail(p, text, true);
}

static void
skip_blanks(struct parser *p)
{
	while (p->s[p->at] == ' ' || p->s[p->at] == '\t' ||
	    p->s[p->at] == '\n' || p->s[p->at] == '\r')
		p->at++;
}

/* Go over a mark and the blanks after it. */
static void
jtree_pass(struct parser *p)
{
	p->at++;
	skip_blanks(p);
}

/* ---- strings ---- */

/* Read four hex digits. */
static bool
read_unit(const char *digits, uint32_t *unit)
{
	unsigned char bytes[2];

	if (!text_parse_hex(digits, 4, bytes, sizeof(bytes)))
		return false;
	*unit = (uint32_t)bytes[0] << 8 | bytes[1];
	return true;
}

/* Read the digits of a "\u" at p->at; the second of a pair may follow. */
static bool
read_unicode(struct parser *p)
{
	const char *next = p->s + p->at + 4;
	uint32_t second;
	uint32_t code;
	char bytes[4];

	if (!read_unit(p->s + p->at, &code))
		return jtree_fail_syntax(p,
		    "four hexadecimal digits are missing");
	p->at += 4;
	if (code >= 0xd800 && code <= 0xdbff && next[0] == '\\' &&
	    next[1] == 'u' && read_unit(next + 2, &second) &&
	    second >= 0xdc00 && second <= 0xdfff) {
		code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
		p->at += 6;
	}
	buf_add(&p->scratch, bytes, utf8_encode(code, bytes));
	return true;
}

/* Read what follows a backslash. */
static bool
read_escape(struct parser *p)
{
	static const char marks[] = "\"\\/bfnrt";
	static const char plain[] = "\"\\/\b\f\n\r\t";
	char c = p->s[p->at];
	const char *found = c == '\0' ? NULL : strchr(marks, c);

	if (c != 'u' && found == NULL)
		return jtree_fail_syntax(p, "there is no such escape");
	p->at++;
	if (found == NULL)
		return read_unicode(p);
	buf_addc(&p->scratch, plain[found - marks]);
	return true;
}

/* Go over what stands for itself. */
static void
pass_plain(struct parser *p)
{
	for (;;) {
		p->at += jtree_plain_span(p->s + p->at, p->len - p->at);
		if ((unsigned char)p->s[p->at] < 0x7f)
			break; /* the NUL at the end as well */
		p->at++;
	}
}

/* Read a string, p->at on its opening quote.  One without escapes is copied
 * once. */
static bool
read_string(struct parser *p, char **text, size_t *len)
{
	const char *begin = p->s + ++p->at;
	bool escaped;

	pass_plain(p);
	escaped = p->s[p->at] == '\\';
	*len = (size_t)(p->s + p->at - begin);
	if (escaped) {
		buf_reset(&p->scratch);
		buf_add(&p->scratch, begin, *len);
	}
	while (p->s[p->at] == '\\') {
		const char *start;

		p->at++;
		if (!read_escape(p))
			return false;
		start = p->s + p->at;
		pass_plain(p);
		buf_add(&p->scratch, start, (size_t)(p->s + p->at - start));
	}
	if (p->s[p->at] != '"')
		return jtree_fail_syntax(p,
		    p->at == p->len ? "a string has no end" :
				      "a control character must be escaped");
	p->at++;
	if (escaped) {
		begin = buf_str(&p->scratch);
		*len = p->scratch.len;
	}
	*text = jtree_copy(p->doc, begin, *len);
	return true;
}

/* ---- numbers and words ---- */

/* Read a number: a value that begins neither as a string nor as a whole nor as
 * a word. */
static bool
jtree_read_number(struct parser *p, struct jvalue *value)
{
	static const char digits[] = "0123456789";
	const char *start = p->s + p->at;
	const char *end = start + (start[0] == '-' ? 1 : 0);
	size_t count = end[0] == '0' ? 1 : strspn(end, digits);

	if (count == 0)
		return jtree_fail_syntax(p, "a value is missing");
	end += count;
	if (end[0] == '.' && (count = strspn(end + 1, digits)) > 0)
		end += 1 + count;
	if (end[0] == 'e' || end[0] == 'E') {
		size_t sign = end[1] == '-' || end[1] == '+' ? 1 : 0;

		count = strspn(end + 1 + sign, digits);
		end += count > 0 ? 1 + sign + count : 0;
	}
	value->type = JVALUE_NUMBER;
	value->count = (size_t)(end - start);
	if (value->count > JTREE_NUMBER_MAX)
		return jtree_fail(p, "a number is too long", false);
	value->u.text = jtree_copy(p->doc, start, value->count);
	p->at += value->count;
	return true;
}

/* Read a value that has a name, or else a number. */
static bool
read_word(struct parser *p, struct jvalue *value)
{
	static const struct {
		const char *text;
		enum jvalue_type type;
		bool truth;
	} words[] = {
		{ "null", JVALUE_NULL, false },
		{ "true", JVALUE_BOOL, true },
		{ "false", JVALUE_BOOL, false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);

		if (strncmp(p->s + p->at, words[i].text, n) != 0)
			continue;
		p->at += n;
		value->type = words[i].type;
		value->u.truth = words[i].truth;
		return true;
	}
	return jtree_read_number(p, value);
}

/* ---- arrays, objects ---- */

static bool jtree_read_value(struct parser *p, struct jvalue *value);

/* Read the name of a member, up to its value. */
static bool
jtree_read_name(struct parser *p, struct jvalue *member)
{
	if (p->s[p->at] != '"')
		return jtree_fail_syntax(p,
		    "a name in double quotes is missing");
	if (!read_string(p, &member->name, &member->name_len))
		return false;
	if (p->left-- == 0)
		return jtree_fail(p, "there are too many values", false);
	skip_blanks(p);
	if (p->s[p->at] != ':')
		return jtree_fail_syntax(p, "':' is missing");
	jtree_pass(p);
	return true;
}

/* Read an array or an object, p->at on what opens it. */
static bool
read_parts(struct parser *p, struct jvalue *whole)
{
	bool object = p->s[p->at] == '{';
	char end = object ? '}' : ']';

	whole->type = object ? JVALUE_OBJECT : JVALUE_ARRAY;
	jtree_pass(p);
	for (bool more = p->s[p->at] != end; more;) {
		struct jvalue *part = add_part(p->doc, whole);

		if ((object && !jtree_read_name(p, part)) ||
		    !jtree_read_value(p, part))
			return false;
		skip_blanks(p);
		more = p->s[p->at] != end;
		if (more && p->s[p->at] != ',')
			return jtree_fail_syntax(p,
			    object ? "',' or '}' is missing" :
				     "',' or ']' is missing");
		if (more)
			jtree_pass(p);
	}
	p->at++;
	return true;
}

/* Read any value, p->at on its first character.  It counts when it is whole. */
static bool
jtree_read_value(struct parser *p, struct jvalue *value)
{
	bool good;

	switch (p->s[p->at]) {
	case '"':
		value->type = JVALUE_STRING;
		good = read_string(p, &value->u.text, &value->count);
		break;
	case '[':
	case '{':
		if (p->depth == JTREE_DEPTH_MAX)
			return jtree_fail(p, "it is nested too deeply", false);
		p->depth++;
		good = read_parts(p, value);
		p->depth--;
		break;
	default:
		good = read_word(p, value);
		break;
	}
	if (good && p->left-- == 0)
		return jtree_fail(p, "there are too many values", false);
	return good;
}

/* ---- the whole ---- */

/* Say where the parser has failed. */
static void
locate(const struct parser *p)
{
	struct jtree_error *error = p->error;
	const char *line = memrchr(p->s, '\n', p->at);

	line = line == NULL ? p->s : line + 1;
	error->column = 1 +
	    text_codepoints(line, (size_t)(p->s + p->at - line));
	error->line = 1;
	for (const char *s = p->s; s < line; s++)
		error->line += *s == '\n' ? 1 : 0;
}

bool
jtree_parse(struct jtree *doc, const char *body, size_t len,
    struct jtree_error *error)
{
	size_t mark = strncmp(body, BOM, strlen(BOM)) == 0 ? strlen(BOM) : 0;
	struct parser p = { .s = body + mark,
		.len = len - mark,
		.left = JTREE_VALUES_MAX,
		.doc = doc,
		.error = error };
	bool good;

	assert(body[len] == '\0');
	buf_init(&p.scratch, len);
	memset(doc, 0, sizeof(*doc));
	doc->memory = xmalloc(sizeof(*doc->memory));
	obstack_begin(doc->memory, CHUNK);
	p.at = utf8_span(p.s, p.len);
	good = p.at == p.len || jtree_fail(&p, "it is not in UTF-8", false);
	if (good) {
		p.at = 0;
		skip_blanks(&p);
		good = jtree_read_value(&p, &doc->root);
	}
	if (good) {
		skip_blanks(&p);
		good = p.at == p.len ||
		    jtree_fail_syntax(&p, "more follows after the end");
	}
	buf_release(&p.scratch);
	if (!good) {
		locate(&p);
		jtree_release(doc);
	}
	return good;
}

void
jtree_explain(struct buf *out, const struct jtree_error *error)
{
	buf_addf(out, "%s at line %zu, column %zu", error->text, error->line,
	    error->column);
}
