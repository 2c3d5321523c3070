/* SPDX-License-Identifier: MIT */
#include "routes.h"

#include <string.h>

#include "app.h"
#include "gate.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/base/text.h"

#define ID_MAX 16384 /* nginx takes no line as long as this */
/* What may be in a URL beside letters and digits. */
#define URL_CHARS "_.-~:/%#?=@[]!$&'()*+,;"
#define LOCATION_MAX 65536
#define READER_MS 120000 /* from the answer's head on */

struct route {
	const char *method;
	const char *path;
	api_route_fn *answer;
	enum gate_use use;
	bool head;
};

static const struct route routes[] = {
#define ROUTE(method, path, function, use, head) \
	{ method, path, api_##function, GATE_##use, head },
#include "routes.def"
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const char *const api_route_names[] = {
#define ROUTE(method, path, function, use, head) path,
#include "routes.def"
	"other",
	NULL,
};

_Static_assert(ROUTES < METRICS_ROUTES_MAX, "each has its counters");

/* Where a request goes. */
struct place {
	const struct route *route; /* NULL: not with this method */
	size_t first; /* row of the path; ROUTES: there is no such path */
	enum gate_use use;
	char id[ID_MAX];
};

/* Does the path fit the pattern?  id gets what stands for its {…}. */
static bool
fits(const char *pattern, const char *path, char id[ID_MAX])
{
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
	if (len == 0 || len >= ID_MAX || strcmp(pattern, path + len) != 0)
		return false;
	memcpy(id, path, len);
	id[len] = '\0';
	return true;
}

static void
find(struct place *place, const char *method, const char *path)
{
	place->route = NULL;
	place->first = ROUTES;
	place->use = GATE_GLANCE;
	place->id[0] = '\0';
	for (size_t i = 0; i < ROUTES && place->route == NULL; i++) {
		if (!fits(routes[i].path, path, place->id))
			continue;
		if (place->first == ROUTES)
			place->first = i;
		place->use = routes[i].use;
		if (strcmp(routes[i].method, method) == 0 ||
		    (routes[i].head && strcmp(method, "HEAD") == 0))
			place->route = &routes[i];
	}
}

/* A path with slashes at its end goes to the one without, as the contract's
 * framework has it.  False: there is none either. */
static bool
redirect(struct http_request *req)
{
	auto_buf struct buf headers = BUF_INIT(LOCATION_MAX);
	auto_free char *path = xstrdup(req->path);
	const char *host = http_param(req, "HTTP_HOST");
	const char *scheme = http_param(req, "REQUEST_SCHEME");
	size_t len = strlen(path);
	struct place place;

	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
	if (reply_is_eval(req) || req->path[len] == '\0')
		return false;
	find(&place, req->method, path);
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

static void
refuse_method(struct http_request *req, const char *path)
{
	auto_buf struct buf allow = BUF_INIT(256);
	bool eval = reply_is_eval(req);

	if (eval && strcmp(req->method, "OPTIONS") == 0) {
		http_answer(req, 200, NULL, "Allow: POST\r\n", "", 0);
		return;
	}
	for (size_t i = 0; i < ROUTES; i++)
		if (strcmp(routes[i].path, path) == 0)
			buf_addf(&allow, "%s%s%s",
			    allow.len == 0 ? "Allow: " : ", ", routes[i].method,
			    routes[i].head ? ", HEAD" : "");
	buf_adds(&allow, eval ? ", OPTIONS\r\n" : "\r\n");
	reply_error(req, 405, buf_str(&allow), "Method Not Allowed");
}

static void
dispatch(struct api_app *app, struct http_request *req,
    const struct place *place)
{
	enum gate_use use = place->use;

	if (place->first == ROUTES && !req->gate && redirect(req))
		return;
	if (place->route == NULL && use != GATE_OPEN)
		use = GATE_GLANCE; /* nothing will run */
	if (!gate_enter(app, req, use))
		return;
	/* What it holds up are processes of its own kind, and its slot. */
	if (use == GATE_CELL || use == GATE_COMMAND)
		http_allow_slow_reader(req, READER_MS);
	if (req->gate)
		http_answer(req, 204, NULL, NULL, "", 0);
	else if (place->route != NULL)
		place->route->answer(app, req);
	else if (place->first < ROUTES)
		refuse_method(req, routes[place->first].path);
	else
		reply_error(req, 404, NULL, "Not Found");
	gate_leave(app);
}

/* A request, and the end of all waits for it: found, let in, answered, counted.
 */
bool
api_answer(void *arg, struct http_request *req, size_t index)
{
	struct api_app *app = arg;
	int64_t started_us = clock_monotonic_us();
	int64_t waited_us = http_waited_us(req);
	int64_t took_us;
	struct place place;

	(void)index;
	find(&place, req->method, req->path);
	app->id = place.id;
	if (!req->gate) {
		if (waited_us >= 0)
			metrics_queued(&app->metrics, waited_us);
		metrics_change(&app->metrics, METRICS_REQUESTS, 1);
	}
	/* Nothing is done for who hung up while it waited.  (Of a run that is
	 * found out, and counted, when its cell is asked for.) */
	if (req->gate || place.use == GATE_CELL || !http_client_gone(req))
		dispatch(app, req, &place);
	app->id = "";
	/* Whoever is answered without having been read would see its connection
	 * break before the answer. */
	if (!req->gate && req->unread > 0) {
		char piece[65536];

		while (http_read(req, piece, sizeof(piece)) > 0)
			continue;
	}
	if (!req->gate)
		metrics_change(&app->metrics, METRICS_REQUESTS, -1);
	/* What may come is counted when it has come. */
	if (req->gate && req->status < 400)
		return false;
	took_us = clock_monotonic_us() - started_us;
	metrics_request(&app->metrics, place.first, req->status, took_us,
	    req->length > 0 ? req->length : 0, req->sent);
	log_debug("%s %s status=%d ms=%lld", req->method, req->path,
	    req->status, (long long)(took_us / 1000));
	return false;
}
