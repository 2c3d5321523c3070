/* SPDX-License-Identifier: MIT */
/*
 * The requests of clients.  Every field is checked before anything is done.
 * Requests that take space at once wait until the ledger has it: making a
 * workspace, and bytes that il-api writes itself.
 */
#include "broker/client.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "protocol/frame.h"
#include "protocol/lease.h"
#include "volume/owner.h"

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

/* Undo the request that the state stands for. */
void
requests_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	switch (client->state) {
	case CLIENT_IDLE:
	case CLIENT_HAS_SPACE:
		break;
	case CLIENT_WANTS_LEASE:
	case CLIENT_PARKED:
		policy_withdraw(clients->host->pool, &client->ticket);
		break;
	case CLIENT_WAITS_TO_CREATE:
	case CLIENT_WAITS_TO_RESERVE:
		TAILQ_REMOVE(&clients->waiting, client, turn);
		(void)close(client->room_fd);
		break;
	case CLIENT_ASKS_KEPT:
	case CLIENT_RESUMES:
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
	client->state = CLIENT_IDLE;
	parked_release(client);
}

/* Refuse what the client's program may not ask for. */
static void
request_forbid(struct client *client, const char *what)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s may not ask for %s",
	    client_title(client), what);
	client_refuse(client, REFUSAL_INPUT, text);
}

static bool
request_read_id(const struct frame_view *view, char id[33])
{
	return frame_get_text(view, TAG_SANDBOX, id, 33) &&
	    workspace_id_valid(id);
}

/* ---- leases ---- */

/* A client that is gone by now is closed, which ends the lease.  A client with
 * read access during a run has no lease: nothing ends with it. */
static void
request_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access)
{
	struct frame frame;
	bool sent;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, cell);
	frame_add_int(&frame, TAG_ACCESS, access);
	if (ticket->keep_session && !ticket->container->has_session)
		frame_add_int(&frame, TAG_ENDED,
		    session_recall(ticket->client->clients->host->pool,
			ticket->sandbox));
	sent = client_send(ticket->client, &frame, client_end);
	if (ticket->client->session.id[0] != '\0')
		ticket->client->session.cell_fd = client_end;
	else
		(void)close(client_end);
	log_info("%s%s after %" PRId64 " ms cell=%s sandbox=%s",
	    access == ACCESS_LOOK ? "reads during its run" :
		ticket->cold	  ? "leased cold" :
				    "leased warm",
	    access == ACCESS_READ ? ", to read only," : "",
	    clock_monotonic_ms() - ticket->since_ms, cell, ticket->sandbox);
	if (!sent)
		client_close(ticket->client);
}

static void
request_refused(struct ticket *ticket, enum refusal code, const char *text)
{
	client_refuse(ticket->client, code, text);
}

/* Only an end for lack of memory is reported.  The client sees any other end on
 * its socket to the cell. */
static void
request_lost(struct ticket *ticket, bool out_of_memory)
{
	struct frame frame;

	if (out_of_memory && ticket->client->fd >= 0) {
		frame_start(&frame, FRAME_LOST);
		frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
		(void)client_send(ticket->client, &frame, -1);
	}
	client_close(ticket->client);
}

/* Read the sandbox of a lease and the access to it.  False: the fields make no
 * sense. */
static bool
lease_read_sandbox(struct ticket *ticket, const struct frame_view *view)
{
	int64_t access = ACCESS_WRITE;
	int64_t keep = 0;

	(void)frame_get_int(view, TAG_ACCESS, &access);
	(void)frame_get_int(view, TAG_KEEP, &keep);
	ticket->keep_session = keep != 0 && ticket->class->has_sessions;
	ticket->access = (enum access)access;
	return frame_get_text(view, TAG_SANDBOX, ticket->sandbox,
		   sizeof(ticket->sandbox)) &&
	    (ticket->class->installs ?
		    strcmp(ticket->sandbox, API_PACKAGES_ID) == 0 :
		    workspace_id_valid(ticket->sandbox)) &&
	    (access == ACCESS_WRITE || access == ACCESS_TIDY ||
		access == ACCESS_ANY ||
		(access == ACCESS_LOOK && ticket->class->concurrent_reads &&
		    !ticket->keep_session));
}

