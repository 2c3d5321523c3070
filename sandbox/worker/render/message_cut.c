/* SPDX-License-Identifier: MIT */
#include "message_cut.h"

#include <string.h>

#include "../../base/buf.h"
#include "../../base/text.h"
#include "../../locale/locale.h"
#include "sgr.h"

#define SNAP_BYTES 160 /* how far a cut moves to reach a line's end */
/* The line between two parts, and the colours that end and begin there. */
#define CUT_POINTS (64 + sizeof(SGR_RESET) - 1 + SGR_MAX)
#define ELLIPSIS "\xe2\x80\xa6"

/* Where the first lines end, at their last line end or at the end of all. */
static size_t
lines_end(const char *text, size_t len, size_t lines)
{
	const char *at = text;

	while ((at = memchr(at, '\n', (size_t)(text + len - at))) != NULL &&
	    --lines > 0)
		at++;
	return at != NULL ? (size_t)(at - text) : len;
}

/* Where the last lines begin. */
static size_t
lines_begin(const char *text, size_t len, size_t lines)
{
	const char *at = text + len;

	while ((at = memrchr(text, '\n', (size_t)(at - text))) != NULL &&
	    --lines > 0)
		continue;
	return at != NULL ? (size_t)(at + 1 - text) : 0;
}

/* The sequence that says what holds at a place in a text: the last one before
 * it does, all of it (terminal.h).  Empty: nothing does. */
struct style {
	const char *sequence;
	size_t len;
};

static struct style
style_at(const char *text, size_t at)
{
	struct style style = { .sequence = text };
	const char *escape = memrchr(text, '\033', at);

	if (escape == NULL ||
	    strncmp(escape, SGR_RESET, strlen(SGR_RESET)) == 0)
		return style;
	style.sequence = escape;
	style.len = strcspn(escape, "m") + 1;
	return style;
}

/* The place itself, or before the sequence that it is in. */
static size_t
before_sequence(const char *text, size_t at)
{
	const char *escape = memrchr(text, '\033', at);

	return escape != NULL && escape + strcspn(escape, "m") >= text + at ?
	    (size_t)(escape - text) :
	    at;
}

/* Code points that are seen: without those of the colours. */
static size_t
seen_points(const char *text, size_t len)
{
	size_t points = text_codepoints(text, len);
	const char *end = text + len;

	while ((text = memchr(text, '\033', (size_t)(end - text))) != NULL) {
		size_t n = strcspn(text, "m") + 1;

		points -= n;
		text += n;
	}
	return points;
}

/* The line in the place of what is between head and tail: so many lines when
 * it is whole lines. */
static void
add_left_out(struct buf *out, const char *text, size_t len, size_t head,
    size_t tail)
{
	bool whole = (head == 0 || text[head] == '\n') &&
	    (tail == len || text[tail - 1] == '\n');
	size_t lines = tail == len ? 1 : 0;
	size_t amount;

	for (size_t i = head > 0 ? head + 1 : 0; i < tail; i++)
		lines += text[i] == '\n' ? 1 : 0;
	amount = whole ? lines : seen_points(text + head, tail - head);
	buf_addf(out, "%s" ELLIPSIS " ", head > 0 ? "\n" : "");
	if (whole)
		buf_addf(out,
		    /* Translators: at most 40 characters */
		    Q_("%zu line left out", "%zu lines left out",
			(int64_t)amount),
		    amount);
	else
		buf_addf(out,
		    /* Translators: at most 40 characters */
		    Q_("%zu character left out", "%zu characters left out",
			(int64_t)amount),
		    amount);
	buf_addf(out, " " ELLIPSIS "%s", tail < len ? "\n" : "");
}

bool
message_cut_fits(const char *text, size_t len, size_t lines_max, size_t room)
{
	return text_codepoints(text, len) <= room &&
	    (lines_max == 0 || lines_end(text, len, lines_max) == len);
}

/* Where the beginning of the text ends that is shown: after some lines, or
 * after some code points, near which a line's end is better. */
static size_t
cut_head(const char *text, size_t len, size_t points, size_t lines)
{
	size_t head = text_prefix(text, len, points);
	size_t end = lines > 0 ? lines_end(text, len, lines) : len;
	size_t near = head < SNAP_BYTES ? head : SNAP_BYTES;
	const char *line;

	if (end <= head)
		return end;
	line = memrchr(text + head - near, '\n', near);
	return line != NULL ? (size_t)(line - text) :
			      before_sequence(text, head);
}

/* Where the end of the text begins that is shown. */
static size_t
cut_tail(const char *text, size_t len, size_t points, size_t lines)
{
	size_t total = text_codepoints(text, len);
	size_t tail = text_prefix(text, len,
	    total > points ? total - points : 0);
	size_t begin = lines > 0 ? lines_begin(text, len, lines) : 0;
	size_t near = len - tail < SNAP_BYTES ? len - tail : SNAP_BYTES;
	const char *line;

	if (begin >= tail)
		return begin;
	line = memchr(text + tail, '\n', near);
	return line != NULL ? (size_t)(line + 1 - text) :
			      before_sequence(text, tail);
}

void
message_cut_add(struct buf *out, const char *text, size_t len,
    enum message_cut cut, size_t lines_max, size_t room)
{
	size_t keep = room > CUT_POINTS ? room - CUT_POINTS : 0;
	size_t lines = lines_max > 0 ? lines_max - 1 : 0;
	size_t head = 0;
	size_t tail = len;
	struct style style;

	if (message_cut_fits(text, len, lines_max, room)) {
		buf_add(out, text, len);
		return;
	}
	if (cut == MESSAGE_CUT_END) {
		head = cut_head(text, len, keep, lines);
	} else if (cut == MESSAGE_CUT_START) {
		tail = cut_tail(text, len, keep, lines);
	} else {
		head = cut_head(text, len, keep / 3, lines / 3);
		tail = cut_tail(text, len, keep - keep / 3, lines - lines / 3);
	}
	/* colours end before what is said here, and go on after it */
	buf_add(out, text, head);
	style = style_at(text, head);
	if (style.len > 0)
		buf_adds(out, SGR_RESET);
	add_left_out(out, text, len, head, tail);
	if (tail < len) {
		style = style_at(text, tail);
		buf_add(out, style.sequence, style.len);
	}
	buf_add(out, text + tail, len - tail);
}
