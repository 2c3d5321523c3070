/* SPDX-License-Identifier: MIT */
/*
 * What needs no more than a glance: how it is, what there is, the pages.
 */

#include <string.h>

#include "app.h"
#include "gate.h"
#include "pages.h"
#include "reply.h"
#include "routes.h"
#include "../contract/snekbox/eval_answer.h"
#include "../server/health.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/exposition.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/lease.h"

#define METRICS_MAX (1 << 20)
#define METRICS_TOKEN "prometheus" /* the one that others need for them */
#define NO_STORE "Cache-Control: no-store\r\n"

/* Always 200: what is wrong stands in the body. */
void
api_health(struct api_app *app, struct http_request *req)
{
	auto_free char *body = health_json(app->config, !gate_knows(app, req));

	if (body != NULL)
		reply_text(req, 200, NO_STORE, body);
	else
		reply_text(req, 500, NO_STORE,
		    "{\"status\":\"error\",\"message\":\"The health cannot be "
		    "written\"}");
}

/* LibreChat's operators look at the status alone. */
void
api_librechat_health(struct api_app *app, struct http_request *req)
{
	static const char well[] = "{\"status\":\"ok\"";
	auto_free char *body = health_json(app->config, true);

	if (body != NULL && strncmp(body, well, strlen(well)) == 0)
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
	auto_buf struct buf broker = BUF_INIT(FRAME_MAX);
	auto_buf struct buf front = BUF_INIT(HEALTH_METRICS_MAX);
	struct metrics_others others = { &broker, &front };
	int64_t bytes;
	int64_t files;
	struct err err;

	if (gate_is_foreign(req) &&
	    strcmp(app->token.name, METRICS_TOKEN) != 0) {
		reply_error(req, 403, NULL,
		    "For this machine, or with the token " METRICS_TOKEN
		    "; /docs says more");
		return;
	}
	if (lease_metrics(app->lease_socket, &broker, HEALTH_WAIT_MS, &err) !=
	    REFUSAL_NONE) {
		log_warn("metrics: %s", err.text);
		others.broker = NULL;
	}
	if (health_read_metrics(app->config, &front, &err) != 0) {
		log_warn("metrics: %s", err.text);
		others.front = NULL;
	}
	filestore_usage(&app->store, &bytes, &files);
	metrics_add(&body, &app->metrics, &others, bytes, files,
	    app->store.limits.quota);
	health_add_condition(&body, app->config);
	http_answer(req, 200, EXPOSITION_TYPE, NO_STORE, buf_str(&body),
	    body.len);
}

void
api_openapi(struct api_app *app, struct http_request *req)
{
	(void)app;
	http_answer(req, 200, REPLY_JSON, NULL, pages_openapi,
	    pages_openapi_len);
}

void
api_docs(struct api_app *app, struct http_request *req)
{
	(void)app;
	http_answer(req, 200, PAGES_DOCS_TYPE, pages_docs_headers, pages_docs,
	    pages_docs_len);
}
