/* SPDX-License-Identifier: MIT */
#include "contract/semver.h"

#include <string.h>

#define ANY (-1)	 /* "x", or a number that is not there */
#define NUMBER_DIGITS 15 /* JavaScript counts exactly so far */

/* A version of which the end may be open. */
struct partial {
	struct semver v;
	bool pre; /* "-rc.1": below the release */
};

/* From low on, up to high but without it. */
struct span {
	struct semver low;
	struct semver high;
};

static const struct semver lowest = { 0, 0, 0 };
static const struct semver endless = { INT64_MAX, 0, 0 };

/* What is left of one alternative of a range. */
struct reader {
	const char *at;
	const char *end;
};

int
semver_compare(const struct semver *a, const struct semver *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->patch < b->patch ? -1 : a->patch > b->patch;
}

/* ---- reading ---- */

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void
skip_blanks(struct reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
}

static bool
take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* "0", "12", but not "012"; or x, X, *. */
static bool
take_number(struct reader *r, int64_t *number)
{
	const char *first = r->at;

	*number = ANY;
	if (take(r, 'x') || take(r, 'X') || take(r, '*'))
		return true;
	*number = 0;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		if (r->at - first == NUMBER_DIGITS)
			return false;
		*number = *number * 10 + (*r->at++ - '0');
	}
	return r->at > first && (*first != '0' || r->at == first + 1);
}

