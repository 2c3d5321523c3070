/* SPDX-License-Identifier: MIT */
#include "contract/semver.h"

#define ANY (-1)	 /* "x", or a number that is not there */
#define NUMBER_DIGITS 15 /* JavaScript counts exactly so far */

int
semver_compare(const struct semver *a, const struct semver *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->patch < b->patch ? -1 : a->patch > b->patch;
}

/* Read "0", "12", but not "012"; or x, X, *.  The rest of the text; NULL: it
 * begins with none of them. */
static const char *
read_part(const char *at, const char *end, int64_t *part)
{
	const char *first = at;

	*part = ANY;
	if (at < end && (*at == 'x' || *at == 'X' || *at == '*'))
		return at + 1;
	*part = 0;
	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		if (at - first == NUMBER_DIGITS)
			return NULL;
		*part = *part * 10 + (*at - '0');
	}
	return at == first || (*first == '0' && at > first + 1) ? NULL : at;
}

/* Read one to three parts; behind an open part all are open. */
static bool
read_pattern(struct semver *pattern, const char *text, size_t len)
{
	int64_t *const parts[] = { &pattern->major, &pattern->minor,
		&pattern->patch };
	const char *end = text + len;
	bool open = false;

	*pattern = (struct semver){ ANY, ANY, ANY };
	for (size_t i = 0; i < 3; i++) {
		text = read_part(text, end, parts[i]);
		if (text == NULL || (open && *parts[i] != ANY))
			return false;
		if (text == end)
			return true;
		if (*text++ != '.')
			return false;
		open = *parts[i] == ANY;
	}
	return false;
}

bool
semver_read(struct semver *version, const char *text, size_t len)
{
	return read_pattern(version, text, len) && version->patch != ANY;
}

bool
semver_matches(const struct semver *version, const char *pattern, size_t len)
{
	struct semver p;

	return read_pattern(&p, pattern, len) &&
	    (p.major == ANY || p.major == version->major) &&
	    (p.minor == ANY || p.minor == version->minor) &&
	    (p.patch == ANY || p.patch == version->patch);
}

bool
semver_read_wanted(struct semver *wanted, const char *pattern, size_t len)
{
	if (!read_pattern(wanted, pattern, len) || wanted->major == ANY)
		return false;
	wanted->minor = wanted->minor == ANY ? 0 : wanted->minor;
	wanted->patch = wanted->patch == ANY ? 0 : wanted->patch;
	return true;
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
