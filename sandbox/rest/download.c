/* SPDX-License-Identifier: MIT */
/*
 * Files that people have uploaded, from Discord's hosts.
 */
#include <poll.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "rest_parts.h"
#include "transfer.h"

#define DOWNLOAD_TRIES 3
#define DOWNLOAD_PAUSE_MS 500
#define DOWNLOAD_ERROR_MAX 65536 /* what an answer that is no file may have */

/* One try.  The body is longer than the file may be only where that is
 * short. */
static enum rest_outcome
fetch(struct rest *rest, const struct transfer_request *request, size_t max,
    void **data, size_t *len, struct err *err)
{
	auto_buf struct buf body = BUF_INIT(max > DOWNLOAD_ERROR_MAX ?
		max :
		DOWNLOAD_ERROR_MAX);
	struct transfer_answer answer = { .status = 0 };
	struct rest_reply reply = { 0 };
	int64_t since_us = clock_monotonic_us();
	int result = transfer_run(rest->transfer, request, &answer, &body, err);

	/* Its host's limits are none of the API's. */
	reply.status = answer.status;
	reply.json = true;
	rest_tell(rest, REST_ROUTE_FETCH, since_us, &reply);
	if (result < 0)
		return err->code == ERR_LIMIT ? REST_REFUSED : REST_LATER;
	if (answer.status != 200) {
		(void)err_set(err, ERR_UNAVAILABLE,
		    "the file's host answered %d", answer.status);
		return answer.status == 429 || answer.status >= 500 ?
		    REST_LATER :
		    REST_GONE;
	}
	if (body.len > max) {
		(void)err_set(err, ERR_LIMIT, "longer than announced");
		return REST_REFUSED;
	}
	*data = buf_steal(&body, len);
	return REST_DONE;
}

enum rest_outcome
rest_download(struct rest *rest, const char *url, size_t max, void **data,
    size_t *len, struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + rest_timeout_ms(max);
	struct transfer_request request = { .method = "GET", .url = url };
	enum rest_outcome outcome = REST_LATER;

	*data = NULL;
	*len = 0;
	if (!transfer_may_download(url, rest->api_base)) {
		(void)err_set(err, ERR_INPUT,
		    "the attachment is not on Discord's hosts");
		return REST_REFUSED;
	}
	for (int i = 0; i < DOWNLOAD_TRIES && outcome == REST_LATER; i++) {
		if (i > 0)
			(void)poll(NULL, 0, DOWNLOAD_PAUSE_MS);
		request.timeout_ms = clock_poll_timeout(until_ms);
		if (request.timeout_ms == 0) /* for libcurl: for ever */
			break;
		outcome = fetch(rest, &request, max, data, len, err);
	}
	return outcome;
}
