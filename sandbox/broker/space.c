/* SPDX-License-Identifier: MIT */
/*
 * Admission: a ticket that wants to write needs room on the disk, and idle
 * cells are ended where that makes the room.  Code that may write needs all
 * that its volume can still grow by; without that it may only read its files,
 * in a container that has mounted them so.  Listing, fetching and removing
 * files need no room: the cell itself does that, in blocks that are there.
 *
 * Some requests take space at once, and wait until the ledger has it: making a
 * workspace, and bytes that il-api writes itself.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "broker/client.h"
#include "broker/ledger.h"
#include "broker/workspace.h"
#include "protocol/frame.h"
#include "volume/owner.h"

/* For idle cells to end and their devices to be cleared. */
#define ROOM_WAIT_MS 5000
#define CREATIONS_MAX 4

/* Bounds of CREATE. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Size of two new volumes: journals, the first tables, the folder. */
#define CREATION_BYTES (INT64_C(10) << 20)

/* The limit of all RESERVEs together.  Each process of il-api that writes a
 * file of the store (filestore_folder.c) may hold two steps of it, while it
 * goes from one to the next. */
#define RESERVE_EACH (INT64_C(18) << 20)
#define RESERVE_PROCESSES 40 /* besides the ones of runs and of sessions */

/* ---- room ---- */

/* Bytes that could come free on a file system. */
struct yield {
	int64_t ending; /* of cells that are ending or being released */
	int64_t idle;	/* of idle cells, which can be evicted */
	struct container *oldest; /* the idle cell that is evicted first */
};

static void
yield_measure(const struct pool *pool, const struct container *except,
    dev_t device, struct yield *yield)
{
	struct container *c;

	*yield = (struct yield){ .ending = 0 };
	TAILQ_FOREACH(c, &pool->containers, link) {
		const struct reservation *r = c->reserved[0];

		if (c == except || r == NULL || !r->grows ||
		    r->device != device)
			continue;
		if (c->state == CONTAINER_RELEASING ||
		    c->state == CONTAINER_ENDING)
			yield->ending += reservation_bytes(r);
		if (c->state != CONTAINER_IDLE)
			continue;
		yield->idle += reservation_bytes(r);
		if (is_evicted_before(c, yield->oldest))
			yield->oldest = c;
	}
}

/* Make room for the bytes on the file system of fd; since_ms: start of the
 * wait. except: a container that is not to be ended for it; NULL: none.  Never
 * ADMIT_OTHERWISE. */
static enum admission
room_for(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms)
{
	int64_t due = since_ms + ROOM_WAIT_MS;
	struct ledger_space space;
	struct yield yield;
	struct err err;

	if (ledger_measure(pool->host->ledger, fd, &space, &err) != 0) {
		log_err("%s", err.text);
		return ADMIT_NEVER;
	}
	if (ledger_has_room(&space, bytes))
		return ADMIT;
	yield_measure(pool, except, space.device, &yield);
	/* Would there be room if all cells that can end were gone? */
	space.reserved -= space.leaving + yield.ending + yield.idle;
	if (clock_monotonic_ms() >= due || !ledger_has_room(&space, bytes))
		return ADMIT_NEVER;
	/* Idle cells end, until the ending ones make enough room. */
	space.reserved += yield.idle;
	while (!ledger_has_room(&space, bytes) && yield.oldest != NULL) {
		space.reserved -= reservation_bytes(yield.oldest->reserved[0]);
		log_debug("making room on the disk cell=%s",
		    yield.oldest->name);
		cell_end_idle(yield.oldest, KEPT_GAVE_WAY);
		yield_measure(pool, except, space.device, &yield);
	}
	host_schedule(pool->host, due);
	return ADMIT_LATER;
}

/* ---- leases ---- */

/* Tidying up and reading need no new blocks. */
static bool
wants_to_write(const struct ticket *ticket)
{
	return ticket->access == ACCESS_WRITE || ticket->access == ACCESS_ANY;
}

/* Decide for a ticket that wants to write: without room, ACCESS_ANY becomes
 * read access. */
static enum admission
admission_by(enum admission room, const struct ticket *ticket, bool *writable)
{
	*writable = room == ADMIT;
	return room == ADMIT_NEVER && ticket->access == ACCESS_ANY ? ADMIT :
								     room;
}

enum admission
admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted)
{
	struct reservation *r = c->reserved[0];
	enum admission admission = ADMIT;
	bool writable = true;

	*granted = ticket->access == ACCESS_LOOK ? ACCESS_TIDY : ticket->access;
	/* without a reservation there is nothing to write to */
	if (ticket->class->in_memory || r == NULL)
		return ADMIT;
	if (wants_to_write(ticket)) {
		admission = admission_by(room_for(pool, r->fd,
					     reservation_more(r), c,
					     ticket->since_ms),
		    ticket, &writable);
		*granted = writable ? ACCESS_WRITE : ACCESS_READ;
	}
	if (admission != ADMIT)
		return admission;
	if (c->writable != writable)
		return ADMIT_OTHERWISE;
	if (*granted == ACCESS_WRITE)
		r->grows = true;
	return ADMIT;
}

