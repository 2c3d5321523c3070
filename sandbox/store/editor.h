/* SPDX-License-Identifier: MIT */
#ifndef EDITOR_H
#define EDITOR_H

#include <inttypes.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/basics.h"
#include "store/commands.h"

/*
 * An editor, as Discord wants it: a modal that mostly stands for a view, with
 * labelled inputs of many lines.  il-fcgi opens those that need nothing of a
 * sandbox, il-worker the others.
 */
#define EDITOR_POINTS 4000 /* the longest text of an input */

/* hint, value (what it is filled with): NULL: none. */
static inline json_t *
editor_input(const char *name, const char *label, const char *hint,
    bool required, const char *value)
{
	enum { LABEL = 18, TEXT_INPUT = 4, PARAGRAPH = 2 };

	return json_pack("{s:i, s:s, s:{s:i, s:s, s:i, s:i, s:b, s:s*, s:s*}}",
	    "type", LABEL, "label", label, "component", "type", TEXT_INPUT,
	    "custom_id", name, "style", PARAGRAPH, "max_length", EDITOR_POINTS,
	    "required", required, "placeholder", hint, "value", value);
}

/* An editor of somebody else's code has no view: its id says how to run the
 * code that is sent back. */
#define EDITOR_TRIED 1
#define EDITOR_TRIED_TIMEIT 2
static inline char *
editor_id_tried(const char *version, bool timeit)
{
	return xprintf("%s:%d:%s", command_actions[ACTION_PY_TRIED].name,
	    timeit ? EDITOR_TRIED_TIMEIT : EDITOR_TRIED, version);
}

/* The callback that opens it; takes the inputs, an array.  NULL: it could not
 * be made. */
static inline json_t *
editor_open(const char *custom_id, const char *title, json_t *inputs)
{
	enum { CALLBACK_MODAL = 9 };

	return json_pack("{s:i, s:{s:s, s:s, s:o}}", "type", CALLBACK_MODAL,
	    "data", "custom_id", custom_id, "title", title, "components",
	    inputs);
}

#endif
