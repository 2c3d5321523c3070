/* SPDX-License-Identifier: MIT */
#include "rest/transfer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/basics.h"

#define CONNECT_TIMEOUT_MS 5000L
/* An exchange in which no byte moves for so long is over: the whole timeout of
 * a large file is for a slow line, not for a server that hangs. */
#define SILENCE_S 15L
#define SECONDS_MOST 3600.0

struct transfer {
	CURL *curl;
	char error[CURL_ERROR_SIZE];
};

struct transfer *
transfer_new(struct err *err)
{
	struct transfer *t = xcalloc(1, sizeof(*t));

	if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
		t->curl = curl_easy_init();
	if (t->curl != NULL)
		return t;
	free(t);
	(void)err_set(err, ERR_CONFIG, "libcurl does not start");
	return NULL;
}

void
transfer_free(struct transfer *transfer)
{
	if (transfer != NULL)
		curl_easy_cleanup(transfer->curl);
	free(transfer);
}

int64_t
transfer_parse_seconds(const char *text)
{
	char *end = NULL;
	double seconds = strtod(text, &end);

	/* Digits and a point: no sign, no exponent, no name of a number. */
	if (end == text || *end != '\0' ||
	    text[strspn(text, "0123456789.")] != '\0')
		return -1;
	seconds = seconds < SECONDS_MOST ? seconds : SECONDS_MOST;
	return (int64_t)(seconds * 1000.0 + 0.5);
}

/* Callback of libcurl: a short count ends the exchange. */
static size_t
append_body(char *data, size_t size, size_t count, void *body)
{
	buf_add(body, data, size * count);
	return ((struct buf *)body)->overflow ? 0 : size * count;
}

/* Value of a header of the last answer; "": there is none. */
static const char *
header_of(CURL *curl, const char *name)
{
	struct curl_header *header = NULL;

	return curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header) ==
		CURLHE_OK ?
	    header->value :
	    "";
}

static int64_t
header_ms(CURL *curl, const char *name)
{
	return transfer_parse_seconds(header_of(curl, name));
}

/* ---- where to ---- */

/* Is this part of the URL equal to `want`, as libcurl reads it? */
static bool
part_is(CURLU *url, CURLUPart part, const char *want)
{
	char *text = NULL;
	bool same = curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) ==
		CURLUE_OK &&
	    strcmp(text, want) == 0;

	curl_free(text);
	return same;
}

/* One of Discord's hosts, over TLS, on its port. */
static bool
is_discord(CURLU *url)
{
	return (part_is(url, CURLUPART_HOST, "cdn.discordapp.com") ||
		   part_is(url, CURLUPART_HOST, "media.discordapp.net")) &&
	    part_is(url, CURLUPART_SCHEME, "https") &&
	    part_is(url, CURLUPART_PORT, "443");
}

static bool
is_local(CURLU *url)
{
	return part_is(url, CURLUPART_SCHEME, "http") &&
	    part_is(url, CURLUPART_HOST, "127.0.0.1");
}

bool
transfer_is_local(const char *url)
{
	CURLU *parts = curl_url();
	bool local = curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    is_local(parts);

	curl_url_cleanup(parts);
	return local;
}

