#ifndef ROUTES_H
#define ROUTES_H

struct api_app;
struct http_request;

/*
 * What il-api answers: the table of its routes, in routes.c, and a function for
 * each of them, in the file that is named here.
 */

/* Find the route of a request and answer it; app: a struct api_app. */
void api_answer(void *app, struct http_request *req);

/* The routes' names, for metrics_open(). */
extern const char *const api_route_names[];

/* id: what stands in the place of {…} in the path, NULL where there is none. */
typedef void api_route_fn(struct api_app *app, struct http_request *req,
    const char *id);

/* quick.c */
api_route_fn api_health;
api_route_fn api_versions;
api_route_fn api_metrics;
api_route_fn api_openapi;
api_route_fn api_docs;
/* eval.c */
api_route_fn api_eval;
/* execute.c */
api_route_fn api_execute;
api_route_fn api_execute_stream;
/* files.c */
api_route_fn api_upload;
api_route_fn api_list;
api_route_fn api_download;
api_route_fn api_delete;
/* sessions.c */
api_route_fn api_session_create;
api_route_fn api_session_delete;
api_route_fn api_session_bash;

#endif
