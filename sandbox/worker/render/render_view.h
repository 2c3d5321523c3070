/* SPDX-License-Identifier: MIT */
#ifndef RENDER_VIEW_H
#define RENDER_VIEW_H

#include "base/nearest.h"
#include "worker/render/render.h"

struct view;

/*
 * Answers of runs: hints, needs, the buttons below them, and the answers of
 * those buttons.
 */
#define TEXT_CODE_GONE \
	N_("What that button is about is not kept any more. Send your code " \
	   "again.")
#define TEXT_CODE_AWAY \
	N_("The host that has that code does not answer just now. Try again " \
	   "in a few minutes.")
#define TEXT_FORGOTTEN \
	N_("What was kept of your code is deleted: the buttons under your " \
	   "answers do nothing any more.")
#define TEXT_SHARED_NOW N_("It is shared already.")
#define TEXT_REMOVED N_("This answer is removed.")

/* ---- render_hint.c: errors and limits, explained ---- */

/* Append a line end and a sentence about the limit that was reached, or the
 * error that the output ends in; or nothing. */
void render_hint(struct buf *out, const struct cell_result *result,
    const struct buf *output, const struct render_env *env);

/* Last line of output, in which an uncaught error ends. */
struct render_line {
	const char *text;
	size_t len;
};

struct render_line render_last_line(const struct buf *output);

/* Is the line the error of an input() that found nothing to read? */
bool render_lacks_input(const struct render_line *line);

/* ---- render_need.c ---- */

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

/* ---- render_view.c ---- */

struct render_buttons {
	const struct config *config;
	const struct view *view; /* with its texts */
	bool cut;		 /* not all of the output is shown */
	bool may_attach;
	bool input;	       /* the run needs input */
	const char *elsewhere; /* path at the top of the file that was not
			        * found; "" */
};

void render_buttons(struct message *message, const struct render_buttons *b);
/* A shared run: code, input and output. */
void render_shared(struct message *message, const struct view *view,
    int64_t copy_id, const struct render_env *env);
/* A page of output; *page becomes the last page if it is beyond that. */
void render_output(struct message *message, const struct view *view,
    int64_t *page);
/* Note below a run that needed the package. */
#define TEXT_INSTALLED N_("\n-# %s was installed first")
/* Code that is too long for an editor, as a file. */
void render_long_code(struct message *message, const char *code,
    const struct render_env *env);

/* ---- render_program.c: code that was not run, and why ---- */

#define SCRIPT_SHOWN 60 /* code points of a file's name */
#define TEXT_TOO_MANY_BLOCKS \
	N_("That message has more than %d pieces of code, and nothing of it " \
	   "was run. Put what you want to run into one block.")
#define TEXT_NOT_TEXT N_("%s is no text in UTF-8, so it was not run.")

/* There is no code to run; others: the languages of other code. */
void render_no_code(struct message *message, const struct slip *others,
    size_t count);
/* Name below an answer the languages of blocks that were not run. */
void render_left_out(struct message *message, const struct slip *others,
    size_t count);
/* Neither name nor content of the file is that of Python. */
void render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count);
/* line: line of the error in its JSON. */
void render_not_notebook(struct message *message, const char *name,
    enum source_fault fault, int line);

#endif
