/*
 * The table of what il-api answers, and what it says to everything else.
 */
#include <stdlib.h>
#include <string.h>

#include "api/pages.h"
#include "api_app.h"
#include "health.h"
#include "http.h"

#include "../sandbox/base/buf.h"
#include "../sandbox/base/cleanup.h"
#include "../sandbox/base/clock.h"
#include "../sandbox/base/config.h"
#include "../sandbox/base/err.h"
#include "../sandbox/base/log.h"
#include "../sandbox/lease/lease.h"

#define ID_MAX 256
#define METRICS_MAX (256 << 10)
#define NO_STORE "Cache-Control: no-store\r\n"

struct route {
	const char *method;
	const char *path; /* "{" begins what may be anything but "/" */
	api_route_fn *answer;
};

/* What needs no token: how it is, and what there is. */
static const char *const open_paths[] = { "/health", "/openapi.json", "/docs",
	"/redoc", NULL };

/* Rows of one path stand together. */
static const struct route routes[] = {
	{ "GET", "/health", api_health },
	{ "GET", "/versions", api_versions },
	{ "GET", "/metrics", api_metrics },
	{ "POST", "/eval", api_eval },
	{ "POST", "/v1/execute", api_execute },
	{ "POST", "/v1/execute/stream", api_execute_stream },
	{ "POST", "/v1/files", api_upload },
	{ "GET", "/v1/files", api_list },
	{ "GET", "/v1/files/{file_id}", api_download },
	{ "DELETE", "/v1/files/{file_id}", api_delete },
	{ "POST", "/v1/sessions", api_session_create },
	{ "DELETE", "/v1/sessions/{session_id}", api_session_delete },
	{ "POST", "/v1/sessions/{session_id}/bash", api_session_bash },
	{ "GET", "/openapi.json", api_openapi },
	{ "GET", "/docs", api_docs },
	{ "GET", "/redoc", api_docs },
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const char *const api_route_names[] = { "/health", "/versions", "/metrics",
	"/eval", "/v1/execute", "/v1/execute/stream", "/v1/files",
	"/v1/files/{file_id}", "/v1/sessions", "/v1/sessions/{session_id}",
	"/v1/sessions/{session_id}/bash", "/openapi.json", "/docs", "/redoc",
	"other", NULL };
const char *const api_kinds[] = { "eval", "execute", "stream", "bash", NULL };

void
api_text(struct http_request *req, int status, const char *headers,
    const char *json)
{
	http_answer(req, status, API_JSON, headers, json, strlen(json));
}

void
api_detail(struct http_request *req, int status, const char *headers,
    const char *text)
{
	auto_buf struct buf body = BUF_INIT(1024);

	buf_addf(&body, "{\"detail\":\"%s\"}", text);
	api_text(req, status, headers, buf_str(&body));
}

void
api_refuse(struct http_request *req, struct detail *detail)
{
	http_answer(req, detail->status, API_JSON, NULL, buf_str(&detail->body),
	    detail->body.len);
	detail_release(detail);
}

void
api_busy(struct http_request *req)
{
	api_detail(req, 503, "Retry-After: 1\r\n",
	    "There is no cell to run it in just now");
}

void
api_failed(struct http_request *req)
{
	static const char text[] = "Internal Server Error";

	http_answer(req, 500, "text/plain; charset=utf-8", NULL, text,
	    strlen(text));
}

bool
api_read_body(struct http_request *req, struct buf *body)
{
	if (req->length <= (int64_t)body->max)
		return http_read_all(req, body);
	api_detail(req, 413, NULL, "The body is too long");
	return false;
}

bool
api_wants_extras(const struct http_request *req)
{
	const char *extras = http_param(req, "HTTP_INLINE_EXTRAS");

	return extras != NULL && strcmp(extras, "1") == 0;
}

/* ---- what is short ---- */

/* Always 200: what is wrong stands in the body. */
void
api_health(struct api_app *app, struct http_request *req, const char *id)
{
	auto_free char *body = NULL;
	struct health health;

	(void)id;
	health_gather(app->config, &health);
	body = health_json(&health);
	api_text(req, 200, NO_STORE, body);
}

void
api_versions(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf body = BUF_INIT(64 << 10);

	(void)id;
	buf_addf(&body, "{\"default\":\"%s\",\"versions\":[",
	    app->interpreters[0]);
	for (size_t i = 0; app->interpreters[i] != NULL; i++)
		buf_addf(&body,
		    "%s{\"name\":\"%s\",\"executable_path\":"
		    "\"/snekbin/python/%s/bin/python\"}",
		    i > 0 ? "," : "", app->interpreters[i],
		    app->interpreters[i]);
	buf_adds(&body, "]}");
	api_text(req, 200, NULL, buf_str(&body));
}

void
api_metrics(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf body = BUF_INIT(METRICS_MAX);
	struct lease_status status;
	struct err err;
	bool known;

	(void)id;
	known = lease_status(app->lease_socket, &status, HEALTH_WAIT_MS,
		    &err) == LEASE_GRANTED;
	metrics_add(&body, &app->metrics, known ? &status : NULL);
	http_answer(req, 200, METRICS_TYPE, NO_STORE, buf_str(&body), body.len);
}

void
api_openapi(struct api_app *app, struct http_request *req, const char *id)
{
	(void)app;
	(void)id;
	http_answer(req, 200, API_JSON, NULL, pages_openapi, pages_openapi_len);
}

void
api_docs(struct api_app *app, struct http_request *req, const char *id)
{
	auto_buf struct buf page = BUF_INIT(PAGES_DOCS_MAX);
	auto_buf struct buf headers = BUF_INIT(4096);

	(void)app;
	(void)id;
	pages_add_docs(&page);
	pages_add_headers(&headers);
	http_answer(req, 200, PAGES_DOCS_TYPE, buf_str(&headers),
	    buf_str(&page), page.len);
}

/* ---- finding ---- */

/* Does the path fit the pattern?  id gets what stands for its {…}. */
static bool
fits(const char *pattern, const char *path, char id[ID_MAX])
{
	size_t fixed = strcspn(pattern, "{");
	size_t len;

	if (strncmp(pattern, path, fixed) != 0)
		return false;
	if (pattern[fixed] == '\0')
		return path[fixed] == '\0';
	path += fixed;
	pattern += fixed + strcspn(pattern + fixed, "}") + 1;
	len = strcspn(path, "/");
	if (len == 0 || len >= ID_MAX || strcmp(pattern, path + len) != 0)
		return false;
	memcpy(id, path, len);
	id[len] = '\0';
	return true;
}

/* /eval has the manners of the one contract, all else those of the other. */
static bool
is_eval(const char *path)
{
	return strncmp(path, "/eval", 5) == 0 &&
	    (path[5] == '\0' || path[5] == '/');
}

static void
refuse_eval(struct http_request *req, int status, const char *headers,
    const char *title)
{
	const char *type = eval_refusal_type(http_param(req, "HTTP_ACCEPT"));
	auto_buf struct buf all = BUF_INIT(1024);
	auto_buf struct buf body = BUF_INIT(1024);
	struct eval_refusal refusal;

	(void)eval_refuse(&refusal, status, title);
	eval_refusal_add(&body, &refusal, type);
	eval_refusal_release(&refusal);
	buf_addf(&all, "%sVary: Accept\r\n", headers);
	http_answer(req, status, type, buf_str(&all), buf_str(&body), body.len);
}

static void
refuse_path(struct http_request *req)
{
	if (is_eval(req->path))
		refuse_eval(req, 404, "", EVAL_TITLE_NOT_FOUND);
	else
		api_detail(req, 404, NULL, "Not Found");
}

static void
refuse_method(struct http_request *req, const char *pattern)
{
	auto_buf struct buf allow = BUF_INIT(256);

	if (is_eval(req->path) && strcmp(req->method, "OPTIONS") == 0) {
		http_answer(req, 200, NULL, "Allow: POST\r\n", "", 0);
		return;
	}
	if (is_eval(req->path)) {
		refuse_eval(req, 405, "Allow: POST, OPTIONS\r\n",
		    EVAL_TITLE_METHOD);
		return;
	}
	for (size_t i = 0; i < ROUTES; i++)
		if (strcmp(routes[i].path, pattern) == 0)
			buf_addf(&allow, "%s%s",
			    allow.len == 0 ? "Allow: " : ", ",
			    routes[i].method);
	buf_adds(&allow, "\r\n");
	api_detail(req, 405, buf_str(&allow), "Method Not Allowed");
}

/* Which name it is counted under. */
static size_t
route_place(const char *pattern)
{
	size_t i = 0;

	while (api_route_names[i + 1] != NULL &&
	    (pattern == NULL || strcmp(api_route_names[i], pattern) != 0))
		i++;
	return i;
}

/* Nobody is asked for a token.  nginx says of a request that anybody may have
 * sent it: nothing runs for those. */
static bool
is_ours(struct http_request *req)
{
	const char *foreign = http_param(req, "INLINE_FOREIGN");

	if (foreign == NULL || strcmp(foreign, "1") != 0)
		return true;
	if (is_eval(req->path))
		refuse_eval(req, 403, "", "403 Forbidden");
	else
		api_detail(req, 403, NULL,
		    "Closed to others while IL_API_TOKENS_FILE is not set");
	return false;
}

/* May it go on?  Otherwise it was answered. */
static bool
is_allowed(struct api_app *app, struct http_request *req)
{
	static const char header[] = "WWW-Authenticate: Bearer\r\n";
	struct err err;

	for (size_t i = 0; open_paths[i] != NULL; i++)
		if (strcmp(open_paths[i], req->path) == 0)
			return true;
	if (app->tokens.path == NULL)
		return is_ours(req);
	if (tokens_refresh(&app->tokens, &err) < 0)
		log_warn("tokens: %s", err.text);
	if (tokens_find(&app->tokens, http_param(req, "HTTP_AUTHORIZATION")) !=
	    NULL)
		return true;
	if (is_eval(req->path))
		refuse_eval(req, 401, header, "401 Unauthorized");
	else
		api_detail(req, 401, header, "Not authenticated");
	return false;
}

/* Whoever is answered without having been read would see its connection break
 * before the answer. */
static void
drop_body(struct http_request *req)
{
	char piece[65536];

	while (req->unread > 0 && http_read(req, piece, sizeof(piece)) > 0)
		;
}

/* The pattern that fits, or NULL. */
static const char *
dispatch(struct api_app *app, struct http_request *req)
{
	const char *pattern = NULL;
	char id[ID_MAX] = "";

	for (size_t i = 0; i < ROUTES; i++) {
		if (!fits(routes[i].path, req->path, id))
			continue;
		pattern = routes[i].path;
		if (strcmp(routes[i].method, req->method) == 0) {
			routes[i].answer(app, req, id);
			return pattern;
		}
	}
	if (pattern == NULL)
		refuse_path(req);
	else
		refuse_method(req, pattern);
	return pattern;
}

void
api_answer(void *arg, struct http_request *req)
{
	struct api_app *app = arg;
	int64_t started = clock_monotonic_us();
	const char *pattern;
	int64_t took;

	metrics_change(&app->metrics, METRICS_REQUESTS, 1);
	pattern = is_allowed(app, req) ? dispatch(app, req) : NULL;
	drop_body(req);
	took = clock_monotonic_us() - started;
	metrics_change(&app->metrics, METRICS_REQUESTS, -1);
	metrics_request(&app->metrics, route_place(pattern), req->status, took,
	    req->length > 0 ? req->length : 0, req->sent);
	log_debug("%s %s status=%d ms=%lld", req->method, req->path,
	    req->status, (long long)(took / 1000));
}
