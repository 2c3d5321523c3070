/*
 * What a client may ask for: a lease, making and removing a workspace, the
 * status.  Every field is checked here, before anything is done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/frame.h"
#include "../base/images.h"
#include "../base/log.h"
#include "class.h"
#include "client.h"
#include "program.h"
#include "workspace.h"

#define CREATIONS_MAX 4
#define LEASE_MS_MAX (INT64_C(24) * 3600 * 1000)
#define FRESH_MS 5000 /* a status may be so old before docker is asked */

/* What CREATE may ask for. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Packages are many small files. */
#define BYTES_PER_PACKAGE_FILE 8192

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

static void
lease_on_granted(struct ticket *ticket, int client_end)
{
	struct client *client = client_of(ticket);
	struct frame frame;
	bool sent;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, ticket->container->name);
	sent = client_send(client, &frame, client_end);
	(void)close(client_end);
	log_info("leased %s after %" PRId64 " ms cell=%s sandbox=%s",
	    ticket->cold ? "cold" : "warm",
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

static void
lease_on_lost(struct ticket *ticket)
{
	client_close(client_of(ticket));
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
			workspace_id_valid(ticket->sandbox) && !interpreter ?
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

static enum refusal
lease_take(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	char class[CLASS_NAME_MAX];

	if (!frame_get_text(view, TAG_CLASS, class, sizeof(class)) ||
	    !frame_get_int(view, TAG_LEASE_MS, &ticket->lease_ms) ||
	    ticket->lease_ms < 1 || ticket->lease_ms > LEASE_MS_MAX)
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

/* ---- making workspaces ---- */

static void creations_next(struct clients *clients);

static void
creation_on_done(void *arg, const struct err *failure)
{
	struct client *client = arg;
	struct clients *clients = client->clients;
	int64_t free_bytes;
	struct err err;
	bool low;

	client->state = CLIENT_ASKED_NOTHING;
	clients->creations--;
	if (failure == NULL || failure->code == ERR_CONFLICT)
		client_done(client);
	else if (workspace_space(clients->base, &free_bytes, &low, &err) == 0 &&
	    low)
		client_refuse(client, REFUSAL_DISK, failure->text);
	else
		client_refuse(client, REFUSAL_START, failure->text);
	creations_next(clients);
}

/* A few at a time: a crowd of new users must not starve the leases.  One that
 * fails at once ends up here again, and finds that we are at it. */
static void
creations_next(struct clients *clients)
{
	struct client *client;

	if (clients->handing_out || clients->closed)
		return;
	clients->handing_out = true;
	while ((client = TAILQ_FIRST(&clients->creating)) != NULL &&
	    clients->creations < CREATIONS_MAX) {
		TAILQ_REMOVE(&clients->creating, client, turn);
		client->state = CLIENT_CREATES;
		clients->creations++;
		creation_start(&client->creation, clients->loop,
		    creation_on_done, client);
	}
	clients->handing_out = false;
}

static void
request_create(struct client *client, const struct frame_view *view)
{
	const struct clients *clients = client->clients;
	struct creation *c = &client->creation;
	struct image_size *sizes = c->sizes;
	int64_t free_bytes;
	struct err err;
	bool low;

	if (!frame_get_text(view, TAG_SANDBOX, c->id, sizeof(c->id)) ||
	    !workspace_id_valid(c->id) ||
	    !frame_get_int(view, TAG_QUOTA_BYTES, &sizes[0].bytes) ||
	    !frame_get_int(view, TAG_QUOTA_FILES, &sizes[0].files) ||
	    sizes[0].bytes < QUOTA_MIN || sizes[0].bytes > QUOTA_MAX ||
	    sizes[0].files < 1 || sizes[0].files > FILES_MAX) {
		client_refuse(client, REFUSAL_INPUT, "a malformed CREATE");
		return;
	}
	if (workspace_exists(clients->base, c->id)) {
		client_done(client);
		return;
	}
	if (workspace_space(clients->base, &free_bytes, &low, &err) != 0 ||
	    low) {
		client_refuse(client, REFUSAL_DISK, "the host's disk is full");
		return;
	}
	sizes[1].bytes = clients->config->pip_quota;
	sizes[1].files = sizes[1].bytes / BYTES_PER_PACKAGE_FILE;
	c->base = clients->base;
	c->base_path = clients->config->base_dir;
	client->state = CLIENT_WAITS_TO_CREATE;
	TAILQ_INSERT_TAIL(&client->clients->creating, client, turn);
	creations_next(client->clients);
}

/* ---- removing them ---- */

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
	rc = workspace_retire(clients->base, id, own->removal.retired, &err);
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
	struct engine *engine = clients->engine;
	struct pool_count count;
	int64_t free_bytes = 0;
	struct frame frame;
	struct err err;
	bool low;

	pool_count(clients->pool, &count);
	(void)workspace_space(clients->base, &free_bytes, &low, &err);
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
	frame_add_int(&frame, TAG_FREE_BYTES, free_bytes);
	frame_add_int(&frame, TAG_ISOLATION, clients->pool->isolation);
	frame_add_text(&frame, TAG_TEXT, clients->pool->hindrance);
	(void)client_send(client, &frame, -1);
	client_close(client);
	(void)engine_refresh(engine, FRESH_MS);
}

/* ---- all of it ---- */

void
request_take(struct client *client, const struct frame_view *view)
{
	const char *name = client->listener->program->name;
	char text[128];
	const char *what;

	if (!program_may(client->listener->program, view, &what)) {
		(void)snprintf(text, sizeof(text), "%s may not ask for %s",
		    name, what);
		client_refuse(client, REFUSAL_INPUT, text);
		return;
	}
	if (view->kind == FRAME_LEASE)
		request_lease(client, view);
	else if (view->kind == FRAME_CREATE)
		request_create(client, view);
	else if (view->kind == FRAME_REMOVE)
		request_remove(client, view);
	else
		request_status(client);
}

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
	case CLIENT_WAITS_TO_CREATE:
		TAILQ_REMOVE(&clients->creating, client, turn);
		break;
	case CLIENT_CREATES:
		creation_cancel(&client->creation);
		clients->creations--;
		creations_next(clients);
		break;
	case CLIENT_REMOVES:
		client->removal->client = NULL;
		break;
	}
	client->state = CLIENT_ASKED_NOTHING;
}
