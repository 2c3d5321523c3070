/* SPDX-License-Identifier: MIT */
#include "worker/commands/source_parts.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/basics.h"
#include "base/text.h"
#include "store/script.h"
#include "worker/render/message.h"

/* Rounds of reading: the result of one may be a message or a quote itself. */
#define ROUNDS_MOST 4
#define BLOCKS_MOST 400 /* blocks of any kind that are read */

/* Characters that are no code by themselves. */
#define NO_CODE SOURCE_BLANKS "`"

static bool
source_is_blank(const char *text, size_t len)
{
	while (len > 0 && strchr(NO_CODE, *text) != NULL) {
		text++;
		len--;
	}
	return len == 0;
}

/* Add a piece of code, on lines of its own. */
static void
source_add_code(struct source *source, const char *code)
{
	struct buf *out = &source->code;

	if (source_is_blank(code, strlen(code)))
		return;
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	buf_adds(out, code);
	source->pieces++;
}

/* Name a language that is left out, once. */
static void
source_add_other(struct source *source, const char *word, size_t len)
{
	struct slip slip = { .kind = SLIP_LANGUAGE };

	for (size_t i = 0; i < len && i + 1 < sizeof(slip.word) &&
	     strchr(SOURCE_TAG_CHARS, word[i]) != NULL;
	     i++)
		slip.word[i] = word[i];
	for (size_t i = 0; i < source->other_count; i++)
		if (strcmp(source->others[i].word, slip.word) == 0)
			return;
	if (slip.word[0] != '\0' && source->other_count < SOURCE_OTHERS_MAX)
		source->others[source->other_count++] = slip;
}

/* ---- blocks ---- */

struct block {
	const char *before; /* the line of its fence, up to that */
	size_t before_len;
	enum source_class class;
	const char *tag;
	size_t tag_len;
	const char *text; /* content, without the tag */
	size_t len;
	const char *end; /* behind its fences */
	bool closed;
};

/* Blocks of a text, in their order. */
struct blocks {
	struct block of[BLOCKS_MOST];
	size_t count;
};

/* Length of a line that has nothing but a tag, or nothing; 0: the line has
 * code. *word: the tag; braces around it are R Markdown's. */
static size_t
tag_line(const char *s, const char **word, size_t *len)
{
	bool brace = *s == '{';
	size_t n = brace + strspn(s + brace, ".");
	size_t end;

	*word = s + (brace ? n : 0);
	*len = strspn(*word, SOURCE_TAG_CHARS);
	end = (size_t)(*word - s) + *len;
	if (brace) {
		end += strcspn(s + end, "}\n");
		end += s[end] == '}';
	}
	end += source_blanks(s + end);
	end += s[end] == '\r';
	if (*len >= SLIP_WORD_SIZE || s[end] != '\n' ||
	    (brace && source_class_of(*word, *len) != CLASS_PYTHON)) {
		*len = 0;
		return 0;
	}
	return end + 1;
}

/* Does "py" or "Python:" stand alone before the fence, in its line or in the
 * one above? */
static bool
has_tag_before(const char *text, const char *fence)
{
	size_t len = 0;
	int ends = 0;

	while (fence > text &&
	    (strchr(" \t\r:", fence[-1]) != NULL ||
		(fence[-1] == '\n' && ends++ == 0)))
		fence--;
	while (fence > text && strchr(SOURCE_TAG_CHARS, fence[-1]) != NULL &&
	    len < SLIP_WORD_SIZE) {
		fence--;
		len++;
	}
	return (fence == text || fence[-1] == '\n') && len > 0 &&
	    source_class_of(fence, len) == CLASS_PYTHON;
}

static bool
has_code(const struct block *block)
{
	return !source_is_blank(block->text, block->len);
}

/* Read the tag of a block.  A word with nothing behind it is code, not an
 * unknown language. */
