#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>

struct buf;
struct detail;
struct eval_refusal;
struct http_request;

/*
 * Answers in the shape of the contracts, for the gate and all routes: JSON, and
 * what is refused.
 */
#define REPLY_JSON "application/json"

/* headers: each with "\r\n" at its end; NULL: none. */
void reply_text(struct http_request *req, int status, const char *headers,
    const char *json);
/* {"detail": …}; text: plain, without quotes. */
void reply_detail(struct http_request *req, int status, const char *headers,
    const char *text);
/* The same of an answer that is made; releases it. */
void reply_refuse(struct http_request *req, struct detail *detail);
/* 503 with Retry-After: there is no cell. */
void reply_busy(struct http_request *req);
/* 500, of either contract. */
void reply_failed(struct http_request *req);
void reply_fail(struct http_request *req, const char *headers);

/* /eval has the manners of the one contract, all else those of the other. */
bool reply_is_eval(const struct http_request *req);
/* A refusal of /eval in the form that the client prefers.  headers: "" for
 * none. */
void reply_eval_refusal(struct http_request *req,
    const struct eval_refusal *refusal, const char *headers);
/* The same of {"title": …}; description may be NULL. */
void reply_refuse_eval(struct http_request *req, int status,
    const char *headers, const char *title, const char *description);

/* The whole body, as much as fits.  False: it was answered that it is too long,
 * or nobody is there any more. */
bool reply_read_body(struct http_request *req, struct buf *body);
/* May the answer say more than its contract has? */
bool reply_wants_extras(const struct http_request *req);

#endif
