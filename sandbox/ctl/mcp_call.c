/* SPDX-License-Identifier: MIT */
#include "mcp_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "../base/cleanup.h"
#include "../base/err.h"

#define META "io.modelcontextprotocol/"
#define ANSWER_MAX ((size_t)32 << 20)
#define CONNECT_MS 5000
#define SILENCE_S 90 /* Inline says something every ten seconds */
#define NAME_MAX_BYTES 4096
#define TOKEN_MAX 256

/* ---- the server ---- */

int
mcp_server_open(struct mcp_server *server, const char *token_file,
    struct err *err)
{
	const char *token = getenv("INLINE_MCP_TOKEN");
	char line[TOKEN_MAX] = "";

	if (server->url == NULL)
		server->url = MCP_URL;
	if (token_file != NULL) {
		FILE *file = fopen(token_file, "re");
		bool read = file != NULL &&
		    fgets(line, sizeof(line), file) != NULL;

		if (file != NULL)
			(void)fclose(file);
		if (!read)
			return err_set(err, ERR_CONFIG,
			    "%s: there is no token in it", token_file);
		line[strcspn(line, "\r\n")] = '\0';
		token = line;
	}
	if (token == NULL || token[0] == '\0')
		return 0;
	if (strpbrk(token, "\r\n") != NULL)
		return err_set(err, ERR_CONFIG,
		    "the token is more than a line");
	server->authorization = xprintf("Authorization: Bearer %s", token);
	return 0;
}

void
mcp_server_close(struct mcp_server *server)
{
	free(server->authorization);
}

/* ---- the request ---- */

/* ASCII that can be seen, without blanks around it. */
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
add_header(struct mcp_call *call, const char *name, const char *text)
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
	call->headers = curl_slist_append(call->headers, line);
}

/* What the body says, as HTTP wants it repeated. */
static void
add_headers(struct mcp_call *call, const struct mcp_server *server,
    const json_t *message)
{
	const json_t *params = json_object_get(message, "params");
	const json_t *name = json_object_get(params, "name");
	const char *version =
	    json_string_value(json_object_get(json_object_get(params, "_meta"),
		META "protocolVersion"));

	call->headers = curl_slist_append(call->headers,
	    "Content-Type: application/json");
	call->headers = curl_slist_append(call->headers,
	    "Accept: application/json, text/event-stream");
	call->headers = curl_slist_append(call->headers, "Expect:");
	if (server->authorization != NULL)
		call->headers = curl_slist_append(call->headers,
		    server->authorization);
	if (version != NULL) {
		add_header(call, "MCP-Protocol-Version", version);
		add_header(call, "Mcp-Method",
		    json_string_value(json_object_get(message, "method")));
		add_header(call, "Mcp-Name",
		    json_string_value(name != NULL ?
			    name :
			    json_object_get(params, "uri")));
	} else if (server->version[0] != '\0' && !call->initialize) {
		add_header(call, "MCP-Protocol-Version", server->version);
	}
}

/* ---- the answer ---- */

static void
put_message(struct mcp_call *call, const char *text, size_t len)
{
	call->answered = true;
	(void)fwrite(text, 1, len, stdout);
	(void)putc('\n', stdout);
}

/* Lines of a stream that are data are messages. */
static void
take_stream(struct mcp_call *call, const char *data, size_t len)
{
	static const char mark[] = "data: ";
	const size_t skip = sizeof(mark) - 1;

	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end == NULL ? len : (size_t)(end - data);

		buf_add(&call->answer, data, n);
		if (end == NULL)
			return;
		if (strncmp(buf_str(&call->answer), mark, skip) == 0)
			put_message(call, buf_str(&call->answer) + skip,
			    call->answer.len - skip);
		buf_reset(&call->answer);
		data += n + 1;
		len -= n + 1;
	}
}

static size_t
take(char *data, size_t size, size_t n, void *arg)
{
	struct mcp_call *call = arg;
	char *type = NULL;

	if (!call->known) {
		(void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE,
		    &type);
		call->stream = type != NULL &&
		    strncmp(type, "text/event-stream", 17) == 0;
		call->known = true;
	}
	if (call->stream)
		take_stream(call, data, size * n);
	else
		buf_add(&call->answer, data, size * n);
	return call->answer.overflow ? 0 : size * n;
}

/* Who waits for an answer is told why there is none. */
static void put_error(struct mcp_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
put_error(struct mcp_call *call, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(4096);
	auto_free char *line = NULL;
	json_t *error;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "ilctl mcp: %s\n", buf_str(&text));
	if (call->id == NULL || call->answered)
		return;
	error = json_pack("{s:s,s:O,s:{s:i,s:s}}", "jsonrpc", "2.0", "id",
	    call->id, "error", "code", -32603, "message", buf_str(&text));
	line = error == NULL ?
	    NULL :
	    json_dumps(error, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (line != NULL)
		put_message(call, line, strlen(line));
	json_decref(error);
}

/* Requests name from now on what `initialize` has agreed on. */
static void
keep_version(struct mcp_server *server, const json_t *answer)
{
	const char *version =
	    json_string_value(json_object_get(json_object_get(answer, "result"),
		"protocolVersion"));

	if (version != NULL)
		(void)snprintf(server->version, sizeof(server->version), "%s",
		    version);
}

void
mcp_call_end(struct mcp_server *server, struct mcp_call *call, CURLcode result)
{
	json_t *answer;
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK) {
		put_error(call, "%s: %s", server->url,
		    curl_easy_strerror(result));
		return;
	}
	if (call->stream || status == 202)
		return;
	answer = json_loadb(buf_str(&call->answer), call->answer.len, 0, NULL);
	if (json_object_get(answer, "jsonrpc") != NULL) {
		if (call->initialize)
			keep_version(server, answer);
		put_message(call, buf_str(&call->answer), call->answer.len);
	} else {
		put_error(call, "%s answered %ld%s", server->url, status,
		    status == 401 ? ": it needs a token (INLINE_MCP_TOKEN)" :
				    "");
	}
	json_decref(answer);
}

/* ---- begin and end ---- */

struct mcp_call *
mcp_call_new(const struct mcp_server *server, const json_t *message,
    const char *text, size_t len)
{
	struct mcp_call *call = xcalloc(1, sizeof(*call));
	const char *method = json_string_value(json_object_get(message,
	    "method"));

	call->easy = curl_easy_init();
	call->body = xstrndup(text, len);
	call->answer = (struct buf)BUF_INIT(ANSWER_MAX);
	call->initialize = method != NULL && strcmp(method, "initialize") == 0;
	if (method != NULL)
		call->id = json_incref(json_object_get(message, "id"));
	add_headers(call, server, message);
	(void)curl_easy_setopt(call->easy, CURLOPT_URL, server->url);
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
	(void)curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
	return call;
}

void
mcp_call_free(struct mcp_call *call)
{
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	json_decref(call->id);
	free(call->body);
	buf_release(&call->answer);
	free(call);
}
