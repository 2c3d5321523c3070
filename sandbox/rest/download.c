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

struct origin {
	char *scheme;
	char *host;
	char *port;
	bool plain; /* no user and no password in it */
};

static void
origin_release(struct origin *origin)
{
	curl_free(origin->scheme);
	curl_free(origin->host);
	curl_free(origin->port);
}

/* False: it is no URL.  Release it either way. */
static bool
origin_parse(struct origin *origin, const char *url)
{
	CURLU *u = curl_url();
	char *user = NULL;
	char *password = NULL;
	bool ok = u != NULL && curl_url_set(u, CURLUPART_URL, url, 0) == 0 &&
	    curl_url_get(u, CURLUPART_SCHEME, &origin->scheme, 0) == 0 &&
	    curl_url_get(u, CURLUPART_HOST, &origin->host, 0) == 0 &&
	    curl_url_get(u, CURLUPART_PORT, &origin->port,
		CURLU_DEFAULT_PORT) == 0;

	if (ok) {
		(void)curl_url_get(u, CURLUPART_USER, &user, 0);
		(void)curl_url_get(u, CURLUPART_PASSWORD, &password, 0);
		origin->plain = user == NULL && password == NULL;
	}
	curl_free(user);
	curl_free(password);
	curl_url_cleanup(u);
	return ok;
}

static bool
is_discord(const struct origin *origin)
{
	if (strcmp(origin->scheme, "https") != 0 ||
	    strcmp(origin->port, "443") != 0)
		return false;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (strcmp(origin->host, hosts[i]) == 0)
			return true;
	return false;
}

bool
download_allowed(const char *url, const char *api_base, bool *direct)
{
	__attribute__((cleanup(origin_release))) struct origin from = { 0 };
	__attribute__((cleanup(origin_release))) struct origin api = { 0 };

	*direct = false;
	if (!origin_parse(&from, url) || !from.plain)
		return false;
	if (is_discord(&from))
		return true;
	if (!origin_parse(&api, api_base))
		return false;
	*direct = strcmp(api.scheme, "http") == 0 &&
	    strcmp(api.host, "127.0.0.1") == 0 &&
	    strcmp(from.scheme, "http") == 0 &&
	    strcmp(from.host, api.host) == 0 &&
	    strcmp(from.port, api.port) == 0;
	return *direct;
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
