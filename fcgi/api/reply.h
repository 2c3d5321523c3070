/* SPDX-License-Identifier: MIT */
#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct detail;
struct eval_refusal;
struct http_request;

/*
 * Answers in the shape of the contracts, for the gate and all routes: JSON, and
 * what is refused.  headers: each with "\r\n" at its end; NULL: none.
 */
#define REPLY_JSON "application/json"

void reply_text(struct http_request *req, int status, const char *headers,
    const char *json);
/* May the answer say more than its contract has? */
bool reply_wants_extras(const struct http_request *req);
/* Append the header that tells how many files of a run do not come back; more:
 * there may be others.  Nothing, where none was left out. */
void reply_add_left_out(struct buf *headers, size_t count, bool more);
/* Append the header that tells which interpreter stood in for one that is not
 * there. */
void reply_add_interpreter(struct buf *headers, const char *name);

/* ---- refusals of any contract: /eval, /api/v2, /librechat and /mcp have
 * manners of their own, all else those of the code-interpreter ---- */

bool reply_is_eval(const struct http_request *req);
bool reply_is_piston(const struct http_request *req);
/* /eval says no text beside its title, but for 403, 404 and 429. */
#define REPLY_NOT_FOUND "Not Found; /docs lists what there is"
void reply_error(struct http_request *req, int status, const char *headers,
    const char *text);
/* 429: once more in so many seconds. */
void reply_more(struct http_request *req, int64_t seconds, const char *text);
/* 503 with Retry-After, in Piston's contract 429: there is no cell. */
void reply_busy(struct http_request *req);
/* 500. */
void reply_failed(struct http_request *req, const char *headers);

/* ---- of the code-interpreter's routes ---- */

/* {"detail": …} with a text. */
void reply_detail(struct http_request *req, int status, const char *headers,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same of an answer that is made; releases it. */
void reply_refuse(struct http_request *req, const char *headers,
    struct detail *detail);

/* ---- of /eval, in the form that the client prefers ---- */

/* Releases the refusal. */
void reply_eval_refusal(struct http_request *req, const char *headers,
    struct eval_refusal *refusal);
/* The same of {"title": …}, the status; description may be NULL. */
void reply_eval(struct http_request *req, int status, const char *headers,
    const char *description);

/* ---- of LibreChat's routes ---- */

/* {"error":…}, with details where they are not NULL. */
void reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details);
#endif
