/* SPDX-License-Identifier: MIT */
#ifndef SLIP_H
#define SLIP_H

#include <stdint.h>

/* Likely mistakes in typed code that Python's errors do not name. */
enum slip_kind {
	SLIP_NONE,
	SLIP_STRING, /* quotes around all of it, as if they were back-ticks */
	SLIP_ODD,    /* a character that looks like a blank, or like nothing */
	SLIP_FENCE,  /* a back-tick outside of strings */
	SLIP_LANGUAGE, /* its block's tag is another language's */
	SLIP_QUOTES,   /* curly quotes in it */
	SLIP_TABS,     /* some lines begin with tabs, some with spaces */
};

#define SLIP_WORD_SIZE 33

struct slip {
	enum slip_kind kind;
	/* SLIP_LANGUAGE: the tag, of letters, digits and "+-_.#" */
	char word[SLIP_WORD_SIZE];
	int line;	/* SLIP_ODD: line of the first one */
	uint32_t point; /* its code point */
};

/* Fault of a notebook. */
enum source_fault {
	SOURCE_FINE,
	SOURCE_NOT_JSON, /* fault_line: line of the error */
	SOURCE_NO_CELLS,
	SOURCE_NO_CODE,
	SOURCE_TOO_DEEP, /* more parts than can be read */
};

#endif
