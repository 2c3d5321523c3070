/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <string.h>

#include "../contract/detail.h"
#include "../contract/eval_refusal.h"
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
	const char *extras = http_param(req, "HTTP_INLINE_EXTRAS");

	return extras != NULL && strcmp(extras, "1") == 0;
}

/* ---- of either contract ---- */

bool
reply_is_eval(const struct http_request *req)
{
	return strncmp(req->path, "/eval", 5) == 0 &&
	    (req->path[5] == '\0' || req->path[5] == '/');
}

void
reply_error(struct http_request *req, int status, const char *headers,
    const char *text)
{
	if (reply_is_eval(req))
		/* Its titles are enough, but for which limit it is. */
		reply_eval(req, status, headers, status == 429 ? text : NULL);
	else
		reply_detail(req, status, headers, "%s", text);
}

void
reply_busy(struct http_request *req)
{
	reply_error(req, 503, "Retry-After: 1\r\n",
	    "There is no cell to run it in just now");
}

void
reply_failed(struct http_request *req, const char *headers)
{
	static const char text[] = "Internal Server Error";

	if (reply_is_eval(req))
		reply_eval(req, 500, headers, NULL);
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
