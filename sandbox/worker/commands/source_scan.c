/* SPDX-License-Identifier: MIT */
/* Lines as Python's tokenizer sees them, tags of blocks, the look of Python. */
#include "worker/commands/source_parts.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>
#include <strings.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"

#define WORD_MOST 8
#define PYTHON "python"
#define LETTERS (sizeof(PYTHON) - 1)
#define DOTTED SOURCE_NAME_CHARS "."

/* ---- patterns ---- */

/* A sentence begins with a capital letter, and these words begin sentences,
 * too, so that a line of them needs a mark of Python.  A called name is ASCII,
 * as prose of some languages puts brackets behind a word without a blank. */
#define LETTER "A-Za-z0-9_."
#define REST "([^" LETTER "].*)?"
#define NAME "([A-Za-z_.\x80-\xff][" LETTER "\x80-\xff]*)"
#define SUM ")0-9+*/%<>=!&|^~, "

static const char *const patterns[SOURCE_PATTERNS] = {
	[SOURCE_LOOKS] =
	    "^([@%!]|(def|elif|except)([^" LETTER "]|$)"
	    "|(for|while|if|with|class|try|else|finally|match|async)" REST ":"
	    "|(return|raise|assert|del|await|print|global|nonlocal|yield|not"
	    "|lambda)" REST "[[(=\"']"
	    "|(pass|break|continue|return)$"
	    "|from" REST " import "
	    "|import [" LETTER ",; ]*([,;]| as )[" LETTER ",; ]*$"
	    "|import [" LETTER "]+$"
	    "|" NAME "[ \t]*(=|[-+*/%|&^@:,].*=)|[A-Za-z_.][" LETTER "]*[[(]"
	    "|[[({].*( for .* in | in .* for )"
	    "|([" SUM "-][(." SUM "-]*)?([0-9][(." SUM "-]*[-+*/%<>&|^]"
	    "|[-+*/%<>&|^][(." SUM "-]*[0-9])[(." SUM "-]*$)",
	[SOURCE_COMMAND] = "^/(il )?py +(code:)? *",
	[SOURCE_OPTION] =
	    " ((timeit|share|keep):(True|False)|version:[0-9.]*)$",
	[SOURCE_PROMPT] = "^[ \t]*(>>>|In \\[[0-9]+]:) ?",
	[SOURCE_GOES_ON] = "^[ \t]*(>>>|In \\[[0-9]+]:|\\.\\.\\.:?) ?",
	[SOURCE_CODING] = "coding[:=][ \t]*[-" LETTER "]",
	[SOURCE_BANNER] = "^(Python [0-9]|IPython )",
};

size_t
source_match(enum source_pattern which, const char *text, size_t len,
    size_t *begin)
{
	static regex_t compiled[SOURCE_PATTERNS];
	static bool is_compiled[SOURCE_PATTERNS];
	regmatch_t match = { .rm_eo = (regoff_t)len };

	if (!is_compiled[which] &&
	    regcomp(&compiled[which], patterns[which], REG_EXTENDED) != 0)
		log_fatal(1, "a pattern does not compile: %s", patterns[which]);
	is_compiled[which] = true;
	if (regexec(&compiled[which], text, 1, &match, REG_STARTEND) != 0)
		return 0;
	if (begin != NULL)
		*begin = (size_t)match.rm_so;
	return (size_t)match.rm_eo;
}

bool
source_is_odd(uint32_t code)
{
	return code > 0x7f &&
	    (utf8_is_blank(code) || code == 0xad || code == 0x61c ||
		(code >= 0x200b && code <= 0x200f) ||
		(code >= 0x2028 && code <= 0x202e) ||
		(code >= 0x2060 && code <= 0x206f) || code == 0xfeff);
}

uint32_t
source_decode(const char *s, size_t *step)
{
	*step = utf8_step(s, strnlen(s, 4));
	if (*step > 0)
		return utf8_decode(s, *step);
	*step = 1;
	return 0xfffd;
}

