/* SPDX-License-Identifier: MIT */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Unicode code points in valid UTF-8 (Discord counts lengths in them). */
size_t text_codepoints(const char *s, size_t len);
/* Bytes of the longest prefix with at most n code points. */
size_t text_prefix(const char *s, size_t len, size_t n);

/* Append s made safe to show, on any number of lines: invalid bytes become
 * U+FFFD, control characters except \n and \t are dropped (\r\n and \r become
 * \n), characters that nobody sees are named (text_add_visible()), ANSI escape
 * sequences are removed whole.  At most 3 bytes for each. */
void text_add_clean(struct buf *out, const char *s, size_t len);
/* The same for a text in an array of that size, in its place; it ends with a
 * whole character. */
void text_clean_array(char *text, size_t size);
/* Length of the escape sequence that starts with the ESC at s (ECMA-48): CSI,
 * a control string, or ESC, intermediates and a final byte.  At least 1. */
size_t text_escape(const char *s, size_t len);

/*
 * Characters that nobody sees: of no width (U+200B), tags (U+E0041), those that
 * turn the direction of the text (U+202E), the soft hyphen, fillers.  A
 * stranger's text is shown with their names in their places, as Python writes
 * them: "\u200b".
 *
 * Two kinds stay as they are where they only shape what is seen beside them: a
 * variation selector after a pictograph, and a joiner between two pictographs
 * (a family, a profession) or between two letters of Arabic or of an Indic
 * script.  So such text stays whole, and a letter of ours cannot hide one: each
 * of them has a seen character of that kind on its side.  Flags that are
 * written in tags are not spared, as any number of tags can follow one.
 */

/* Append a character, or its name when nobody would see it: at most three bytes
 * for each of its own.  after: the next one, 0: none.  *before: the one before
 * it, 0 at the beginning of a text; this one afterwards. */
void text_add_visible(struct buf *out, uint32_t *before, uint32_t code,
    uint32_t after);

/* Are these len bytes that word, in upper or lower case? */
bool text_is(const char *s, size_t len, const char *word);

/* 1 to max letters, digits and ". _ -": a name that may stand anywhere. */
bool text_is_name(const char *s, size_t max);

/* Cut up the next line of a text that has a word and does not begin with '#':
 * its words, `max` at most.  *rest: the text, and then what is left of it;
 * *number: the line's, counted up.  Returns the number of words; 0: there is no
 * such line any more. */
size_t text_next_words(char **rest, int *number, char *words[], size_t max);

/* Append a text as a part of a URL or of a header: all but ASCII letters,
 * digits and these others as %XX. */
void text_add_escaped(struct buf *out, const char *s, size_t len,
    const char *others);

/* Digits, of which the first is not 0, that fit int64: a Discord id. */
bool text_parse_snowflake(const char *s, int64_t *id);
/* Decimal int64 with optional '-', nothing around it, within [min,max]. */
bool text_parse_int(const char *s, int64_t min, int64_t max, int64_t *value);
/* A decimal with at most three places, as thousandths: "30", "0.5". */
bool text_parse_thousandths(const char *s, int64_t *value);
/* Bytes with an optional suffix k, m, g (powers of 1024): "256m". */
bool text_parse_size(const char *s, int64_t *bytes);
/* Exactly 2*n hex digits (either case) into n bytes. */
bool text_parse_hex(const char *s, size_t len, unsigned char *out, size_t n);
/* len bytes that are a UUID of version 4, in lower case. */
bool text_is_uuid(const char *s, size_t len);
/* FNV-1a: spreads texts, and keeps nobody from making two alike. */
uint64_t text_hash(const char *s);
/* So many random digits in lower case, an even number, and a NUL. */
void text_random_hex(char *hex, size_t digits);

/* A short text, for the call that it stands in. */
struct text_short {
	char text[32];
};

/* "1.5 MiB", "812 B": for people. */
struct text_short text_size(int64_t bytes);
/* "2026-11-21 03:28" UTC of Unix seconds. */
struct text_short text_time(int64_t seconds);

/* ---- near names ---- */

/*
 * The names that are nearest to what somebody has typed, by Levenshtein's
 * distance.  A name that is too far to have been meant is left out.
 */
#define NEAREST_MOST 3
#define NEAREST_NAME 40 /* bytes: longer names are near to none */

struct nearest {
	struct {
		char name[NEAREST_NAME];
		size_t far;
	} of[NEAREST_MOST]; /* in the order of their distance */
	size_t count;
};

/* Levenshtein's distance: how many letters are to be changed, put in or left
 * out.  b has at most NEAREST_NAME bytes. */
size_t nearest_distance(const char *a, const char *b);
/* Add a copy of a name if it is near, and nearer than the last of three; shown
 * is what it is called. */
void nearest_add(struct nearest *nearest, const char *typed, const char *name,
    const char *shown);

/* ---- JSON ---- */

/*
 * JSON that a parser refuses as its values cannot hold it: half a surrogate
 * pair, a number of thirty digits, 1e400, and NaN and Infinity as Python writes
 * them.  A value that nobody reads must not refuse the whole.
 *
 * The copy has a NUL in the place of such a half, in a name U+FFFD.  A number
 * becomes null or an empty list, so the reader of such a number still refuses
 * it.  Lines keep their numbers.
 */

/* A mended copy of len bytes and a NUL; heap, the caller frees.  Parse it with
 * JSON_ALLOW_NUL. */
char *json_mend(const char *json, size_t len);

#endif
