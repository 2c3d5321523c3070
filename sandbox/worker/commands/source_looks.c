/* SPDX-License-Identifier: MIT */
/* Marks of blocks, the look of Python, and slips in code. */
#include "worker/commands/source_parts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

#define PYTHON "python"
#define LETTERS (sizeof(PYTHON) - 1)
#define DOTTED SOURCE_NAME_CHARS "."

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

/* A version may follow: "py3.11", "python3". */
static size_t
without_version(const char *word, size_t len)
{
	while (len > 2 && strchr("0123456789.", word[len - 1]) != NULL)
		len--;
	return len;
}

enum source_class
source_class_of(const char *word, size_t len)
{
	size_t name = without_version(word, len);

	if (len == 0)
		return CLASS_NONE;
	if (source_is_one_of("py python pyw pyi ipython jupyter notebook code",
		word, name) ||
	    is_nearly_python(word, name))
		return CLASS_PYTHON;
	if (source_is_one_of("pycon python-repl pyrepl repl doctest "
			     "python-console",
		word, len))
		return CLASS_TRANSCRIPT;
	if (source_is_one_of("text txt plain plaintext ansi output out log "
			     "stdout stderr traceback pytb py3tb none",
		word, len))
		return CLASS_TEXT;
	return source_is_one_of("stdin input", word, len) ? CLASS_INPUT :
							    CLASS_OTHER;
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

bool
source_is_output(const char *text)
{
	return strncmp(text + strspn(text, SOURCE_BLANKS),
		   "Traceback (most recent call last)", 33) == 0;
}

/* ---- the look of Python ---- */

static bool
looks_has_any(const char *line, size_t len, const char *set)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(set, line[i]) != NULL)
			return true;
	return false;
}

static bool
looks_has(const char *line, size_t len, const char *text)
{
	return memmem(line, len, text, strlen(text)) != NULL;
}

/* Is the first word of the line one of these?  A sentence begins with a capital
 * letter. */
static bool
looks_begins(const char *line, const char *words)
{
	return islower((unsigned char)*line) &&
	    source_is_one_of(words, line, strspn(line, DOTTED));
}

/* "import this" and no more words than that: prose has them. */
static bool
is_import(const char *line, size_t len)
{
	static const char word[] = "import ";
	size_t at = sizeof(word) - 1;

	if (looks_begins(line, "from"))
		return looks_has(line, len, " import ");
	return strncmp(line, word, at) == 0 && len > at &&
	    strspn(line + at, DOTTED ",; ") >= len - at &&
	    (!looks_has_any(line + at, len - at, " ") ||
		looks_has_any(line, len, ",;") || looks_has(line, len, " as "));
}

static bool
is_statement(const char *line, size_t len)
{
	if (strchr("@%!", *line) != NULL ||
	    looks_begins(line, "def elif except"))
		return true;
	/* these words begin sentences, too */
	if (looks_begins(line,
		"for while if with class try else finally match async"))
		return looks_has_any(line, len, ":");
	if (looks_begins(line,
		"return raise assert del await print global nonlocal yield not "
		"lambda") &&
	    looks_has_any(line, len, "([=\"'"))
		return true;
	if (looks_begins(line, "pass break continue return") &&
	    strspn(line, DOTTED) == len)
		return true;
	return is_import(line, len);
}

/* Bytes of a name with letters of any language.  A called name has to be ASCII,
 * as prose of some languages puts brackets behind a word without a blank. */
static size_t
name_length(const char *line)
{
	size_t n = 0;

	while (strchr(DOTTED, line[n]) != NULL ? line[n] != '\0' :
						 (unsigned char)line[n] > 0x7f)
		n++;
	return n;
}

/* Is it a call, an assignment or a calculation? */
static bool
is_expression(const char *line, size_t len)
{
	static const char digits[] = "0123456789";
	size_t name = name_length(line);
	char next = line[name + strspn(line + name, " \t")];

	if (name > 0 && strchr(digits, *line) == NULL)
		return next == '=' ||
		    (strchr("([", line[name]) != NULL && line[name] != '\0' &&
			strspn(line, DOTTED) == name) ||
		    (next != '\0' && strchr("+-*/%|&^@:,", next) != NULL &&
			looks_has_any(line, len, "="));
	if (strchr("([{", *line) != NULL)
		return looks_has(line, len, " for ") &&
		    looks_has(line, len, " in ");
	return looks_has_any(line, len, digits) &&
	    looks_has_any(line, len, "+-*/%<>&|^") &&
	    strspn(line, "0123456789.+-*/%()<>=!&|^~, ") >= len;
}

bool
source_looks(const char *text)
{
	struct source_scan scan = { .at = text };
	struct source_line line;
	bool found = false;

	while (source_scan_next(&scan, &line)) {
		if (!line.code || line.in_string || line.inner)
			continue;
		if (is_statement(line.text, line.len) ||
		    is_expression(line.text, line.len))
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
