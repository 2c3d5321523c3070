/* SPDX-License-Identifier: MIT */
#include "blocks.h"

#include <ctype.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../store/commands.h"
#include "source.h"

#define FENCE "```"
#define BLANKS " \t\r\n"
/* Of a message, and of the files with it. */
#define CODE_MOST (COMMAND_CODE_MAX + COMMAND_SCRIPTS_MAX + 1024)
#define NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

static bool
is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(BLANKS, text[i]) == NULL)
			return false;
	return true;
}

void
blocks_add(struct blocks *b, const char *code, size_t len)
{
	if (is_blank(code, len))
		return;
	if (b->count == BLOCKS_MAX) {
		b->too_many = true;
		return;
	}
	b->count++;
	buf_add(&b->code, code, len);
	if (code[len - 1] != '\n')
		buf_addc(&b->code, '\n');
}

/* ---- blocks in fences ---- */

static void
name_other(struct blocks *b, const struct slip *other)
{
	for (size_t i = 0; i < b->other_count; i++)
		if (strcmp(b->others[i].word, other->word) == 0)
			return;
	if (b->other_count < BLOCKS_OTHERS_MAX)
		b->others[b->other_count++] = *other;
}

/* A block with its fences, or back-ticks and what is between them. */
static void
take_marked(struct blocks *b, const char *text, size_t len)
{
	auto_free char *marked = xstrndup(text, len);
	auto_free char *code = NULL;
	struct slip other = source_language(marked);
	size_t code_len;

	if (other.kind == SLIP_LANGUAGE) {
		name_other(b, &other);
		return;
	}
	code = source_code(marked, &code_len);
	blocks_add(b, code, code_len);
}

/* A fence that is not closed encloses the rest. */
static void
find_fences(struct blocks *b, const char *text)
{
	const char *open;

	while ((open = strstr(text, FENCE)) != NULL) {
		const char *close = strstr(open + strlen(FENCE), FENCE);

		if (close == NULL) {
			take_marked(b, open, strlen(open));
			return;
		}
		text = close + strlen(FENCE);
		take_marked(b, open, (size_t)(text - open));
	}
}

/* ---- messages without a block ---- */

/* What is behind the back-ticks that close those at the begin of text; NULL:
 * none do. */
static const char *
end_of_ticks(const char *text)
{
	size_t ticks = strspn(text, "`");

	for (text += ticks; (text = strchr(text, '`')) != NULL;) {
		size_t run = strspn(text, "`");

		text += run;
		if (run == ticks)
			return text;
	}
	return NULL;
}

/* What stands in back-ticks within a line. */
static void
find_ticks(struct blocks *b, const char *text)
{
	while ((text = strchr(text, '`')) != NULL) {
		const char *end = end_of_ticks(text);

		if (end == NULL) {
			text += strspn(text, "`");
			continue;
		}
		take_marked(b, text, (size_t)(end - text));
		text = end;
	}
}

/* Does the line begin with this word, or this mark? */
static bool
begins(const char *line, const char *word)
{
	size_t len = strlen(word);

	return strncmp(line, word, len) == 0 &&
	    (!isalnum((unsigned char)*word) ||
		strspn(line + len, NAME_CHARS) == 0);
}

static bool
has_any(const char *line, size_t len, const char *set)
{
	return strcspn(line, set) < len;
}

/* "import this" and no more words than that: prose has them. */
static bool
is_import(const char *line, size_t len)
{
	static const char word[] = "import ";
	size_t at = sizeof(word) - 1;

	if (begins(line, "from"))
		return memmem(line, len, " import ", 8) != NULL;
	return strncmp(line, word, at) == 0 && len > at &&
	    strspn(line + at, NAME_CHARS ",; ") >= len - at &&
	    (!has_any(line + at, len - at, " ") || has_any(line, len, ",;") ||
		memmem(line, len, " as ", 4) != NULL);
}

static bool
is_statement(const char *line, size_t len)
{
	static const char *const always[] = { "#", "@", "%", "!", "def", "elif",
		"except", NULL };
	/* they begin sentences, too */
	static const char *const blocks[] = { "for", "while", "if", "with",
		"class", "try", "else", "finally", "match", "async", NULL };

	for (int i = 0; always[i] != NULL; i++)
		if (begins(line, always[i]))
			return true;
	for (int i = 0; blocks[i] != NULL; i++)
		if (begins(line, blocks[i]))
			return has_any(line, len, ":");
	return is_import(line, len);
}

/* A call, an assignment, or a calculation. */
static bool
is_expression(const char *line, size_t len)
{
	static const char digits[] = "0123456789";
	size_t name = strspn(line, NAME_CHARS);
	char next = line[name + strspn(line + name, " \t")];

	if (name > 0 && strchr(digits, *line) == NULL)
		return next == '=' || line[name] == '(' || line[name] == '[' ||
		    (next != '\0' && strchr("+-*/%|&^@:,", next) != NULL &&
			has_any(line, len, "="));
	return has_any(line, len, digits) && has_any(line, len, "+-*/%<>&|^") &&
	    strspn(line, "0123456789.+-*/%()<>=!&|^~, ") >= len;
}

/* A line that is not indented says what it is; one that may go on with the
 * line before it says nothing. */
static bool
looks_like_code(const char *text)
{
	bool found = false;

	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		if (is_statement(text, len) || is_expression(text, len))
			found = true;
		else if (!is_blank(text, len) &&
		    strchr(" \t)]}'\"", *text) == NULL)
			return false;
		text += len + (text[len] == '\n');
	}
	return found;
}

void
blocks_find(struct blocks *b, const char *text)
{
	size_t len;
	auto_free char *plain = NULL;

	*b = (struct blocks){ .code = BUF_INIT(CODE_MOST) };
	find_fences(b, text);
	if (b->count > 0 || b->other_count > 0)
		return;
	plain = source_code(text, &len);
	if (looks_like_code(plain))
		blocks_add(b, plain, len);
	else
		find_ticks(b, text);
}

void
blocks_release(struct blocks *blocks)
{
	buf_release(&blocks->code);
}
