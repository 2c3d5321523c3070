/* SPDX-License-Identifier: MIT */
#ifndef RENDER_VIEW_H
#define RENDER_VIEW_H

#include "base/nearest.h"
#include "worker/render/render.h"

struct view;

/*
 * What is done with the answer of a run after it: what its error asks for, the
 * buttons below it, and what they give.
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

/* ---- render_hint.c: what an error means, and what to change ---- */

/* Append a sentence, with a line end before it, where one can be said: of a
 * limit, or of the error that the output ends in. */
void render_hint(struct buf *out, const struct cell_result *result,
    const struct buf *output, const struct render_env *env);

/* The last line of output: an error that nobody caught ends in it. */
struct render_line {
	const char *text;
	size_t len;
};

struct render_line render_last_line(const struct buf *output);

/* Is it the error of an input() that found nothing to read? */
bool render_lacks_input(const struct render_line *line);

/* ---- render_need.c ---- */

#define PACKAGE_SIZE 65

struct render_need {
	char package[PACKAGE_SIZE]; /* to install; "": none */
	bool input;		    /* to read */
};

/* What input() asked stands before the traceback of its error, on a line of its
 * own: Python begins none. */
void render_part_prompt(const struct run_outcome *outcome, struct buf *output);
/* Names of packages that a person who asked pip for this may have meant. */
struct nearest render_need_nearest(const char *name);
/* By the error that it ended in. */
void render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output);

/* ---- render_view.c ---- */

struct render_buttons {
	const struct config *config;
	const struct view *view; /* with its texts */
	bool cut;		 /* not all of the output is shown */
	bool may_attach;
	bool input;	       /* it needs some */
	const char *elsewhere; /* where the file is that was not found; "" */
};

void render_buttons(struct message *message, const struct render_buttons *b);
/* What a run was, for all who are there. */
void render_shared(struct message *message, const struct view *view,
    int64_t copy_id, const struct render_env *env);
/* A page of output; it has this number then, at most that of the last one. */
void render_output(struct message *message, const struct view *view,
    int64_t *page);
/* Below a run that needed it. */
#define TEXT_INSTALLED N_("\n-# %s was installed first")
/* Code that no editor takes, as a file. */
void render_long_code(struct message *message, const char *code,
    const struct render_env *env);

/* ---- render_program.c: what of a message or a file was run, or why nothing
 * was ---- */

#define SCRIPT_SHOWN 60 /* code points of a file's name */
#define TEXT_TOO_MANY_BLOCKS \
	N_("That message has more than %d pieces of code, and nothing of it " \
	   "was run. Put what you want to run into one block.")
#define TEXT_NOT_TEXT N_("%s is no text in UTF-8, so it was not run.")

/* Nothing is to be run; others: the languages of the code that there is. */
void render_no_code(struct message *message, const struct slip *others,
    size_t count);
/* After the answer: what was not run with the rest. */
void render_left_out(struct message *message, const struct slip *others,
    size_t count);
/* Its name does not say that it is Python, and neither does its content. */
void render_not_python(struct message *message, const char *name,
    const struct slip *others, size_t count);
/* line: where its JSON is wrong. */
void render_not_notebook(struct message *message, const char *name,
    enum source_fault fault, int line);

#endif