static void
find_class(struct block *block, const char *close)
{
	size_t tag = tag_line(block->text, &block->tag, &block->tag_len);

	if (block->text + tag > close)
		tag = block->tag_len = 0;
	block->class = source_class_of(block->tag, block->tag_len);
	block->text += tag;
	block->len = (size_t)(close - block->text);
	if (block->class == CLASS_OTHER && !has_code(block)) {
		block->class = CLASS_NONE;
		block->text -= tag;
		block->len += tag;
	}
	/* a traceback is output */
	if (block->class == CLASS_NONE &&
	    strncmp(block->text + strspn(block->text, SOURCE_BLANKS),
		"Traceback (most recent call last)", 33) == 0)
		block->class = CLASS_TEXT;
}

/* The first block at or after this place; a fence that is not closed encloses
 * the rest. */
static bool
next_block(const char *text, const char *at, struct block *block)
{
	const char *close;
	size_t ticks;

	for (; (at = strchr(at, '`')) != NULL; at += ticks) {
		ticks = strspn(at, "`");
		if (ticks >= SOURCE_FENCE)
			break;
	}
	if (at == NULL)
		return false;
	*block = (struct block){ .text = at + ticks, .before = at };
	while (block->before > text && block->before[-1] != '\n')
		block->before--;
	block->before_len = (size_t)(at - block->before);
	close = source_find_fence(block->text, ticks);
	block->closed = close != NULL;
	if (close == NULL) {
		close = block->text + strlen(block->text);
		block->end = close;
		while (close > block->text && close[-1] == '`')
			close--;
	} else {
		size_t run = strspn(close, "`");

		block->end = close + (run >= 2 * ticks ? ticks : run);
	}
	find_class(block, close);
	if (block->class == CLASS_NONE && has_tag_before(text, at))
		block->class = CLASS_PYTHON;
	return true;
}

static void
find_blocks(struct blocks *blocks, const char *text)
{
	const char *at = text;

	for (blocks->count = 0; blocks->count < BLOCKS_MOST &&
	     next_block(text, at, &blocks->of[blocks->count]);
	     blocks->count++)
		at = blocks->of[blocks->count].end;
}

static void
source_add_block(struct source *source, const struct block *block)
{
	auto_free char *text = xstrndup(block->text, block->len);

	message_join_ticks(text);
	if (block->class == CLASS_INPUT) {
		source_shape_input(text, block->before, block->before_len);
		buf_adds(&source->input, text);
		return;
	}
	(void)source_shape(text, block->class == CLASS_TRANSCRIPT);
	if (block->class == CLASS_TEXT && !source_looks(text))
		source->certain = false;
	source_add_code(source, text);
}

/* The program is the blocks of the first class that there is. */
static enum source_class
choose_class(struct source *source, const struct blocks *blocks)
{
	size_t counts[CLASS_COUNT + 1] = { 0 };
	enum source_class best = CLASS_PYTHON;

	for (size_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->of[i];

		if (!has_code(block))
			continue;
		counts[block->class]++;
		if (block->class == CLASS_OTHER)
			source_add_other(source, block->tag, block->tag_len);
	}
	while (best < CLASS_OTHER && counts[best] == 0)
		best++;
	source->too_many = counts[best] > SOURCE_PIECES_MAX ||
	    blocks->count == BLOCKS_MOST;
	source->certain = best < CLASS_OTHER && !source->too_many;
	source->unmarked = best != CLASS_PYTHON;
	return best;
}

static void
add_blocks(struct source *source, const struct blocks *blocks)
{
	enum source_class class = choose_class(source, blocks);

	for (size_t i = 0; i < blocks->count && !source->too_many; i++) {
		const struct block *block = &blocks->of[i];

		if (has_code(block) &&
		    (block->class == class || block->class == CLASS_INPUT))
			source_add_block(source, block);
	}
}

/* Add a text as a whole. */
static void
add_shaped(struct source *source, const char *text)
{
	auto_free char *code = xstrdup(text);

	(void)source_shape(code, false);
	source_add_code(source, code);
}

/* Add the text around blocks of input as the code, where there are no other
 * blocks. */
static void
add_around_input(struct source *source, const char *text,
    const struct blocks *blocks)
{
	auto_buf struct buf code = BUF_INIT(SOURCE_TEXT_MAX);

	for (size_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->of[i];
		const char *open = block->before + block->before_len;

		buf_add(&code, text, (size_t)(open - text));
		text = block->end + strspn(block->end, SOURCE_BLANKS);
	}
	buf_adds(&code, text);
	add_shaped(source, buf_str(&code));
	source->certain = source_looks(buf_str(&source->code));
}

