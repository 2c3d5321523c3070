/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../contract/code_interpreter/execute_request.h"
#include "../contract/librechat/libre_answer.h"
#include "../contract/mcp/mcp_message.h"
#include "../contract/piston/request.h"
#include "../contract/snekbox/eval_request.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"

void
reply_text(struct http_request *req, int status, const char *headers,
    const char *json)
{
	http_answer(req, status, REPLY_JSON, headers, json, strlen(json));
}

bool
reply_wants_extras(const struct http_request *req)
{
	return http_says(req, "HTTP_INLINE_EXTRAS");
}

void
reply_add_left_out(struct buf *headers, size_t count, bool more)
{
	if (count > 0 || more)
		buf_addf(headers, "Inline-Left-Out: %zu%s\r\n", count,
		    more ? "+" : "");
}

void
reply_add_interpreter(struct buf *headers, const char *name)
{
	buf_addf(headers, "Inline-Interpreter: %s\r\n", name);
}

/* ---- of either contract ---- */

/* The path is that, or below it. */
static bool
is_below(const struct http_request *req, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(req->path, prefix, len) == 0 &&
	    (req->path[len] == '\0' || req->path[len] == '/');
}

bool
reply_is_eval(const struct http_request *req)
{
	return is_below(req, "/eval");
}

static bool
is_librechat(const struct http_request *req)
{
	return is_below(req, "/librechat");
}

bool
reply_is_piston(const struct http_request *req)
{
	return is_below(req, "/api/v2");
}

static bool
is_mcp(const struct http_request *req)
{
	return is_below(req, "/mcp");
}

/* An error of JSON-RPC to no id, with the codes that nginx has as well. */
static void
reply_rpc(struct http_request *req, int status, const char *headers,
    const char *text)
{
	auto_buf struct buf body = BUF_INIT(4096);
	struct mcp_fault fault;

	(void)mcp_refuse(&fault, status,
	    status == 429 || status >= 500 ? MCP_INTERNAL : MCP_NO_REQUEST,
	    "%s", text);
	mcp_add_error(&body, NULL, &fault);
	reply_text(req, status, headers, buf_str(&body));
}

/* {"message": …} */
static void
reply_message(struct http_request *req, int status, const char *headers,
    const char *text)
{
	struct piston_refusal refusal;

	(void)piston_refuse(&refusal, status, "%s", text);
	http_answer(req, status, REPLY_JSON, headers, buf_str(&refusal.body),
	    refusal.body.len);
	buf_release(&refusal.body);
}

void
reply_error(struct http_request *req, int status, const char *headers,
    const char *text)
{
	if (is_librechat(req))
		reply_librechat(req, status, headers, text, NULL);
	else if (reply_is_eval(req))
		/* Its titles are enough, but for what to do next. */
		reply_eval(req, status, headers,
		    status == 403 || status == 404 || status == 429 ? text :
								      NULL);
	else if (reply_is_piston(req))
		reply_message(req, status, headers, text);
	else if (is_mcp(req))
		reply_rpc(req, status, headers, text);
	else
		reply_detail(req, status, headers, "%s", text);
}

void
reply_more(struct http_request *req, int64_t seconds, const char *text)
{
	auto_buf struct buf body = BUF_INIT(4096);
	char headers[64];

	(void)snprintf(headers, sizeof(headers), "Retry-After: %" PRId64 "\r\n",
	    seconds);
	if (!is_librechat(req)) {
		reply_error(req, 429, headers, text);
		return;
	}
	libre_add_rate_limited(&body, text, seconds);
	reply_text(req, 429, headers, buf_str(&body));
}

void
reply_busy(struct http_request *req)
{
	reply_error(req, reply_is_piston(req) ? 429 : 503, "Retry-After: 1\r\n",
	    "There is no cell to run it in just now");
}

void
reply_failed(struct http_request *req, const char *headers)
{
	static const char text[] = "Internal Server Error";

	if (is_librechat(req))
		reply_error(req, 500, headers, "Internal server error");
	else if (reply_is_eval(req))
		reply_eval(req, 500, headers, NULL);
	else if (reply_is_piston(req))
		reply_message(req, 500, headers, text);
	else if (is_mcp(req))
		reply_rpc(req, 500, headers, text);
	else
		http_answer(req, 500, "text/plain; charset=utf-8", headers,
		    text, strlen(text));
}

/* ---- of the code-interpreter's routes ---- */

void
reply_refuse(struct http_request *req, const char *headers,
    struct detail *detail)
{
	http_answer(req, detail->status, REPLY_JSON, headers,
	    buf_str(&detail->body), detail->body.len);
	buf_release(&detail->body);
}

void
reply_detail(struct http_request *req, int status, const char *headers,
    const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(65536);
	struct detail detail;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	(void)detail_bytes(&detail, status, buf_str(&text), text.len);
	reply_refuse(req, headers, &detail);
}

/* ---- of /eval ---- */

void
reply_eval_refusal(struct http_request *req, const char *headers,
    struct eval_refusal *refusal)
{
	const char *type = eval_refusal_type(http_param(req, "HTTP_ACCEPT"));
	auto_buf struct buf body = BUF_INIT(8 * EVAL_DESCRIPTION_MAX);
	auto_buf struct buf all = BUF_INIT(1024);

	/* What the client prefers is in its Accept header; caches be told. */
	eval_refusal_add(&body, refusal, type);
	buf_addf(&all, "%sVary: Accept\r\n", headers == NULL ? "" : headers);
	http_answer(req, refusal->status, type, buf_str(&all), buf_str(&body),
	    body.len);
	buf_release(&refusal->description);
}

void
reply_eval(struct http_request *req, int status, const char *headers,
    const char *description)
{
	struct eval_refusal refusal;

	(void)eval_refuse(&refusal, status, http_status(status));
	if (description != NULL)
		buf_adds(&refusal.description, description);
	reply_eval_refusal(req, headers, &refusal);
}

/* ---- of LibreChat's routes ---- */

void
reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details)
{
	auto_buf struct buf body = BUF_INIT(65536);

	libre_add_error(&body, error, details);
	reply_text(req, status, headers, buf_str(&body));
}
