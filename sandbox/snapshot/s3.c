/* SPDX-License-Identifier: MIT */
/*
 * An S3 service, by path-style addresses, each request signed by libcurl with
 * the hash of its body.  Several requests are under way at one time; what fails
 * for a while is tried again, and while the service asks for patience nothing
 * new begins.  Nothing that it answers is believed: lengths are bounded, no
 * redirect is followed, and what was fetched is checked by whoever asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <sodium.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/text.h"
#include "s3_answer.h"
#include "s3_place.h"
#include "store.h"

#define SLOTS 8 /* requests at one time */
#define ERROR_BODY_MAX 4096
#define LIST_MAX ((size_t)2 << 20) /* of one page: 1,000 names */
#define LIST_PAGES 20000
#define URL_MAX 4096

#define CONNECT_MS 5000L
#define SILENCE_S 15L	  /* not a byte for so long */
#define REQUEST_MS 60000L /* and all of it */

struct s3 {
	struct store store;
	CURLM *multi;
	struct s3_place place;
	int64_t pause_until_ms; /* nothing begins before */
	struct err first;	/* failure, not told yet; or ERR_NONE */
	struct slot {
		CURL *curl;
		bool busy; /* its request is not over */
		bool on;   /* curl has it */
		enum s3_method method;
		char *url;
		char name[STORE_NAME_MAX]; /* for texts */
		char *data;		   /* of PUT */
		size_t len;
		struct curl_slist *headers;
		struct buf body; /* of the answer */
		store_fn done;
		void *arg;
		int tries;
		int64_t begin_ms; /* of the next try */
		char error[CURL_ERROR_SIZE];
	} slots[SLOTS];
};

/* For libcurl: a short count ends the exchange. */
static size_t
take_body(char *data, size_t size, size_t count, void *body)
{
	buf_add(body, data, size * count);
	return ((struct buf *)body)->overflow ? 0 : size * count;
}

/* A page of a list: whether it is whole is seen at its end. */
static int
on_page(void *arg, const void *data, size_t len, struct err *err)
{
	(void)err;
	if (data != NULL)
		buf_add(arg, data, len);
	return 0;
}

/* ---- one request ---- */

static void
slot_release(struct s3 *s3, struct slot *slot)
{
	if (slot->on)
		(void)curl_multi_remove_handle(s3->multi, slot->curl);
	curl_slist_free_all(slot->headers);
	free(slot->url);
	free(slot->data);
	buf_release(&slot->body);
	slot->headers = NULL;
	slot->url = NULL;
	slot->data = NULL;
	slot->on = false;
	slot->busy = false;
}

/* The first one counts; the others are not finished. */
static void
fail(struct s3 *s3, const struct err *err)
{
	if (s3->first.code == ERR_NONE)
		s3->first = *err;
	for (size_t i = 0; i < SLOTS; i++)
		slot_release(s3, &s3->slots[i]);
}

/* All headers of ours are signed.  None is empty: libcurl before 8 signs an
 * empty one, and does not send it. */
static void
make_headers(struct slot *slot)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	auto_free char *line = NULL;

	(void)crypto_hash_sha256(hash, (const unsigned char *)slot->data,
	    slot->len);
	(void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	line = xprintf("x-amz-content-sha256: %s", hex);
	slot->headers = curl_slist_append(NULL, line);
	if (slot->method == S3_PUT)
		slot->headers = curl_slist_append(slot->headers,
		    "Content-Type: application/octet-stream");
}

/* All options; one try. */
static void
begin(struct s3 *s3, struct slot *slot)
{
	static const char *const methods[] = {
		[S3_GET] = "GET",
		[S3_PUT] = "PUT",
		[S3_DELETE] = "DELETE",
	};
	CURL *curl = slot->curl;

	curl_easy_reset(curl);
	buf_reset(&slot->body);
	slot->error[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_URL, slot->url);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, slot);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "Inline/" INLINE_VERSION);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, slot->error);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, REQUEST_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SILENCE_S);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, s3->place.sign);
	curl_easy_setopt(curl, CURLOPT_USERNAME, s3->place.user);
	curl_easy_setopt(curl, CURLOPT_PASSWORD, s3->place.secret);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, slot->headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &slot->body);
	if (s3->place.local)
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	if (slot->method == S3_PUT) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, slot->data);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
		    (curl_off_t)slot->len);
	}
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, methods[slot->method]);
	slot->on = curl_multi_add_handle(s3->multi, curl) == CURLM_OK;
}

