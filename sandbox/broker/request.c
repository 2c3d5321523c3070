/* SPDX-License-Identifier: MIT */
/*
 * What a client may ask for: a lease, removing a workspace.  (What takes space
 * at once is in space.c, the status in status.c.)  Every field is checked here,
 * before anything is done.
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
#include "../base/log.h"
#include "api_packages.h"
#include "client.h"
#include "ledger.h"
#include "workspace.h"

/* What this program may not ask for. */
static void
request_forbid(struct client *client, const char *what)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s may not ask for %s",
	    program_title(client->listener->program), what);
	client_refuse(client, REFUSAL_INPUT, text);
}

/* ---- leases ---- */

/* How it was granted, for who counts. */
static void
count_grant(const struct ticket *ticket, enum access access)
{
	const struct container *c = ticket->container;
	enum lease_way way = ticket->cold ? WAY_COLD : WAY_WARM;

	if (access == ACCESS_LOOK)
		way = WAY_LOOK;
	else if (c->adopted && c->runs == 0)
		way = WAY_SPARE;
	cell_metrics_lease(&ticket->client->clients->host->pool->metrics,
	    ticket->class, way, ticket->since_ms);
}

/* A client that is gone by now is closed, which ends the lease.  One that looks
 * has none: nothing of ours ends with it. */
void
ticket_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access)
{
	struct frame frame;
	bool sent;

	count_grant(ticket, access);
	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, cell);
	frame_add_int(&frame, TAG_ACCESS, access);
	if (ticket->keep && !ticket->container->kept)
		frame_add_int(&frame, TAG_ENDED,
		    kept_recall(&ticket->client->clients->host->pool->kept,
			ticket->sandbox));
	sent = client_send(ticket->client, &frame, client_end);
	(void)close(client_end);
	log_info("%s%s after %" PRId64 " ms cell=%s sandbox=%s",
	    access == ACCESS_LOOK ? "looks beside its run" :
		ticket->cold	  ? "leased cold" :
				    "leased warm",
	    access == ACCESS_READ ? ", to read only," : "",
	    clock_monotonic_ms() - ticket->since_ms, cell, ticket->sandbox);
	if (!sent)
		client_close(ticket->client);
}

void
ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text)
{
	ticket_leave_queue(pool, ticket);
	cell_metrics_lease(&pool->metrics, ticket->class, WAY_REFUSED + code,
	    ticket->since_ms);
	client_refuse(ticket->client, code, text);
}

/* Only want of memory is told: anything else the client sees by the end of its
 * cell's socket. */
void
ticket_lost(struct ticket *ticket, bool out_of_memory)
{
	struct frame frame;

	if (out_of_memory) {
		frame_start(&frame, FRAME_LOST);
		frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
		(void)client_send(ticket->client, &frame, -1);
	}
	client_close(ticket->client);
}

/* Of which sandbox, and what for: False: that makes no sense. */
static bool
lease_take_sandbox(struct ticket *ticket, const struct frame_view *view)
{
	int64_t access = ACCESS_WRITE;
	int64_t keep = 0;

	(void)frame_get_int(view, TAG_ACCESS, &access);
	(void)frame_get_int(view, TAG_KEEP, &keep);
	ticket->keep = keep != 0 && ticket->class->keeps;
	ticket->access = (enum access)access;
	return frame_get_text(view, TAG_SANDBOX, ticket->sandbox,
		   sizeof(ticket->sandbox)) &&
	    (ticket->class->installs ?
		    strcmp(ticket->sandbox, API_PACKAGES_ID) == 0 :
		    workspace_id_valid(ticket->sandbox)) &&
	    (access == ACCESS_WRITE || access == ACCESS_TIDY ||
		access == ACCESS_ANY ||
		(access == ACCESS_LOOK && ticket->class->looked_beside &&
		    !ticket->keep));
}

/* Which one, by its name; without one the first, and for a cell that is used
 * again the one that it has. */
static bool
lease_take_interpreter(struct ticket *ticket, const char *list,
    const struct frame_view *view)
{
	char name[IMAGES_NAME_MAX + 1] = "";
	const unsigned char *data;
	size_t len;
	bool named = frame_get_bytes(view, TAG_INTERPRETER, &data, &len);

	ticket->any_interpreter = !named &&
	    ticket->class->reuse == REUSE_SANDBOX;
	return (!named ||
		   frame_get_text(view, TAG_INTERPRETER, name, sizeof(name))) &&
	    images_find(list, name, &ticket->interpreter);
}

static void
lease_take_imports(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	int64_t imports;

	if (!frame_get_int(view, TAG_IMPORTS, &imports))
		return;
	ticket->imports = (uint32_t)imports;
	ticket->apart = (imports & PRELOAD_APART) != 0 &&
	    preload_is_auto(config->preload);
}

