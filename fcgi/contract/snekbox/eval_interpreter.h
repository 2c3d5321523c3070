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

/* What may stand in for it: true when the path means the free-threaded or the
 * JIT build of one of names ("3.14t", "3.14j" of "3.14"), which *found is. */
bool eval_other_build(const char *const *names, const char *path,
    const char **found);

#endif
