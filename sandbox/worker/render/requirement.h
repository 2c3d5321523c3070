/* SPDX-License-Identifier: MIT */
#ifndef REQUIREMENT_H
#define REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "worker/render/collect.h"

/*
 * Arguments of /il pip: words as a shell splits them, each of which must be a
 * requirement (PEP 508) without a direct reference.  Options, paths, names of
 * archives and URLs are refused, as pip would read files or run code for those.
 */
#define REQUIREMENTS_MAX 32

struct requirements {
	char *words[REQUIREMENTS_MAX + 1]; /* heap; NULL after the last */
	size_t count;
	const char *bad; /* REQUIREMENTS_BAD: one of them that is none */
};

enum requirements_result {
	REQUIREMENTS_OK,
	REQUIREMENTS_NONE,  /* no word at all */
	REQUIREMENTS_QUOTE, /* a quote is not closed */
	REQUIREMENTS_TOO_MANY,
	REQUIREMENTS_BAD,
};

/* Split and check.  Release in any case.  A leading "pip install" is dropped,
 * though both are names of packages. */
enum requirements_result requirements_parse(struct requirements *requirements,
    const char *text);
void requirements_release(struct requirements *requirements);
#define auto_requirements __attribute__((cleanup(requirements_release)))

/* Is the word a requirement: name, extras, versions, marker? */
bool requirement_is_valid(const char *word);

/* ---- needs of a run ---- */

/* Last line of output, in which an uncaught error ends; heap. */
char *render_last_line(const struct buf *output);

/* The error of an input() that found nothing to read. */
#define RENDER_NO_INPUT "EOFError: EOF when reading a line"

#define PACKAGE_SIZE 65

struct render_need {
	char package[PACKAGE_SIZE]; /* to install; "": none */
	bool input;		    /* to read */
};

/* Put a line end between the prompt of an input() and the traceback of its
 * error, as Python does not. */
void render_part_prompt(const struct run_outcome *outcome, struct buf *output);
/* Packages with a name like this one. */
struct nearest render_need_nearest(const char *name);
/* Find the needs of a run by its last error. */
void render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output);

#endif
