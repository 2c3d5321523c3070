/* SPDX-License-Identifier: MIT */
#ifndef SOURCE_PARTS_H
#define SOURCE_PARTS_H

#include <stdint.h>

#include "worker/commands/source.h"

/* Declarations that the files source*.c share. */

#define SOURCE_FENCE 3 /* back-ticks, at least */
#define SOURCE_BLANKS " \t\r\n"
#define SOURCE_NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define SOURCE_TAG_CHARS SOURCE_NAME_CHARS "+-.#"

/* ---- source_scan.c: patterns ---- */

enum source_pattern {
	SOURCE_LOOKS,	/* a line looks like a statement of Python */
	SOURCE_COMMAND, /* "/il py code:" */
	SOURCE_OPTION,	/* the last option of a command, but stdin */
	SOURCE_PROMPT,	/* of a shell */
	SOURCE_GOES_ON, /* that, or the one of a further line */
	SOURCE_BANNER,	/* greeting of a shell */
	SOURCE_CODING,	/* declaration of an encoding, to its first letter */
	SOURCE_PATTERNS,
};

/* The end of the pattern's match in the first len bytes; 0: there is none.
 * begin: its begin, or NULL. */
size_t source_match(enum source_pattern which, const char *text, size_t len,
    size_t *begin);

/* ---- source_scan.c: lines, as Python's tokenizer sees them ---- */

/* Start as { .at = text }.  The text may be changed before `at`. */
struct source_scan {
	const char *at;
	size_t depth;  /* of open brackets */
	char quote;    /* of the string that goes on; 0: none */
	bool triple;   /* it has three of them */
	bool joined;   /* the line before ends in a backslash */
	bool stops;    /* a search for the first escape, or */
	size_t fence;  /* for so many back-ticks; 0: for none.  Comments
				  * and commands of a notebook hide no fence: a
				  * block may end in one */
	bool never[2]; /* no ''', no """ is closed from here on */
	const char *unclosed[2]; /* up to here no ', no " is closed */
};

struct source_line {
	const char *text;
	size_t len;	    /* without its end */
	size_t blanks;	    /* bytes before the first character that is seen */
	bool in_string;	    /* the line begins within a string */
	bool inner;	    /* the line continues the statement before it */
	bool code;	    /* something besides blanks and a comment */
	bool opens;	    /* ends in a colon: a block follows */
	size_t ticks;	    /* longest run of back-ticks outside of strings */
	uint32_t odd;	    /* first blank or unseen character, 0: none */
	bool curly;	    /* a typographic quote outside of strings */
	const char *escape; /* the first "\n" outside of them, or the fence;
			     * NULL: none */
};

/* Three of these quotes? */
bool source_is_triple(const char *p, char quote);
/* The quotes that close a string which begins at p, behind its opening quotes;
 * or the end of the text; or of the line, if the string is a short one or
 * in_line is true. */
const char *source_string_end(const char *p, char quote, bool triple,
    bool in_line);
/* Read the next line; false: there is none.  Every byte is read a bounded
 * number of times.  A quote that is not closed is no string. */
bool source_scan_next(struct source_scan *scan, struct source_line *line);
/* Longest run of back-ticks outside of strings and comments. */
size_t source_ticks(const char *text);
/* First run of so many back-ticks outside of strings; if there is none, the
 * first run of any; NULL: none. */
const char *source_find_fence(const char *text, size_t ticks);
/* The character here and its length; an invalid byte is U+FFFD. */
uint32_t source_decode(const char *s, size_t *step);
/* A blank that is no Python blank, or a character that nobody sees. */
bool source_is_odd(uint32_t code);
/* Bytes of odd characters and blanks at the begin. */
size_t source_blanks(const char *text);

/* ---- source_shape.c: a piece becomes Python ---- */

/* Bring a piece into shape, in place; it only gets shorter.  transcript: it is
 * marked as one.  True: it is code, as several prompts say. */
bool source_shape(char *text, bool transcript);
/* \r\n and \r become \n, in place. */
void source_line_ends(char *text);

/* Bring the content of a block of input into shape, in place.  before: len
 * bytes of the fence's line before the fence: marks of a quote or a list. */
void source_shape_input(char *text, const char *before, size_t len);
/* People copy "/il py code:print(1) stdin:x": the code stays in the text, and
 * the value of stdin goes to input. */
void source_read_command(char *text, struct buf *input);
/* If a text begins with three acute accents or wide back-ticks, those around
 * its lines become back-ticks. */
void source_mend_fences(char *text);

/* ---- source_scan.c: tags of blocks, the look of Python ---- */

enum source_class {
	CLASS_PYTHON,
	CLASS_NONE,
	CLASS_TRANSCRIPT,
	CLASS_TEXT,
	CLASS_OTHER, /* another language's */
	CLASS_COUNT, /* number of classes that are code */
	CLASS_INPUT = CLASS_COUNT,
};

/* Is the word one of these?  Letter case makes no difference. */
bool source_is_one_of(const char *words, const char *word, size_t len);
enum source_class source_class_of(const char *word, size_t len);
/* Length of a word at the begin that marks the code behind it as Python, and
 * of the blanks after it; 0: none, or a name of the code. */
size_t source_tag_word(const char *text);
/* Does each statement look like Python, and is there one? */
bool source_looks(const char *text);
/* A likely mistake in the code. */
struct slip source_find_slip(const char *code);

#endif