static void
lease_read_imports(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	int64_t imports;

	if (!frame_get_int(view, TAG_IMPORTS, &imports))
		return;
	ticket->imports = (uint32_t)imports;
	ticket->no_imports = (imports & PRELOAD_APART) != 0 &&
	    preload_is_auto(config->preload);
}

/* Read a LEASE. A class either needs a sandbox or allows none. */
static enum refusal
lease_read(struct ticket *ticket, const struct config *config,
    const struct frame_view *view)
{
	const unsigned char *data;
	size_t len;
	bool sandbox = frame_get_bytes(view, TAG_SANDBOX, &data, &len);

	if (ticket->class == NULL ||
	    !frame_get_int(view, TAG_LEASE_MS, &ticket->lease_ms) ||
	    ticket->lease_ms < 1 || ticket->lease_ms > LIMIT_WALL_MS ||
	    (ticket->class->in_memory ? sandbox :
					!lease_read_sandbox(ticket, view)))
		return REFUSAL_INPUT;
	if (frame_get_bytes(view, TAG_FOLDER, &data, &len) &&
	    (!frame_get_text(view, TAG_FOLDER, ticket->folder,
		 sizeof(ticket->folder)) ||
		!class_has_folder(ticket->class, config, ticket->folder)))
		return REFUSAL_INPUT;
	lease_read_imports(ticket, config, view);
	/* A cell that is reused has its interpreter already. */
	ticket->any_interpreter = ticket->class->reuse == REUSE_SANDBOX &&
	    !frame_get_bytes(view, TAG_INTERPRETER, &data, &len);
	if (!client_names_interpreter(view,
		ticket->class->in_memory || ticket->class->installs ?
		    config->sandbox_images :
		    config->chat_images,
		&ticket->interpreter))
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
	code = lease_read(ticket, host->config, view);
	if (code == REFUSAL_NONE)
		code = parked_read(client, view);
	if (code != REFUSAL_NONE) {
		client_refuse(client, code,
		    code == REFUSAL_INTERPRETER ? "no such interpreter" :
			code == REFUSAL_BUSY	? "the session exists" :
						  "a malformed LEASE");
		return;
	}
	ticket->client = client;
	client->state = CLIENT_WANTS_LEASE;
	warm_note(host->pool, ticket);
	policy_request(host->pool, ticket);
}

/* ---- sessions ---- */

/* End the sandbox's idle cell, so that ilctl can copy its volumes. */
static void
cells_end_idle(const struct client *client)
{
	struct container *c;

	TAILQ_FOREACH(c, &client->clients->host->cells->all, link) {
		if (c->state != CONTAINER_IDLE ||
		    strcmp(c->sandbox, client->ticket.sandbox) != 0)
			continue;
		if (c->has_session)
			cell_end_idle(c, KEPT_GAVE_WAY);
		else
			container_end(c, false);
	}
}

static void
request_kept_answer(struct client *client, struct container *c)
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
		cell_end_idle(c, KEPT_STOPPED);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

/* Returns the idle cell that holds a session of this sandbox, or NULL. *used:
 * the sandbox's cell that is leased or being released, or NULL. */
static struct container *
session_cell_of(const struct host *host, const char *sandbox,
    const struct container **used)
{
	struct container *c;

	*used = NULL;
	TAILQ_FOREACH(c, &host->cells->all, link) {
		if (strcmp(c->sandbox, sandbox) != 0)
			continue;
		if (c->state == CONTAINER_LEASED ||
		    c->state == CONTAINER_RELEASING)
			*used = c;
		if (c->state == CONTAINER_IDLE && c->has_session)
			return c;
	}
	return NULL;
}

/* A client that asks while the cell is being released waits for it, but not for
 * a run that goes on. */
static void
kept_answer(struct client *client)
{
	struct host *host = client->clients->host;
	int64_t due_ms = client->since_ms + POOL_BUSY_MS;
	const struct container *used;
	struct container *c = session_cell_of(host, client->ticket.sandbox,
	    &used);

	if (used == NULL)
		request_kept_answer(client, c);
	else if (used->state == CONTAINER_LEASED &&
	    clock_monotonic_ms() >= due_ms)
		client_refuse(client, REFUSAL_BUSY, "the cell is leased");
	else if (used->state == CONTAINER_LEASED)
		host_schedule(host, due_ms);
}

