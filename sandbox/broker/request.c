/* SPDX-License-Identifier: MIT */
/*
 * What a client may ask for: a lease, removing a workspace, the status.  (What
 * takes space at once is in space.c.)  Every field is checked here, before
 * anything is done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/config_images.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/frame.h"
#include "class.h"
#include "client.h"
#include "ledger.h"
#include "program.h"
#include "workspace.h"

#define FRESH_MS 5000 /* a status may be so old before docker is asked */

/* A removal goes on when its client has hung up. */
struct client_removal {
	struct removal removal; /* first */
	struct client *client;	/* NULL: gone */
};

/* ---- leases ---- */

static struct client *
client_of(struct ticket *ticket)
{
	char *at = (char *)ticket - offsetof(struct client, ticket);

	return (struct client *)(void *)at;
}

/* A client that is gone by now is closed, which ends the lease. */
static void
lease_on_granted(struct ticket *ticket, int client_end, enum access access)
{
	struct client *client = client_of(ticket);
	struct frame frame;
	bool sent;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, ticket->container->name);
	frame_add_int(&frame, TAG_ACCESS, access);
	sent = client_send(client, &frame, client_end);
	(void)close(client_end);
	log_info("leased %s%s after %" PRId64 " ms cell=%s sandbox=%s",
	    ticket->cold ? "cold" : "warm",
	    access == ACCESS_READ ? ", to read only," : "",
	    clock_monotonic_ms() - ticket->since_ms, ticket->container->name,
	    ticket->sandbox);
	if (!sent)
		client_close(client);
}

static void
lease_on_refused(struct ticket *ticket, enum refusal code, const char *text)
{
	client_refuse(client_of(ticket), code, text);
}

/* Only want of memory is told: anything else the client sees by the end of its
 * cell's socket. */
static void
lease_on_lost(struct ticket *ticket, bool out_of_memory)
{
	struct client *client = client_of(ticket);
	struct frame frame;

	if (out_of_memory) {
		frame_start(&frame, FRAME_LOST);
		frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
		(void)client_send(client, &frame, -1);
	}
	client_close(client);
}

static bool
lease_take_access(struct ticket *ticket, const struct frame_view *view)
{
	int64_t access = ACCESS_WRITE;

	(void)frame_get_int(view, TAG_ACCESS, &access);
	ticket->access = (enum access)access;
	return access == ACCESS_WRITE || access == ACCESS_TIDY ||
	    access == ACCESS_ANY;
}

/* A class is for a sandbox or for an interpreter, never for both. */
static enum refusal
lease_take_subject(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	char name[IMAGES_NAME_MAX + 1] = "";
	const unsigned char *data;
	size_t len;
	bool sandbox = frame_get_bytes(view, TAG_SANDBOX, &data, &len);
	bool interpreter = frame_get_bytes(view, TAG_INTERPRETER, &data, &len);

	if (!ticket->class->in_memory)
		return frame_get_text(view, TAG_SANDBOX, ticket->sandbox,
			   sizeof(ticket->sandbox)) &&
			workspace_id_valid(ticket->sandbox) && !interpreter &&
			lease_take_access(ticket, view) ?
		    0 :
		    REFUSAL_INPUT;
	if (sandbox)
		return REFUSAL_INPUT;
	if ((interpreter &&
		!frame_get_text(view, TAG_INTERPRETER, name, sizeof(name))) ||
	    !images_find(config->sandbox_images, name, &ticket->interpreter))
		return REFUSAL_INTERPRETER;
	return 0;
}

/* Read and check all fields of a LEASE. */
static enum refusal
lease_take(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	char class[CLASS_NAME_MAX];

	if (!frame_get_text(view, TAG_CLASS, class, sizeof(class)) ||
	    !frame_get_int(view, TAG_LEASE_MS, &ticket->lease_ms) ||
	    ticket->lease_ms < 1 || ticket->lease_ms > LIMIT_WALL_MS)
		return REFUSAL_INPUT;
	ticket->class = class_find(class);
	if (ticket->class == NULL)
		return REFUSAL_INPUT;
	return lease_take_subject(ticket, config, view);
}

static void
request_lease(struct client *client, const struct frame_view *view)
{
	struct ticket *ticket = &client->ticket;
	enum refusal code = lease_take(ticket, client->clients->config, view);

	if (code != 0) {
		client_refuse(client, code,
		    code == REFUSAL_INTERPRETER ? "no such interpreter" :
						  "a malformed LEASE");
		return;
	}
	ticket->granted = lease_on_granted;
	ticket->refused = lease_on_refused;
	ticket->lost = lease_on_lost;
	client->state = CLIENT_WANTS_LEASE;
	pool_request(client->clients->pool, ticket);
}

/* ---- removing workspaces ---- */

