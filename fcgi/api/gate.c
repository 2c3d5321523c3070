/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

/* nginx says of a request that anybody may have sent it. */
static bool
is_foreign(const struct http_request *req)
{
	const char *foreign = http_param(req, "INLINE_FOREIGN");

	return foreign != NULL && strcmp(foreign, "1") == 0;
}

/* Once more it may come in so many seconds.  Always false. */
static bool
refuse_more(struct http_request *req, int64_t seconds, const char *text)
{
	char headers[64];

	(void)snprintf(headers, sizeof(headers), "Retry-After: %" PRId64 "\r\n",
	    seconds);
	reply_error(req, 429, headers, text);
	return false;
}

/* Is a token within its limits?  What nginx asks before it reads a body is not
 * counted: the request itself will be. */
static bool
is_within(struct api_app *app, struct http_request *req,
    const struct token *token, enum gate_use use)
{
	const struct config *config = app->config;
	int64_t seconds = limits_request(&app->limits, token,
	    clock_monotonic_ms(), !req->gate);

	if (seconds > 0)
		return refuse_more(req, seconds,
		    "This token's requests of a minute are used up");
	/* Sessions and runs take a cell each, commands a process. */
	if (use == GATE_CELL)
		app->slot = limits_take_slot(&app->limits, token, LIMITS_CELL,
		    config->api_cells + config->api_sessions);
	else if (use == GATE_COMMAND)
		app->slot = limits_take_slot(&app->limits, token,
		    LIMITS_COMMAND, config->api_sessions);
	if (app->slot != -1)
		return true;
	return refuse_more(req, 1,
	    use == GATE_CELL ?
		"This token's cells are all in use" :
		"This token's commands at one time are all in use");
}

/* NULL: it has none that is good. */
static const struct token *
find_token(struct api_app *app, const struct http_request *req)
{
	struct err err;

	if (app->tokens.path == NULL)
		return NULL;
	if (tokens_refresh(&app->tokens, &err) < 0)
		log_warn("tokens: %s", err.text);
	return tokens_find(&app->tokens, http_param(req, "HTTP_AUTHORIZATION"));
}

bool
gate_enter(struct api_app *app, struct http_request *req, enum gate_use use)
{
	const struct token *token;

	/* Nobody's, until it is known whose it is. */
	app->slot = LIMITS_NONE;
	memset(app->owner, 0, sizeof(app->owner));
	if (use == GATE_OPEN)
		return true;
	/* Nobody is asked for a token: nothing runs for those who may be
	 * anybody. */
	if (app->tokens.path == NULL) {
		if (!is_foreign(req))
			return true;
		reply_error(req, 403, NULL,
		    "Closed to others while IL_API_TOKENS_FILE is not set");
		return false;
	}
	token = find_token(app, req);
	if (token == NULL) {
		reply_error(req, 401, "WWW-Authenticate: Bearer\r\n",
		    "Not authenticated");
		return false;
	}
	memcpy(app->owner, token->hash, sizeof(app->owner));
	return is_within(app, req, token, use);
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
	return !is_foreign(req) || find_token(app, req) != NULL;
}
