/* SPDX-License-Identifier: MIT */
#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct eval_refusal;
struct http_request;

/*
 * Answers in the shape of the contracts, for the gate and all routes: JSON and
 * refusals.  headers: each with "\r\n" at its end; NULL: none.
 */
#define REPLY_JSON "application/json"
/* http_says() it where the answer may say more than its contract has. */
#define REPLY_EXTRAS "HTTP_INLINE_EXTRAS"
/* The header with the interpreter that stands in for a missing one. */
#define REPLY_STANDS_IN "Inline-Interpreter: %s\r\n"

void reply_text(struct http_request *req, int status, const char *headers,
    const char *json);
/* The same with a buffer; releases it. */
void reply_json(struct http_request *req, int status, const char *headers,
    struct buf *body);
/* Time to read an answer.  A file's reader has more: its size at 32 bytes a ms.
 */
#define REPLY_READER_MS 120000
/* A file, which is to be read in whole_ms; headers: further lines. */
void reply_file(struct http_request *req, const char *type, const char *headers,
    int fd, int64_t size, int64_t whole_ms);
/* The same as a download, disposition being the header that names it. */
void reply_download(struct http_request *req, const char *type,
    const char *disposition, int fd, int64_t size);
/* ---- refusals in the form of the request's contract; all other paths have the
 * code-interpreter's ---- */

/* The contract that a path belongs to. */
enum reply_contract {
	REPLY_EVAL,
	REPLY_PISTON,
	REPLY_LIBRECHAT,
	REPLY_MCP,
	REPLY_INTERPRETER,
};
enum reply_contract reply_contract(const char *path);
/* /eval answers with its title alone, but with the text for 403, 404 and 429.
 */
#define REPLY_NOT_FOUND "Not Found; /docs lists what there is"
void reply_refuse(struct http_request *req, int status, const char *headers,
    const char *text);
/* 429: the client may try again in so many seconds. */
void reply_more(struct http_request *req, int64_t seconds, const char *text);
#define REPLY_BUSY "There is no cell to run it in just now"
/* 503 with Retry-After, in Piston's contract 429: there is no cell. */
void reply_busy(struct http_request *req);
/* 500. */
void reply_failed(struct http_request *req, const char *headers);

/* ---- of the code-interpreter's routes ---- */

/* {"detail": …} with a text. */
void reply_detail(struct http_request *req, int status, const char *headers,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- of /eval, in the form that the client prefers ---- */

/* Releases the refusal. */
void reply_eval_refusal(struct http_request *req, const char *headers,
    struct eval_refusal *refusal);
/* The same with the status as {"title": …}; description may be NULL. */
void reply_eval(struct http_request *req, int status, const char *headers,
    const char *description);

/* ---- of LibreChat's routes ---- */

/* {"error":…}, with details where they are not NULL. */
void reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details);
#endif
