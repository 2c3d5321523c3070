/* SPDX-License-Identifier: MIT */
#include "download.h"

#include <poll.h>
#include <string.h>

#include <curl/curl.h>

#include "../base/clock.h"
#include "../base/err.h"
#include "call.h"

#define TRIES 3
#define PAUSE_MS 500
#define TIMEOUT_MS 15000 /* of all tries together, and more for large files */
#define TIMEOUT_MOST_MS 60000
#define BYTES_PER_MS 512
#define ERROR_MAX 65536 /* what an answer that is no file may have */

static const char *const hosts[] = {
	"cdn.discordapp.com",
	"media.discordapp.net",
};

/* Is a part of the URL that, as libcurl understands it? */
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
	bool good = false;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		good = good || part_is(url, CURLUPART_HOST, hosts[i]);
	return good && part_is(url, CURLUPART_SCHEME, "https") &&
	    part_is(url, CURLUPART_PORT, "443");
}

/* Both on this machine, over plain HTTP, and on one port. */
static bool
is_beside(CURLU *url, CURLU *api)
{
	char *port = NULL;
	bool good = part_is(url, CURLUPART_SCHEME, "http") &&
	    part_is(url, CURLUPART_HOST, "127.0.0.1") &&
	    part_is(api, CURLUPART_SCHEME, "http") &&
	    part_is(api, CURLUPART_HOST, "127.0.0.1") &&
	    curl_url_get(api, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ==
		CURLUE_OK &&
	    part_is(url, CURLUPART_PORT, port);

	curl_free(port);
	return good;
}

bool
download_allowed(const char *url, const char *api_base, bool *direct)
{
	CURLU *from = curl_url();
	CURLU *api = curl_url();
	char *name = NULL;
	bool plain = from != NULL && api != NULL &&
	    curl_url_set(from, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(from, CURLUPART_USER, &name, 0) == CURLUE_NO_USER &&
	    curl_url_get(from, CURLUPART_PASSWORD, &name, 0) ==
		CURLUE_NO_PASSWORD;
	bool good = plain && is_discord(from);

	*direct = plain && !good &&
	    curl_url_set(api, CURLUPART_URL, api_base, 0) == CURLUE_OK &&
	    is_beside(from, api);
	curl_free(name);
	curl_url_cleanup(from);
	curl_url_cleanup(api);
	return good || *direct;
}

/* One try. */
static enum rest_outcome
fetch(struct rest *rest, const struct transfer_request *request, size_t max,
    void **data, size_t *len, struct err *err)
{
	__attribute__((cleanup(transfer_answer_release))) struct transfer_answer
	    answer = { 0 };

	if (transfer_run(rest->transfer, request, &answer, err) < 0)
		return err->code == ERR_LIMIT ? REST_REFUSED : REST_LATER;
	if (answer.status != 200) {
		(void)err_set(err, ERR_UNAVAILABLE,
		    "the file's host answered %d", answer.status);
		return answer.status == 429 || answer.status >= 500 ?
		    REST_LATER :
		    REST_GONE;
	}
	if (answer.body.len > max) {
		(void)err_set(err, ERR_LIMIT, "longer than announced");
		return REST_REFUSED;
	}
	*data = buf_steal(&answer.body, len);
	return REST_DONE;
}

enum rest_outcome
rest_download(struct rest *rest, const char *url, size_t max, void **data,
    size_t *len, struct err *err)
{
	int64_t total_ms = TIMEOUT_MS + (int64_t)(max / BYTES_PER_MS);
	int64_t until_ms = clock_monotonic_ms() +
	    (total_ms < TIMEOUT_MOST_MS ? total_ms : TIMEOUT_MOST_MS);
	struct transfer_request request = {
		.method = "GET",
		.url = url,
		.answer_max = max > ERROR_MAX ? max : ERROR_MAX,
	};
	enum rest_outcome outcome = REST_LATER;

	*data = NULL;
	*len = 0;
	if (!download_allowed(url, rest->api_base, &request.direct)) {
		(void)err_set(err, ERR_INPUT,
		    "the attachment is not on Discord's hosts");
		return REST_REFUSED;
	}
	for (int i = 0; i < TRIES && outcome == REST_LATER; i++) {
		if (i > 0)
			(void)poll(NULL, 0, PAUSE_MS);
		request.timeout_ms = clock_poll_timeout(until_ms);
		if (request.timeout_ms == 0) /* for libcurl: for ever */
			break;
		outcome = fetch(rest, &request, max, data, len, err);
	}
	return outcome;
}
