/* SPDX-License-Identifier: MIT */
#ifndef EVAL_INTERPRETER_H
#define EVAL_INTERPRETER_H

#include <stdbool.h>

/*
 * Which interpreter a path means, the field executable_path of /eval.  NULL:
 * that one, and *found is one of names ("3.11", …, NULL), or NULL for the
 * default one.  Else the title of the refusal; *found is NULL then.  path is
 * without its first '/', its ".", ".." and double slashes.
 */
const char *eval_interpreter(const char *const *names, const char *path,
    const char **found);

/* What may stand in for it: true when the path means a version that is not
 * there ("3.15"), also a free-threaded or a JIT build ("3.14t", "3.14j"), and
 * *found is the one of names that is nearest to it. */
bool eval_nearest(const char *const *names, const char *path,
    const char **found);

#endif
