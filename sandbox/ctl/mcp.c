/* SPDX-License-Identifier: MIT */
/*
 * `ilctl mcp`: the Model Context Protocol on standard input and output, for
 * clients that start their servers.  Each line is posted to a running Inline,
 * and what comes back is written, a line for each message.  It knows nothing of
 * the tools; but it knows whose request is cancelled, and closes its
 * connection, which ends the run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "ctl.h"
#include "mcp_call.h"
#include "where.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define PIECE 65536
#define CALLS_MAX 64 /* at one time; then no more is read */
#define WAIT_MS 1000

struct bridge {
	struct mcp_server server;
	CURLM *multi;
	struct mcp_calls calls;
	size_t count;
	struct buf line; /* of standard input, as far as it has come */
	bool skipping;	 /* the rest of a line that was too long */
	bool ended;	 /* standard input has */
	bool failed;	 /* nobody reads standard output */
};

static void
drop(struct bridge *b, struct mcp_call *call)
{
	LIST_REMOVE(call, link);
	b->count--;
	(void)curl_multi_remove_handle(b->multi, call->easy);
	mcp_call_free(call);
}

/* Whoever has asked does not wait for it any more. */
static bool
cancel(struct bridge *b, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message,
	    "method"));
	const json_t *id = json_object_get(json_object_get(message, "params"),
	    "requestId");
	struct mcp_call *call;

	if (method == NULL || strcmp(method, "notifications/cancelled") != 0)
		return false;
	LIST_FOREACH(call, &b->calls, link)
		if (id != NULL && call->id != NULL &&
		    json_equal(call->id, id) != 0) {
			drop(b, call);
			break;
		}
	return true;
}

/* A line of standard input. */
static void
take_line(struct bridge *b, const char *text, size_t len)
{
	json_t *message;
	struct mcp_call *call;

	if (strspn(text, " \t\r") == len)
		return;
	/* What is no JSON goes on as it is: the answer says so. */
	message = json_loadb(text, len, 0, NULL);
	if (message == NULL || !cancel(b, message)) {
		call = mcp_call_new(&b->server, message, text, len);
		LIST_INSERT_HEAD(&b->calls, call, link);
		b->count++;
		(void)curl_multi_add_handle(b->multi, call->easy);
	}
	json_decref(message);
}

static void
take_input(struct bridge *b)
{
	char piece[PIECE];
	ssize_t n = TEMP_FAILURE_RETRY(read(STDIN_FILENO, piece,
	    sizeof(piece)));
	const char *at = piece;

	if (n <= 0) {
		b->ended = true;
		return;
	}
	while (n > 0) {
		const char *end = memchr(at, '\n', (size_t)n);
		size_t len = end == NULL ? (size_t)n : (size_t)(end - at);

		if (!b->skipping)
			buf_add(&b->line, at, len);
		if (b->line.overflow) {
			(void)fprintf(stderr,
			    "ilctl mcp: a line of over 16 MB is left out\n");
			buf_reset(&b->line);
			b->skipping = true;
		}
		if (end != NULL) {
			if (!b->skipping)
				take_line(b, buf_str(&b->line), b->line.len);
			buf_reset(&b->line);
			b->skipping = false;
			len++;
		}
		at += len;
		n -= (ssize_t)len;
	}
}

/* The call that has this handle, or NULL. */
static struct mcp_call *
call_of(const struct bridge *b, const CURL *easy)
{
	struct mcp_call *call;

	LIST_FOREACH(call, &b->calls, link)
		if (call->easy == easy)
			return call;
	return NULL;
}

/* Calls that have come to their end. */
static void
take_ends(struct bridge *b)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(b->multi, &left)) != NULL) {
		struct mcp_call *call = call_of(b, message->easy_handle);
		CURLcode result = message->data.result;

		if (message->msg != CURLMSG_DONE || call == NULL)
			continue;
		mcp_call_end(&b->server, call, result);
		drop(b, call);
	}
}

static void
serve(struct bridge *b)
{
	while (!b->failed && (!b->ended || b->count > 0)) {
		struct curl_waitfd input = { .fd = STDIN_FILENO,
			.events = CURL_WAIT_POLLIN };
		bool read_on = !b->ended && b->count < CALLS_MAX;
		int running = 0;

		(void)curl_multi_perform(b->multi, &running);
		take_ends(b);
		b->failed = fflush(stdout) != 0;
		if (b->ended && b->count == 0)
			break;
		(void)curl_multi_poll(b->multi, &input, read_on ? 1 : 0,
		    WAIT_MS, NULL);
		if (read_on && input.revents != 0)
			take_input(b);
	}
}

int
ctl_mcp(struct ctl *ctl)
{
	struct bridge b = { .line = BUF_INIT(LINE_MAX_BYTES) };
	const char *token_file = NULL;
	auto_free char *found = NULL;
	struct err err;
	int c;

	b.server.url = getenv("INLINE_MCP_URL");
	while ((c = getopt(ctl->argc, ctl->argv, "u:t:")) != -1) {
		if (c == 'u')
			b.server.url = optarg;
		else if (c == 't')
			token_file = optarg;
		else
			return CTL_MISUSED;
	}
	if (optind != ctl->argc)
		return CTL_MISUSED;
	if (b.server.url == NULL &&
	    config_load(&ctl->config, ctl->env_file, &err) == 0)
		b.server.url = found = xprintf("http://127.0.0.1:%" PRId64
					       "/mcp",
		    where_port(&ctl->config));
	if (mcp_server_open(&b.server, token_file, &err) != 0)
		return ctl_fail("mcp", &err);
	LIST_INIT(&b.calls);
	b.multi = curl_multi_init();
	if (b.multi != NULL)
		serve(&b);
	while (!LIST_EMPTY(&b.calls))
		drop(&b, LIST_FIRST(&b.calls));
	(void)curl_multi_cleanup(b.multi);
	mcp_server_close(&b.server);
	buf_release(&b.line);
	return b.failed || b.multi == NULL ? CTL_FAILED : CTL_OK;
}
