/* SPDX-License-Identifier: MIT */
#include "api/gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "contract/code_interpreter/execute_message.h"
#include "contract/librechat/libre_message.h"
#include "contract/mcp/mcp_message.h"
#include "contract/snekbox/eval_message.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"

#define CLOSED \
	"Closed to others while IL_API_TOKENS_FILE is not set. On this " \
	"machine ask localhost or 127.0.0.1; /docs says more"

/* There are more entries than tokens at one time, so a new token always finds
 * one that was not used of late. */
#define LIMITS_RATES 4096
#define MINUTE_US INT64_C(60000000)
/* A token's slots are neighbouring bytes of the file. */
#define SLOT_BITS 20
#define KEY_BITS 40
#define PIECE 65536
#define HEADERS_MAX ((size_t)1 << 20)
#define VALUE_MAX ((size_t)128 << 20)
#define READER_BYTES_A_MS 32

/*
 * free_us: the time at which the token, without further requests, has its whole
 * minute again (the "theoretical arrival time" of GCRA).  After that time the
 * token counts like one never seen, and another may have its entry.
 */
struct limits_rate {
	_Atomic uint64_t key; /* 0: unused */
	_Atomic int64_t free_us;
};

/* The hash is random already. */
static uint64_t
key_of(const struct token *token)
{
	uint64_t key;

	memcpy(&key, token->hash, sizeof(key));
	return key;
}

int
limits_open(struct limits *limits, const char *path, struct err *err)
{
	limits->rates = shared_file_open(NULL,
	    2 * LIMITS_RATES * sizeof(*limits->rates), err);
	if (limits->rates == NULL)
		return -1;
	limits->strangers = limits->rates + LIMITS_RATES;
	limits->path = path;
	return 0;
}

/* ---- rates ---- */

/* The entry of a key, which is new or not; NULL: all are in use.  Two processes
 * that look for the same new key at once may make two entries; then the first
 * one counts. */
static struct limits_rate *
limits_find_rate(struct limits_rate *rates, uint64_t key, int64_t now_us)
{
	struct limits_rate *unused = NULL;
	uint64_t whose = 0;

	for (uint64_t i = 0; i < LIMITS_RATES; i++) {
		struct limits_rate *r = &rates[(key + i) % LIMITS_RATES];
		uint64_t there = r->key;

		if (there == key)
			return r;
		if (unused == NULL && r->free_us <= now_us) {
			unused = r;
			whose = there;
		}
		if (there == 0)
			break;
	}
	/* Another process was faster: look for another entry, or share its. */
	if (unused != NULL &&
	    !atomic_compare_exchange_strong(&unused->key, &whose, key))
		return limits_find_rate(rates, key, now_us);
	return unused;
}

/* The seconds until the next request may come; -1: there is no entry to count
 * it. */
static int64_t
count_request(struct limits_rate *rates, uint64_t key, int64_t rate,
    int64_t now_ms, bool count)
{
	int64_t now_us = now_ms * 1000;
	struct limits_rate *entry = limits_find_rate(rates, key != 0 ? key : 1,
	    now_us);
	int64_t was;
	int64_t next;

	if (entry == NULL)
		return -1;
	was = entry->free_us;
	do {
		next = (was > now_us ? was : now_us) + MINUTE_US / rate;
		if (next - now_us > MINUTE_US)
			return (next - now_us - MINUTE_US + 999999) / 1000000;
	} while (count &&
	    !atomic_compare_exchange_strong(&entry->free_us, &was, next));
	return 0;
}

int64_t
limits_request(struct limits *limits, const struct token *token, int64_t now_ms,
    bool count)
{
	int64_t seconds = 0;

	/* A token with a new limit has a new entry. */
	if (token->rate > 0)
		seconds = count_request(limits->rates,
		    key_of(token) + (uint64_t)token->rate, token->rate, now_ms,
		    count);
	return seconds < 0 ? 1 : seconds;
}

/* The last half of an IPv6 address belongs to one host, unless the address
 * holds an IPv4 address: as $inline_address of nginx/http.conf. */
