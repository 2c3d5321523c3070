#include "routes.h"

#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "gate.h"
#include "reply.h"
#include "../contract/eval_refusal.h"
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

/* By which requests are counted: each path once, "other", NULL. */
static const char *names[ROUTES + 2];

const char *const *
api_route_names(void)
{
	size_t count = 0;

	for (size_t i = 0; i < ROUTES; i++)
		if (i == 0 || strcmp(routes[i].path, routes[i - 1].path) != 0)
			names[count++] = routes[i].path;
	names[count] = "other";
	return names;
}

/* ---- finding ---- */

/* Where a request goes. */
struct place {
	const struct route *route; /* NULL: not with this method */
	const char *pattern;	   /* NULL: nowhere at all */
	enum gate_use use;	   /* of the pattern */
	char id[ID_MAX];
};

/* Does the path fit the pattern?  id gets what stands for its {…}. */
static bool
fits(const char *pattern, const char *path, size_t path_len, char id[ID_MAX])
{
	size_t fixed = strcspn(pattern, "{");
	const char *end = path + path_len;
	const char *slash;
	size_t len;

	if (pattern[fixed] == '\0')
		return path_len == fixed && memcmp(pattern, path, fixed) == 0;
	if (path_len <= fixed || memcmp(pattern, path, fixed) != 0)
		return false;
	path += fixed;
	pattern += fixed + strcspn(pattern + fixed, "}") + 1;
	slash = memchr(path, '/', (size_t)(end - path));
	len = (size_t)((slash == NULL ? end : slash) - path);
	if (len == 0 || len >= ID_MAX ||
	    (size_t)(end - path) - len != strlen(pattern) ||
	    memcmp(pattern, path + len, strlen(pattern)) != 0)
		return false;
	memcpy(id, path, len);
	id[len] = '\0';
	return true;
}

static bool
takes(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	    (route->head && strcmp(method, "HEAD") == 0);
}

static void
find(struct place *place, const char *method, const char *path, size_t path_len)
{
	place->route = NULL;
	place->pattern = NULL;
	place->use = GATE_GLANCE;
	place->id[0] = '\0';
	for (size_t i = 0; i < ROUTES && place->route == NULL; i++) {
		if (!fits(routes[i].path, path, path_len, place->id))
			continue;
		place->pattern = routes[i].path;
		place->use = routes[i].use;
		if (takes(&routes[i], method))
			place->route = &routes[i];
	}
}

/* A path with slashes at its end goes to the one without, as the contract's
 * framework has it.  False: there is none either. */
static bool
redirect(struct http_request *req)
{
	auto_buf struct buf headers = BUF_INIT(LOCATION_MAX);
	const char *host = http_param(req, "HTTP_HOST");
	const char *scheme = http_param(req, "REQUEST_SCHEME");
	size_t len = strlen(req->path);
	struct place place;

	while (len > 0 && req->path[len - 1] == '/')
		len--;
	if (reply_is_eval(req) || req->path[len] == '\0')
		return false;
	find(&place, req->method, req->path, len);
	if (place.pattern == NULL)
		return false;
	buf_adds(&headers, "Location: ");
	if (host != NULL && host[0] != '\0') {
		buf_addf(&headers, "%s://", scheme == NULL ? "http" : scheme);
		text_add_escaped(&headers, host, strlen(host), URL_CHARS);
	}
	text_add_escaped(&headers, req->path, len, URL_CHARS);
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
refuse_path(struct http_request *req)
{
	if (reply_is_eval(req))
		reply_refuse_eval(req, 404, "", EVAL_TITLE_NOT_FOUND, NULL);
	else
		reply_detail(req, 404, NULL, "Not Found");
}

static void
refuse_method(struct http_request *req, const char *pattern)
{
	auto_buf struct buf allow = BUF_INIT(256);

	if (reply_is_eval(req) && strcmp(req->method, "OPTIONS") == 0) {
		http_answer(req, 200, NULL, "Allow: POST\r\n", "", 0);
		return;
	}
	if (reply_is_eval(req)) {
		reply_refuse_eval(req, 405, "Allow: POST, OPTIONS\r\n",
		    EVAL_TITLE_METHOD, NULL);
		return;
	}
	for (size_t i = 0; i < ROUTES; i++)
		if (strcmp(routes[i].path, pattern) == 0)
			buf_addf(&allow, "%s%s%s",
			    allow.len == 0 ? "Allow: " : ", ", routes[i].method,
			    routes[i].head ? ", HEAD" : "");
	buf_adds(&allow, "\r\n");
	reply_detail(req, 405, buf_str(&allow), "Method Not Allowed");
}

/* Which name it is counted under. */
static size_t
route_place(const char *pattern)
{
	size_t i = 0;

	while (names[i + 1] != NULL &&
	    (pattern == NULL || strcmp(names[i], pattern) != 0))
		i++;
	return i;
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

static void
dispatch(struct api_app *app, struct http_request *req,
    const struct place *place)
{
	enum gate_use use = place->use;

	if (place->pattern == NULL && !req->gate && redirect(req))
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
		place->route->answer(app, req, place->id);
	else if (place->pattern != NULL)
		refuse_method(req, place->pattern);
	else
		refuse_path(req);
	gate_leave(app);
}

static void
count(struct api_app *app, const struct http_request *req,
    const struct place *place, int64_t took_us)
{
	metrics_request(&app->metrics, route_place(place->pattern), req->status,
	    took_us, req->length > 0 ? req->length : 0, req->sent);
	log_debug("%s %s status=%d ms=%lld", req->method, req->path,
	    req->status, (long long)(took_us / 1000));
}

void
api_answer(void *arg, struct http_request *req)
{
	struct api_app *app = arg;
	int64_t started = clock_monotonic_us();
	int64_t waited = http_waited_us(req);
	struct place place;

	find(&place, req->method, req->path, strlen(req->path));
	if (req->gate) {
		dispatch(app, req, &place);
		/* What may come is counted when it has come. */
		if (req->status >= 400)
			count(app, req, &place, clock_monotonic_us() - started);
		return;
	}
	if (waited >= 0)
		metrics_queued(&app->metrics, waited);
	metrics_change(&app->metrics, METRICS_REQUESTS, 1);
	/* Nothing is done for who hung up while it waited.  (Of a run that is
	 * found out, and counted, when its cell is asked for.) */
	if (place.use == GATE_CELL || !http_client_gone(req))
		dispatch(app, req, &place);
	drop_body(req);
	metrics_change(&app->metrics, METRICS_REQUESTS, -1);
	count(app, req, &place, clock_monotonic_us() - started);
}