size_t
source_blanks(const char *text)
{
	size_t n = 0;
	size_t step = 1;

	while (text[n] == ' ' || text[n] == '\t' || text[n] == '\f' ||
	    ((unsigned char)text[n] > 0x7f &&
		source_is_odd(source_decode(text + n, &step)))) {
		n += step;
		step = 1;
	}
	return n;
}

/* ---- strings ---- */

/* May a string begin at p?  The name before it has to be a prefix of strings,
 * or a keyword that may stand right before one. */
static bool
may_begin(const char *line, const char *p)
{
	const char *name = p;
	const char *wide;
	size_t step;

	while (name > line && p - name <= WORD_MOST &&
	    strchr(SOURCE_NAME_CHARS, name[-1]) != NULL)
		name--;
	wide = name;
	while (wide > line && (unsigned char)wide[-1] > 0x7f)
		if (!utf8_is_tail(*--wide))
			break;
	if (wide < name &&
	    (!source_is_odd(source_decode(wide, &step)) || wide + step != name))
		return false;
	return name == p ||
	    source_is_one_of("r b u f t br rb fr rf tr rt in is if or and not "
			     "elif else while return yield assert await raise "
			     "case match except print del from import lambda",
		name, (size_t)(p - name));
}

bool
source_is_triple(const char *p, char quote)
{
	return p[0] == quote && p[1] == quote && p[2] == quote;
}

const char *
source_string_end(const char *p, char quote, bool triple, bool in_line)
{
	for (; *p != '\0' && (*p != '\n' || (triple && !in_line)); p++) {
		if (*p == '\\' && p[1] != '\0' && (!in_line || p[1] != '\n'))
			p++;
		else if (triple ? source_is_triple(p, quote) : *p == quote)
			break;
	}
	return p;
}

/* Does a string begin at this quote?  A quote that is not closed begins
 * none. */
static bool
opens_string(struct source_scan *scan, const char *line, const char *p)
{
	int which = *p == '"';
	const char *end;

	if (!may_begin(line, p))
		return false;
	scan->triple = source_is_triple(p, *p) && !scan->never[which];
	if (scan->triple) {
		end = source_string_end(p + 3, *p, true, false);
		scan->triple = *end == *p;
		scan->never[which] = !scan->triple;
	}
	if (!scan->triple) {
		if (scan->unclosed[which] != NULL && p < scan->unclosed[which])
			return false;
		end = source_string_end(p + 1, *p, false, false);
		if (*end != *p) {
			scan->unclosed[which] = end;
			return false;
		}
	}
	scan->quote = *p;
	return true;
}

/* Skip a string to its end or to that of the line. */
static const char *
scan_string(struct source_scan *scan, const char *p)
{
	p = source_string_end(p, scan->quote, scan->triple, true);
	if (*p == scan->quote) {
		scan->quote = 0;
		return p + (scan->triple ? 3 : 1);
	}
	/* a short string goes on in the next line only after a backslash */
	if (!scan->triple && *p == '\n' && p[-1] != '\\')
		scan->quote = 0;
	return p;
}

/* ---- lines ---- */

/* Does a notebook's command begin here?  Then the rest of the line is not
 * Python. */
static bool
is_magic(const char *p)
{
	return *p == '!' ||
	    (*p == '%' && p[1] != '\0' &&
		strchr(SOURCE_NAME_CHARS "%", p[1]) != NULL);
}

static const char *
note_wide(struct source_line *line, const char *p)
{
	size_t step;
	uint32_t code = source_decode(p, &step);

	if (line->odd == 0 && source_is_odd(code))
		line->odd = code;
	if (code >= 0x2018 && code <= 0x201f)
		line->curly = true;
	return p + step;
}

/* A backslash outside a string, and the quote mark that it hides. */
static const char *
note_escape(const struct source_scan *scan, struct source_line *line,
    const char *p)
{
	if (p[1] == 'n' && line->escape == NULL && scan->fence == 0)
		line->escape = p;
	return p + 1 + (p[1] == '\'' || p[1] == '"');
}

