/* SPDX-License-Identifier: MIT */
#ifndef REQUIREMENT_H
#define REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

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

/* Package of a module, where a package may have its name; "": none. */
const char *requirement_of_module(const char *module);
/* Packages with a name like this one. */
struct nearest render_need_nearest(const char *name);

#endif