/* What came of a try. */
static struct s3_answer
answer_of(const struct slot *slot, CURLcode code)
{
	struct s3_answer answer = {
		.method = slot->method,
		.tries = slot->tries,
		.retry_after_ms = -1,
		.certificate = code == CURLE_PEER_FAILED_VERIFICATION,
		.whole = code == CURLE_OK,
		.too_long = slot->body.overflow,
		.text = slot->error[0] != '\0' ? slot->error :
						 curl_easy_strerror(code),
		.body = buf_str(&slot->body),
	};
	curl_off_t length = -1;
	curl_off_t wait_s = 0;
	struct curl_header *etag;
	long status = 0;

	curl_easy_getinfo(slot->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(slot->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
	    &length);
	curl_easy_getinfo(slot->curl, CURLINFO_RETRY_AFTER, &wait_s);
	answer.status = (int)status;
	if (wait_s > 0 && wait_s < 3600)
		answer.retry_after_ms = wait_s * 1000;
	/* whoever else answers in its place must not pass for a snapshot that
	 * is damaged, nor for one that was kept */
	if (slot->method != S3_DELETE && slot->done != on_page)
		answer.foreign = (slot->method == S3_GET && status != 200) ||
		    curl_easy_header(slot->curl, "ETag", 0, CURLH_HEADER, -1,
			&etag) != CURLHE_OK;
	/* who cuts it off cannot be told from who has said all */
	if (slot->method == S3_GET && status == 200 && slot->done != on_page &&
	    length < 0)
		answer.whole = false;
	return answer;
}

/* A try is over: the request is, too, or it is tried again. */
static void
end(struct s3 *s3, struct slot *slot, CURLcode code)
{
	struct s3_answer answer = answer_of(slot, code);
	struct s3_verdict verdict = s3_decide(&answer);
	struct err err = { 0 };
	int rc = 0;

	(void)curl_multi_remove_handle(s3->multi, slot->curl);
	slot->on = false;
	slot->tries++;
	if (verdict.outcome == S3_AGAIN) {
		slot->begin_ms = clock_monotonic_ms() + verdict.wait_ms;
		if (verdict.brake && s3->pause_until_ms < slot->begin_ms)
			s3->pause_until_ms = slot->begin_ms;
		return;
	}
	if (verdict.outcome == S3_FAILED) {
		(void)err_set(&err, verdict.code, "%s: %s", slot->name,
		    verdict.text);
		fail(s3, &err);
		return;
	}
	if (slot->done != NULL && verdict.outcome == S3_ABSENT)
		rc = slot->done(slot->arg, NULL, 0, &err);
	else if (slot->done != NULL)
		rc = slot->done(slot->arg, buf_str(&slot->body), slot->body.len,
		    &err);
	slot_release(s3, slot);
	if (rc != 0)
		fail(s3, &err);
}

/* ---- all of them ---- */

static size_t
busy(const struct s3 *s3)
{
	size_t count = 0;

	for (size_t i = 0; i < SLOTS; i++)
		count += s3->slots[i].busy;
	return count;
}

/* Begin what may begin; when the next one may, at most a second from now. */
static int
begin_all(struct s3 *s3)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t next_ms = now_ms + 1000;

	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *slot = &s3->slots[i];
		int64_t at_ms = slot->begin_ms > s3->pause_until_ms ?
		    slot->begin_ms :
		    s3->pause_until_ms;

		if (!slot->busy || slot->on)
			continue;
		if (at_ms <= now_ms)
			begin(s3, slot);
		else if (at_ms < next_ms)
			next_ms = at_ms;
	}
	return (int)(next_ms - now_ms);
}

/* Work until no more than so many are under way. */
static int
pump(struct s3 *s3, size_t most, struct err *err)
{
	while (s3->first.code == ERR_NONE && busy(s3) > most) {
		int wait_ms = begin_all(s3);
		const CURLMsg *message;
		int running;
		int left;

		(void)curl_multi_perform(s3->multi, &running);
		while ((message = curl_multi_info_read(s3->multi, &left)) !=
		    NULL) {
			struct slot *slot = NULL;

			if (message->msg != CURLMSG_DONE)
				continue;
			(void)curl_easy_getinfo(message->easy_handle,
			    CURLINFO_PRIVATE, &slot);
			end(s3, slot, message->data.result);
			wait_ms = 0;
		}
		if (wait_ms > 0 && busy(s3) > most)
			(void)curl_multi_poll(s3->multi, NULL, 0, wait_ms,
			    NULL);
	}
	if (s3->first.code == ERR_NONE)
		return 0;
	*err = s3->first;
	return -1;
}

/* What is asked, and who gets how much of the answer. */
struct question {
	enum s3_method method;
	const char *name;
	char *url; /* add() takes it over */
	const void *data;
	size_t len;
	size_t most;
	store_fn done;
	void *arg;
};

