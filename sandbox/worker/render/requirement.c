#include "requirement.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../base/buf.h"

#define WORD_MAX 500
#define DEPTH_MAX 8 /* of parentheses in a marker */

/* ---- splitting as a shell does ---- */

struct splitter {
	const char *next;
	struct buf word;
	bool in_word;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* After the opening quote: to the closing one.  False: there is none. */
static bool
take_quoted(struct splitter *s, char quote)
{
	for (; *s->next != '\0'; s->next++) {
		char c = *s->next;

		if (c == quote) {
			s->next++;
			return true;
		}
		if (c == '\\' && quote == '"' &&
		    (s->next[1] == '"' || s->next[1] == '\\'))
			c = *++s->next;
		buf_addc(&s->word, c);
	}
	return false;
}

/* The next word into s->word; s->in_word says whether there was one. */
static bool
take_word(struct splitter *s)
{
	buf_reset(&s->word);
	s->in_word = false;
	while (is_blank(*s->next))
		s->next++;
	while (*s->next != '\0' && !is_blank(*s->next)) {
		char c = *s->next++;

		s->in_word = true;
		if (c == '\'' || c == '"') {
			if (!take_quoted(s, c))
				return false;
		} else if (c == '\\') {
			if (*s->next == '\0')
				return false;
			buf_addc(&s->word, *s->next++);
		} else {
			buf_addc(&s->word, c);
		}
	}
	return true;
}

/* ---- PEP 508, without direct references ---- */

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9');
}

static bool
is_name_char(char c)
{
	return is_alnum(c) || (c != '\0' && strchr("._-", c) != NULL);
}

static void
skip_blank(const char **p)
{
	while (**p == ' ')
		(*p)++;
}

static bool
take(const char **p, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*p, text, n) != 0)
		return false;
	*p += n;
	return true;
}

/* Letters and digits at both ends, "._-" between. */
static bool
take_name(const char **p)
{
	const char *start = *p;

	while (is_name_char(**p))
		(*p)++;
	return *p > start && is_alnum(*start) && is_alnum((*p)[-1]);
}

static bool
take_extras(const char **p)
{
	if (!take(p, "["))
		return true;
	skip_blank(p);
	if (take(p, "]"))
		return true;
	for (;;) {
		skip_blank(p);
		if (!take_name(p))
			return false;
		skip_blank(p);
		if (take(p, "]"))
			return true;
		if (!take(p, ","))
			return false;
	}
}

static bool
take_comparison(const char **p)
{
	static const char *const operators[] = {
		"===", "==", "~=", "!=", "<=", ">=", "<", ">"
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (take(p, operators[i]))
			return true;
	return false;
}

static bool
take_versions(const char **p)
{
	bool parenthesis = take(p, "(");

	skip_blank(p);
	if (!parenthesis && (**p == '\0' || **p == ';'))
		return true;
	for (;;) {
		const char *start;

		skip_blank(p);
		if (!take_comparison(p))
			return false;
		skip_blank(p);
		start = *p;
		while (is_alnum(**p) ||
		    (**p != '\0' && strchr("._*+!-", **p) != NULL))
			(*p)++;
		if (*p == start)
			return false;
		skip_blank(p);
		if (!take(p, ","))
			return !parenthesis || take(p, ")");
	}
}

static bool
take_string(const char **p)
{
	char quote = **p;

	(*p)++;
	for (; **p != quote; (*p)++)
		if (!is_alnum(**p) &&
		    (**p == '\0' || strchr(" ._*+!-,<>=~", **p) == NULL))
			return false;
	(*p)++;
	return true;
}

static bool
take_variable(const char **p)
{
	static const char *const names[] = { "python_version",
		"python_full_version", "os_name", "sys_platform",
		"platform_release", "platform_system", "platform_version",
		"platform_machine", "platform_python_implementation",
		"implementation_name", "implementation_version", "extra" };
	size_t len = strspn(*p, "abcdefghijklmnopqrstuvwxyz_");

	if (**p == '"' || **p == '\'')
		return take_string(p);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == len && memcmp(*p, names[i], len) == 0) {
			*p += len;
			return true;
		}
	}
	return false;
}

static bool
take_keyword(const char **p, const char *word)
{
	const char *at = *p;

	if (!take(&at, word) || is_alnum(*at) || *at == '_')
		return false;
	*p = at;
	return true;
}

static bool
take_marker_operator(const char **p)
{
	if (take_comparison(p) || take_keyword(p, "in"))
		return true;
	if (!take_keyword(p, "not"))
		return false;
	skip_blank(p);
	return take_keyword(p, "in");
}

static bool
take_comparison_or_group(const char **p, int *open)
{
	skip_blank(p);
	while (take(p, "(")) {
		if (++*open > DEPTH_MAX)
			return false;
		skip_blank(p);
	}
	if (!take_variable(p))
		return false;
	skip_blank(p);
	if (!take_marker_operator(p))
		return false;
	skip_blank(p);
	if (!take_variable(p))
		return false;
	skip_blank(p);
	while (*open > 0 && take(p, ")")) {
		--*open;
		skip_blank(p);
	}
	return true;
}

/* comparisons joined by "and" and "or", parentheses balanced: which binds
 * stronger does not matter for whether it is one */
static bool
take_marker(const char **p)
{
	int open = 0;

	do {
		if (!take_comparison_or_group(p, &open))
			return false;
	} while (take_keyword(p, "and") || take_keyword(p, "or"));
	return open == 0;
}

/* pip takes what ends like an archive for a file, whatever else it could be;
 * extras and markers come after that end. */
static bool
ends_as_file(const char *word, const char *end)
{
	static const char *const ends[] = { ".whl", ".zip", ".tar", ".tgz",
		".tbz", ".txz", ".tlz", ".gz", ".bz2", ".xz", ".lz", ".lzma" };

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
	const char *p = word;

	if (strlen(word) > WORD_MAX)
		return false;
	skip_blank(&p);
	if (!take_name(&p) || ends_as_file(word, p))
		return false;
	skip_blank(&p);
	if (!take_extras(&p))
		return false;
	skip_blank(&p);
	if (!take_versions(&p) || ends_as_file(word, p))
		return false;
	skip_blank(&p);
	if (take(&p, ";") && !take_marker(&p))
		return false;
	skip_blank(&p);
	return *p == '\0';
}

/* ---- all of them ---- */

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

static enum requirements_result
split(struct requirements *r, const char *text)
{
	struct splitter s = { .next = text };
	enum requirements_result result = REQUIREMENTS_OK;

	buf_init(&s.word, strlen(text) + 1);
	for (;;) {
		if (!take_word(&s)) {
			result = REQUIREMENTS_QUOTE;
			break;
		}
		if (!s.in_word)
			break;
		if (r->count == REQUIREMENTS_MAX) {
			result = REQUIREMENTS_TOO_MANY;
			break;
		}
		r->words[r->count++] = xstrdup(buf_str(&s.word));
	}
	buf_release(&s.word);
	return result;
}

enum requirements_result
requirements_parse(struct requirements *requirements, const char *text)
{
	struct requirements *r = requirements;
	enum requirements_result result;

	*r = (struct requirements){ 0 };
	result = split(r, text);
	if (result != REQUIREMENTS_OK)
		return result;
	drop_pip_install(r);
	for (size_t i = 0; i < r->count; i++) {
		if (requirement_is_valid(r->words[i]))
			continue;
		for (size_t j = i + 1; j < r->count; j++) {
			free(r->words[j]);
			r->words[j] = NULL;
		}
		r->count = i + 1;
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
