/* SPDX-License-Identifier: MIT */
#ifndef SUGGEST_H
#define SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/path.h"
#include "store/names.h"

/*
 * Which names are suggested to somebody who types: those that begin so, then
 * those in which it stands somewhere; of each the nearest first, a directory
 * before what is in it.  Pure, and bounded: each name is looked at once.
 *
 * What is suggested can be sent as it is: commands resolve it to that very name
 * (protocol/path.h), from the directory where its sender is.
 */
#define SUGGEST_MOST 25	       /* as Discord takes them */
#define SUGGEST_CHARACTERS 100 /* of each */
#define SUGGEST_BYTES (4 * SUGGEST_CHARACTERS + 1)

struct suggestion {
	int rank;  /* the lower, the better it fits */
	int depth; /* directories on the way */
	enum name_kind kind;
	char value[SUGGEST_BYTES];
};

struct suggest {
	const char *cwd;      /* borrowed, as typed */
	const char *typed;    /* all of it */
	const char *last;     /* behind its last '/' */
	const char *needle;   /* without "~/" */
	bool somewhere;	      /* what is before that may be a directory: */
	char base[PATH_SIZE]; /* this one */
	struct suggestion best[SUGGEST_MOST];
	size_t count;
};

/* Begin with no suggestions.  cwd: where its sender is, "" at the top. */
void suggest_begin(struct suggest *s, const char *cwd, const char *typed);
/* Take a name into account. */
void suggest_consider(struct suggest *s, const struct name *name);

#endif