/* The client may have hung up meanwhile; the removal went on. */
static void
removal_on_done(struct removal *removal, const char *trouble)
{
	struct client_removal *own = (struct client_removal *)removal;
	struct client *client = own->client;

	if (trouble != NULL)
		log_err("%s sandbox=%s", trouble, removal->sandbox);
	if (client != NULL) {
		client->state = CLIENT_ASKED_NOTHING;
		if (trouble == NULL)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, trouble);
	}
	free(own);
}

/* The sandbox's name is taken away at once, so nobody gets a cell of it any
 * more; its files go when its cells are gone. */
static void
request_remove(struct client *client, const struct frame_view *view)
{
	struct clients *clients = client->clients;
	struct client_removal *own;
	char id[33];
	struct err err;
	int rc;

	if (!frame_get_text(view, TAG_SANDBOX, id, sizeof(id)) ||
	    !workspace_id_valid(id)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed REMOVE");
		return;
	}
	own = xcalloc(1, sizeof(*own));
	rc = workspace_retire(clients->pool->host.base, id,
	    own->removal.retired, &err);
	if (rc != 0) {
		free(own);
		if (rc > 0)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, err.text);
		return;
	}
	memcpy(own->removal.sandbox, id, sizeof(id));
	own->removal.done = removal_on_done;
	own->client = client;
	client->removal = own;
	client->state = CLIENT_REMOVES;
	pool_remove(clients->pool, &own->removal);
}

/* ---- the status ---- */

/* What is known last, at once: a status is asked for when something is wrong,
 * and must not wait for what is.  What is old is asked for anew behind it. */
static void
request_status(struct client *client)
{
	const struct clients *clients = client->clients;
	struct engine *engine = clients->pool->engine;
	struct pool_count count;
	struct ledger_space space = { 0 };
	struct frame frame;
	struct err err;

	pool_count(clients->pool, &count);
	(void)ledger_look(clients->pool->host.ledger, clients->pool->host.base,
	    &space, &err);
	frame_start(&frame, FRAME_STATUS_IS);
	frame_add_int(&frame, TAG_ENGINE, engine->up ? 1 : 0);
	frame_add_int(&frame, TAG_IMAGE, engine->image ? 1 : 0);
	if (engine->probed_ms >= 0)
		frame_add_int(&frame, TAG_ENGINE_AGE,
		    clock_monotonic_ms() - engine->probed_ms);
	frame_add_text(&frame, TAG_TROUBLE, engine->trouble);
	frame_add_text(&frame, TAG_IMAGE_NAME, clients->config->sandbox_image);
	frame_add_text(&frame, TAG_IMAGES, clients->config->sandbox_images);
	frame_add_text(&frame, TAG_PYTHON, clients->pool->python);
	frame_add_int(&frame, TAG_CELLS, count.cells);
	frame_add_int(&frame, TAG_LEASED, count.leased);
	frame_add_int(&frame, TAG_STARTING, count.starting);
	frame_add_int(&frame, TAG_WAITING, count.waiting);
	frame_add_int(&frame, TAG_FREE_BYTES, space.free);
	frame_add_int(&frame, TAG_PROMISED, space.promised);
	frame_add_int(&frame, TAG_FLOOR, space.floor);
	frame_add_int(&frame, TAG_SANDBOXES,
	    workspace_count(clients->pool->host.base));
	frame_add_int(&frame, TAG_ISOLATION, clients->pool->isolation);
	frame_add_text(&frame, TAG_TEXT, clients->pool->isolation_reason);
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(engine, FRESH_MS);
}

/* ---- all of it ---- */

/* What this program may not ask for is refused before anything of it is
 * read. */
void
request_take(struct client *client, const struct frame_view *view)
{
	enum program_name program = client->listener->program;
	char text[128];
	const char *what;

	if (!program_may(program, view, &what)) {
		(void)snprintf(text, sizeof(text), "%s may not ask for %s",
		    programs[program].name, what);
		client_refuse(client, REFUSAL_INPUT, text);
		return;
	}
	if (view->kind == FRAME_LEASE)
		request_lease(client, view);
	else if (view->kind == FRAME_CREATE)
		request_create(client, view);
	else if (view->kind == FRAME_RESERVE)
		request_reserve(client, view);
	else if (view->kind == FRAME_REMOVE)
		request_remove(client, view);
	else
		request_status(client);
}

/* Undo what the state stands for. */
void
request_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	switch (client->state) {
	case CLIENT_ASKED_NOTHING:
		break;
	case CLIENT_WANTS_LEASE:
		pool_withdraw(clients->pool, &client->ticket);
		break;
	case CLIENT_WAITS_FOR_SPACE:
	case CLIENT_CREATES:
	case CLIENT_HAS_SPACE:
		space_abandon(client);
		break;
	case CLIENT_REMOVES:
		client->removal->client = NULL;
		break;
	}
	client->state = CLIENT_ASKED_NOTHING;
}