static int
add(struct s3 *s3, const struct question *q, struct err *err)
{
	auto_free char *own = q->url;
	struct slot *slot = s3->slots;
	size_t most = q->most > ERROR_BODY_MAX ? q->most : ERROR_BODY_MAX;

	if (pump(s3, SLOTS - 1, err) != 0)
		return -1;
	while (slot->busy)
		slot++;
	slot->busy = true;
	slot->method = q->method;
	slot->url = own;
	own = NULL;
	(void)snprintf(slot->name, sizeof(slot->name), "%s", q->name);
	slot->data = xmalloc(q->len + 1);
	if (q->len > 0)
		memcpy(slot->data, q->data, q->len);
	slot->len = q->len;
	buf_init(&slot->body, most);
	slot->done = q->done;
	slot->arg = q->arg;
	slot->tries = 0;
	slot->begin_ms = 0;
	make_headers(slot);
	return 0;
}

static char *
url_of(const struct s3 *s3, const char *name)
{
	return xprintf("%s/%s%s", s3->place.bucket, s3->place.prefix, name);
}

static int
s3_put(struct store *s, const char *name, const void *data, size_t len,
    struct err *err)
{
	struct s3 *s3 = (struct s3 *)s;

	return add(s3,
	    &(struct question){ .method = S3_PUT,
		.name = name,
		.url = url_of(s3, name),
		.data = data,
		.len = len },
	    err);
}

static int
s3_fetch(struct store *s, const char *name, size_t most, store_fn done,
    void *arg, struct err *err)
{
	struct s3 *s3 = (struct s3 *)s;

	return add(s3,
	    &(struct question){ .method = S3_GET,
		.name = name,
		.url = url_of(s3, name),
		.most = most,
		.done = done,
		.arg = arg },
	    err);
}

static int
s3_remove(struct store *s, const char *name, struct err *err)
{
	struct s3 *s3 = (struct s3 *)s;

	return add(s3,
	    &(struct question){
		.method = S3_DELETE, .name = name, .url = url_of(s3, name) },
	    err);
}

static int
s3_wait(struct store *s, struct err *err)
{
	struct s3 *s3 = (struct s3 *)s;
	int rc = pump(s3, 0, err);

	s3->first = (struct err){ 0 };
	return rc;
}

/* ---- a list ---- */

/* Parameters in their order, as they are signed: libcurl before 8 does not
 * sort them. */
static char *
list_url(const struct s3 *s3, const char *below, const char *next)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);

	buf_addf(&url, "%s?", s3->place.bucket);
	if (*next != '\0') {
		buf_adds(&url, "continuation-token=");
		text_add_escaped(&url, next, strlen(next), "-._~");
		buf_addc(&url, '&');
	}
	buf_adds(&url, "list-type=2&max-keys=1000&prefix=");
	text_add_escaped(&url, s3->place.prefix, strlen(s3->place.prefix),
	    "-._~");
	text_add_escaped(&url, below, strlen(below), "-._~");
	buf_adds(&url, "%2F");
	return buf_steal(&url, NULL);
}

static int
s3_list(struct store *s, const char *below, store_list_fn fn, void *arg,
    struct err *err)
{
	struct s3 *s3 = (struct s3 *)s;
	auto_buf struct buf page = BUF_INIT(LIST_MAX);
	char next[S3_TOKEN_MAX] = "";

	for (int i = 0; i < LIST_PAGES; i++) {
		const struct question list = { .method = S3_GET,
			.name = "a list",
			.url = list_url(s3, below, next),
			.most = LIST_MAX,
			.done = on_page,
			.arg = &page };

		buf_reset(&page);
		if (add(s3, &list, err) != 0 || s3_wait(s, err) != 0)
			return -1;
		if (!s3_page(buf_str(&page), s3->place.prefix, below, fn, arg,
			next))
			return err_set(err, ERR_UNAVAILABLE,
			    "S3: a list that is not whole");
		if (*next == '\0')
			return 0;
	}
	return err_set(err, ERR_LIMIT, "S3: a list without an end");
}

/* ---- opening ---- */

static void
s3_close(struct store *s)
{
	struct s3 *s3 = (struct s3 *)s;

	for (size_t i = 0; i < SLOTS; i++) {
		slot_release(s3, &s3->slots[i]);
		curl_easy_cleanup(s3->slots[i].curl);
	}
	(void)curl_multi_cleanup(s3->multi);
	s3_place_release(&s3->place);
	free(s3);
}

struct store *
s3_open(const struct config *config, struct err *err)
{
	struct s3 *s3 = xcalloc(1, sizeof(*s3));
	bool good = curl_global_init(CURL_GLOBAL_DEFAULT) == 0;

	s3->store = (struct store){ true, s3_put, s3_fetch, s3_remove, s3_list,
		s3_wait, s3_close };
	s3->multi = good ? curl_multi_init() : NULL;
	good = s3->multi != NULL;
	for (size_t i = 0; good && i < SLOTS; i++) {
		s3->slots[i].curl = curl_easy_init();
		good = s3->slots[i].curl != NULL;
	}
	if (!good)
		(void)err_set(err, ERR_CONFIG, "libcurl does not start");
	else if (s3_place_find(&s3->place, config, err) == 0)
		return &s3->store;
	s3_close(&s3->store);
	return NULL;
}
