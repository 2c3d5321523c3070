/* SPDX-License-Identifier: MIT */
/*
 * What takes space at once, and so waits until the ledger has it: making a
 * workspace, and bytes that another program is going to write itself.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../protocol/frame.h"
#include "../volume/owner.h"
#include "../volume/uid.h"
#include "admission.h"
#include "api_packages.h"
#include "client.h"
#include "ledger.h"
#include "workspace.h"

#define CREATIONS_MAX 4

/* What CREATE may ask for. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Two new volumes: journals, the first tables, the folder. */
#define CREATION_BYTES (INT64_C(10) << 20)

/* What RESERVE may ask for, all together: two steps of a file of the store
 * (filestore_folder.c) for each process of il-api that may be at one, while it
 * goes from one to the next. */
#define RESERVE_EACH (INT64_C(18) << 20)
#define RESERVE_PROCESSES 40 /* besides those of runs and of sessions */

/* The sandbox is there, or was made by another client meanwhile, which is as
 * good. */
void
creation_done(struct client *client, const struct err *failure)
{
	client->state = CLIENT_ASKED_NOTHING;
	if (failure == NULL && client->listener->program == PROGRAM_CTL)
		stage_done(client);
	else if (failure == NULL || failure->code == ERR_CONFLICT)
		client_done(client);
	else
		client_refuse(client, REFUSAL_START, failure->text);
}

/* ---- whose turn it is ---- */

static int64_t
count_in(const struct clients *clients, enum client_state state)
{
	const struct client *client;
	int64_t count = 0;

	LIST_FOREACH(client, &clients->all, link)
		count += client->state == state;
	return count;
}

/* A new sandbox gets a user, packages that of their sandbox. */
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

/* It has the room that it wants, or leaves with the truth. */
static void
space_give(struct client *client, bool room)
{
	struct host *host = client->clients->host;
	bool creates = client->state == CLIENT_WAITS_TO_CREATE;
	struct frame frame;
	struct err err;

	client->state = CLIENT_ASKED_NOTHING;
	if (room)
		client->reservation = reservation_of_bytes(host->ledger,
		    client->place, client->bytes);
	else
		(void)close(client->place);
	if (client->reservation == NULL) {
		client_refuse(client, REFUSAL_DISK,
		    "the disk has no room for that");
	} else if (!creates) {
		client->state = CLIENT_HAS_SPACE;
		frame_start(&frame, FRAME_GRANTED);
		if (!client_send(client, &frame, -1))
			client_close(client);
	} else if (creation_choose_uid(&client->creation, host, &err) != 0) {
		client_refuse(client, REFUSAL_START, err.text);
	} else {
		client->state = CLIENT_CREATES;
		creation_start(&client->creation, host, client);
	}
}

/* First come, first served; a few creations at a time, since many new users
 * must not starve the leases. */
static void
space_serve(struct client *client)
{
	struct clients *clients = client->clients;
	enum admission room = ADMIT_NEVER;
	int64_t bytes = client->bytes;

	if (client->state == CLIENT_WAITS_TO_CREATE) {
		if (count_in(clients, CLIENT_CREATES) >= CREATIONS_MAX)
			return;
		/* A new sandbox must be of use: one that nothing could be
		 * written to is not made. */
		if (!client->creation.only_packages)
			bytes += volume_total_bytes(&client->creation.sizes[0]);
	}
	if (ledger_has_files(client->place))
		room = room_for(clients->host->pool, client->place, bytes, NULL,
		    client->since_ms);
	if (room == ADMIT_LATER)
		return;
	TAILQ_REMOVE(&clients->waiting, client, turn);
	space_give(client, room == ADMIT);
}

void
space_look(struct clients *clients)
{
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->waiting); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, turn);
		space_serve(client);
	}
}

/* It is looked at with all others, from the loop. */
static void
space_wait(struct client *client, enum client_state state, int64_t bytes,
    int place)
{
	struct clients *clients = client->clients;

	if (place < 0) {
		client_refuse(client, REFUSAL_DISK, "there is no such place");
		return;
	}
	client->bytes = bytes;
	client->place = place;
	client->since_ms = clock_monotonic_ms();
	client->state = state;
	TAILQ_INSERT_TAIL(&clients->waiting, client, turn);
	host_look(clients->host, 0);
}

void
space_wait_to_create(struct client *client, int64_t bytes)
{
	space_wait(client, CLIENT_WAITS_TO_CREATE, CREATION_BYTES + bytes,
	    fcntl(client->clients->host->base, F_DUPFD_CLOEXEC, 0));
}

/* ---- the requests ---- */

/* Those that are being made count, and those that wait to be. */
static bool
is_one_too_many(const struct clients *clients)
{
	int64_t count = workspace_count(clients->host->base);

	return count < 0 ||
	    count + count_in(clients, CLIENT_CREATES) +
		count_in(clients, CLIENT_WAITS_TO_CREATE) >=
	    clients->host->config->sandboxes;
}

/* What does CREATE ask for?  A sandbox of such a size, or the packages of a
 * version in one that is there. */
static enum refusal
create_take(struct creation *c, const struct config *config,
    const struct frame_view *view)
{
	char name[IMAGES_NAME_MAX + 1] = "";
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
	if ((c->only_packages &&
		!frame_get_text(view, TAG_INTERPRETER, name, sizeof(name))) ||
	    !images_find(config->chat_images, name, &entry))
		return REFUSAL_INTERPRETER;
	workspace_packages_name(entry.name, c->packages);
	/* Who asks says how much, the operator how much at most. */
	if (sizes[0].bytes > config->quota)
		sizes[0].bytes = config->quota;
	if (sizes[0].files > config->files)
		sizes[0].files = config->files;
	sizes[1].bytes = config->pip_quota;
	sizes[1].files = sizes[1].bytes / CONFIG_PACKAGE_FILE_BYTES;
	return REFUSAL_NONE;
}

/* Make it, unless it is there. */
void
request_create(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct creation *c = &client->creation;
	enum refusal code = create_take(c, host->config, view);
	bool exists;

	if (code != REFUSAL_NONE) {
		client_refuse(client, code, "a malformed CREATE");
		return;
	}
	exists = workspace_exists(host->base, c->id);
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

/* On the file system where the APIs keep their files: they make the folder, and
 * may keep it to themselves, so what is above it will do. */
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

/* How much more may be reserved: whoever has il-api's socket could else keep
 * the whole disk from those who write. */
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
	space_wait(client, CLIENT_WAITS_TO_RESERVE, bytes,
	    files_place(client->clients->host->config));
}