/* A class is for a sandbox or it is not. */
static enum refusal
lease_take(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	const unsigned char *data;
	size_t len;
	bool sandbox = frame_get_bytes(view, TAG_SANDBOX, &data, &len);

	if (ticket->class == NULL ||
	    !frame_get_int(view, TAG_LEASE_MS, &ticket->lease_ms) ||
	    ticket->lease_ms < 1 || ticket->lease_ms > LIMIT_WALL_MS ||
	    (ticket->class->in_memory ? sandbox :
					!lease_take_sandbox(ticket, view)))
		return REFUSAL_INPUT;
	if (frame_get_bytes(view, TAG_FOLDER, &data, &len) &&
	    (!frame_get_text(view, TAG_FOLDER, ticket->folder,
		 sizeof(ticket->folder)) ||
		!class_has_folder(ticket->class, config, ticket->folder)))
		return REFUSAL_INPUT;
	lease_take_imports(ticket, config, view);
	if (!lease_take_interpreter(ticket,
		ticket->class->in_memory || ticket->class->installs ?
		    config->sandbox_images :
		    config->chat_images,
		view))
		return REFUSAL_INTERPRETER;
	if (ticket->class->installs)
		api_packages_staging(ticket->interpreter.name,
		    ticket->packages);
	else
		workspace_packages_name(ticket->interpreter.name,
		    ticket->packages);
	return REFUSAL_NONE;
}

static void
request_lease(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct ticket *ticket = &client->ticket;
	char class[CLASS_NAME_MAX] = "";
	enum refusal code;

	(void)frame_get_text(view, TAG_CLASS, class, sizeof(class));
	ticket->class = class_find(class);
	if (ticket->class != NULL &&
	    ticket->class->program != client->listener->program) {
		request_forbid(client, ticket->class->name);
		return;
	}
	code = lease_take(ticket, host->config, view);
	if (code != REFUSAL_NONE) {
		client_refuse(client, code,
		    code == REFUSAL_INTERPRETER ? "no such interpreter" :
						  "a malformed LEASE");
		return;
	}
	ticket->client = client;
	client->state = CLIENT_WANTS_LEASE;
	warm_note(host->pool, ticket);
	pool_request(host->pool, ticket);
}

/* ---- what is kept ---- */

static void
kept_answer(struct client *client, struct container *c)
{
	struct frame frame;

	frame_start(&frame, FRAME_GRANTED);
	if (c != NULL) {
		frame_add_int(&frame, TAG_KEPT, 1);
		frame_add_int(&frame, TAG_REST_MS,
		    clock_monotonic_ms() - c->since_ms);
	}
	if (client->retire && client->listener->program == PROGRAM_CTL)
		cells_end_idle(client);
	else if (c != NULL && client->retire)
		kept_end(c, KEPT_STOPPED);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

/* The idle cell that keeps an interpreter of this sandbox, or NULL.  *used: one
 * that is leased, or on its way back; NULL: none. */
static struct container *
kept_of(const struct pool *pool, const char *sandbox,
    const struct container **used)
{
	struct container *c;

	*used = NULL;
	TAILQ_FOREACH(c, &pool->containers, link) {
		if (strcmp(c->sandbox, sandbox) != 0)
			continue;
		if (c->state == CONTAINER_LEASED ||
		    c->state == CONTAINER_RELEASING)
			*used = c;
		if (c->state == CONTAINER_IDLE && c->kept)
			return c;
	}
	return NULL;
}

/* Who asks while the cell is on its way back waits for it, but not for a run
 * that goes on. */
void
kept_look(struct clients *clients)
{
	const struct host *host = clients->host;
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->asking); client != NULL;
	     client = next) {
		int64_t due_ms = client->since_ms + POOL_BUSY_MS;
		const struct container *used;
		struct container *c = kept_of(host->pool,
		    client->ticket.sandbox, &used);

		next = TAILQ_NEXT(client, turn);
		if (used == NULL)
			kept_answer(client, c);
		else if (used->state == CONTAINER_LEASED &&
		    clock_monotonic_ms() >= due_ms)
			client_refuse(client, REFUSAL_BUSY,
			    "the cell is leased");
		else if (used->state == CONTAINER_LEASED)
			host_look(clients->host, due_ms);
	}
}

