/* SPDX-License-Identifier: MIT */
/* Requirements of pip, and the packages of modules. */
#include "worker/render/render.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/basics.h"

#define WORD_MAX 500
#define BLANKS " \t\n\r"
#define DEPTH_MAX 8 /* of parentheses in a marker */
/* PEP 508 without direct references; \> is the end of a word. */
#define NAME "[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
#define EXTRAS "(\\[ *(" NAME " *(, *" NAME " *)*)?\\])?"
#define COMPARES "===?|[~!<>]=|[<>]"
#define VERSION "(" COMPARES ") *[A-Za-z0-9._*+!-]+ *"
#define VERSIONS VERSION "(, *" VERSION ")*"
#define STRING "[A-Za-z0-9 ._*+!,<>=~-]*"
#define VALUE \
	"(\"" STRING "\"|'" STRING "'|(python_version|python_full_version" \
	"|os_name|sys_platform|platform_release|platform_system" \
	"|platform_version|platform_machine|platform_python_implementation" \
	"|implementation_name|implementation_version|extra)\\>)"
#define OPERATOR "(" COMPARES "|in\\>|not +in\\>)"
/* is_balanced() checks its parentheses. */
#define TEST " *(\\( *)*" VALUE " *" OPERATOR " *" VALUE " *(\\) *)*"
#define MARKER TEST "((and|or)\\>" TEST ")*"
#define REQUIREMENT \
	"^ *" NAME " *" EXTRAS " *(" VERSIONS "|\\( *" VERSIONS "\\))? *" \
	"(;" MARKER ")?$"

/* ---- one requirement ---- */

/* Do the parentheses match?  The pattern accepts any number of them on both
 * sides of a test. */
static bool
is_balanced(const char *marker)
{
	int open = 0;

	for (const char *p = marker; *p != '\0'; p++) {
		open += (*p == '(') - (*p == ')');
		if (open < 0 || open > DEPTH_MAX)
			return false;
	}
	return open == 0;
}

/* Does the word end like an archive, which pip takes for a file?  Extras and
 * markers come after that end. */
static bool
ends_as_file(const char *word, const char *end)
{
	static const char *const ends[] = { ".whl", ".zip", ".tar", ".tgz",
		".tbz", ".txz", ".tlz", ".gz", ".bz2", ".xz", ".lz", ".lzma" };

	/* blanks before the end are no part of it */
	while (end > word && end[-1] == ' ')
		end--;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i]);

		if ((size_t)(end - word) >= n &&
		    strncasecmp(end - n, ends[i], n) == 0)
			return true;
	}
	return false;
}

bool
requirement_is_valid(const char *word)
{
	static regex_t pattern;
	static bool is_compiled;
	const char *name = word + strspn(word, " ");
	const char *marker = word + strcspn(word, ";");

	if (!is_compiled &&
	    regcomp(&pattern, REQUIREMENT, REG_EXTENDED | REG_NOSUB) != 0)
		log_fatal(1, "the pattern of requirements does not compile");
	is_compiled = true;
	return strlen(word) <= WORD_MAX &&
	    regexec(&pattern, word, 0, NULL, 0) == 0 && is_balanced(marker) &&
	    !ends_as_file(name, name + strcspn(name, " [(<>=!~;")) &&
	    !ends_as_file(word, marker);
}

/* ---- the list ---- */

/* Does a backslash at p take the meaning of what follows? */
static bool
is_escape(const char *p, char quote)
{
	return *p == '\\' &&
	    (quote == '\0' || (quote == '"' && (p[1] == '"' || p[1] == '\\')));
}

/* Read the next word as a shell does, without quotes and backslashes.  False: a
 * quote is not closed, or nothing follows a backslash. */
