#ifndef INPUTS_H
#define INPUTS_H

#include <stdbool.h>
#include <stddef.h>

struct api_app;
struct cell_input;
struct detail;
struct execute_files;
struct execute_text;

/*
 * The files of a request, out of the store, as a cell takes them.  They are
 * mapped, not read: a request may name many large ones.
 */
struct api_inputs {
	struct cell_input *items;
	size_t count;
	size_t own; /* the first ones, which are not of the store */
};

/* main: the text of __main__.py, NULL for none.  False: one of them is not in
 * the store; the detail is the answer, and there is nothing to close. */
bool api_inputs_open(struct api_inputs *in, struct api_app *app,
    const struct execute_files *files, const struct execute_text *main,
    struct detail *detail);
/* After execute_stage(): where they go. */
void api_inputs_name(struct api_inputs *in, const struct execute_files *files);
void api_inputs_close(struct api_inputs *in);

/* The environment of what the code-interpreter routes run. */
extern const char *const execute_environment[];

#endif
