/* SPDX-License-Identifier: MIT */
#include "api/gate.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/app.h"
#include "api/reply.h"
#include "api/session_holder.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"

#define CLOSED \
	"Closed to others while IL_API_TOKENS_FILE is not set. On this " \
	"machine ask localhost or 127.0.0.1; /docs says more"

bool
gate_is_foreign(const struct http_request *req)
{
	return http_says(req, "INLINE_FOREIGN");
}

/* A cell of the token's; for a new session one of its sessions at rest gives
 * way.  What nginx asks before it reads a body ends none. */
static int
take_cell(struct api_app *app, const struct http_request *req,
    const struct token *token, enum gate_use use)
{
	int64_t most = app->config->api_cells + app->config->api_sessions;
	int slot = limits_take_slot(&app->limits, token, LIMITS_CELL, most);
	int64_t next_ms;

	if (slot != -1 || use != GATE_SESSION ||
	    !session_holder_make_room(app, !req->gate, &next_ms))
		return slot;
	return req->gate ?
	    LIMITS_NONE :
	    limits_take_slot(&app->limits, token, LIMITS_CELL, most);
}

/* Sessions and runs take a cell each, commands a process.  False: all that the
 * token may have are in use. */
static bool
take_slot(struct api_app *app, const struct http_request *req,
    const struct token *token, enum gate_use use)
{
	if (use == GATE_CELL || use == GATE_SESSION)
		app->slot = take_cell(app, req, token, use);
	else if (use == GATE_COMMAND)
		app->slot = limits_take_slot(&app->limits, token,
		    LIMITS_COMMAND, app->config->api_sessions);
	return app->slot != -1;
}

/* Is a token within its limits?  What nginx asks before it reads a body is not
 * counted: the request itself will be. */
static bool
is_within(struct api_app *app, struct http_request *req,
    const struct token *token, enum gate_use use)
{
	int64_t seconds = limits_request(&app->limits, token,
	    clock_monotonic_ms(), !req->gate);

	if (seconds > 0) {
		reply_more(req, seconds,
		    "This token's requests of a minute are used up");
		return false;
	}
	if (take_slot(app, req, token, use))
		return true;
	reply_more(req, 1,
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

/* NULL: it has none that is good. */
static const struct token *
bearer(struct api_app *app, const struct http_request *req)
{
	const char *header = http_param(req, "HTTP_AUTHORIZATION");
	auto_free char *whole = NULL;

	if (app->tokens.path == NULL)
		return NULL;
	/* some of Piston's clients say the token alone */
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
	    limits_stranger(&app->limits, address, clock_monotonic_ms());

	if (seconds > 0)
		reply_more(req, seconds,
		    "Your address has sent too many tokens that are not known");
	return seconds > 0;
}

/* Where nobody is asked for a token, nothing runs for those who may be
 * anybody. */
static enum gate_who
identify(struct api_app *app, struct http_request *req, bool foreign,
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
		reply_error(req, 401, "WWW-Authenticate: Bearer\r\n",
		    "Not authenticated");
	else if (foreign)
		reply_error(req, 403, NULL, CLOSED);
	else
		return GATE_ANYBODY;
	return GATE_REFUSED;
}

const struct gate_manner gate_by_token = { identify };

bool
gate_enter(struct api_app *app, struct http_request *req, enum gate_use use,
    const struct gate_manner *manner)
{
	/* Nobody's, until it is known whose it is. */
	app->slot = LIMITS_NONE;
	app->limited = false;
	memset(app->owner, 0, sizeof(app->owner));
	if (use == GATE_OPEN)
		return true;
	switch (manner->identify(app, req, gate_is_foreign(req), &app->token)) {
	case GATE_REFUSED:
		return false;
	case GATE_ANYBODY:
		return true;
	case GATE_KNOWN:
		break;
	}
	app->limited = true;
	memcpy(app->owner, app->token.hash, sizeof(app->owner));
	return is_within(app, req, &app->token, use);
}

bool
gate_take(struct api_app *app, struct http_request *req, enum gate_use use)
{
	return !app->limited || take_slot(app, req, &app->token, use);
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
