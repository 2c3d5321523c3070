/* SPDX-License-Identifier: MIT */
#ifndef ROUTES_H
#define ROUTES_H

#include <stdbool.h>
#include <stddef.h>

struct api_app;
struct http_request;

/*
 * The routes of il-api are the rows of routes.def, and each has a function, in
 * the file of its subject.
 */
typedef void api_route_fn(struct api_app *app, struct http_request *req);

#define ROUTE(contract, method, path, function, use, head, class) \
	api_route_fn api_##function;
#include "api/routes.def"

/* For struct serve: find the route of a request and answer it; app: a struct
 * api_app.  Always false: no request is kept. */
bool api_answer(void *app, struct http_request *req, size_t index);

/* The path of each row, then "other", the WebSocket's, and NULL: for
 * metrics_open(). */
extern const char *const api_route_names[];

/* Index of the WebSocket's path there; and is its contract served at all? */
extern const size_t api_route_connect;
bool api_serves_connect(const struct api_app *app);

/* ---- pages.c, made by docs/build.py when building ---- */

/*
 * GET /openapi.json, byte for byte, and the page of /docs, which is
 * made from that document.
 */
extern const char pages_openapi[];
extern const size_t pages_openapi_len;
extern const char pages_docs[];
extern const size_t pages_docs_len;
/* The page's header lines, each with "\r\n": a policy that lets a browser use
 * the page's own style and script, ask this server, and nothing else. */
extern const char pages_docs_headers[];
extern const size_t pages_docs_headers_len;

#define PAGES_DOCS_TYPE "text/html; charset=utf-8"

#endif
