/* SPDX-License-Identifier: MIT */
/* Sessions: their ids, and the lease of a cell from one request to the next. */
#include "api/app.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "api/gate.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"

#define ASK_MS 5000
#define START_MS 30000 /* a session's cell is always a new one */
/* A session that is being made is worth waiting for.  A busy one may stay busy
 * for any time. */
#define NAMED_TURN_MS 2000
#define NAMED_MS (INT64_C(12) * 3600 * 1000) /* in any case */

/* The digits of a session's id; NULL: it is none. */
static const char *
session_digits(const char *id)
{
	const size_t prefix = strlen(SESSION_PREFIX);

	return strncmp(id, SESSION_PREFIX, prefix) == 0 &&
		strlen(id) == prefix + SESSION_DIGITS &&
		strspn(id + prefix, "0123456789abcdef") == SESSION_DIGITS ?
	    id + prefix :
	    NULL;
}

void
session_make_id(const struct api_app *app, char id[SESSION_ID_SIZE])
{
	memcpy(id, SESSION_PREFIX, sizeof(SESSION_PREFIX));
	text_random_hex(id + strlen(SESSION_PREFIX), SESSION_DIGITS);
	node_table_mark(app->nodes, id + strlen(SESSION_PREFIX));
}

enum refusal
session_lease(struct api_app *app, struct http_request *req, const char *id,
    const char *interpreter, int64_t ttl_ms, int64_t rest_ms,
    struct lease *lease, struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	const struct lease_request request = { .class = "session",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = ttl_ms,
		.session = session_digits(id),
		.owner = app->owner,
		.rest_ms = rest_ms,
		.slot_fd = app->slot,
		.unless = &gone };

	*lease = (struct lease)LEASE_NONE;
	if (request.session == NULL) {
		(void)err_set(err, ERR_INPUT, "not the id of a session");
		return REFUSAL_INPUT;
	}
	return lease_open(lease, app->lease_socket, &request, START_MS, err);
}

int
session_resume(const struct api_app *app, const char *id, int client,
    int wait_ms, struct lease *lease, struct err *err)
{
	const struct pollfd gone = { .fd = client, .events = POLLRDHUP };
	const struct lease_request request = { .session = session_digits(id),
		.owner = app->owner,
		.unless = &gone };
	enum refusal refusal = REFUSAL_NO_WORKSPACE;

	*lease = (struct lease)LEASE_NONE;
	if (request.session != NULL)
		refusal = lease_resume(lease, app->lease_socket, &request,
		    wait_ms, err);
	if (refusal == REFUSAL_NONE)
		return 0;
	if (refusal == REFUSAL_BUSY || refusal == REFUSAL_TIME)
		return err_set(err, ERR_TIMEOUT, "the session is in use");
	/* A session does not outlive the broker, which may also be too busy to
	 * accept a connection. */
	if (refusal == REFUSAL_UNREACHABLE && err->code == ERR_BUSY)
		return err_set(err, ERR_TIMEOUT, "the broker is busy");
	return err_set(err, ERR_NOT_FOUND, "no such session");
}

bool
session_end(const struct api_app *app, const char *id)
{
	const struct lease_request command = { .kind = FRAME_END_SESSION,
		.session = session_digits(id),
		.owner = app->owner };
	struct err err;

	return command.session != NULL &&
	    lease_command(NULL, app->lease_socket, &command, ASK_MS, &err) ==
	    REFUSAL_NONE;
}

bool
session_make_room(const struct api_app *app, bool rests, bool evict)
{
	const struct lease_request command = { .kind = FRAME_END_SESSION,
		.owner = app->owner,
		.rest_ms = rests,
		.retire = evict };
	struct err err;

	return lease_command(NULL, app->lease_socket, &command, ASK_MS, &err) ==
	    REFUSAL_NONE;
}

/* ---- the cell of a conversation ---- */

/* The id of the conversation's session, which no other owner's conversation
 * has. */
static void
session_name(char id[SESSION_ID_SIZE], const struct api_app *app,
    const char *hint)
{
	unsigned char hash[SESSION_DIGITS / 2];
	char digits[SESSION_DIGITS + 1];

	(void)crypto_generichash(hash, sizeof(hash),
	    (const unsigned char *)hint, strlen(hint), app->owner,
	    sizeof(app->owner));
	(void)sodium_bin2hex(digits, sizeof(digits), hash, sizeof(hash));
	(void)snprintf(id, SESSION_ID_SIZE, SESSION_PREFIX "%s", digits);
}

/* Claim one of the token's slots for the session; its runs are counted like any
 * other.  An older session may be evicted.  -1: there is no slot. */
static int
session_claim_slot(const struct api_app *app)
{
	const int64_t most = app->config->api_sessions;
	int slot = LIMITS_NONE;

	if (app->limited)
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	if (slot == -1 && session_make_room(app, true, true))
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	return slot;
}

/* Make the session, which has the slot.  If that fails, the run has a cell of
 * its own. */
static void
session_make_named(struct session_named *s, struct api_app *app,
    struct http_request *req)
{
	const int run_slot = app->slot;
	auto_close int slot = session_claim_slot(app);
	struct err err;

	if (slot == -1)
		return;
	app->slot = slot;
	s->fresh = session_lease(app, req, s->id, NULL, NAMED_MS,
		       app->config->librechat_rest_ms, &s->cell,
		       &err) == REFUSAL_NONE;
	app->slot = run_slot;
	if (!s->fresh)
		log_info("a conversation has no cell: %s", err.text);
}

void
session_resume_named(struct session_named *s, struct api_app *app,
    struct http_request *req, const char *hint)
{
	struct err err;

	*s = (struct session_named){ .cell = LEASE_NONE };
	if (hint == NULL || app->config->librechat_rest_ms == 0)
		return;
	session_name(s->id, app, hint);
	if (session_resume(app, s->id, http_fd(req), NAMED_TURN_MS, &s->cell,
		&err) != 0 &&
	    err.code == ERR_NOT_FOUND)
		session_make_named(s, app, req);
}