enum admission
admission_to_new(struct pool *pool, const struct ticket *ticket, bool *writable,
    bool *grows)
{
	enum admission admission;
	struct err err;
	auto_close int fd = -1;

	*writable = true;
	*grows = false;
	if (ticket->class->in_memory || !wants_to_write(ticket))
		return ADMIT;
	fd = workspace_volume_open(pool->host->base, ticket->sandbox,
	    class_volume(ticket->class, 0, ticket->packages), &err);
	if (fd < 0)
		return ADMIT; /* its start will say what is wrong */
	admission = admission_by(room_for(pool, fd, ledger_volume_bytes(fd),
				     NULL, ticket->since_ms),
	    ticket, writable);
	*grows = *writable;
	return admission;
}

/* ---- making a workspace ---- */

/* A sandbox that another client has made meanwhile is a success, too. */
void
creation_done(struct client *client, const struct err *failure)
{
	client->state = CLIENT_IDLE;
	if (failure == NULL && client->listener->program == PROGRAM_CTL)
		client_keep(client, CLIENT_STAGES);
	else if (failure == NULL || failure->code == ERR_CONFLICT)
		client_done(client);
	else
		client_refuse(client, REFUSAL_START, failure->text);
}

/* ---- the queue for space ---- */

static int64_t
count_in(const struct clients *clients, enum client_state state)
{
	const struct client *client;
	int64_t count = 0;

	LIST_FOREACH(client, &clients->all, link)
		count += client->state == state;
	return count;
}

/* A new sandbox gets a user of its own; packages get the user of their sandbox.
 */
static int
creation_choose_uid(struct creation *c, const struct host *host,
    struct err *err)
{
	auto_close int fd = -1;

	bool apis = strcmp(c->id, API_PACKAGES_ID) == 0;

	if (c->only_packages && (!apis || c->copied[0] != '\0')) {
		fd = workspace_volume_open(host->base, c->id,
		    apis ? c->copied : WORKSPACE_VOLUME, err);
		if (fd < 0)
			return -1;
		c->uid = owner_of(fd);
		if (uid_is_of_one_sandbox(c->uid))
			return 0;
	}
	return uids_take(host->uids, &c->uid, err);
}

/* The wait is over: begin the request, or refuse it. */
static void
space_grant(struct client *client, bool room)
{
	struct host *host = client->clients->host;
	bool creates = client->state == CLIENT_WAITS_TO_CREATE;
	struct err err;

	client->state = CLIENT_IDLE;
	if (room)
		client->reservation = reservation_of_bytes(host->ledger,
		    client->room_fd, client->bytes);
	else
		(void)close(client->room_fd);
	if (client->reservation == NULL) {
		client_refuse(client, REFUSAL_DISK,
		    "the disk has no room for that");
	} else if (!creates) {
		client_keep(client, CLIENT_HAS_SPACE);
	} else if (creation_choose_uid(&client->creation, host, &err) != 0) {
		client_refuse(client, REFUSAL_START, err.text);
	} else {
		client->state = CLIENT_CREATES;
		creation_start(&client->creation, host, client);
	}
}

/* The queue is first come, first served.  Only a few creations run at a time,
 * since many new users must not starve the leases. */
static void
space_serve(struct client *client)
{
	struct clients *clients = client->clients;
	enum admission room = ADMIT_NEVER;
	int64_t bytes = client->bytes;

	if (client->state == CLIENT_WAITS_TO_CREATE) {
		if (count_in(clients, CLIENT_CREATES) >= CREATIONS_MAX)
			return;
		/* A new sandbox must have room to be written to. */
		if (!client->creation.only_packages)
			bytes += volume_total_bytes(&client->creation.sizes[0]);
	}
	if (ledger_has_files(client->room_fd))
		room = room_for(clients->host->pool, client->room_fd, bytes,
		    NULL, client->since_ms);
	if (room == ADMIT_LATER)
		return;
	TAILQ_REMOVE(&clients->waiting, client, turn);
	space_grant(client, room == ADMIT);
}

void
clients_serve_space(struct clients *clients)
{
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->waiting); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, turn);
		space_serve(client);
	}
}

