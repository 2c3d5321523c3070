/* SPDX-License-Identifier: MIT */
#include "transfer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "../base/err.h"
#include "../base/text.h"

#define CONNECT_TIMEOUT_MS 5000L
/* An exchange in which no byte moves for so long is over: the whole timeout of
 * a large file is for a slow line, not for a server that hangs. */
#define SILENCE_S 15L
#define USER_AGENT "DiscordBot (https://github.com/inline, " INLINE_VERSION ")"
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

void
transfer_answer_release(struct transfer_answer *answer)
{
	buf_release(&answer->body);
}

int64_t
transfer_parse_seconds(const char *text, size_t len)
{
	char copy[32];
	char *end = NULL;
	double seconds;

	while (len > 0 && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0 || len >= sizeof(copy))
		return -1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	seconds = strtod(copy, &end);
	/* Digits and a point: no sign, no exponent, no name of a number. */
	if (copy[strspn(copy, "0123456789.")] != '\0' || end != copy + len)
		return -1;
	seconds = seconds < SECONDS_MOST ? seconds : SECONDS_MOST;
	return (int64_t)(seconds * 1000.0 + 0.5);
}

/* ---- what curl calls while it works ---- */

/* A short count ends the exchange. */
static size_t
take_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer_answer *answer = arg;

	buf_add(&answer->body, data, size * count);
	return answer->body.overflow ? 0 : size * count;
}

/* Of the numbers that tell of limits. */
static size_t
take_header(char *line, size_t size, size_t count, void *arg)
{
	struct transfer_answer *answer = arg;
	size_t len = size * count;
	const char *colon = memchr(line, ':', len);
	size_t name = colon == NULL ? 0 : (size_t)(colon - line);
	int64_t ms = colon == NULL ?
	    -1 :
	    transfer_parse_seconds(colon + 1, len - name - 1);

	if (text_is(line, name, "Retry-After"))
		answer->retry_after_ms = ms;
	else if (text_is(line, name, "X-RateLimit-Reset-After"))
		answer->reset_after_ms = ms;
	else if (text_is(line, name, "X-RateLimit-Remaining"))
		answer->remaining = ms < 0 ? -1 : ms / 1000;
	return len;
}

/* ---- one exchange ---- */

/* The JSON and the files, as Discord wants them. */
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

/* JSON in the body needs to be named; libcurl names a form itself. */
static struct curl_slist *
make_headers(const struct transfer_request *request)
{
	/* curl would wait for "100 Continue" before a large body */
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
	auto_buf struct buf line = BUF_INIT(8192);

	if (request->body != NULL && request->file_count == 0)
		headers = curl_slist_append(headers,
		    "Content-Type: application/json");
	if (request->authorization != NULL) {
		buf_addf(&line, "Authorization: %s", request->authorization);
		headers = curl_slist_append(headers, buf_str(&line));
	}
	return headers;
}

/* All options, since the last exchange left none. */
static void
prepare(struct transfer *t, const struct transfer_request *request,
    struct transfer_answer *answer, struct curl_slist *headers, curl_mime *mime)
{
	CURL *curl = t->curl;

	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, USER_AGENT);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SILENCE_S);
	/* the token in a path stays where it is, whatever it looks like */
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer);
	if (request->direct)
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	if (mime != NULL)
		curl_easy_setopt(curl, CURLOPT_MIMEPOST, mime);
	else if (request->body != NULL)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

/* What libcurl says of an exchange. */
static int
outcome(struct transfer *t, CURLcode code, struct transfer_answer *answer,
    struct err *err)
{
	long status = 0;

	if (code == CURLE_OK) {
		curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
		answer->status = (int)status;
		return 0;
	}
	if (answer->body.overflow)
		return err_set(err, ERR_LIMIT, "the answer is too long");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, ERR_TIMEOUT, "no answer in time");
	return err_set(err, ERR_UNAVAILABLE, "%s",
	    t->error[0] != '\0' ? t->error : curl_easy_strerror(code));
}

int
transfer_run(struct transfer *transfer, const struct transfer_request *request,
    struct transfer_answer *answer, struct err *err)
{
	struct curl_slist *headers = make_headers(request);
	curl_mime *mime = NULL;
	CURLcode code;
	int result;

	*answer = (struct transfer_answer){
		.retry_after_ms = -1, .remaining = -1, .reset_after_ms = -1
	};
	buf_init(&answer->body, request->answer_max);
	transfer->error[0] = '\0';
	if (request->file_count > 0)
		mime = make_mime(transfer->curl, request);
	prepare(transfer, request, answer, headers, mime);

	code = curl_easy_perform(transfer->curl);
	result = outcome(transfer, code, answer, err);

	/* options go, connections stay */
	curl_easy_reset(transfer->curl);
	curl_mime_free(mime);
	curl_slist_free_all(headers);
	return result;
}