int64_t
limits_stranger(struct limits *limits, const char *address, int64_t now_ms)
{
	static const unsigned char mapped[12] = { [10] = 0xff, 0xff };
	static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };
	unsigned char bytes[sizeof(struct in6_addr)] = { 0 };
	unsigned char hash[crypto_generichash_BYTES_MIN];
	uint64_t key;
	int64_t seconds;

	if (inet_pton(AF_INET, address, bytes) != 1 &&
	    inet_pton(AF_INET6, address, bytes) == 1) {
		bool v4 = memcmp(bytes, mapped, sizeof(mapped)) == 0 ||
		    memcmp(bytes, nat64, sizeof(nat64)) == 0;

		if (v4)
			memmove(bytes, bytes + sizeof(mapped), 4);
		memset(bytes + (v4 ? 4 : 8), 0, sizeof(bytes) - (v4 ? 4 : 8));
	}
	(void)crypto_generichash(hash, sizeof(hash), bytes, sizeof(bytes), NULL,
	    0);
	memcpy(&key, hash, sizeof(key));
	seconds = count_request(limits->strangers, key, LIMITS_STRANGER_RATE,
	    now_ms, true);
	return seconds < 0 ? 0 : seconds;
}

/* ---- slots ---- */

/* Lock the first of count bytes of the key that is not locked. */
static int
claim_lock(const struct limits *limits, uint64_t key, int64_t count)
{
	/* Locks belong to an open file: each slot needs one of its own. */
	int fd = open(limits->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
	    0600);

	if (fd < 0) {
		log_err("open %s: %m", limits->path);
		return -1;
	}
	for (int64_t i = 0; i < count; i++) {
		struct flock lock = { .l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = (off_t)(key << SLOT_BITS) + i,
			.l_len = 1 };

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return fd;
	}
	(void)close(fd);
	return -1;
}

int
limits_claim_slot(const struct limits *limits, const struct token *token,
    enum limits_kind kind, int64_t most)
{
	uint64_t key = (key_of(token) & ((UINT64_C(1) << KEY_BITS) - 1)) |
	    (uint64_t)kind << KEY_BITS;

	if (token->cells == 0 || token->cells >= most)
		return LIMITS_NONE;
	return claim_lock(limits, key, token->cells);
}

int
limits_claim_shared(const struct limits *limits, enum limits_kind kind,
    int64_t count)
{
	return claim_lock(limits, (uint64_t)kind << KEY_BITS, count);
}

/* ---- the gate ---- */

bool
gate_is_foreign(const struct http_request *req)
{
	return http_says(req, "INLINE_FOREIGN");
}

/* Sessions and runs need a cell slot each, commands a process.  For a new
 * session one of the token's sessions at rest is evicted, but not when nginx
 * asks before it reads a body.  False: the token has no slot left. */
static bool
gate_claim_slot(struct api_app *app, const struct http_request *req,
    const struct token *token, enum gate_use use)
{
	const struct config *config = app->config;
	bool command = use == GATE_COMMAND;
	enum limits_kind kind = command ? LIMITS_COMMAND : LIMITS_CELL;
	int64_t most = config->api_sessions + (command ? 0 : config->api_cells);

	if (use == GATE_OPEN || use == GATE_GLANCE)
		return true;
	app->slot = limits_claim_slot(app->limits, token, kind, most);
	if (app->slot == -1 && use == GATE_SESSION &&
	    session_make_room(app, false, !req->gate))
		app->slot = req->gate ?
		    LIMITS_NONE :
		    limits_claim_slot(app->limits, token, kind, most);
	return app->slot != -1;
}

/* Is a token within its limits?  nginx's question before it reads a body is not
 * counted: the request itself will be. */
static bool
gate_check_limits(struct api_app *app, struct http_request *req,
    const struct token *token, enum gate_use use)
{
	int64_t seconds = limits_request(app->limits, token,
	    clock_monotonic_ms(), !req->gate);

	if (seconds > 0) {
		reply_later(req, 429, seconds,
		    "This token's requests of a minute are used up");
		return false;
	}
	if (gate_claim_slot(app, req, token, use))
		return true;
	reply_later(req, 429, 1,
	    use == GATE_COMMAND ?
		"This token's commands at one time are all in use" :
		"This token's cells are all in use");
	return false;
}

const struct token *
gate_find_token(struct api_app *app, const char *authorization)
{
	struct err err;

	if (tokens_refresh(&app->tokens, &err) < 0)
		log_warn("tokens: %s", err.text);
	return tokens_find(&app->tokens, authorization);
}