static void
note_bracket(struct source_scan *scan, char c)
{
	if (strchr("([{", c) != NULL)
		scan->depth++;
	else if (scan->depth > 0 && strchr(")]}", c) != NULL)
		scan->depth--;
}

/* Read one token, or a part of one; *last: the last character that counts. */
static const char *
scan_token(struct source_scan *scan, struct source_line *line, const char *p,
    char *last)
{
	if (*p == '#' && scan->fence == 0)
		return p + strcspn(p, "\n");
	if (*p == '`') {
		size_t run = strspn(p, "`");

		line->ticks = run > line->ticks ? run : line->ticks;
		if (scan->fence > 0 && run >= scan->fence)
			line->escape = p;
		*last = '`';
		return p + run;
	}
	if ((*p == '"' || *p == '\'') && opens_string(scan, line->text, p)) {
		*last = *p;
		return scan_string(scan, p + (scan->triple ? 3 : 1));
	}
	if (strchr(" \t\f", *p) == NULL)
		*last = *p;
	if (*p == '\\' && p[1] != '\0' && p[1] != '\n')
		return note_escape(scan, line, p);
	if ((unsigned char)*p > 0x7f)
		return note_wide(line, p);
	note_bracket(scan, *p);
	return p + 1;
}

bool
source_scan_next(struct source_scan *scan, struct source_line *line)
{
	const char *p = scan->at;
	char last = '\0';

	if (*p == '\0')
		return false;
	*line = (struct source_line){
		.text = p,
		.blanks = source_blanks(p),
		.in_string = scan->quote != 0,
		.inner = scan->depth > 0 || scan->joined,
	};
	if (line->in_string) {
		last = scan->quote;
		p = scan_string(scan, p);
	} else if (!line->inner && scan->fence == 0 &&
	    is_magic(p + line->blanks)) {
		last = '!';
		p += strcspn(p, "\n");
	}
	while (*p != '\0' && *p != '\n' &&
	    ((!scan->stops && scan->fence == 0) || line->escape == NULL))
		p = scan->quote != 0 ? scan_string(scan, p) :
				       scan_token(scan, line, p, &last);
	scan->joined = scan->quote == 0 && last == '\\';
	line->len = (size_t)(p - line->text);
	line->code = last != '\0';
	line->opens = last == ':' && scan->depth == 0 && scan->quote == 0;
	scan->at = p + (*p == '\n');
	return true;
}

/* ---- back-ticks ---- */

size_t
source_ticks(const char *text)
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	size_t most = 0;

	while (source_scan_next(&scan, &line))
		if (line.ticks > most)
			most = line.ticks;
	return most;
}

const char *
source_find_fence(const char *text, size_t ticks)
{
	struct source_scan scan = { .at = text, .fence = ticks };
	struct source_line line;

	while (source_scan_next(&scan, &line))
		if (line.escape != NULL)
			return line.escape;
	while ((text = strchr(text, '`')) != NULL && strspn(text, "`") < ticks)
		text += strspn(text, "`");
	return text;
}

/* ---- tags of blocks ---- */

bool
source_is_one_of(const char *words, const char *word, size_t len)
{
	for (size_t n; *words != '\0'; words += n + strspn(words + n, " ")) {
		n = strcspn(words, " ");
		if (n == len && strncasecmp(words, word, n) == 0)
			return true;
	}
	return false;
}

/* "python" with one letter more, less or other, or with two of them in another
 * order: "pyton", "pyhton". */
static bool
is_nearly_python(const char *word, size_t len)
{
	char typed[LETTERS + 2] = "";

	if (len + 1 < LETTERS || len > LETTERS + 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalpha((unsigned char)word[i]))
			return false;
		typed[i] = (char)tolower((unsigned char)word[i]);
	}
	return *typed == *PYTHON &&
	    nearest_distance(typed, PYTHON) <= (len == LETTERS ? 2 : 1);
}

