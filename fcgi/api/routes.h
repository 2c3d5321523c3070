/* SPDX-License-Identifier: MIT */
#ifndef ROUTES_H
#define ROUTES_H

#include <stdbool.h>
#include <stddef.h>

struct api_app;
struct http_request;

/*
 * What il-api answers: its routes are the rows of routes.def, and each has a
 * function, in the file of its subject.
 */

/* For struct serve: find the route of a request and answer it; app: a struct
 * api_app.  Always false: no request is kept. */
bool api_answer(void *app, struct http_request *req, size_t index);

/* Of each row the path, then "other", the WebSocket's, and NULL: for
 * metrics_open(). */
extern const char *const api_route_names[];

/* The place of the WebSocket's in there; and is its contract served at all? */
extern const size_t api_route_connect;
bool api_serves_connect(const struct api_app *app);

/* app->id: what stands in the place of {…} in the path. */
typedef void api_route_fn(struct api_app *app, struct http_request *req);

#define ROUTE(contract, method, path, function, use, head) \
	api_route_fn api_##function;
#include "api/routes.def"

#endif
