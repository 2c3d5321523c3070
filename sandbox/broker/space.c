/* SPDX-License-Identifier: MIT */
/*
 * What takes space at once, and so waits until the ledger has it: making a
 * workspace, and bytes that another program is going to write itself.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../protocol/frame.h"
#include "admission.h"
#include "client.h"
#include "ledger.h"
#include "uid.h"
#include "workspace.h"

#define CREATIONS_MAX 4

/* What CREATE may ask for. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Packages are many small files. */
#define BYTES_PER_PACKAGE_FILE 8192
/* Two new volumes: journals, the first tables, the folder. */
#define CREATION_BYTES (INT64_C(10) << 20)

/* What RESERVE may ask for, all together: two steps of a file (filestore_new.c)
 * for each process of il-api that may be at one, while it goes from one to the
 * next. */
#define RESERVE_EACH (INT64_C(18) << 20)
#define RESERVE_PROCESSES 24 /* besides those of runs and of sessions */

static void
unreserve(struct client *client)
{
	reservation_free(client->reservation);
	client->reservation = NULL;
}

/* The sandbox is there, or was made by another client meanwhile, which is as
 * good. */
static void
creation_on_done(void *arg, const struct err *failure)
{
	struct client *client = arg;
	struct clients *clients = client->clients;

	client->state = CLIENT_ASKED_NOTHING;
	clients->creations--;
	unreserve(client);
	if (failure == NULL || failure->code == ERR_CONFLICT)
		client_done(client);
	else
		client_refuse(client, REFUSAL_START, failure->text);
	space_look(clients);
}

/* ---- whose turn it is ---- */

/* It has the room that it wants, or leaves with the truth. */
static void
space_give(struct client *client, bool room)
{
	struct clients *clients = client->clients;
	struct frame frame;

	struct err err;

	client->state = CLIENT_ASKED_NOTHING;
	if (room)
		client->reservation = reservation_of_bytes(clients->pool->host
							       .ledger,
		    client->place, client->bytes);
	else
		(void)close(client->place);
	if (client->reservation == NULL) {
		client_refuse(client, REFUSAL_DISK,
		    "the disk has no room for that");
		return;
	}
	if (client->creates &&
	    uids_take(clients->pool->host.uids, &client->creation.uid, &err) !=
		0) {
		unreserve(client);
		client_refuse(client, REFUSAL_START, err.text);
		return;
	}
	if (client->creates) {
		client->state = CLIENT_CREATES;
		clients->creations++;
		creation_start(&client->creation, clients->loop,
		    creation_on_done, client);
		return;
	}
	client->state = CLIENT_HAS_SPACE;
	frame_start(&frame, FRAME_GRANTED);
	if (!client_send(client, &frame, -1))
		client_close(client);
}

/* A new sandbox must be of use: one that nothing could be written to is not
 * made. */
static enum admission
space_for(const struct client *client)
{
	int64_t bytes = client->bytes;

	if (!ledger_has_files(client->place))
		return ADMIT_NEVER;
	if (client->creates)
		bytes += volume_total_bytes(&client->creation.sizes[0]);
	return room_for(client->clients->pool, client->place, bytes, NULL,
	    client->since_ms);
}

/* First come, first served; a few creations at a time, since many new
 * users must not starve the leases.  True when the client has been served. */
static bool
space_serve(struct client *client)
{
	struct clients *clients = client->clients;
	enum admission room;

	if (client->creates && clients->creations >= CREATIONS_MAX)
		return false;
	room = space_for(client);
	if (room == ADMIT_LATER)
		return false;
	TAILQ_REMOVE(&clients->waiting, client, turn);
	space_give(client, room == ADMIT);
	return true;
}

/* One that fails at once ends up here again, and finds that we are at it. */
void
space_look(void *arg)
{
	struct clients *clients = arg;
	struct client *client;
	struct client *next;

	if (clients->handing_out || clients->closed)
		return;
	clients->handing_out = true;
	for (client = TAILQ_FIRST(&clients->waiting); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, turn);
		(void)space_serve(client);
	}
	clients->handing_out = false;
}

/* It is looked at with all others, from the loop. */
static void
space_wait(struct client *client, bool creates, int64_t bytes, int place)
{
	struct clients *clients = client->clients;

	if (place < 0) {
		client_refuse(client, REFUSAL_DISK, "there is no such place");
		return;
	}
	client->creates = creates;
	client->bytes = bytes;
	client->place = place;
	client->since_ms = clock_monotonic_ms();
	client->state = CLIENT_WAITS_FOR_SPACE;
	TAILQ_INSERT_TAIL(&clients->waiting, client, turn);
	pool_poke(clients->pool);
}

