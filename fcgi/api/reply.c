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

void
reply_detail(struct http_request *req, int status, const char *headers,
    const char *text)
{
	auto_buf struct buf body = BUF_INIT(1024);

	buf_addf(&body, "{\"detail\":\"%s\"}", text);
	reply_text(req, status, headers, buf_str(&body));
}

void
reply_refuse(struct http_request *req, struct detail *detail)
{
	http_answer(req, detail->status, REPLY_JSON, NULL,
	    buf_str(&detail->body), detail->body.len);
	detail_release(detail);
}

void
reply_busy(struct http_request *req)
{
	reply_detail(req, 503, "Retry-After: 1\r\n",
	    "There is no cell to run it in just now");
}

void
reply_fail(struct http_request *req, const char *headers)
{
	static const char text[] = "Internal Server Error";

	http_answer(req, 500, "text/plain; charset=utf-8", headers, text,
	    strlen(text));
}

void
reply_failed(struct http_request *req)
{
	reply_fail(req, NULL);
}

bool
reply_read_body(struct http_request *req, struct buf *body)
{
	if (req->length <= (int64_t)body->max)
		return http_read_all(req, body);
	reply_detail(req, 413, NULL, "The body is too long");
	return false;
}

bool
reply_wants_extras(const struct http_request *req)
{
	const char *extras = http_param(req, "HTTP_INLINE_EXTRAS");

	return extras != NULL && strcmp(extras, "1") == 0;
}

/* ---- /eval ---- */

bool
reply_is_eval(const struct http_request *req)
{
	return strncmp(req->path, "/eval", 5) == 0 &&
	    (req->path[5] == '\0' || req->path[5] == '/');
}

void
reply_eval_refusal(struct http_request *req, const struct eval_refusal *refusal,
    const char *headers)
{
	const char *type = eval_refusal_type(http_param(req, "HTTP_ACCEPT"));
	auto_buf struct buf body = BUF_INIT(8 * EVAL_DESCRIPTION_MAX);
	auto_buf struct buf all = BUF_INIT(1024);

	eval_refusal_add(&body, refusal, type);
	buf_addf(&all, "%sVary: Accept\r\n", headers);
	http_answer(req, refusal->status, type, buf_str(&all), buf_str(&body),
	    body.len);
}

void
reply_refuse_eval(struct http_request *req, int status, const char *headers,
    const char *title, const char *description)
{
	struct eval_refusal refusal;

	if (description == NULL)
		(void)eval_refuse(&refusal, status, title);
	else
		(void)eval_refuse_with(&refusal, status, title, "%s",
		    description);
	reply_eval_refusal(req, &refusal, headers);
	eval_refusal_release(&refusal);
}
