/* SPDX-License-Identifier: MIT */
#include "api/routes.h"

#include <string.h>

#include "api/app.h"
#include "api/gate.h"
#include "api/librechat_who.h"
#include "contract/json.h"
#include "contract/snekbox/eval_message.h"
#include "server/health.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "protocol/lease.h"

#define METRICS_MAX (1 << 20)
#define METRICS_TOKEN "prometheus" /* name of the token for other machines */
#define NO_STORE "Cache-Control: no-store\r\n"
#define IDS 2	     /* in one path */
#define ID_MAX 16384 /* nginx takes no line as long as this */
/* Characters of a URL beside letters and digits. */
#define URL_CHARS "_.-~:/%#?=@[]!$&'()*+,;"
#define LOCATION_MAX 65536
#define READER_MS 120000 /* from the answer's head on */

/* ---- read-only routes ---- */

/* Always 200: the body says what is wrong. */
void
api_health(struct api_app *app, struct http_request *req)
{
	auto_free char *body = health_json(app->config, !gate_knows(app, req));

	if (body != NULL)
		reply_text(req, 200, NO_STORE, body);
	else
		reply_failed(req, NO_STORE);
}

/* LibreChat's operators read the status alone. */
void
api_librechat_health(struct api_app *app, struct http_request *req)
{
	struct health health;

	health_gather(&health, app->config);
	if (health.verdict.what == CONDITION_WELL)
		http_answer(req, 200, "text/plain; charset=utf-8", NO_STORE,
		    "OK", 2);
	else
		reply_librechat(req, 503, NO_STORE,
		    "Inline cannot run code just now; GET /health says why",
		    NULL);
}

void
api_versions(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(64 << 10);

	eval_add_versions(&body, app->interpreters);
	reply_text(req, 200, NULL, buf_str(&body));
}

void
api_metrics(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(METRICS_MAX);
	struct health health;

	if (gate_is_foreign(req) &&
	    strcmp(app->token.name, METRICS_TOKEN) != 0) {
		reply_refuse(req, 403, NULL,
		    "For this machine, or with the token " METRICS_TOKEN
		    "; /docs says more");
		return;
	}
	health_gather(&health, app->config);
	metrics_add(&body, &app->metrics, app->config, &health, &app->store);
	http_answer(req, 200, METRICS_TYPE, NO_STORE, buf_str(&body), body.len);
}

void
api_openapi(struct api_app *app, struct http_request *req)
{
	(void)app;
	http_answer(req, 200, REPLY_JSON, NULL, pages_openapi,
	    pages_openapi_len);
}

/* The page, with what is set in the places of @@NAMES@@ (docs/guide.html). */
static void
docs_add(struct buf *page, const struct config *c)
{
	const struct {
		const char *name;
		double number;
		int64_t bytes; /* 0: the number counts */
	} limits[] = {
		{ "CELLS@@", (double)c->api_cells, 0 },
		{ "QUEUE@@", (double)c->api_queue, 0 },
		{ "SESSIONS@@", (double)c->api_sessions, 0 },
		{ "KEEP@@", (double)c->api_files_ms / 1000, 0 },
		{ "PISTON@@", (double)c->piston_timeout_ms / 1000, 0 },
		{ "MEMORY@@", 0, c->api_memory },
		{ "STORE@@", 0, c->api_files_quota },
	};
	const char *at = pages_docs;

	for (const char *mark; (mark = strstr(at, "@@")) != NULL;) {
		buf_add(page, at, (size_t)(mark - at));
		at = mark + 2;
		for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
			size_t len = strlen(limits[i].name);

			if (strncmp(at, limits[i].name, len) != 0)
				continue;
			if (limits[i].bytes != 0)
				buf_adds(page, text_size(limits[i].bytes).text);
			else
				buf_addf(page, "%.10g", limits[i].number);
			at += len;
		}
	}
	buf_adds(page, at);
}

void
api_docs(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf page = BUF_INIT(pages_docs_len + 4096);

	docs_add(&page, app->config);
	http_answer(req, 200, PAGES_DOCS_TYPE, pages_docs_headers,
	    buf_str(&page), page.len);
}

struct route {
	const char *contract;
	const char *method;
	const char *path;
	api_route_fn *answer;
	enum gate_use use;
	bool head;
};