/* Is there an interpreter for the next run, and shall it end? */
static void
request_kept(struct client *client, const struct frame_view *view)
{
	struct clients *clients = client->clients;
	int64_t retire = 0;

	if (!frame_get_text(view, TAG_SANDBOX, client->ticket.sandbox,
		sizeof(client->ticket.sandbox)) ||
	    !workspace_id_valid(client->ticket.sandbox)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed KEPT");
		return;
	}
	(void)frame_get_int(view, TAG_RETIRE, &retire);
	client->retire = retire != 0;
	client->since_ms = clock_monotonic_ms();
	client->state = CLIENT_ASKS_KEPT;
	TAILQ_INSERT_TAIL(&clients->asking, client, turn);
	host_look(clients->host, 0);
}

/* ---- removing workspaces ---- */

/* The client may have hung up meanwhile; the removal went on. */
void
removal_done(struct removal *removal, const char *trouble)
{
	struct client *client = removal->client;

	if (trouble != NULL)
		log_err("%s sandbox=%s", trouble, removal->sandbox);
	if (client != NULL) {
		client->state = CLIENT_ASKED_NOTHING;
		if (trouble == NULL)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, trouble);
	}
	free(removal);
}

/* The sandbox's name is taken away at once, so nobody gets a cell of it any
 * more; its files go when its cells are gone. */
static void
request_remove(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct removal *removal;
	char id[33];
	char retired[64];
	struct err err;
	int rc;

	if (!frame_get_text(view, TAG_SANDBOX, id, sizeof(id)) ||
	    !workspace_id_valid(id)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed REMOVE");
		return;
	}
	rc = workspace_retire(host->base, id, retired, &err);
	if (rc < 0) {
		client_refuse(client, REFUSAL_START, err.text);
		return;
	}
	if (rc > 0) {
		client_done(client);
		return;
	}
	removal = xcalloc(1, sizeof(*removal));
	memcpy(removal->sandbox, id, sizeof(id));
	memcpy(removal->retired, retired, sizeof(retired));
	removal->client = client;
	client->removal = removal;
	client->state = CLIENT_REMOVES;
	pool_remove(host->pool, removal);
}

/* ---- all of it ---- */

#define BY(program) (1U << PROGRAM_##program)

/* What may be asked, and by which programs. */
static const struct {
	enum frame_kind kind;
	unsigned int programs;
	const char *name;
	void (*take)(struct client *client, const struct frame_view *view);
} requests[] = {
	{ FRAME_LEASE, BY(WORKER) | BY(API) | BY(CTL), "LEASE", request_lease },
	{ FRAME_CREATE, BY(WORKER), "CREATE", request_create },
	{ FRAME_STAGE, BY(CTL), "STAGE", request_stage },
	{ FRAME_PUBLISH, BY(CTL), "PUBLISH", request_publish },
	{ FRAME_PACKAGES, BY(CTL), "PACKAGES", request_packages },
	{ FRAME_CELLS, BY(CTL), "CELLS", request_cells },
	{ FRAME_KEPT, BY(WORKER) | BY(CTL), "KEPT", request_kept },
	{ FRAME_REMOVE, BY(WORKER) | BY(CTL), "REMOVE", request_remove },
	{ FRAME_RESERVE, BY(API), "RESERVE", request_reserve },
	{ FRAME_METRICS, BY(API), "METRICS", request_metrics },
	{ FRAME_STATUS, BY(WORKER) | BY(API) | BY(CTL), "STATUS",
	    request_status },
};

/* What this program may not ask for is refused before anything of it is
 * read. */
void
request_take(struct client *client, const struct frame_view *view)
{
	const char *what = "what is not for the broker";

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].kind != view->kind)
			continue;
		if ((requests[i].programs & 1U << client->listener->program) !=
		    0) {
			requests[i].take(client, view);
			return;
		}
		what = requests[i].name;
	}
	request_forbid(client, what);
}

/* Undo what the state stands for. */
void
request_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	switch (client->state) {
	case CLIENT_ASKED_NOTHING:
	case CLIENT_HAS_SPACE:
		break;
	case CLIENT_WANTS_LEASE:
		pool_withdraw(clients->host->pool, &client->ticket);
		break;
	case CLIENT_WAITS_TO_CREATE:
	case CLIENT_WAITS_TO_RESERVE:
		TAILQ_REMOVE(&clients->waiting, client, turn);
		(void)close(client->place);
		break;
	case CLIENT_ASKS_KEPT:
		TAILQ_REMOVE(&clients->asking, client, turn);
		break;
	case CLIENT_STAGES:
		stage_abandon(client);
		break;
	case CLIENT_PUBLISHES:
		publish_abandon(client);
		break;
	case CLIENT_LISTS:
		subprocess_cancel(&client->tool);
		break;
	case CLIENT_CREATES:
		creation_cancel(&client->creation);
		break;
	case CLIENT_REMOVES:
		client->removal->client = NULL;
		break;
	}
	/* Another may have its turn. */
	reservation_free(client->reservation);
	client->state = CLIENT_ASKED_NOTHING;
}
