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

#include <curl/curl.h>
#include <jansson.h>
#include <sodium.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

#define MCP_URL "http://127.0.0.1:8080/mcp"
#define META "io.modelcontextprotocol/"
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define ANSWER_MAX ((size_t)32 << 20)
#define NAME_MAX_BYTES 4096
#define TOKEN_MAX 256
#define PIECE 65536
#define CALLS_MAX 64 /* at one time; then no more is read */
#define WAIT_MS 1000
#define CONNECT_MS 5000
#define SILENCE_S 90 /* Inline says something every ten seconds */

/* One message on its way to a running Inline, and what comes back of it. */
struct call {
	LIST_ENTRY(call) link;
	struct bridge *bridge;
	CURL *easy;
	struct curl_slist *headers;
	json_t *id; /* of a request; NULL: nobody waits for an answer */
	bool initialize;
	bool answered;
	bool known; /* the answer has begun: is it a stream? */
	bool stream;
	bool failed;	   /* a line of it is too long */
	char *body;	   /* heap */
	struct buf answer; /* of a stream: the line that is coming in */
};

struct bridge {
	const char *url;
	char *authorization; /* heap: a header; NULL: none */
	char version[32];    /* that `initialize` has agreed on; "": none yet */
	CURLM *multi;
	LIST_HEAD(calls, call) calls;
	size_t count;
	struct buf line; /* of standard input, as far as it has come */
	bool ended;	 /* standard input has */
	bool failed;	 /* nobody reads standard output */
};

/* ---- lines ---- */

/* Tell of each line of a stream that a piece of it ends.  line: the beginning
 * of the next one, cut where it is too long. */
static void
split_lines(struct buf *line, const char *data, size_t len,
    void (*tell)(void *arg, const struct buf *line), void *arg)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end == NULL ? len : (size_t)(end - data);

		buf_add(line, data, n);
		if (end == NULL)
			return;
		tell(arg, line);
		buf_reset(line);
		data += n + 1;
		len -= n + 1;
	}
}

/* ---- the request ---- */

/* Is it ASCII that can be seen, without blanks around it? */
static bool
fits_header(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || text[0] == ' ' || text[len - 1] == ' ')
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return true;
}

static void
add_line(struct call *call, const char *line)
{
	call->headers = curl_slist_append(call->headers, line);
}

static void
add_header(struct call *call, const char *name, const char *text)
{
	auto_free char *line = NULL;
	char base64[2 * NAME_MAX_BYTES];

	if (text == NULL || strlen(text) > NAME_MAX_BYTES)
		return;
	if (fits_header(text) && strncmp(text, "=?", 2) != 0) {
		line = xprintf("%s: %s", name, text);
	} else {
		(void)sodium_bin2base64(base64, sizeof(base64),
		    (const unsigned char *)text, strlen(text),
		    sodium_base64_VARIANT_ORIGINAL);
		line = xprintf("%s: =?base64?%s?=", name, base64);
	}
	add_line(call, line);
}

/* HTTP wants parts of the body repeated as headers. */
static void
add_headers(struct call *call, const json_t *message)
{
	const struct bridge *b = call->bridge;
	const json_t *params = json_object_get(message, "params");
	const bool named = json_object_get(params, "name") != NULL;
	const char *version = table_json_text(json_object_get(params, "_meta"),
	    META "protocolVersion");

	add_line(call, "Content-Type: application/json");
	add_line(call, "Accept: application/json, text/event-stream");
	add_line(call, "Expect:");
	if (b->authorization != NULL)
		add_line(call, b->authorization);
	if (version != NULL) {
		add_header(call, "MCP-Protocol-Version", version);
		add_header(call, "Mcp-Method",
		    table_json_text(message, "method"));
		add_header(call, "Mcp-Name",
		    table_json_text(params, named ? "name" : "uri"));
	} else if (b->version[0] != '\0' && !call->initialize) {
		add_header(call, "MCP-Protocol-Version", b->version);
	}
}

/* ---- the answer ---- */

static void
put_message(struct call *call, const char *text, size_t len)
{
	call->answered = true;
	(void)fwrite(text, 1, len, stdout);
	(void)putc('\n', stdout);
}

