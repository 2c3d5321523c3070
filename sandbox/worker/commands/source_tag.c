/* SPDX-License-Identifier: MIT */
#include "source_parts.h"

#include <ctype.h>
#include <string.h>

#include "../../base/text.h"

#define PYTHON "python"
#define LETTERS (sizeof(PYTHON) - 1)

static bool
is_one_of(const char *word, size_t len, const char *const *list)
{
	for (; *list != NULL; list++)
		if (text_is(word, len, *list))
			return true;
	return false;
}

/* "python" with its letters in another order, or with one letter more, less or
 * other: "pyhton", "pyton". */
static bool
is_nearly_python(const char *word, size_t len)
{
	size_t from = 0;
	size_t to = 0;
	int count[26] = { 0 };
	bool same = len == LETTERS;

	if (len + 1 < LETTERS || len > LETTERS + 1 ||
	    tolower((unsigned char)*word) != 'p')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalpha((unsigned char)word[i]))
			return false;
		count[tolower((unsigned char)word[i]) - 'a']++;
	}
	for (size_t i = 0; i < LETTERS; i++)
		same = count[PYTHON[i] - 'a']-- > 0 && same;
	while (from < len && from < LETTERS &&
	    tolower((unsigned char)word[from]) == PYTHON[from])
		from++;
	while (to < len && to < LETTERS &&
	    tolower((unsigned char)word[len - 1 - to]) ==
		PYTHON[LETTERS - 1 - to])
		to++;
	return same || from + to + 1 >= (len > LETTERS ? len : LETTERS);
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
	static const char *const python[] = { "py", "python", "pyw", "pyi",
		"ipython", "jupyter", "notebook", "code", NULL };
	static const char *const transcript[] = { "pycon", "python-repl",
		"pyrepl", "repl", "doctest", "python-console", NULL };
	static const char *const texts[] = { "text", "txt", "plain",
		"plaintext", "ansi", "output", "out", "log", "stdout", "stderr",
		"traceback", "pytb", "py3tb", "none", NULL };
	static const char *const inputs[] = { "stdin", "input", NULL };
	size_t name = without_version(word, len);

	if (len == 0)
		return CLASS_NONE;
	if (is_one_of(word, name, python) || is_nearly_python(word, name))
		return CLASS_PYTHON;
	if (is_one_of(word, len, transcript))
		return CLASS_TRANSCRIPT;
	if (is_one_of(word, len, texts))
		return CLASS_TEXT;
	return is_one_of(word, len, inputs) ? CLASS_INPUT : CLASS_OTHER;
}

/* Do these characters go on with an expression that a name has begun? */
static bool
goes_on(const char *rest)
{
	static const char *const words[] = { "in", "is", "if", "and", "or",
		"not", NULL };

	return *rest == '\0' || strchr("=,;:+-*/%.([)]}<>!&|^@#", *rest) ||
	    is_one_of(rest, strspn(rest, SOURCE_NAME_CHARS), words);
}

size_t
source_tag_word(const char *text)
{
	size_t len = strspn(text, SOURCE_NAME_CHARS ".");
	size_t end = len + strspn(text + len, " \t");

	if (len == 0 || text_is(text, len, "code") ||
	    text_is(text, len, "notebook") ||
	    source_class_of(text, len) != CLASS_PYTHON)
		return 0;
	if (text[end] == '\n')
		return text[end + strspn(text + end, SOURCE_BLANKS)] == '\0' ?
		    0 :
		    end + 1;
	return end == len || goes_on(text + end) ? 0 : end;
}

bool
source_is_output(const char *text)
{
	return strncmp(text + strspn(text, SOURCE_BLANKS),
		   "Traceback (most recent call last)", 33) == 0;
}