void
clients_answer(struct clients *clients)
{
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->asking); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, turn);
		if (client->state == CLIENT_RESUMES)
			parked_answer(client);
		else
			kept_answer(client);
	}
}

/* Is there a session for the next run, and shall it end? */
static void
request_kept(struct client *client, const struct frame_view *view)
{
	struct clients *clients = client->clients;
	int64_t retire = 0;

	if (!request_read_id(view, client->ticket.sandbox)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed KEPT");
		return;
	}
	(void)frame_get_int(view, TAG_RETIRE, &retire);
	client->retire = retire != 0;
	client->since_ms = clock_monotonic_ms();
	client->state = CLIENT_ASKS_KEPT;
	TAILQ_INSERT_TAIL(&clients->asking, client, turn);
	host_schedule(clients->host, 0);
}

/* ---- removing workspaces ---- */

/* The client may have hung up meanwhile; the removal went on. */
static void
request_removed(struct removal *removal, const char *trouble)
{
	struct client *client = removal->client;

	if (trouble != NULL)
		log_err("%s sandbox=%s", trouble, removal->sandbox);
	if (client != NULL) {
		client->state = CLIENT_IDLE;
		if (trouble == NULL)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, trouble);
	}
	free(removal);
}

/* The sandbox's folder is renamed at once, so no cell is started for it any
 * more.  Its files are deleted when its cells are gone. */
static void
request_remove(struct client *client, const struct frame_view *view)
{
	const struct host *host = client->clients->host;
	struct removal *removal;
	char id[33];
	char retired[64];
	struct err err;
	int rc;

	if (!request_read_id(view, id)) {
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
	policy_remove(host->pool, removal);
}

/* ---- making a workspace ---- */

/* A sandbox that another client has made meanwhile is a success, too. */
static void
creation_done(void *arg, const struct err *failure)
{
	struct client *client = arg;

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
		creation_start(&client->creation, host, creation_done, client);
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
		room = pool_make_room(clients->host->pool, client->room_fd,
		    bytes, NULL, client->since_ms);
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
	if (!request_read_id(view, c->id))
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
static void
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
static void
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

/* ---- the table of requests ---- */

const struct policy_answers requests_answers = { .granted = request_granted,
	.refused = request_refused,
	.lost = request_lost,
	.evict = parked_evict,
	.removed = request_removed };

#define BY(program) (1U << PROGRAM_##program)

/* The requests, and the programs that may make them. */
static const struct {
	enum frame_kind kind;
	unsigned int programs;
	const char *name;
	void (*serve)(struct client *client, const struct frame_view *view);
} requests[] = {
	{ FRAME_LEASE, BY(WORKER) | BY(API) | BY(CTL), "LEASE", request_lease },
	{ FRAME_CREATE, BY(WORKER), "CREATE", request_create },
	{ FRAME_STAGE, BY(CTL), "STAGE", request_stage },
	{ FRAME_PUBLISH, BY(CTL), "PUBLISH", request_publish },
	{ FRAME_PACKAGES, BY(CTL), "PACKAGES", request_packages },
	{ FRAME_CELLS, BY(CTL), "CELLS", request_cells },
	{ FRAME_RESUME, BY(API), "RESUME", request_resume },
	{ FRAME_END_SESSION, BY(API), "END_SESSION", request_end_session },
	{ FRAME_KEPT, BY(WORKER) | BY(CTL), "KEPT", request_kept },
	{ FRAME_REMOVE, BY(WORKER) | BY(CTL), "REMOVE", request_remove },
	{ FRAME_RESERVE, BY(API), "RESERVE", request_reserve },
	{ FRAME_STATUS, BY(WORKER) | BY(API) | BY(CTL), "STATUS",
	    request_status },
};

/* A request that this program may not make is refused before any field is read.
 */
void
requests_serve(struct client *client, const struct frame_view *view)
{
	const char *what = "an unknown request";

	/* After its request a client sends PARK, or nothing. */
	if (client->state != CLIENT_IDLE) {
		if (view->kind == FRAME_PARK)
			parked_park(client);
		else
			client_close(client);
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].kind != view->kind)
			continue;
		if ((requests[i].programs & 1U << client->listener->program) !=
		    0) {
			requests[i].serve(client, view);
			return;
		}
		what = requests[i].name;
	}
	request_forbid(client, what);
}