static bool
is_of_word(char c, bool *digits)
{
	bool digit = c >= '0' && c <= '9';

	*digits = *digits && digit;
	return digit || c == '-' || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

/* What may follow a '-' or a '+': words of letters, digits and '-', with dots
 * between; in a pre-release no number begins with a zero. */
static bool
take_words(struct reader *r, bool pre)
{
	do {
		const char *first = r->at;
		bool digits = true;

		while (r->at < r->end && is_of_word(*r->at, &digits))
			r->at++;
		if (r->at == first ||
		    (pre && digits && *first == '0' && r->at > first + 1))
			return false;
	} while (take(r, '.'));
	return true;
}

/* What may follow three numbers: "-alpha.1", "+build". */
static bool
take_suffixes(struct reader *r, bool *pre)
{
	*pre = take(r, '-');
	if (*pre && !take_words(r, true))
		return false;
	return !take(r, '+') || take_words(r, false);
}

/* A version up to a blank or the end. */
static bool
take_partial(struct reader *r, struct partial *p)
{
	skip_blanks(r);
	(void)take(r, 'v');
	*p = (struct partial){ { ANY, ANY, ANY }, false };
	if (!take_number(r, &p->v.major))
		return false;
	if (take(r, '.')) {
		if (!take_number(r, &p->v.minor))
			return false;
		if (take(r, '.')) {
			if (!take_number(r, &p->v.patch) ||
			    !take_suffixes(r, &p->pre))
				return false;
		}
	}
	/* behind an open number there is none */
	if ((p->v.major == ANY && p->v.minor != ANY) ||
	    (p->v.minor == ANY && p->v.patch != ANY))
		return false;
	p->pre = p->pre && p->v.patch != ANY;
	return r->at == r->end || is_blank(*r->at);
}

bool
semver_read(struct semver *version, const char *text, size_t len)
{
	struct reader r = { text, text + len };

	return take_number(&r, &version->major) && take(&r, '.') &&
	    take_number(&r, &version->minor) && take(&r, '.') &&
	    take_number(&r, &version->patch) && r.at == r.end &&
	    version->major != ANY && version->minor != ANY &&
	    version->patch != ANY;
}

/* ---- what it means ---- */

static struct semver
low_of(const struct partial *p)
{
	return (struct semver){ p->v.major == ANY ? 0 : p->v.major,
		p->v.minor == ANY ? 0 : p->v.minor,
		p->v.patch == ANY ? 0 : p->v.patch };
}

/* The first version behind all that it stands for. */
static struct semver
next_of(const struct partial *p)
{
	if (p->v.major == ANY)
		return endless;
	if (p->v.minor == ANY)
		return (struct semver){ p->v.major + 1, 0, 0 };
	if (p->v.patch == ANY)
		return (struct semver){ p->v.major, p->v.minor + 1, 0 };
	return (struct semver){ p->v.major, p->v.minor,
		p->v.patch + (p->pre ? 0 : 1) };
}

/* "^": what leaves the first number alone that is not 0. */
static struct semver
caret_of(const struct partial *p)
{
	struct partial open = *p;

	open.pre = false;
	if (p->v.major > 0)
		open.v.minor = ANY;
	else if (p->v.minor > 0)
		open.v.patch = ANY;
	return next_of(&open);
}

/* "~": the same first two numbers. */
static struct semver
tilde_of(const struct partial *p)
{
	struct partial open = *p;

	open.pre = false;
	open.v.patch = ANY;
	return next_of(&open);
}

/* A version with an operator before it: '<', '>', 0 for none; or_equal: a '='
 * behind that. */
static struct span
span_of(const struct partial *p, char op, bool or_equal)
{
	struct semver low = low_of(p);

	if (op == '^')
		return (struct span){ low, caret_of(p) };
	if (op == '~')
		return (struct span){ low, tilde_of(p) };
	if (op == 0)
		return (struct span){ low, next_of(p) };
	/* more or less than anything */
	if (p->v.major == ANY)
		return (struct span){ lowest, or_equal ? endless : lowest };
	if (op == '>')
		return (struct span){ or_equal ? low : next_of(p), endless };
	return (struct span){ lowest, or_equal ? next_of(p) : low };
}

static bool
is_within(const struct semver *version, const struct span *span)
{
	return semver_compare(version, &span->low) >= 0 &&
	    semver_compare(version, &span->high) < 0;
}

/* ---- ranges ---- */

/* As span_of() has it: "<", ">=", "^", nothing. */
static char
take_operator(struct reader *r, bool *or_equal)
{
	char op = 0;

	if (r->at < r->end && strchr("<>^~", *r->at) != NULL)
		op = *r->at++;
	if (op == '~')
		(void)take(r, '>');
	skip_blanks(r);
	*or_equal = op != '~' && op != '^' && take(r, '=');
	return op;
}

static bool
take_comparator(struct reader *r, struct span *span)
{
	bool or_equal;
	char op = take_operator(r, &or_equal);
	struct partial p;

	if (!take_partial(r, &p))
		return false;
	*span = span_of(&p, op, or_equal);
	return true;
}

/* "3.9 - 3.11" */
static bool
take_hyphen(struct reader *r, struct span *span)
{
	struct partial first;
	struct partial last;

	if (!take_partial(r, &first) || r->at == r->end)
		return false;
	skip_blanks(r);
	if (!take(r, '-') || r->at == r->end || !is_blank(*r->at) ||
	    !take_partial(r, &last))
		return false;
	skip_blanks(r);
	*span = (struct span){ low_of(&first), next_of(&last) };
	return r->at == r->end;
}

/* One alternative: all that stands in it must hold.  False: it is no range. */
static bool
take_all(struct reader *r, const struct semver *version, bool *in)
{
	struct reader again;
	struct span span;

	skip_blanks(r);
	again = *r;
	if (take_hyphen(&again, &span)) {
		*in = is_within(version, &span);
		return true;
	}
	*in = true;
	while (r->at < r->end) {
		if (!take_comparator(r, &span))
			return false;
		*in = *in && is_within(version, &span);
		skip_blanks(r);
	}
	return true;
}

bool
semver_is_in(const struct semver *version, const char *range, size_t len)
{
	const char *end = range + len;
	bool any = false;

	if (len > SEMVER_RANGE_MAX || memchr(range, '\0', len) != NULL)
		return false;
	for (;;) {
		const char *bar = memmem(range, (size_t)(end - range), "||", 2);
		struct reader r = { range, bar == NULL ? end : bar };
		bool in;

		/* one that is no range makes no range of the others, too */
		if (!take_all(&r, version, &in))
			return false;
		any = any || in;
		if (bar == NULL)
			return any;
		range = bar + 2;
	}
}

/* ---- what is near ---- */

bool
semver_read_wanted(struct semver *wanted, const char *range, size_t len)
{
	struct reader r = { range, range + len };
	struct partial p;
	bool or_equal;

	if (len > SEMVER_RANGE_MAX)
		return false;
	skip_blanks(&r);
	(void)take_operator(&r, &or_equal);
	if (!take_partial(&r, &p) || p.v.major == ANY)
		return false;
	skip_blanks(&r);
	*wanted = low_of(&p);
	return r.at == r.end;
}

static int64_t
distance(int64_t a, int64_t b)
{
	return a < b ? b - a : a - b;
}

bool
semver_is_nearer(const struct semver *version, const struct semver *best,
    const struct semver *wanted)
{
	int64_t more;

	if (version->major != wanted->major)
		return false;
	if (best == NULL)
		return true;
	more = distance(version->minor, wanted->minor) -
	    distance(best->minor, wanted->minor);
	return more < 0 || (more == 0 && semver_compare(version, best) > 0);
}