/* It hung up: what waits leaves the queue, what is being made is removed. */
void
space_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	if (client->state == CLIENT_WAITS_FOR_SPACE) {
		TAILQ_REMOVE(&clients->waiting, client, turn);
		(void)close(client->place);
	}
	if (client->state == CLIENT_CREATES) {
		creation_cancel(&client->creation);
		clients->creations--;
		pool_poke(clients->pool);
	}
	unreserve(client);
}

/* ---- the requests ---- */

/* Those that are being made count, and those that wait to be. */
static bool
is_one_too_many(const struct clients *clients)
{
	int64_t count = workspace_count(clients->pool->host.base);
	const struct client *other;

	LIST_FOREACH(other, &clients->all, link)
	{
		if (other->state == CLIENT_CREATES ||
		    (other->state == CLIENT_WAITS_FOR_SPACE && other->creates))
			count++;
	}
	return count < 0 || count >= clients->config->sandboxes;
}

/* Make a sandbox of that id, if there is none. */
void
request_create(struct client *client, const struct frame_view *view)
{
	const struct clients *clients = client->clients;
	int base = clients->pool->host.base;
	struct creation *c = &client->creation;
	struct volume_size *sizes = c->sizes;

	if (!frame_get_text(view, TAG_SANDBOX, c->id, sizeof(c->id)) ||
	    !workspace_id_valid(c->id) ||
	    !frame_get_int(view, TAG_QUOTA_BYTES, &sizes[0].bytes) ||
	    !frame_get_int(view, TAG_QUOTA_FILES, &sizes[0].files) ||
	    sizes[0].bytes < QUOTA_MIN || sizes[0].bytes > QUOTA_MAX ||
	    sizes[0].files < 1 || sizes[0].files > FILES_MAX) {
		client_refuse(client, REFUSAL_INPUT, "a malformed CREATE");
		return;
	}
	if (workspace_exists(base, c->id)) {
		client_done(client);
		return;
	}
	if (is_one_too_many(clients)) {
		client_refuse(client, REFUSAL_SANDBOXES,
		    "there are IL_SANDBOXES sandboxes");
		return;
	}
	/* Who asks says how much, the operator how much at most. */
	if (sizes[0].bytes > clients->config->quota)
		sizes[0].bytes = clients->config->quota;
	if (sizes[0].files > clients->config->files)
		sizes[0].files = clients->config->files;
	sizes[1].bytes = clients->config->pip_quota;
	sizes[1].files = sizes[1].bytes / BYTES_PER_PACKAGE_FILE;
	c->base = base;
	c->base_path = clients->config->base_dir;
	space_wait(client, true, CREATION_BYTES,
	    fcntl(base, F_DUPFD_CLOEXEC, 0));
}

/* On the file system where the APIs keep their files: they make the folder, and
 * may keep it to themselves, so what is above it will do. */
static int
files_place(const struct config *config)
{
	auto_free char *path = config->api_files[0] != '\0' ?
	    xstrdup(config->api_files) :
	    config_state_path(config, "files");
	char *slash;
	int fd;

	for (;;) {
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		slash = strrchr(path, '/');
		if (fd >= 0 || slash == NULL)
			return fd;
		*slash = '\0';
	}
}

/* How much more may be reserved: whoever has il-api's socket could else keep
 * the whole disk from those who write. */
static int64_t
reserve_left(const struct clients *clients)
{
	const struct config *config = clients->config;
	int64_t left = RESERVE_EACH *
	    (config->api_cells + config->api_sessions + RESERVE_PROCESSES);
	const struct client *other;

	LIST_FOREACH(other, &clients->all, link)
	{
		if (other->state == CLIENT_HAS_SPACE ||
		    (other->state == CLIENT_WAITS_FOR_SPACE && !other->creates))
			left -= other->bytes;
	}
	return left;
}

/* Bytes that il-api writes itself, as long as it keeps the connection. */
void
request_reserve(struct client *client, const struct frame_view *view)
{
	int64_t bytes;

	if (!frame_get_int(view, TAG_SIZE, &bytes) || bytes < 1) {
		client_refuse(client, REFUSAL_INPUT, "a malformed RESERVE");
		return;
	}
	if (bytes > reserve_left(client->clients)) {
		client_refuse(client, REFUSAL_DISK,
		    "il-api has reserved as much as it may");
		return;
	}
	space_wait(client, false, bytes, files_place(client->clients->config));
}
