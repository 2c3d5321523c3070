/* SPDX-License-Identifier: MIT */
#ifndef INPUTS_H
#define INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "../contract/execute_request.h"

struct api_app;
struct cell_input;
struct http_request;

/* Read and parse a request of the code-interpreter's routes.  False: it was
 * answered; otherwise it is to be released. */
bool api_read_request(struct execute_request *request, enum execute_route route,
    struct api_app *app, struct http_request *req);

/*
 * The files of a request, out of the store, as a cell takes them.  They are
 * mapped, not read: a request may name many large ones.
 */
struct api_inputs {
	struct cell_input *items; /* of the request's document */
	size_t count;
	size_t own;	   /* the first ones, which are not of the store */
	const char *wrong; /* with a path: 422; static.  NULL: nothing */
};

/* False: one of them is not in the store; it was answered, and there is nothing
 * to close. */
bool api_inputs_open(struct api_inputs *in, struct api_app *app,
    struct http_request *req, struct execute_request *request);
void api_inputs_close(struct api_inputs *in);

#endif