/* Add the text before a fence at its end as the code: the first fence is
 * missing. */
static void
add_before_fence(struct source *source, const char *text,
    const struct block *block)
{
	auto_free char *before = xstrndup(text, strcspn(text, "`"));

	if (text + strlen(before) != block->before + block->before_len ||
	    block->closed || has_code(block))
		return;
	(void)source_shape(before, false);
	source->certain = source_looks(before);
	source_add_code(source, before);
}

/* ---- texts without a fence ---- */

/* Text behind the back-ticks that close those at the begin; NULL: they are not
 * closed. */
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

/* Is the text a command of ours, a path in a sandbox, or a script's name? */
static bool
names_something(const char *text)
{
	return *text == '/' || strncmp(text, "~/", 2) == 0 ||
	    (script_of(text) <= SCRIPT_NOTEBOOK &&
		text[strcspn(text, " \t\n()='\"#:;")] == '\0');
}

/* Add code from between back-ticks. */
static void
add_span(struct source *source, const char *text, size_t len)
{
	auto_buf struct buf input = BUF_INIT(SOURCE_TEXT_MAX);
	auto_free char *code = xstrndup(text, len);
	char *begin = code + strspn(code, SOURCE_BLANKS);
	size_t pieces = source->pieces;

	for (len = strlen(begin);
	     len > 0 && strchr(SOURCE_BLANKS, begin[len - 1]) != NULL;)
		begin[--len] = '\0';
	source_read_command(begin, &input);
	(void)source_shape(begin, false);
	if (!names_something(begin))
		source_add_code(source, begin);
	if (source->pieces > pieces)
		buf_adds(&source->input, buf_str(&input));
}

/* Add the code between pairs of back-ticks.  A closing run that is missing is
 * searched for once. */
static void
add_spans(struct source *source, const char *text)
{
	bool never[SOURCE_FENCE] = { false };

	while (source->pieces <= SOURCE_PIECES_MAX &&
	    (text = strchr(text, '`')) != NULL) {
		size_t ticks = strspn(text, "`");
		const char *end = ticks < SOURCE_FENCE && !never[ticks] ?
		    end_of_ticks(text) :
		    NULL;

		if (end == NULL) {
			never[ticks < SOURCE_FENCE ? ticks : 0] = true;
			text += ticks;
			continue;
		}
		add_span(source, text + ticks,
		    (size_t)(end - text) - 2 * ticks);
		text = end;
	}
}

static void
add_plain(struct source *source, char *text)
{
	auto_free char *code = NULL;

	source_read_command(text, &source->input);
	code = xstrdup(text);
	source->certain = source_shape(code, false) || source_looks(code);
	if (!source->certain && source_ticks(text) > 0) {
		const char *begin = text + strspn(text, SOURCE_BLANKS);

		add_spans(source, text);
		source->certain = source->pieces > 0;
		source->too_many = source->pieces > SOURCE_PIECES_MAX;
		/* no Python begins with a back-tick */
		if (source->pieces == 0 && *begin == '`')
			add_span(source, begin + strspn(begin, "`"),
			    strlen(begin) - strspn(begin, "`"));
	}
	if (source->pieces == 0)
		source_add_code(source, code);
	source->certain = source->certain && source->pieces > 0;
}

/* ---- the code cells of a Jupyter notebook ---- */

/* The parser needs some 300 bytes for each object and list, however small it
 * is.  Brackets within strings do not count. */
static bool
has_many_objects(const char *text)
{
	size_t count = 0;
	bool string = false;

	for (; *text != '\0'; text++) {
		if (*text == '"')
			string = !string;
		else if (string && *text == '\\' && text[1] != '\0')
			text++;
		else if (!string && (*text == '{' || *text == '[') &&
		    ++count > SOURCE_OBJECTS_MAX)
			return true;
	}
	return false;
}

/* Append a text, or nothing if it is none.  A NUL, which may stand for half a
 * surrogate pair, becomes U+FFFD. */