/* The request's token; NULL: it has none, or an unknown one. */
static const struct token *
bearer(struct api_app *app, const struct http_request *req)
{
	const char *header = http_param(req, "HTTP_AUTHORIZATION");
	auto_free char *whole = NULL;

	if (app->tokens.path == NULL)
		return NULL;
	/* Some of Piston's clients send the token without "Bearer". */
	if (header != NULL && reply_contract(req->path) == REPLY_PISTON &&
	    strncasecmp(header, "Bearer ", 7) != 0)
		header = whole = xprintf("Bearer %.200s", header);
	return gate_find_token(app, header);
}

bool
gate_refuse_stranger(struct api_app *app, struct http_request *req)
{
	const char *address = http_param(req, "REMOTE_ADDR");
	bool counts = gate_is_foreign(req) && address != NULL &&
	    (http_param(req, "HTTP_AUTHORIZATION") != NULL ||
		http_param(req, "HTTP_X_API_KEY") != NULL);
	int64_t seconds = !counts ?
	    0 :
	    limits_stranger(app->limits, address, clock_monotonic_ms());

	if (seconds > 0)
		reply_later(req, 429, seconds,
		    "Your address has sent too many tokens that are not known");
	return seconds > 0;
}

/* Without a file of tokens only requests from this machine may run code. */
enum gate_who
gate_by_token(struct api_app *app, struct http_request *req, bool foreign,
    struct token *token)
{
	const struct token *found = bearer(app, req);

	if (found != NULL) {
		*token = *found;
		return GATE_KNOWN;
	}
	if (app->tokens.path != NULL && gate_refuse_stranger(app, req))
		return GATE_REFUSED;
	if (app->tokens.path != NULL)
		reply_refuse(req, 401, "WWW-Authenticate: Bearer\r\n",
		    "Not authenticated");
	else if (foreign)
		reply_refuse(req, 403, NULL, CLOSED);
	else
		return GATE_ANYBODY;
	return GATE_REFUSED;
}

bool
gate_enter(struct api_app *app, struct http_request *req, enum gate_use use,
    __typeof__(gate_by_token) *scheme)
{
	/* The request has no owner until its sender is known. */
	app->slot = LIMITS_NONE;
	app->limited = false;
	memset(app->owner, 0, sizeof(app->owner));
	if (use == GATE_OPEN)
		return true;
	switch (scheme(app, req, gate_is_foreign(req), &app->token)) {
	case GATE_REFUSED:
		return false;
	case GATE_ANYBODY:
		return true;
	case GATE_KNOWN:
		break;
	}
	app->limited = true;
	memcpy(app->owner, app->token.hash, sizeof(app->owner));
	return gate_check_limits(app, req, &app->token, use);
}

bool
gate_claim(struct api_app *app, struct http_request *req, enum gate_use use)
{
	return !app->limited || gate_claim_slot(app, req, &app->token, use);
}

void
gate_leave(struct api_app *app)
{
	if (app->slot >= 0)
		(void)close(app->slot);
	app->slot = LIMITS_NONE;
}

bool
gate_knows(struct api_app *app, const struct http_request *req)
{
	return !gate_is_foreign(req) || bearer(app, req) != NULL;
}

/* ---- answers ---- */

void
reply_text(struct http_request *req, int status, const char *headers,
    const char *json)
{
	http_answer(req, status, REPLY_JSON, headers, json, strlen(json));
}

void
reply_json(struct http_request *req, int status, const char *headers,
    struct buf *body)
{
	http_answer(req, status, REPLY_JSON, headers, buf_str(body), body->len);
	buf_release(body);
}

void
reply_value(struct http_request *req, int status, const char *headers,
    json_t *value)
{
	auto_buf struct buf body = BUF_INIT(VALUE_MAX);

	jtext_add(&body, value, JSON_COMPACT);
	json_decref(value);
	if (body.len == 0 || body.overflow)
		reply_failed(req, headers);
	else
		reply_json(req, status, headers, &body);
}

void
reply_file(struct http_request *req, const char *type, const char *headers,
    int fd, int64_t size, int64_t whole_ms)
{
	auto_buf struct buf all = BUF_INIT(HEADERS_MAX);
	char piece[PIECE];
	ssize_t n;

	buf_addf(&all, "Content-Length: %" PRId64 "\r\n%s", size, headers);
	http_allow_slow_reader(req, whole_ms);
	http_begin(req, 200, type, buf_str(&all));
	while (!req->failed && (n = read(fd, piece, sizeof(piece))) > 0)
		http_write(req, piece, (size_t)n);
}

