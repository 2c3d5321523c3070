/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/buf.h"

#define FENCE "```"
#define FENCE_LEN 3
#define TAG_MOST 32

/* A piece of the text; nothing is copied until the end. */
struct span {
	const char *data;
	size_t len;
};

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct span
trim(struct span s)
{
	while (s.len > 0 && is_space(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && is_space(s.data[s.len - 1]))
		s.len--;
	return s;
}

static bool
is_fence(struct span s, size_t at)
{
	return at + FENCE_LEN <= s.len &&
	    memcmp(s.data + at, FENCE, FENCE_LEN) == 0;
}

static bool
is_tag_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '_' ||
	    c == '.' || c == '#';
}

/* Length of the tag at the start and of the line end after it; 0: none.  A tag
 * with nothing after it is code: "```x```" shows x. */
static size_t
tag_line(struct span s)
{
	size_t n = 0;

	while (n < s.len && n < TAG_MOST && is_tag_char(s.data[n]))
		n++;
	while (n < s.len &&
	    (s.data[n] == ' ' || s.data[n] == '\t' || s.data[n] == '\r'))
		n++;
	if (n >= s.len || s.data[n] != '\n')
		return 0;
	n++;
	return trim((struct span){ s.data + n, s.len - n }).len > 0 ? n : 0;
}

/* Clients that cannot send several lines make one line of a block, and the tag
 * becomes its first word. */
static size_t
tag_word(struct span s)
{
	static const char *const tags[] = { "python3", "python", "py" };

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t n = strlen(tags[i]);

		if (s.len > n && memcmp(s.data, tags[i], n) == 0 &&
		    (s.data[n] == ' ' || s.data[n] == '\t') &&
		    memchr(s.data, '\n', s.len) == NULL)
			return n + 1;
	}
	return 0;
}

static struct span
without_tag(struct span s)
{
	size_t n = tag_line(s);

	if (n == 0)
		n = tag_word(s);
	s.data += n;
	s.len -= n;
	return s;
}

/* s begins with a fence: what is between it and the last one. */
static struct span
in_fence(struct span s)
{
	size_t end = s.len;

	s.data += FENCE_LEN;
	s.len -= FENCE_LEN;
	end = s.len;
	for (size_t at = s.len; at-- > 0;) {
		if (is_fence(s, at)) {
			end = at;
			break;
		}
	}
	s.len = end;
	return without_tag(s);
}

static struct span
in_ticks(struct span s)
{
	size_t n = 0;

	while (n < s.len && s.data[n] == '`')
		n++;
	s.data += n;
	s.len -= n;
	while (n-- > 0 && s.len > 0 && s.data[s.len - 1] == '`')
		s.len--;
	return trim(s);
}

static char *
copy(struct span s, bool line_ends, size_t *len)
{
	struct buf out = BUF_INIT(s.len + 1);

	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (line_ends && c == '\r') {
			c = '\n';
			if (i + 1 < s.len && s.data[i + 1] == '\n')
				i++;
		}
		buf_addc(&out, c);
	}
	return buf_steal(&out, len);
}

char *
source_code(const char *text, size_t *len)
{
	struct span all = { text, strlen(text) };
	struct span s = trim(all);

	/* no Python begins with a back-tick: it must be markup */
	if (is_fence(s, 0))
		return copy(in_fence(s), true, len);
	if (s.len > 0 && s.data[0] == '`')
		return copy(in_ticks(s), true, len);
	return copy(all, true, len);
}

char *
source_content(const char *text, size_t *len)
{
	struct span all = { text, strlen(text) };
	struct span s = trim(all);

	if (s.len >= 2 * FENCE_LEN && is_fence(s, 0) &&
	    is_fence(s, s.len - FENCE_LEN))
		return copy(in_fence(s), true, len);
	return copy(all, false, len);
}
