#ifndef ROUTES_H
#define ROUTES_H

struct api_app;
struct http_request;

/*
 * What il-api answers: its routes are the rows of routes.def, and each has a
 * function, in the file of its subject.
 */

/* Find the route of a request and answer it; app: a struct api_app. */
void api_answer(void *app, struct http_request *req);

/* The routes' names, each once, for metrics_open(); the last one is "other".
 * Static. */
const char *const *api_route_names(void);

/* id: what stands in the place of {…} in the path, NULL where there is none. */
typedef void api_route_fn(struct api_app *app, struct http_request *req,
    const char *id);

#define ROUTE(method, path, function, use, head) api_route_fn api_##function;
#include "routes.def"

#endif
