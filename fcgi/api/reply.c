/* SPDX-License-Identifier: MIT */
#include "api/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contract/code_interpreter/execute_message.h"
#include "contract/librechat/libre_answer.h"
#include "contract/mcp/mcp_message.h"
#include "contract/piston/piston_request.h"
#include "contract/snekbox/eval_message.h"
#include "server/http.h"

#include "base/basics.h"

#define PIECE 65536
#define HEADERS_MAX ((size_t)1 << 20)
#define READER_BYTES_A_MS 32

void
reply_text(struct http_request *req, int status, const char *headers,
    const char *json)
{
	http_answer(req, status, REPLY_JSON, headers, json, strlen(json));
}

void
reply_json(struct http_request *req, int status, const char *headers,
    struct buf *body)
{
	http_answer(req, status, REPLY_JSON, headers, buf_str(body), body->len);
	buf_release(body);
}

void
reply_file(struct http_request *req, const char *type, const char *headers,
    int fd, int64_t size, int64_t whole_ms)
{
	auto_buf struct buf all = BUF_INIT(HEADERS_MAX);
	char piece[PIECE];
	ssize_t n;

	buf_addf(&all, "Content-Length: %" PRId64 "\r\n%s", size, headers);
	http_allow_slow_reader(req, whole_ms);
	http_begin(req, 200, type, buf_str(&all));
	while (!req->failed && (n = read(fd, piece, sizeof(piece))) > 0)
		http_write(req, piece, (size_t)n);
}

void
reply_download(struct http_request *req, const char *type,
    const char *disposition, int fd, int64_t size)
{
	auto_buf struct buf headers = BUF_INIT(HEADERS_MAX);

	buf_addf(&headers,
	    "X-Content-Type-Options: nosniff\r\nContent-Disposition: %s\r\n",
	    disposition);
	reply_file(req, type, buf_str(&headers), fd, size,
	    REPLY_READER_MS + size / READER_BYTES_A_MS);
}

/* ---- of any contract ---- */

enum reply_contract
reply_contract(const char *path)
{
	static const char *const prefixes[] = {
		[REPLY_EVAL] = "/eval",
		[REPLY_PISTON] = "/api/v2",
		[REPLY_LIBRECHAT] = "/librechat",
		[REPLY_MCP] = "/mcp",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(path, prefixes[i], len) == 0 &&
		    (path[len] == '\0' || path[len] == '/'))
			return (enum reply_contract)i;
	}
	return REPLY_INTERPRETER;
}

/* An error of JSON-RPC without an id, with the codes that nginx uses too. */
static void
reply_rpc(struct http_request *req, int status, const char *headers,
    const char *text)
{
	auto_buf struct buf body = BUF_INIT(4096);
	struct mcp_fault fault;

	(void)mcp_refuse(&fault, NULL, status,
	    status == 429 || status >= 500 ? MCP_INTERNAL : MCP_NO_REQUEST,
	    "%s", text);
	mcp_add_error(&body, NULL, &fault);
	reply_json(req, status, headers, &body);
}

void
reply_refuse(struct http_request *req, int status, const char *headers,
    const char *text)
{
	struct piston_refusal refusal;

	switch (reply_contract(req->path)) {
	case REPLY_EVAL:
		/* The title is enough, unless the client can do something. */
		reply_eval(req, status, headers,
		    status == 403 || status == 404 || status == 429 ? text :
								      NULL);
		break;
	case REPLY_PISTON:
		(void)piston_refuse(&refusal, status, "%s", text);
		reply_json(req, status, headers, &refusal.body);
		break;
	case REPLY_LIBRECHAT:
		reply_librechat(req, status, headers, text, NULL);
		break;
	case REPLY_MCP:
		reply_rpc(req, status, headers, text);
		break;
	case REPLY_INTERPRETER:
		reply_detail(req, status, headers, "%s", text);
		break;
	}
}

void
reply_more(struct http_request *req, int64_t seconds, const char *text)
{
	auto_buf struct buf body = BUF_INIT(4096);
	char headers[64];

	(void)snprintf(headers, sizeof(headers), "Retry-After: %" PRId64 "\r\n",
	    seconds);
	if (reply_contract(req->path) != REPLY_LIBRECHAT) {
		reply_refuse(req, 429, headers, text);
		return;
	}
	libre_add_rate_limited(&body, text, seconds);
	reply_json(req, 429, headers, &body);
}

void
reply_busy(struct http_request *req)
{
	reply_refuse(req, reply_contract(req->path) == REPLY_PISTON ? 429 : 503,
	    "Retry-After: 1\r\n", REPLY_BUSY);
}

void
reply_failed(struct http_request *req, const char *headers)
{
	static const char text[] = "Internal Server Error";
	enum reply_contract contract = reply_contract(req->path);

	if (contract == REPLY_INTERPRETER)
		http_answer(req, 500, "text/plain; charset=utf-8", headers,
		    text, strlen(text));
	else
		reply_refuse(req, 500, headers,
		    contract == REPLY_LIBRECHAT ? "Internal server error" :
						  text);
}

/* ---- of the code-interpreter's routes ---- */

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
	(void)detail_refuse(&detail, status, "%s", buf_str(&text));
	reply_json(req, status, headers, &detail.body);
}

/* ---- of /eval ---- */

void
reply_eval_refusal(struct http_request *req, const char *headers,
    struct eval_refusal *refusal)
{
	auto_buf struct buf body = BUF_INIT(8 * EVAL_DESCRIPTION_MAX);

	eval_refusal_add(&body, refusal);
	reply_json(req, refusal->status, headers, &body);
	buf_release(&refusal->description);
}

void
reply_eval(struct http_request *req, int status, const char *headers,
    const char *description)
{
	struct eval_refusal refusal;

	(void)eval_refuse(&refusal, status, http_status(status), "%s",
	    description == NULL ? "" : description);
	reply_eval_refusal(req, headers, &refusal);
}

/* ---- of LibreChat's routes ---- */

void
reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details)
{
	auto_buf struct buf body = BUF_INIT(65536);

	libre_add_error(&body, error, details);
	reply_json(req, status, headers, &body);
}