enum source_class
source_class_of(const char *word, size_t len)
{
	static const char *const words[CLASS_INPUT + 1] = {
		[CLASS_PYTHON] =
		    "py python pyw pyi ipython jupyter notebook code",
		[CLASS_TRANSCRIPT] =
		    "pycon python-repl pyrepl repl doctest python-console",
		[CLASS_TEXT] =
		    "text txt plain plaintext ansi output out log stdout "
		    "stderr traceback pytb py3tb none",
		[CLASS_INPUT] = "stdin input",
	};
	size_t name = len;

	/* a version may follow: "py3.11", "python3" */
	while (name > 2 && strchr("0123456789.", word[name - 1]) != NULL)
		name--;
	for (enum source_class class = 0; class <= CLASS_INPUT; class ++)
		if (words[class] != NULL &&
		    source_is_one_of(words[class], word,
			class == CLASS_PYTHON ? name : len))
			return class;
	if (is_nearly_python(word, name))
		return CLASS_PYTHON;
	return len == 0 ? CLASS_NONE : CLASS_OTHER;
}

/* Do these characters go on with an expression that a name has begun? */
static bool
looks_goes_on(const char *rest)
{
	return *rest == '\0' || strchr("=,;:+-*/%.([)]}<>!&|^@#", *rest) ||
	    source_is_one_of("in is if and or not", rest,
		strspn(rest, SOURCE_NAME_CHARS));
}

size_t
source_tag_word(const char *text)
{
	size_t len = strspn(text, SOURCE_NAME_CHARS ".");
	size_t end = len + strspn(text + len, " \t");

	if (source_is_one_of("code notebook", text, len) ||
	    source_class_of(text, len) != CLASS_PYTHON)
		return 0;
	if (text[end] == '\n')
		return text[end + strspn(text + end, SOURCE_BLANKS)] == '\0' ?
		    0 :
		    end + 1;
	return end == len || looks_goes_on(text + end) ? 0 : end;
}

/* ---- the look of Python ---- */

bool
source_looks(const char *text)
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	bool found = false;

	while (source_scan_next(&scan, &line)) {
		if (!line.code || line.in_string || line.inner)
			continue;
		if (source_match(SOURCE_LOOKS, line.text, line.len, NULL) > 0)
			found = true;
		/* a line that may go on with the one before says nothing */
		else if (strchr(" \t)]}'\"", *line.text) == NULL)
			return false;
	}
	return found;
}

/* ---- slips ---- */

/* Does the code begin with "'''py" on a line, and end with the same quotes? */
static bool
has_quotes_for_ticks(const char *code)
{
	size_t len;
	size_t word;

	code += strspn(code, SOURCE_BLANKS);
	len = strlen(code);
	while (len > 0 && strchr(SOURCE_BLANKS, code[len - 1]) != NULL)
		len--;
	if (len < 7 || (*code != '\'' && *code != '"') || code[1] != *code ||
	    code[2] != *code || memcmp(code, code + len - 3, 3) != 0)
		return false;
	word = strspn(code + 3, DOTTED);
	return word > 0 && source_class_of(code + 3, word) == CLASS_PYTHON &&
	    strchr(SOURCE_BLANKS, code[3 + word]) != NULL;
}

struct slip
source_find_slip(const char *code)
{
	struct source_scan scan = { .at = code };
	struct source_line line;
	struct slip slip = { .kind = SLIP_NONE };
	bool ticks = false;
	bool curly = false;
	bool tabs = false;
	bool spaces = false;

	if (has_quotes_for_ticks(code))
		return (struct slip){ .kind = SLIP_STRING };
	for (int number = 1; source_scan_next(&scan, &line); number++) {
		if (line.odd != 0)
			return (struct slip){
				.kind = SLIP_ODD,
				.line = number,
				.point = line.odd,
			};
		ticks = ticks || line.ticks > 0;
		curly = curly || line.curly;
		tabs = tabs || *line.text == '\t';
		spaces = spaces || *line.text == ' ';
	}
	if (ticks)
		slip.kind = SLIP_FENCE;
	else if (curly)
		slip.kind = SLIP_QUOTES;
	else if (tabs && spaces)
		slip.kind = SLIP_TABS;
	return slip;
}