static void
add_cell_text(struct buf *out, const json_t *text)
{
	const char *s = json_string_value(text);

	for (size_t i = 0; i < json_string_length(text); i++)
		if (s[i] != '\0')
			buf_addc(out, s[i]);
		else
			buf_adds(out, "\xef\xbf\xbd");
}

static bool
is_code(const json_t *cell)
{
	const char *type = json_string_value(json_object_get(cell,
	    "cell_type"));

	return type != NULL && strcmp(type, "code") == 0;
}

/* Add a code cell.  "%%bash" is another language; "%%time" becomes a comment
 * where there are other cells, as it holds for its own cell alone. */
static void
source_add_cell(struct source *source, const json_t *cell, bool alone)
{
	auto_buf struct buf code = BUF_INIT(SOURCE_TEXT_MAX);
	const json_t *lines = json_object_get(cell, "source");
	auto_free char *comment = NULL;
	const char *text;
	const json_t *line;
	size_t i;

	/* a text, or its lines */
	add_cell_text(&code, lines);
	json_array_foreach(lines, i, line)
		add_cell_text(&code, line);
	text = buf_str(&code) + strspn(buf_str(&code), SOURCE_BLANKS);
	if (alone || strncmp(text, "%%", 2) != 0) {
		source_add_code(source, buf_str(&code));
		return;
	}
	text += 2;
	i = strspn(text, SOURCE_NAME_CHARS);
	if (source_is_one_of("time timeit capture", text, i)) {
		comment = xprintf("# %%%%%s", text);
		source_add_code(source, comment);
	} else {
		source_add_other(source, text, i);
	}
}

static enum source_fault
source_add_cells(struct source *source, const json_t *cells)
{
	const json_t *cell;
	size_t count = 0;
	size_t i;

	json_array_foreach(cells, i, cell)
		count += is_code(cell);
	json_array_foreach(cells, i, cell)
		if (is_code(cell))
			source_add_cell(source, cell, count == 1);
	return source->pieces == 0 && source->other_count == 0 ?
	    SOURCE_NO_CODE :
	    SOURCE_FINE;
}

/* The language of a notebook; NULL: it does not say. */
static const char *
find_language(json_t *root)
{
	static const char way[] = "{s:{s:{s:s}}}";
	const char *name = NULL;

	if (json_unpack(root, way, "metadata", "kernelspec", "language",
		&name) != 0)
		(void)json_unpack(root, way, "metadata", "language_info",
		    "name", &name);
	return name;
}

/* Add the code cells of a notebook.  Returns what is wrong with it. */
static enum source_fault
source_read_cells(struct source *source, const char *text)
{
	enum source_fault fault = SOURCE_FINE;
	json_error_t error;
	json_auto_t *root = NULL;
	const json_t *cells;
	const char *language;

	if (has_many_objects(text))
		return SOURCE_TOO_DEEP;
	/* jansson bounds the depth */
	root = json_loads(text, JSON_ALLOW_NUL, &error);
	if (root == NULL) {
		/* broken strings in outputs do not matter to the code */
		auto_free char *mended = json_mend(text, strlen(text));

		root = json_loads(mended, JSON_ALLOW_NUL, &error);
	}
	source->fault_line = error.line;
	if (root == NULL)
		return SOURCE_NOT_JSON;
	cells = json_object_get(root, "cells");
	if (!json_is_array(cells))
		return SOURCE_NO_CELLS;
	language = find_language(root);
	if (language != NULL && *language != '\0' &&
	    source_class_of(language, strlen(language)) != CLASS_PYTHON)
		source_add_other(source, language, strlen(language));
	else
		fault = source_add_cells(source, cells);
	source->certain = source->pieces > 0;
	return fault;
}

/* ---- the whole ---- */

static void
source_begin(struct source *source)
{
	*source = (struct source){
		.code = BUF_INIT(SOURCE_TEXT_MAX + SOURCE_PIECES_MAX + 1),
		.input = BUF_INIT(SOURCE_TEXT_MAX),
		.slip = { .kind = SLIP_NONE },
	};
}