void
reply_download(struct http_request *req, const char *type,
    const char *disposition, int fd, int64_t size)
{
	auto_buf struct buf headers = BUF_INIT(HEADERS_MAX);

	buf_addf(&headers,
	    "X-Content-Type-Options: nosniff\r\nContent-Disposition: %s\r\n",
	    disposition);
	reply_file(req, type, buf_str(&headers), fd, size,
	    REPLY_READER_MS + size / READER_BYTES_A_MS);
}

/* ---- of any contract ---- */

enum reply_contract
reply_contract(const char *path)
{
	static const char *const prefixes[] = {
		[REPLY_EVAL] = "/eval",
		[REPLY_PISTON] = "/api/v2",
		[REPLY_LIBRECHAT] = "/librechat",
		[REPLY_MCP] = "/mcp",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(path, prefixes[i], len) == 0 &&
		    (path[len] == '\0' || path[len] == '/'))
			return (enum reply_contract)i;
	}
	return REPLY_INTERPRETER;
}

/* An error of JSON-RPC without an id, with the codes that nginx uses too. */
static void
reply_rpc(struct http_request *req, int status, const char *headers,
    const char *text)
{
	auto_buf struct buf body = BUF_INIT(4096);
	struct mcp_message m = { .error = NULL };

	(void)mcp_refuse(&m, status,
	    status == 429 || status >= 500 ? MCP_INTERNAL : MCP_NO_REQUEST,
	    NULL, "%s", text);
	mcp_add_answer(&body, &m, NULL);
	mcp_message_release(&m);
	reply_json(req, status, headers, &body);
}

void
reply_refuse(struct http_request *req, int status, const char *headers,
    const char *text)
{
	switch (reply_contract(req->path)) {
	case REPLY_EVAL:
		/* The title is enough, unless the client can do something. */
		reply_eval(req, status, headers,
		    status == 403 || status == 404 || status == 429 ? text :
								      NULL);
		break;
	case REPLY_PISTON:
		reply_value(req, status, headers,
		    json_pack("{s:o}", "message",
			jtext_pack(text, strlen(text))));
		break;
	case REPLY_LIBRECHAT:
		reply_librechat(req, status, headers, text, NULL);
		break;
	case REPLY_MCP:
		reply_rpc(req, status, headers, text);
		break;
	case REPLY_INTERPRETER:
		reply_detail(req, status, headers, "%s", text);
		break;
	}
}

void
reply_later(struct http_request *req, int status, int64_t seconds,
    const char *text)
{
	char headers[64];

	(void)snprintf(headers, sizeof(headers), "Retry-After: %" PRId64 "\r\n",
	    seconds);
	if (status != 429 || reply_contract(req->path) != REPLY_LIBRECHAT)
		reply_refuse(req, status, headers, text);
	else /* the client takes the time from the body */
		reply_value(req, status, headers,
		    json_pack("{s:s,s:o,s:I}", "error", "rate_limited",
			"message", jtext_pack(text, strlen(text)),
			"retry_after_seconds", (json_int_t)seconds));
}

void
reply_busy(struct http_request *req)
{
	reply_later(req, reply_contract(req->path) == REPLY_PISTON ? 429 : 503,
	    1, REPLY_BUSY);
}

void
reply_failed(struct http_request *req, const char *headers)
{
	static const char text[] = "Internal Server Error";
	enum reply_contract contract = reply_contract(req->path);

	if (contract == REPLY_INTERPRETER)
		http_answer(req, 500, "text/plain; charset=utf-8", headers,
		    text, strlen(text));
	else
		reply_refuse(req, 500, headers,
		    contract == REPLY_LIBRECHAT ? "Internal server error" :
						  text);
}

/* ---- of the code-interpreter's routes ---- */

void
reply_detail(struct http_request *req, int status, const char *headers,
    const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(65536);
	struct detail detail;
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	(void)detail_refuse(&detail, status, "%s", buf_str(&text));
	reply_json(req, status, headers, &detail.body);
}

/* ---- of /eval ---- */

void
reply_eval(struct http_request *req, int status, const char *headers,
    const char *description)
{
	struct eval_refusal refusal;

	(void)eval_refuse(&refusal, status, http_status(status), "%s",
	    description == NULL ? "" : description);
	reply_json(req, status, headers, &refusal.body);
}

/* ---- of LibreChat's routes ---- */

void
reply_librechat(struct http_request *req, int status, const char *headers,
    const char *error, const char *details)
{
	reply_value(req, status, headers, libre_pack_error(error, details));
}
