/* SPDX-License-Identifier: MIT */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rest/rest.h"

struct buf;
struct err;

/*
 * One HTTP exchange over one libcurl handle, whose connections are kept.
 * Nothing is retried and no redirect is followed here.  URLs carry tokens: no
 * text made here holds one.
 */
struct transfer;

struct transfer *transfer_new(struct err *err);
void transfer_free(struct transfer *transfer);

struct transfer_request {
	const char *method;
	const char *url;
	const char *agent;	       /* NULL: REST_USER_AGENT */
	const char *headers[2];	       /* as far as a NULL */
	const char *body;	       /* JSON; NULL: none */
	const struct rest_file *files; /* with any: multipart */
	size_t file_count;
	int timeout_ms;
};

/* Status and headers of the answer go into the reply, its body to an empty
 * buffer.  If the body does not fit, the exchange ends with ERR_LIMIT.  -1:
 * there is no whole answer, err says why, and status is 0. */
int transfer_run(struct transfer *transfer,
    const struct transfer_request *request, struct rest_reply *reply,
    struct buf *body, struct err *err);

/* Run one exchange over a handle of its own. */
int transfer_once(const struct transfer_request *request,
    struct rest_reply *reply, struct buf *body, struct err *err);

/* Is the URL on this machine (http://127.0.0.1…), and so not behind a proxy? */
bool transfer_is_local(const char *url);
/* May an attachment be fetched from this URL?  From Discord's two CDN hosts
 * over https, without user, password or another port; or, when api_base is on
 * this machine, from that very origin. */
bool transfer_may_download(const char *url, const char *api_base);

/* "0.25" seconds → 250; at most an hour; -1: not a number of seconds. */
int64_t transfer_parse_seconds(const char *text);

#endif
