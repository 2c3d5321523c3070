/* SPDX-License-Identifier: MIT */
#include "librechat_session.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "app.h"
#include "session_cell.h"
#include "../server/http.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"

/* One that is being made is worth waiting for; of one that is busy nobody knows
 * for how long. */
#define TURN_MS 2000
#define LASTS_MS (INT64_C(12) * 3600 * 1000) /* in any case */

/* A name that nobody else's conversation has. */
static void
name_session(char id[SESSION_ID_SIZE], const struct api_app *app,
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

/* What the session counts of what who asks may have, a run of it being counted
 * as any other; an older one may give way.  -1: there is none. */
static int
take_slot(struct api_app *app)
{
	const int64_t most = app->config->api_sessions;
	int64_t next_ms;
	int slot = LIMITS_NONE;

	if (app->limited)
		slot = limits_take_slot(&app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	if (slot == -1 && session_holder_make_room(app, true, &next_ms))
		slot = limits_take_slot(&app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	return slot;
}

/* As session_holder_borrow(). */
static int
borrow(struct libre_session *s, struct api_app *app, struct http_request *req,
    struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };

	s->connection = session_holder_borrow(app, s->id, &gone, &s->cell_fd,
	    TURN_MS, err);
	return s->connection < 0 ? -1 : 0;
}

/* The cell, then its holder, which has the slot. */
static int
start(struct api_app *app, struct http_request *req,
    struct session_claim *claim, int slot, struct err *err)
{
	const int run_slot = app->slot;
	struct lease lease;
	int64_t next_ms;
	int result;

	if (session_cell_lease(app, req, NULL, LASTS_MS, &lease, &next_ms,
		err) != REFUSAL_NONE) {
		session_holder_disclaim(app, claim);
		return -1;
	}
	app->slot = slot;
	result = session_holder_start_claimed(app, &lease,
	    clock_monotonic_ms() + LASTS_MS, claim, err);
	app->slot = run_slot;
	lease_close(&lease); /* the holder has its own descriptors */
	return result;
}

/* Make it.  Where that cannot be, the run has a cell of its own. */
static void
create(struct libre_session *s, struct api_app *app, struct http_request *req)
{
	struct session_claim claim = {
		.rest_ms = app->config->librechat_rest_ms
	};
	int slot = take_slot(app);
	struct err err;
	int result;

	if (slot == -1)
		return;
	memcpy(claim.id, s->id, sizeof(claim.id));
	/* Two may come at one time. */
	result = session_holder_claim(app, &claim, &err);
	if (result == 0)
		result = start(app, req, &claim, slot, &err);
	if (slot >= 0)
		(void)close(slot);
	if (result == 0)
		result = borrow(s, app, req, &err);
	if (result != 0)
		log_info("a conversation has no cell: %s", err.text);
	s->fresh = result == 0;
}

void
librechat_session_borrow(struct libre_session *s, struct api_app *app,
    struct http_request *req, const char *hint)
{
	struct err err;

	*s = (struct libre_session){ .connection = -1, .cell_fd = -1 };
	if (hint == NULL || app->config->librechat_rest_ms == 0)
		return;
	name_session(s->id, app, hint);
	if (borrow(s, app, req, &err) != 0 && err.code == ERR_NOT_FOUND)
		create(s, app, req);
}

void
librechat_session_return(struct libre_session *s, bool lost)
{
	if (lost)
		(void)close(s->connection); /* which ends the session */
	else
		session_holder_return(s->connection);
	(void)close(s->cell_fd);
}