/* The loop serves it with the other clients. */
static void
space_wait(struct client *client, enum client_state state, int64_t bytes,
    int room_fd)
{
	struct clients *clients = client->clients;

	if (room_fd < 0) {
		client_refuse(client, REFUSAL_DISK, "there is no such folder");
		return;
	}
	client->bytes = bytes;
	client->room_fd = room_fd;
	client->since_ms = clock_monotonic_ms();
	client->state = state;
	TAILQ_INSERT_TAIL(&clients->waiting, client, turn);
	host_schedule(clients->host, 0);
}

void
space_wait_to_create(struct client *client, int64_t bytes)
{
	space_wait(client, CLIENT_WAITS_TO_CREATE, CREATION_BYTES + bytes,
	    fcntl(client->clients->host->base, F_DUPFD_CLOEXEC, 0));
}

/* ---- the requests ---- */

/* Creations that run or wait count, too. */
static bool
is_one_too_many(const struct clients *clients)
{
	int64_t count = workspace_count(clients->host->base);

	return count < 0 ||
	    count + count_in(clients, CLIENT_CREATES) +
		count_in(clients, CLIENT_WAITS_TO_CREATE) >=
	    clients->host->config->sandboxes;
}

/* Read a CREATE: a sandbox of some size, or the packages of a version in a
 * sandbox that is there. */
static enum refusal
create_read(struct creation *c, const struct config *config,
    const struct frame_view *view)
{
	struct volume_size *sizes = c->sizes;
	struct image_entry entry;
	const unsigned char *data;
	size_t len;

	c->only_packages = frame_get_bytes(view, TAG_INTERPRETER, &data, &len);
	sizes[0] = (struct volume_size){ 0 };
	if (!frame_get_text(view, TAG_SANDBOX, c->id, sizeof(c->id)) ||
	    !workspace_id_valid(c->id))
		return REFUSAL_INPUT;
	if (!c->only_packages &&
	    (!frame_get_int(view, TAG_QUOTA_BYTES, &sizes[0].bytes) ||
		!frame_get_int(view, TAG_QUOTA_FILES, &sizes[0].files) ||
		sizes[0].bytes < QUOTA_MIN || sizes[0].bytes > QUOTA_MAX ||
		sizes[0].files < 1 || sizes[0].files > FILES_MAX))
		return REFUSAL_INPUT;
	if (!client_names_interpreter(view, config->chat_images, &entry))
		return REFUSAL_INTERPRETER;
	workspace_packages_name(entry.name, c->packages);
	/* The client asks for a size, the operator limits it. */
	if (sizes[0].bytes > config->quota)
		sizes[0].bytes = config->quota;
	if (sizes[0].files > config->files)
		sizes[0].files = config->files;
	sizes[1].bytes = config->pip_quota;
	sizes[1].files = sizes[1].bytes / CONFIG_PACKAGE_FILE_BYTES;
	return REFUSAL_NONE;
}

/* Make the sandbox or its packages, unless they are there. */
void
request_create(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct creation *c = &client->creation;
	enum refusal code = create_read(c, host->config, view);
	bool exists;

	if (code != REFUSAL_NONE) {
		client_refuse(client, code, "a malformed CREATE");
		return;
	}
	exists = workspace_has(host->base, c->id, WORKSPACE_VOLUME);
	if (c->only_packages && !exists) {
		client_refuse(client, REFUSAL_NO_WORKSPACE,
		    "there is no such workspace");
		return;
	}
	if (c->only_packages ? workspace_has(host->base, c->id, c->packages) :
			       exists) {
		client_done(client);
		return;
	}
	if (!c->only_packages && is_one_too_many(client->clients)) {
		client_refuse(client, REFUSAL_SANDBOXES,
		    "there are IL_SANDBOXES sandboxes");
		return;
	}
	space_wait_to_create(client, 0);
}

/* Open a folder on the file system of the APIs' files.  The APIs make their
 * folder, perhaps private, so the nearest folder above it will do. */
static int
files_place(const struct config *config)
{
	auto_free char *path = xstrdup(config->api_files);
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

/* Bytes that may still be reserved.  The limit keeps a client on il-api's
 * socket from reserving the whole disk. */
static int64_t
reserve_left(const struct clients *clients)
{
	const struct config *config = clients->host->config;
	int64_t left = RESERVE_EACH *
	    (2 * (config->api_cells + config->api_sessions) +
		RESERVE_PROCESSES);
	const struct client *other;

	LIST_FOREACH(other, &clients->all, link) {
		if (other->state == CLIENT_HAS_SPACE ||
		    other->state == CLIENT_WAITS_TO_RESERVE)
			left -= other->bytes;
	}
	return left;
}

/* Reserve bytes that il-api writes itself, for as long as the connection lasts.
 */
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
	space_wait(client, CLIENT_WAITS_TO_RESERVE, bytes,
	    files_place(client->clients->host->config));
}
