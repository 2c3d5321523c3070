/* SPDX-License-Identifier: MIT */
/* Discord's REST API: one function per route; call.c does the rest. */
#include "rest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/text.h"
#include "call.h"

#define ANSWER_MAX (1024 * 1024)
#define URL_MAX 4096
#define TIMEOUT_MS 15000
#define TIMEOUT_MOST_MS 60000
#define UNRESERVED "-._~" /* of RFC 3986, beside letters and digits */
#define PROGRESS_MS 5000
#define BYTES_PER_MS 512 /* what an upload is given time for */
#define REGISTER_MS 60000

struct rest *
rest_new(const struct rest_options *options, struct err *err)
{
	struct transfer *transfer = transfer_new(err);
	auto_buf struct buf authorization = BUF_INIT(8192);
	struct rest *rest;

	if (transfer == NULL)
		return NULL;
	rest = xcalloc(1, sizeof(*rest));
	rest->transfer = transfer;
	rest->api_base = xstrdup(options->api_base);
	rest->application_id = options->application_id;
	rest->stop_fd = -1;
	rest->direct = strncmp(options->api_base, "http://127.0.0.1", 16) == 0;
	if (options->bot_token != NULL && options->bot_token[0] != '\0')
		buf_addf(&authorization, "Bot %s", options->bot_token);
	rest->authorization = buf_steal(&authorization, NULL);
	return rest;
}

void
rest_free(struct rest *rest)
{
	if (rest == NULL)
		return;
	transfer_free(rest->transfer);
	free(rest->api_base);
	free(rest->authorization);
	free(rest);
}

void
rest_stop_with(struct rest *rest, int stop_fd)
{
	rest->stop_fd = stop_fd;
}

/* ---- routes ---- */

/* More for what takes longer to send. */
static int
upload_timeout(const char *body, const struct rest_file *files, size_t count)
{
	size_t bytes = strlen(body);
	int64_t timeout_ms;

	for (size_t i = 0; i < count; i++)
		bytes += files[i].len;
	timeout_ms = TIMEOUT_MS + (int64_t)(bytes / BYTES_PER_MS);
	return timeout_ms < TIMEOUT_MOST_MS ? (int)timeout_ms : TIMEOUT_MOST_MS;
}

/* No try of the call lasts longer than timeout_ms from now. */
static void
end_within(struct call *call, int64_t timeout_ms)
{
	call->until_ms = clock_monotonic_ms() + timeout_ms;
	call->retry.deadline_ms = call->until_ms;
}

/* The same for a token that dies at until_ms, on the wall clock; but tries
 * begin only for a while: the caller has other things to do. */
static void
end_with_token(struct call *call, int64_t until_ms)
{
	int64_t now_ms = clock_monotonic_ms();

	end_within(call, until_ms - clock_wall_ms());
	if (call->retry.deadline_ms > now_ms + REST_HOLD_MS)
		call->retry.deadline_ms = now_ms + REST_HOLD_MS;
}

/* What all calls have in common. */
static enum rest_outcome
url_call(struct rest *rest, struct call *call, const struct buf *url,
    struct rest_reply *reply, struct err *err)
{
	*reply = (struct rest_reply){ 0 };
	if (url->overflow) {
		(void)err_set(err, ERR_INPUT, "the address is too long");
		return REST_GONE;
	}
	call->request.url = buf_str(url);
	call->request.direct = rest->direct;
	call->request.answer_max = ANSWER_MAX;
	return call_run(rest, call, reply, err);
}

enum rest_outcome
rest_edit_original(struct rest *rest, const char *token, const char *body,
    const struct rest_file *files, size_t file_count,
    enum rest_patience patience, int64_t until_ms, struct rest_reply *reply,
    struct err *err)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	struct call call = {
		.request = {
			.method = "PATCH",
			.body = body,
			.files = files,
			.file_count = file_count,
			.timeout_ms = upload_timeout(body, files, file_count),
		},
		.key = call_key(token),
		.retry = { .patience = patience },
	};

	if (token[0] == '\0') {
		*reply = (struct rest_reply){ 0 };
		(void)err_set(err, ERR_INPUT, "there is no token");
		return REST_GONE;
	}
	end_with_token(&call, until_ms);
	if (patience == REST_PROGRESS && file_count == 0)
		call.request.timeout_ms = PROGRESS_MS;
	buf_addf(&url, "%s/webhooks/%" PRId64 "/", rest->api_base,
	    rest->application_id);
	text_add_escaped(&url, token, strlen(token), UNRESERVED);
	buf_adds(&url, "/messages/@original");
	return url_call(rest, &call, &url, reply, err);
}

enum rest_outcome
rest_callback(struct rest *rest, int64_t interaction_id, const char *token,
    const char *body, int timeout_ms, struct rest_reply *reply, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	struct call call = {
		.request = {
			.method = "POST",
			.body = body,
			.timeout_ms = timeout_ms,
		},
		.retry = { .patience = REST_PROGRESS },
	};

	end_within(&call, timeout_ms);
	buf_addf(&url, "%s/interactions/%" PRId64 "/", rest->api_base,
	    interaction_id);
	text_add_escaped(&url, token, strlen(token), UNRESERVED);
	buf_adds(&url, "/callback");
	return url_call(rest, &call, &url, reply, err);
}

enum rest_outcome
rest_register(struct rest *rest, const char *commands, int64_t guild_id,
    struct rest_reply *reply, struct err *err)
{
	auto_buf struct buf url = BUF_INIT(URL_MAX);
	struct call call = {
		.request = {
			.method = "PUT",
			.body = commands,
			.authorization = rest->authorization,
			.timeout_ms = TIMEOUT_MS,
		},
		.retry = { .patience = REST_FINAL },
	};

	end_within(&call, REGISTER_MS);
	buf_addf(&url, "%s/applications/%" PRId64, rest->api_base,
	    rest->application_id);
	if (guild_id != 0)
		buf_addf(&url, "/guilds/%" PRId64, guild_id);
	buf_adds(&url, "/commands");
	return url_call(rest, &call, &url, reply, err);
}