static bool
parse_word(const char **next, struct buf *word)
{
	const char *p = *next;
	char quote = '\0'; /* that is open */

	for (; *p != '\0' && (quote != '\0' || strchr(BLANKS, *p) == NULL);
	     p++) {
		if (is_escape(p, quote)) {
			if (*++p == '\0')
				return false;
			buf_addc(word, *p);
		} else if (*p == quote) {
			quote = '\0';
		} else if (quote == '\0' && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else {
			buf_addc(word, *p);
		}
	}
	*next = p;
	return quote == '\0';
}

static enum requirements_result
split(struct requirements *r, const char *text)
{
	auto_buf struct buf word = BUF_INIT(strlen(text) + 1);

	for (text += strspn(text, BLANKS); *text != '\0';
	     text += strspn(text, BLANKS)) {
		buf_reset(&word);
		if (!parse_word(&text, &word))
			return REQUIREMENTS_QUOTE;
		if (r->count == REQUIREMENTS_MAX)
			return REQUIREMENTS_TOO_MANY;
		r->words[r->count++] = xstrdup(buf_str(&word));
	}
	return REQUIREMENTS_OK;
}

/* Drop "pip install": people paste the whole command. */
static void
drop_pip_install(struct requirements *r)
{
	if (r->count < 2 || strcmp(r->words[0], "pip") != 0 ||
	    strcmp(r->words[1], "install") != 0)
		return;
	free(r->words[0]);
	free(r->words[1]);
	memmove(&r->words[0], &r->words[2],
	    (r->count - 1) * sizeof(r->words[0]));
	r->count -= 2;
}

enum requirements_result
requirements_parse(struct requirements *r, const char *text)
{
	enum requirements_result result;

	*r = (struct requirements){ 0 };
	result = split(r, text);
	if (result != REQUIREMENTS_OK)
		return result;
	drop_pip_install(r);
	for (size_t i = 0; i < r->count; i++)
		if (!requirement_is_valid(r->words[i])) {
			r->bad = r->words[i];
			return REQUIREMENTS_BAD;
		}
	return r->count > 0 ? REQUIREMENTS_OK : REQUIREMENTS_NONE;
}

void
requirements_release(struct requirements *requirements)
{
	for (size_t i = 0; i < requirements->count; i++)
		free(requirements->words[i]);
	*requirements = (struct requirements){ 0 };
}

/* ---- packages of modules ---- */

static const char *const modules[][2] = {
#define MODULE(module, package) { module, package },
#define POPULAR(names)
#include "worker/render/packages.def"
};

static const char popular[] =
#define MODULE(module, package)
#define POPULAR(names) names
#include "worker/render/packages.def"
    ;

static const char *const *
find_row(const char *module)
{
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (strcmp(modules[i][0], module) == 0)
			return modules[i];
	return NULL;
}

/* As the index compares names. */
static char *
normal_name(const char *name)
{
	char *copy = xstrdup(name);

	for (char *c = copy; *c != '\0'; c++)
		*c = *c == '_' || *c == '.' ? '-' :
					      (char)tolower((unsigned char)*c);
	return copy;
}

struct nearest
render_need_nearest(const char *name)
{
	auto_free char *typed = normal_name(name);
	auto_free char *names = xstrdup(popular);
	const char *const *row = find_row(name);
	const char *package = row == NULL ? NULL : row[1];
	struct nearest near = { .count = 0 };
	char *next = names;
	char *one;

	/* the package of a module of that name comes first */
	if (package != NULL)
		nearest_add(&near, typed, typed, package);
	while ((one = strsep(&next, " ")) != NULL)
		if (strcmp(typed, one) != 0 &&
		    (package == NULL || strcmp(package, one) != 0))
			nearest_add(&near, typed, one, one);
	return near;
}

const char *
requirement_of_module(const char *module)
{
	const char *const *row = find_row(module);

	/* modules with an underscore are the interpreter's own */
	if (module[0] == '_' || !requirement_is_valid(module) ||
	    (row != NULL && row[1] == NULL))
		return "";
	return row != NULL ? row[1] : module;
}