/* Lines of a stream that are data are messages. */
static void
take_stream_line(void *arg, const struct buf *line)
{
	static const char mark[] = "data: ";
	const size_t skip = sizeof(mark) - 1;
	struct call *call = arg;

	call->failed = call->failed || line->overflow;
	if (!line->overflow && strncmp(buf_str(line), mark, skip) == 0)
		put_message(call, buf_str(line) + skip, line->len - skip);
}

static size_t
take_answer(char *data, size_t size, size_t n, void *arg)
{
	struct call *call = arg;
	char *type = NULL;

	if (!call->known) {
		(void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE,
		    &type);
		call->stream = type != NULL &&
		    strncmp(type, "text/event-stream", 17) == 0;
		call->known = true;
	}
	if (call->stream)
		split_lines(&call->answer, data, size * n, take_stream_line,
		    call);
	else
		buf_add(&call->answer, data, size * n);
	return call->failed || call->answer.overflow ? 0 : size * n;
}

/* A client that waits for an answer is told why there is none. */
static void
put_error(struct call *call, const char *text)
{
	auto_free char *line = NULL;
	json_auto_t *error = NULL;

	(void)fprintf(stderr, "ilctl mcp: %s\n", text);
	if (call->id == NULL || call->answered)
		return;
	error = json_pack("{s:s,s:O,s:{s:i,s:s}}", "jsonrpc", "2.0", "id",
	    call->id, "error", "code", -32603, "message", text);
	line = json_dumps(error, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (line != NULL)
		put_message(call, line, strlen(line));
}

/* All of the answer has come, or there is none.  Requests name from now on the
 * version that `initialize` has agreed on. */
static void
end_call(struct call *call, CURLcode result)
{
	struct bridge *b = call->bridge;
	json_auto_t *answer = NULL;
	auto_free char *wrong = NULL;
	const char *version;
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result == CURLE_OK && (call->stream || status == 202))
		return;
	answer = json_loadb(buf_str(&call->answer), call->answer.len, 0, NULL);
	if (result != CURLE_OK)
		wrong = xprintf("%s: %s", b->url, curl_easy_strerror(result));
	else if (json_object_get(answer, "jsonrpc") == NULL)
		wrong = xprintf("%s answered %ld%s", b->url, status,
		    status == 401 ? ": it needs a token (INLINE_MCP_TOKEN)" :
				    "");
	if (wrong != NULL) {
		put_error(call, wrong);
		return;
	}
	version = table_json_text(json_object_get(answer, "result"),
	    "protocolVersion");
	if (call->initialize && version != NULL)
		(void)snprintf(b->version, sizeof(b->version), "%s", version);
	put_message(call, buf_str(&call->answer), call->answer.len);
}

/* ---- begin and end of a call ---- */

/* The text is copied.  message: the text as JSON; NULL: it is none. */
static void
begin_call(struct bridge *b, const json_t *message, const char *text,
    size_t len)
{
	struct call *call = xcalloc(1, sizeof(*call));
	const char *method = table_json_text(message, "method");

	call->bridge = b;
	call->easy = curl_easy_init();
	call->body = xstrndup(text, len);
	buf_init(&call->answer, ANSWER_MAX);
	call->initialize = method != NULL && strcmp(method, "initialize") == 0;
	if (method != NULL)
		call->id = json_incref(json_object_get(message, "id"));
	add_headers(call, message);
	(void)curl_easy_setopt(call->easy, CURLOPT_URL, b->url);
	(void)curl_easy_setopt(call->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(call->easy, CURLOPT_NOPROXY,
	    "localhost,127.0.0.1,::1");
	(void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
	(void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
	(void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
	    (curl_off_t)len);
	(void)curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS,
	    (long)CONNECT_MS);
	(void)curl_easy_setopt(call->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	(void)curl_easy_setopt(call->easy, CURLOPT_LOW_SPEED_TIME,
	    (long)SILENCE_S);
	(void)curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, take_answer);
	(void)curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
	(void)curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
	LIST_INSERT_HEAD(&b->calls, call, link);
	b->count++;
	(void)curl_multi_add_handle(b->multi, call->easy);
}

static void
drop_call(struct call *call)
{
	LIST_REMOVE(call, link);
	call->bridge->count--;
	(void)curl_multi_remove_handle(call->bridge->multi, call->easy);
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	json_decref(call->id);
	free(call->body);
	buf_release(&call->answer);
	free(call);
}

/* Calls that have come to their end. */
static void
take_ends(struct bridge *b)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(b->multi, &left)) != NULL) {
		CURLcode result = message->data.result;
		struct call *call = NULL;

		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
		    &call);
		if (message->msg != CURLMSG_DONE || call == NULL)
			continue;
		end_call(call, result);
		drop_call(call);
	}
}