/* A text that is no URL has no host, so it is refused. */
bool
transfer_may_download(const char *url, const char *api_base)
{
	CURLU *from = curl_url();
	CURLU *api = curl_url();
	char *name = NULL;
	char *port = NULL;
	bool may;

	(void)curl_url_set(from, CURLUPART_URL, url, 0);
	(void)curl_url_set(api, CURLUPART_URL, api_base, 0);
	(void)curl_url_get(api, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	may = curl_url_get(from, CURLUPART_USER, &name, 0) == CURLUE_NO_USER &&
	    curl_url_get(from, CURLUPART_PASSWORD, &name, 0) ==
		CURLUE_NO_PASSWORD &&
	    (is_discord(from) ||
		(is_local(from) && is_local(api) &&
		    part_is(from, CURLUPART_PORT, port)));
	curl_free(name);
	curl_free(port);
	curl_url_cleanup(from);
	curl_url_cleanup(api);
	return may;
}

/* ---- one exchange ---- */

/* Multipart body of the JSON and the files, in Discord's form. */
static curl_mime *
make_mime(CURL *curl, const struct transfer_request *request)
{
	curl_mime *mime = curl_mime_init(curl);
	curl_mimepart *part = curl_mime_addpart(mime);
	char name[32];

	curl_mime_name(part, "payload_json");
	curl_mime_type(part, "application/json");
	curl_mime_data(part, request->body, CURL_ZERO_TERMINATED);
	for (size_t i = 0; i < request->file_count; i++) {
		const struct rest_file *file = &request->files[i];

		(void)snprintf(name, sizeof(name), "files[%zu]", i);
		part = curl_mime_addpart(mime);
		curl_mime_name(part, name);
		curl_mime_filename(part, file->name);
		curl_mime_type(part, "application/octet-stream");
		curl_mime_data(part, file->len > 0 ? file->data : "",
		    file->len);
	}
	return mime;
}

/* libcurl adds the content type of a form by itself, but not that of JSON. */
static struct curl_slist *
make_headers(const struct transfer_request *request)
{
	/* curl would wait for "100 Continue" before a large body */
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");

	if (request->body != NULL && request->file_count == 0)
		headers = curl_slist_append(headers,
		    "Content-Type: application/json");
	for (size_t i = 0; i < 2 && request->headers[i] != NULL; i++)
		headers = curl_slist_append(headers, request->headers[i]);
	return headers;
}

/* All options are set anew, since the last exchange left none. */
static void
set_options(struct transfer *t, const struct transfer_request *request,
    struct buf *body, struct curl_slist *headers, curl_mime *mime)
{
	CURL *curl = t->curl;

	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_USERAGENT,
	    request->agent != NULL ? request->agent : REST_USER_AGENT);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SILENCE_S);
	/* the token in a path is sent as it is, whatever it looks like */
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	if (transfer_is_local(request->url))
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	if (mime != NULL)
		curl_easy_setopt(curl, CURLOPT_MIMEPOST, mime);
	else if (request->body != NULL)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

int
transfer_run(struct transfer *transfer, const struct transfer_request *request,
    struct rest_reply *reply, struct buf *body, struct err *err)
{
	CURL *curl = transfer->curl;
	struct curl_slist *headers = make_headers(request);
	curl_mime *mime = request->file_count > 0 ? make_mime(curl, request) :
						    NULL;
	long status = 0;
	int64_t remaining_ms;
	CURLcode code;

	transfer->error[0] = '\0';
	set_options(transfer, request, body, headers, mime);
	code = curl_easy_perform(curl);
	if (code == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	remaining_ms = header_ms(curl, "X-RateLimit-Remaining");
	*reply = (struct rest_reply){
		.status = (int)status,
		.retry_after_ms = header_ms(curl, "Retry-After"),
		.remaining = remaining_ms < 0 ? -1 : remaining_ms / 1000,
		.reset_after_ms = header_ms(curl, "X-RateLimit-Reset-After"),
		.shared = strcmp(header_of(curl, "X-RateLimit-Scope"),
			      "shared") == 0,
		.is_json = strncmp(header_of(curl, "Content-Type"),
			       "application/json", 16) == 0,
		.date = curl_getdate(header_of(curl, "Date"), NULL),
	};
	/* options go, connections stay */
	curl_easy_reset(curl);
	curl_mime_free(mime);
	curl_slist_free_all(headers);

	if (code == CURLE_OK)
		return 0;
	if (body->overflow)
		return err_set(err, ERR_LIMIT, "the answer is too long");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, ERR_TIMEOUT, "no answer in time");
	return err_set(err, ERR_UNAVAILABLE, "%s",
	    transfer->error[0] != '\0' ? transfer->error :
					 curl_easy_strerror(code));
}

int
transfer_once(const struct transfer_request *request, struct rest_reply *reply,
    struct buf *body, struct err *err)
{
	struct transfer *transfer = transfer_new(err);
	int result = -1;

	*reply = (struct rest_reply){ 0 };
	if (transfer != NULL)
		result = transfer_run(transfer, request, reply, body, err);
	transfer_free(transfer);
	return result;
}