static const struct route routes[] = {
#define ROUTE(contract, method, path, function, use, head, class) \
	{ contract, method, path, api_##function, GATE_##use, head },
#include "api/routes.def"
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const char *const api_route_names[] = {
#define ROUTE(contract, method, path, function, use, head, class) path,
#include "api/routes.def"
	"other",
	"/api/v2/connect",
	NULL,
};
const size_t api_route_connect = ROUTES + 1;

_Static_assert(ROUTES + 1 < COUNTERS_route, "each has its counters");

/* Where a request goes. */
struct place {
	const struct route *route; /* NULL: not with this method */
	size_t first; /* first row of the path; ROUTES: there is none */
	enum gate_use use;
	__typeof__(gate_by_token) *scheme;
	char ids[IDS][ID_MAX];
};

/* Does the path fit the pattern?  ids get the values of its {…}. */
static bool
fits(const char *pattern, const char *path, char ids[IDS][ID_MAX])
{
	for (size_t i = 0;; i++) {
		size_t fixed = strcspn(pattern, "{");
		size_t len;

		if (strncmp(pattern, path, fixed) != 0)
			return false;
		pattern += fixed;
		path += fixed;
		if (*pattern == '\0')
			return *path == '\0';
		pattern = strchr(pattern, '}') + 1;
		len = strcspn(path, "/");
		if (i == IDS || len == 0 || len >= ID_MAX)
			return false;
		memcpy(ids[i], path, len);
		ids[i][len] = '\0';
		path += len;
	}
}

/* "" is always served. */
static bool
is_served(const char *contract, const char *contracts)
{
	size_t len = strlen(contract);
	const char *at = contracts;

	if (len == 0 || strcmp(contracts, "all") == 0)
		return true;
	for (; (at = strstr(at, contract)) != NULL; at += len)
		if ((at == contracts || at[-1] == ',') &&
		    (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

bool
api_serves_connect(const struct api_app *app)
{
	return is_served("piston", app->config->api_contracts);
}

static void
routes_find(struct place *place, const char *contracts, const char *method,
    const char *path)
{
	place->route = NULL;
	place->first = ROUTES;
	place->use = GATE_GLANCE;
	/* LibreChat's contract has its own scheme, also where it has no route.
	 */
	place->scheme = reply_contract(path) == REPLY_LIBRECHAT &&
		is_served("librechat", contracts) ?
	    librechat_identify :
	    gate_by_token;
	for (size_t i = 0; i < ROUTES && place->route == NULL; i++) {
		place->ids[0][0] = place->ids[1][0] = '\0';
		if (!is_served(routes[i].contract, contracts) ||
		    !fits(routes[i].path, path, place->ids))
			continue;
		if (place->first == ROUTES)
			place->first = i;
		place->use = routes[i].use;
		if (strcmp(routes[i].method, method) == 0 ||
		    (routes[i].head && strcmp(method, "HEAD") == 0))
			place->route = &routes[i];
	}
}

/* Redirect a path with slashes at its end to the one without, as the contract's
 * framework does.  False: there is no such path either. */
static bool
redirect(const struct api_app *app, struct http_request *req)
{
	auto_buf struct buf headers = BUF_INIT(LOCATION_MAX);
	auto_free char *path = xstrdup(req->path);
	const char *host = http_param(req, "HTTP_HOST");
	const char *scheme = http_param(req, "REQUEST_SCHEME");
	enum reply_contract contract = reply_contract(path);
	size_t len = strlen(path);
	struct place place;

	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
	if (contract == REPLY_EVAL || contract == REPLY_PISTON ||
	    req->path[len] == '\0')
		return false;
	routes_find(&place, app->config->api_contracts, req->method, path);
	if (place.first == ROUTES)
		return false;
	buf_adds(&headers, "Location: ");
	if (host != NULL && host[0] != '\0') {
		buf_addf(&headers, "%s://", scheme == NULL ? "http" : scheme);
		text_add_escaped(&headers, host, strlen(host), URL_CHARS);
	}
	text_add_escaped(&headers, path, len, URL_CHARS);
	if (req->query[0] != '\0') {
		buf_addc(&headers, '?');
		text_add_escaped(&headers, req->query, strlen(req->query),
		    URL_CHARS);
	}
	buf_adds(&headers, "\r\n");
	if (headers.overflow)
		return false;
	http_answer(req, 307, NULL, buf_str(&headers), "", 0);
	return true;
}

/* "Allow: GET, HEAD" of all rows that have this path. */
static void
add_allowed(struct buf *allow, const char *path, const char *between)
{
	for (size_t i = 0; i < ROUTES; i++)
		if (strcmp(routes[i].path, path) == 0)
			buf_addf(allow, "%s%s%s%s",
			    allow->len == 0 ? "Allow: " : between,
			    routes[i].method, routes[i].head ? between : "",
			    routes[i].head ? "HEAD" : "");
}

static void
refuse_method(struct http_request *req, const char *path)
{
	auto_buf struct buf allow = BUF_INIT(256);
	bool eval = reply_contract(path) == REPLY_EVAL;

	if (eval && strcmp(req->method, "OPTIONS") == 0) {
		http_answer(req, 200, NULL, "Allow: POST\r\n", "", 0);
		return;
	}
	add_allowed(&allow, path, ", ");
	buf_adds(&allow, eval ? ", OPTIONS\r\n" : "\r\n");
	reply_refuse(req, 405, buf_str(&allow), "Method Not Allowed");
}

/* Piston's contract knows no 405, and checks for the JSON type first: a page of
 * another site cannot send that type without a preflight.  False: the route may
 * answer. */
static bool
refuse_piston(struct http_request *req, const struct place *place)
{
	static const char *const bodies[] = { "POST", "PUT", "DELETE" };
	auto_buf struct buf allow = BUF_INIT(256);

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		if (strcmp(req->method, bodies[i]) == 0 &&
		    !fields_is_json(http_param(req, "CONTENT_TYPE"))) {
			reply_refuse(req, 415, NULL,
			    "requests must be of type application/json");
			return true;
		}
	if (place->route != NULL)
		return false;
	if (place->first == ROUTES || strcmp(req->method, "OPTIONS") != 0) {
		reply_refuse(req, 404, NULL, REPLY_NOT_FOUND);
		return true;
	}
	add_allowed(&allow, routes[place->first].path, ",");
	buf_adds(&allow, "\r\n");
	http_answer(req, 200, "text/plain; charset=utf-8", buf_str(&allow),
	    buf_str(&allow) + strlen("Allow: "),
	    allow.len - strlen("Allow: \r\n"));
	return true;
}

static void
dispatch(struct api_app *app, struct http_request *req,
    const struct place *place)
{
	enum gate_use use = place->use;

	if (app->nodes != NULL && nodes_serve_file(app, req))
		return;
	if (place->first == ROUTES && !req->gate && redirect(app, req))
		return;
	if (place->route == NULL && use != GATE_OPEN)
		use = GATE_GLANCE; /* nothing will run */
	if (!gate_enter(app, req, use, place->scheme))
		return;
	/* A slow reader holds up processes of this kind, and its own slot. */
	if (use != GATE_OPEN && use != GATE_GLANCE)
		http_allow_slow_reader(req, READER_MS);
	if (req->gate)
		http_answer(req, 204, NULL, NULL, "", 0);
	else if (reply_contract(req->path) == REPLY_PISTON &&
	    refuse_piston(req, place))
		; /* it was answered */
	else if (place->route != NULL)
		place->route->answer(app, req);
	else if (place->first < ROUTES)
		refuse_method(req, routes[place->first].path);
	else
		reply_refuse(req, 404, NULL, REPLY_NOT_FOUND);
	gate_leave(app);
}

/* A client that is answered before its body was read would see the connection
 * break before the answer. */
static void
routes_drain(struct http_request *req)
{
	char piece[65536];

	while (req->unread > 0 && http_read(req, piece, sizeof(piece)) > 0)
		continue;
}

/* Pass the request on to the node that has the path's session or file.  That
 * node counts it. */
static bool
routes_pass_on(const struct api_app *app, struct http_request *req,
    const struct route *route)
{
	if (app->nodes == NULL || req->gate || route == NULL ||
	    !nodes_pass_on(app, req, app->id,
		strcmp(route->contract, "librechat") == 0 ? NODES_TO_LIBRECHAT :
							    NODES_TO_V1))
		return false;
	routes_drain(req);
	return true;
}

/* Answer a request: find its route, pass the gate, answer, count. */
bool
api_answer(void *arg, struct http_request *req, size_t index)
{
	struct api_app *app = arg;
	int64_t started_us = clock_monotonic_us();
	int64_t waited_us = http_waited_us(req);
	int64_t took_us;
	struct place place;

	(void)index;
	routes_find(&place, app->config->api_contracts, req->method, req->path);
	app->id = place.ids[0];
	app->second_id = place.ids[1];
	if (app->nodes != NULL)
		node_table_refresh(app->nodes, started_us / 1000);
	app->store.owner = app->owner;
	app->fetched = 0;
	app->away[0] = '\0';
	if (routes_pass_on(app, req, place.route))
		return false;
	if (!req->gate) {
		if (waited_us >= 0)
			metrics_queued(&app->metrics, waited_us);
		metrics_change(&app->metrics, METRICS_REQUESTS, 1);
	}
	/* A client that hung up while it waited gets nothing.  (A run notices
	 * that when it asks for its cell, and counts it.) */
	if (req->gate || place.use == GATE_CELL || place.use == GATE_SESSION ||
	    !http_client_gone(req))
		dispatch(app, req, &place);
	app->id = app->second_id = "";
	if (!req->gate) {
		routes_drain(req);
		metrics_change(&app->metrics, METRICS_REQUESTS, -1);
	}
	/* A request that nginx may read is counted when it comes itself. */
	if (req->gate && req->status < 400)
		return false;
	took_us = clock_monotonic_us() - started_us;
	metrics_request(&app->metrics, place.first, req->status, took_us,
	    req->length > 0 ? req->length : 0, req->sent);
	log_debug("%s %s status=%d ms=%lld", req->method, req->path,
	    req->status, (long long)(took_us / 1000));
	return false;
}