/* ---- standard input ---- */

/* A client that cancels its request does not wait for it any more: the call is
 * dropped.  False: the message cancels nothing. */
static bool
cancel(struct bridge *b, const json_t *message)
{
	const char *method = table_json_text(message, "method");
	const json_t *id = json_object_get(json_object_get(message, "params"),
	    "requestId");
	struct call *call;

	if (method == NULL || strcmp(method, "notifications/cancelled") != 0)
		return false;
	LIST_FOREACH(call, &b->calls, link)
		if (id != NULL && call->id != NULL &&
		    json_equal(call->id, id) != 0) {
			drop_call(call);
			break;
		}
	return true;
}

/* A line that is no JSON goes on as it is: the answer says so. */
static void
take_input_line(void *arg, const struct buf *line)
{
	struct bridge *b = arg;
	json_auto_t *message = NULL;

	if (line->overflow)
		(void)fprintf(stderr,
		    "ilctl mcp: a line of over 16 MB is left out\n");
	if (line->overflow || strspn(buf_str(line), " \t\r") == line->len)
		return;
	message = json_loadb(buf_str(line), line->len, 0, NULL);
	if (message == NULL || !cancel(b, message))
		begin_call(b, message, buf_str(line), line->len);
}

static void
take_input(struct bridge *b)
{
	char piece[PIECE];
	ssize_t n = TEMP_FAILURE_RETRY(read(STDIN_FILENO, piece,
	    sizeof(piece)));

	if (n > 0)
		split_lines(&b->line, piece, (size_t)n, take_input_line, b);
	b->ended = n <= 0;
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

/* ---- the command ---- */

/* The token is the file's first line, else INLINE_MCP_TOKEN, or there is
 * none. */
static int
read_token(struct bridge *b, const char *path, struct err *err)
{
	const char *token = getenv("INLINE_MCP_TOKEN");
	char line[TOKEN_MAX] = "";

	if (path != NULL) {
		FILE *file = fopen(path, "re");
		bool read = file != NULL &&
		    fgets(line, sizeof(line), file) != NULL;

		if (file != NULL)
			(void)fclose(file);
		if (!read)
			return err_set(err, ERR_CONFIG,
			    "%s: there is no token in it", path);
		line[strcspn(line, "\r\n")] = '\0';
		token = line;
	}
	if (token == NULL || token[0] == '\0')
		return 0;
	if (strpbrk(token, "\r\n") != NULL)
		return err_set(err, ERR_CONFIG,
		    "the token is more than a line");
	b->authorization = xprintf("Authorization: Bearer %s", token);
	return 0;
}

int
ctl_mcp(struct ctl *ctl)
{
	struct bridge b = { .url = getenv("INLINE_MCP_URL"),
		.line = BUF_INIT(LINE_MAX_BYTES) };
	const char *token_file = NULL;
	auto_free char *found = NULL;
	struct call *call;
	struct call *next;
	struct err err;
	int c;

	while ((c = getopt(ctl->argc, ctl->argv, "u:t:")) != -1) {
		if (c == 'u')
			b.url = optarg;
		else if (c == 't')
			token_file = optarg;
		else
			return CTL_MISUSED;
	}
	if (optind != ctl->argc)
		return CTL_MISUSED;
	if (b.url == NULL &&
	    config_load(&ctl->config, ctl->env_file, &err) == 0)
		b.url = found = xprintf("http://127.0.0.1:%" PRId64 "/mcp",
		    where_port(&ctl->config));
	if (b.url == NULL)
		b.url = MCP_URL;
	if (read_token(&b, token_file, &err) != 0)
		return ctl_fail("mcp", &err);
	b.multi = curl_multi_init();
	if (b.multi != NULL)
		serve(&b);
	for (call = LIST_FIRST(&b.calls); call != NULL; call = next) {
		next = LIST_NEXT(call, link);
		drop_call(call);
	}
	(void)curl_multi_cleanup(b.multi);
	free(b.authorization);
	buf_release(&b.line);
	return b.failed || b.multi == NULL ? CTL_FAILED : CTL_OK;
}
