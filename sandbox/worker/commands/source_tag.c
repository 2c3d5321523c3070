/* SPDX-License-Identifier: MIT */
#include "source_parts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "../../base/nearest.h"

#define PYTHON "python"
#define LETTERS (sizeof(PYTHON) - 1)

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
goes_on(const char *rest)
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
	return end == len || goes_on(text + end) ? 0 : end;
}

bool
source_is_output(const char *text)
{
	return strncmp(text + strspn(text, SOURCE_BLANKS),
		   "Traceback (most recent call last)", 33) == 0;
}

size_t
source_tag_line(const char *s, const char **word, size_t *len)
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

bool
source_tag_before(const char *text, const char *fence)
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