static void
source_read_text(struct source *source, const char *given)
{
	auto_free char *text = xstrdup(given);
	struct blocks blocks;
	const struct block *first = &blocks.of[0];
	const char *begin = text;

	source_mend_fences(text);
	if (source_ticks(text) < SOURCE_FENCE) {
		add_plain(source, text);
		return;
	}
	find_blocks(&blocks, text);
	add_blocks(source, &blocks);
	if (source->pieces > 0 || source->too_many)
		return;
	source->certain = false;
	if (source->input.len > 0) {
		add_around_input(source, text, &blocks);
		return;
	}
	add_before_fence(source, text, first);
	begin += strspn(text, SOURCE_BLANKS);
	/* an empty block alone is no code */
	if (source->pieces == 0 &&
	    (begin != first->before + first->before_len ||
		first->end[strspn(first->end, SOURCE_BLANKS)] != '\0'))
		add_shaped(source, text);
}

/* Add the input and the languages of a later text; the first input counts. */
static void
add_beside(struct source *source, const struct source *next)
{
	if (source->input.len == 0)
		buf_add(&source->input, buf_str(&next->input), next->input.len);
	for (size_t i = 0; i < next->other_count; i++)
		source_add_other(source, next->others[i].word,
		    strlen(next->others[i].word));
}

/* Read the code until nothing changes, so that an editor's code stays the
 * same. */
static void
read_again(struct source *source)
{
	for (int i = 1; i < ROUNDS_MOST && !source->settled; i++) {
		auto_source struct source next;

		source_begin(&next);
		source_read_text(&next, buf_str(&source->code));
		source->settled = next.too_many ||
		    strcmp(buf_str(&next.code), buf_str(&source->code)) == 0;
		source->too_many = source->too_many || next.too_many;
		if (source->settled)
			break;
		buf_reset(&source->code);
		buf_add(&source->code, buf_str(&next.code), next.code.len);
		source->certain = source->certain ||
		    (next.certain && source->other_count == 0);
		add_beside(source, &next);
		if (next.pieces == 0) {
			source->pieces = 0;
			source->certain = false;
		}
	}
}

/* Read a notebook.  False: the text is none, and need not be one. */
static bool
read_notebook(struct source *source, const char *text, enum source_kind kind)
{
	if (kind != SOURCE_NOTEBOOK &&
	    (text[strspn(text, SOURCE_BLANKS)] != '{' ||
		strstr(text, "\"cells\"") == NULL ||
		strstr(text, "\"nbformat\"") == NULL))
		return false;
	source->fault = source_read_cells(source, text);
	if (kind == SOURCE_NOTEBOOK || source->fault == SOURCE_FINE)
		return true;
	source->fault = SOURCE_FINE;
	return false;
}

void
source_read(struct source *source, const char *text, enum source_kind kind)
{
	source_begin(source);
	if (strlen(text) > SOURCE_TEXT_MAX) {
		source->too_many = true;
		return;
	}
	if (!read_notebook(source, text, kind))
		source_read_text(source, text);
	read_again(source);
	source->slip = source_find_slip(buf_str(&source->code));
	if (source->slip.kind == SLIP_NONE && !source->certain &&
	    source->other_count > 0)
		source->slip = source->others[0];
}

void
source_release(struct source *source)
{
	buf_release(&source->code);
	buf_release(&source->input);
}

void
source_append(struct source *all, const struct source *one)
{
	size_t pieces = all->pieces + one->pieces;

	source_add_code(all, buf_str(&one->code));
	all->pieces = pieces;
	all->too_many = all->too_many || one->too_many;
	add_beside(all, one);
	if (all->slip.kind == SLIP_NONE)
		all->slip = one->slip;
}

char *
source_content(const char *text, size_t *len)
{
	const char *begin = text + strspn(text, SOURCE_BLANKS);
	struct block block;

	/* the text is one fenced block */
	if (strspn(begin, "`") >= SOURCE_FENCE &&
	    next_block(begin, begin, &block) && block.closed &&
	    source_is_blank(block.end, strlen(block.end))) {
		char *content = xstrndup(block.text, block.len);

		source_line_ends(content);
		*len = strlen(content);
		return content;
	}
	*len = strlen(text);
	return xstrdup(text);
}
