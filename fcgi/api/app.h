#ifndef APP_H
#define APP_H

#include <stddef.h>
#include <sys/types.h>

#include "../contract/detail.h"
#include "../contract/eval_request.h"
#include "../files/filestore.h"
#include "metrics.h"
#include "limits.h"

#include "../../sandbox/protocol/tokens.h"

struct buf;
struct config;
struct http_request;

/*
 * What the routes of il-api share: made once, before the children are forked,
 * and then only read (what is counted is in shared memory); but for what the
 * gate says of the one request that is being answered.
 */
#define API_INTERPRETERS_MAX 64
/* Of a request's body; its JSON takes about as much again. */
#define API_BODY_MAX ((size_t)128 << 20)

struct api_app {
	const struct config *config;
	char *lease_socket;
	char *sessions; /* folder of their sockets */
	pid_t master;
	struct metrics metrics;
	struct filestore store;
	struct tokens tokens; /* path NULL: nobody is asked for one */
	struct limits limits;
	unsigned char owner[TOKENS_HASH_LEN]; /* its token; zeros: none */
	int seat; /* the cell that its token may have; -1 and less: none */
	const char *interpreters[API_INTERPRETERS_MAX + 1]; /* ends with NULL */
	struct eval_terms eval_terms;
};

/* Answer one request. */
void api_answer(void *app, struct http_request *req);

/* The routes' names and the kinds of runs, for metrics_open(). */
extern const char *const api_route_names[];
extern const char *const api_kinds[];
enum api_kind { API_EVAL, API_EXECUTE, API_STREAM, API_BASH };

/* ---- a route each ---- */

/* id: what stands in the place of {…} in the path, NULL where there is none. */
typedef void api_route_fn(struct api_app *app, struct http_request *req,
    const char *id);

api_route_fn api_health;
api_route_fn api_versions;
api_route_fn api_metrics;
api_route_fn api_eval;
api_route_fn api_execute;
api_route_fn api_execute_stream;
api_route_fn api_upload;
api_route_fn api_list;
api_route_fn api_download;
api_route_fn api_delete;
api_route_fn api_session_create;
api_route_fn api_session_delete;
api_route_fn api_session_bash;
api_route_fn api_openapi;
api_route_fn api_docs;

/* ---- answers that several need ---- */

#define API_JSON "application/json"

void api_text(struct http_request *req, int status, const char *headers,
    const char *json);
/* {"detail": …}; text: plain, without quotes. */
void api_detail(struct http_request *req, int status, const char *headers,
    const char *text);
/* The same of an answer that is made; releases it. */
void api_refuse(struct http_request *req, struct detail *detail);
/* /eval has the manners of the one contract, all else those of the other. */
bool api_is_eval(const struct http_request *req);
/* A refusal of /eval in the form that the client prefers. */
void api_answer_refusal(struct http_request *req,
    const struct eval_refusal *refusal, const char *headers);
/* The same of {"title": …}; description may be NULL. */
void api_refuse_eval(struct http_request *req, int status, const char *headers,
    const char *title, const char *description);
/* 503 with Retry-After; 500. */
void api_busy(struct http_request *req);
void api_failed(struct http_request *req);
void api_fail(struct http_request *req, const char *headers);
/* The whole body.  False: it was answered, or nobody is there any more. */
bool api_read_body(struct http_request *req, struct buf *body);
bool api_wants_extras(const struct http_request *req);

#endif
