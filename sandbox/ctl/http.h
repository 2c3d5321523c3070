/* SPDX-License-Identifier: MIT */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <curl/curl.h>

struct buf;

/* One request over HTTP, as a stranger makes it, and its answer. */
struct http {
	const char *url;
	const char *agent;
	const char *no_proxy; /* hosts; NULL: as the environment says */
	const char *post;     /* a body; NULL: GET */
	struct curl_slist *headers;
	struct buf *body; /* more than it holds is a failure; NULL: dropped */

	long status;
	bool json;   /* Content-Type: application/json */
	time_t date; /* its header; 0: there was none */
	int64_t took_us;
};

/* At most five seconds. */
CURLcode http_ask(struct http *http);

#endif
