/* SPDX-License-Identifier: MIT */
#ifndef SLIP_H
#define SLIP_H

/* What is wrong with code as it was typed, for which Python has no words. */
enum slip_kind {
	SLIP_NONE,
	SLIP_WORD,     /* it begins with "python", as a block's tag */
	SLIP_FENCE,    /* back-ticks on one side of it */
	SLIP_LANGUAGE, /* its block's tag is another language's */
	SLIP_QUOTES,   /* curly quotes in it */
	SLIP_TABS,     /* some lines begin with tabs, some with spaces */
};

#define SLIP_WORD_SIZE 33

struct slip {
	enum slip_kind kind;
	/* SLIP_WORD, SLIP_LANGUAGE: it, of letters, digits and "+-_.#" */
	char word[SLIP_WORD_SIZE];
};

#endif
