/* SPDX-License-Identifier: MIT */
#include "http.h"

#include <string.h>

#include "../base/buf.h"

#define ANSWER_MS 5000

/* A part of the body. */
static size_t
take(char *data, size_t size, size_t n, void *arg)
{
	struct buf *body = arg;

	if (body != NULL) {
		buf_add(body, data, size * n);
		if (body->overflow)
			return 0;
	}
	return size * n;
}

CURLcode
http_ask(struct http *http)
{
	CURL *curl = curl_easy_init();
	struct curl_header *date;
	char *type = NULL;
	curl_off_t took = 0;
	CURLcode result;

	if (curl == NULL)
		return CURLE_FAILED_INIT;
	(void)curl_easy_setopt(curl, CURLOPT_URL, http->url);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT, http->agent);
	if (http->no_proxy != NULL)
		(void)curl_easy_setopt(curl, CURLOPT_NOPROXY, http->no_proxy);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
	if (http->post != NULL)
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, http->post);
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, http->body);
	result = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http->status);
	(void)curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
	(void)curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME_T, &took);
	http->took_us = took;
	http->json = type != NULL && strncmp(type, "application/json", 16) == 0;
	http->date = 0;
	if (curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &date) ==
	    CURLHE_OK)
		http->date = curl_getdate(date->value, NULL);
	curl_easy_cleanup(curl);
	return result;
}
