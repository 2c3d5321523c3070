/* SPDX-License-Identifier: MIT */
/*
 * The requests but LEASE: sessions, removing and making a workspace, and bytes
 * that il-api writes itself.  Requests that need space, or a cell that is in
 * use, wait: each pass tries to answer them, in the order of their requests.
 *
 * Sessions of the APIs are leases that outlive the connections of their
 * clients.  A session is the client whose LEASE has named it.  PARK closes its
 * connection, while the lease and the client's end of the socket to the cell
 * stay here.  RESUME gives both to another client of the same owner.  A client
 * that hangs up without PARK ends its session, since the broker cannot know
 * what was left half done in the cell.
 */
#include "broker/client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"
#include "volume/owner.h"

#define MORE_MS 600000 /* of a lease over its session's life */
/* A session is at rest while it is parked.  After so long it may be evicted for
 * a new session of the same owner. */
#define EVICTED_AFTER_MS 10000

#define CREATIONS_MAX 4

/* Bounds of CREATE. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Size of two new volumes: journals, the first tables, the folder. */
#define CREATION_BYTES (INT64_C(10) << 20)

/* The limit of all RESERVEs together.  Each process of il-api that writes a
 * file of the store (filestore.c) may hold two steps of it, while it
 * goes from one to the next. */
#define RESERVE_EACH (INT64_C(18) << 20)
#define RESERVE_PROCESSES 40 /* besides the ones of runs and of sessions */

/* Wait for a later pass, which comes soon. */
static enum refusal
request_wait(struct client *client, enum client_state state)
{
	struct client_list *all = &client->clients->all;

	client->state = state;
	client->since_ms = clock_monotonic_ms();
	TAILQ_REMOVE(all, client, link);
	TAILQ_INSERT_TAIL(all, client, link);
	host_schedule(client->host, 0);
	return REFUSAL_NONE;
}

/* ---- sessions of people ---- */

/* A client that asks while the cell is being released waits for it, but not for
 * a run that goes on.  ilctl ends any idle cell, to copy its volumes. */
void
kept_answer(struct client *client)
{
	struct container *c = pool_cell_of(client->host->pool,
	    client->ticket.sandbox);
	int64_t due_ms = client->since_ms + POOL_BUSY_MS;
	bool ctl = client->listener->program == PROGRAM_CTL;
	bool idle = c != NULL && c->state == CONTAINER_IDLE;
	struct frame frame;

	if (c != NULL && c->state == CONTAINER_RELEASING)
		return;
	if (c != NULL && c->state == CONTAINER_LEASED) {
		if (clock_monotonic_ms() >= due_ms)
			client_refuse(client, REFUSAL_BUSY,
			    "the cell is leased");
		else
			host_schedule(client->host, due_ms);
		return;
	}
	frame_start(&frame, FRAME_GRANTED);
	if (idle && c->has_session) {
		frame_add_int(&frame, TAG_KEPT, 1);
		frame_add_int(&frame, TAG_REST_MS,
		    clock_monotonic_ms() - c->since_ms);
	}
	if (idle && client->retire && (ctl || c->has_session))
		cell_end_idle(c, ctl ? KEPT_GAVE_WAY : KEPT_STOPPED);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

/* Is there a session for the next run, and shall it end? */
enum refusal
request_kept(struct client *client, const struct frame_view *view)
{
	int64_t retire = 0;

	if (!client_read_id(view, client->ticket.sandbox))
		return REFUSAL_INPUT;
	(void)frame_get_int(view, TAG_RETIRE, &retire);
	client->retire = retire != 0;
	return request_wait(client, CLIENT_ASKS_KEPT);
}

/* ---- sessions of the APIs ---- */

/* The session of that id, in use or parked; NULL: there is none. */
static struct client *
parked_find(const struct clients *clients, const char *id)
{
	struct client *client;

	TAILQ_FOREACH(client, &clients->all, link) {
		if ((client->state == CLIENT_WANTS_LEASE ||
			client->state == CLIENT_PARKED) &&
		    strcmp(client->session.id, id) == 0)
			return client;
	}
	return NULL;
}

static bool
has_same_owner(const struct session *a, const struct session *b)
{
	unsigned char differs = 0;

	/* The time of the comparison does not depend on the bytes. */
	for (size_t i = 0; i < sizeof(a->owner); i++)
		differs |= a->owner[i] ^ b->owner[i];
	return differs == 0;
}

static bool
parked_read_names(struct client *client, const struct frame_view *view,
    bool needs_id)
{
	struct session *session = &client->session;
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, TAG_TOKEN, &data, &len) ||
	    len != sizeof(session->owner))
		return false;
	memcpy(session->owner, data, len);
	return (!needs_id && !client_has_field(view, TAG_SESSION)) ||
	    (frame_get_text(view, TAG_SESSION, session->id,
		 sizeof(session->id)) &&
		strlen(session->id) == sizeof(session->id) - 1 &&
		strspn(session->id, "0123456789abcdef") == strlen(session->id));
}

enum refusal
parked_read(struct client *client, const struct frame_view *view)
{
	struct session *session = &client->session;
	bool exists;

	session->rest_ms = LIMIT_WALL_MS;
	session->rests = frame_get_int(view, TAG_REST_MS, &session->rest_ms);
	if (!client->ticket.class->lasting || session->rest_ms < 1 ||
	    !parked_read_names(client, view, true))
		return REFUSAL_INPUT;
	session->life_ms = client->ticket.lease_ms;
	client->ticket.lease_ms += MORE_MS;
	exists = parked_find(client->clients, session->id) != NULL;
	return exists ?
	    client_because(client, REFUSAL_BUSY, "the session exists") :
	    REFUSAL_NONE;
}

/* Time of the session's end without further requests (monotonic). */
static int64_t
parked_end_ms(const struct client *client)
{
	const struct session *session = &client->session;

	return client->state == CLIENT_PARKED &&
		session->rest_ms < session->until_ms - client->since_ms ?
	    client->since_ms + session->rest_ms :
	    session->until_ms;
}

static void
parked_on_timer(void *arg)
{
	const struct client *client = arg;

	log_info("a session has ended cell=%s", client->ticket.container->name);
	client_close(arg);
}

static void
parked_set_timer(struct client *client)
{
	loop_timer_set(client->host->loop, &client->timer,
	    parked_end_ms(client) - clock_monotonic_ms(), parked_on_timer,
	    client);
}

/* Find the owner's session that is evicted next, of the same kind unless
 * any_kind is true: the two kinds have slots of their own.  NULL: there is
 * none, and asker->next_ms is the time until one of all sessions may be evicted
 * or ends. */
static struct client *
find_evicted(struct client *asker, bool any_kind)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t next_ms = EVICTED_AFTER_MS;
	struct client *oldest = NULL;
	struct client *client;

	TAILQ_FOREACH(client, &asker->clients->all, link) {
		int64_t left_ms;

		if (client->session.until_ms == 0)
			continue;
		left_ms = parked_end_ms(client) - now_ms;
		if (client->state == CLIENT_PARKED &&
		    (any_kind ||
			client->session.rests == asker->session.rests) &&
		    has_same_owner(&client->session, &asker->session)) {
			left_ms = client->since_ms + EVICTED_AFTER_MS - now_ms;
			if (oldest == NULL ||
			    client->since_ms < oldest->since_ms)
				oldest = client;
		}
		if (left_ms < next_ms)
			next_ms = left_ms;
	}
	asker->next_ms = next_ms > 0 ? next_ms : 0;
	return oldest != NULL && now_ms >= oldest->since_ms + EVICTED_AFTER_MS ?
	    oldest :
	    NULL;
}

bool
parked_evict(struct ticket *ticket)
{
	struct client *client = ticket->client->session.id[0] == '\0' ?
	    NULL :
	    find_evicted(ticket->client, true);

	if (client == NULL)
		return false;
	log_info("a session is evicted for a new one of its owner cell=%s",
	    client->ticket.container->name);
	client_close(client);
	return true;
}

enum refusal
request_end_session(struct client *client, const struct frame_view *view)
{
	bool named = client_has_field(view, TAG_SESSION);
	struct client *found;
	int64_t evict = 0;
	int64_t rests = 0;

	if (!parked_read_names(client, view, false))
		return REFUSAL_INPUT;
	(void)frame_get_int(view, TAG_RETIRE, &evict);
	client->session.rests = frame_get_int(view, TAG_REST_MS, &rests);
	found = named ? parked_find(client->clients, client->session.id) :
			find_evicted(client, false);
	if (found == NULL || !has_same_owner(&found->session, &client->session))
		return named ? client_because(client, REFUSAL_NO_WORKSPACE,
				   "there is no such session") :
			       client_because(client, REFUSAL_FULL,
				   "no session may be evicted yet");
	if (named || evict != 0)
		client_close(found);
	client_done(client);
	return REFUSAL_NONE;
}

/* The cell has closed its end: it serves this lease no longer. */
static void
parked_on_cell_end(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	client_close(arg);
}

void
parked_park(struct client *client)
{
	struct loop *loop = client->host->loop;
	struct session *session = &client->session;

	if (session->cell_fd < 0) {
		client_close(client);
		return;
	}
	loop_close(loop, &client->fd);
	loop_add(loop, session->cell_fd, 0, parked_on_cell_end, client);
	client->state = CLIENT_PARKED;
	client->since_ms = clock_monotonic_ms();
	if (session->until_ms == 0)
		session->until_ms = client->since_ms + session->life_ms;
	parked_set_timer(client);
	host_schedule(client->host, 0);
}

/* The session gets the connection of the client that has waited for it, which
 * is freed. */
static void
parked_lend(struct client *session, struct client *waiting)
{
	struct frame frame;

	loop_remove(session->host->loop, session->session.cell_fd);
	client_move(waiting, session);
	session->state = CLIENT_WANTS_LEASE;
	parked_set_timer(session);
	frame_start(&frame, FRAME_GRANTED);
	frame_add_text(&frame, TAG_CELL_NAME, session->ticket.container->name);
	if (!client_send(session, &frame, session->session.cell_fd))
		parked_park(session); /* the client has given up */
}

/* One client may wait for a session that is in use.  A waiting client occupies
 * a process of il-api; with more of them the commands of one session could make
 * all others wait. */
static bool
is_second(const struct client *waiting)
{
	const struct client *other;

	TAILQ_FOREACH(other, &waiting->clients->all, link) {
		if (other == waiting)
			return false;
		if (other->state == CLIENT_RESUMES &&
		    strcmp(other->session.id, waiting->session.id) == 0)
			return true;
	}
	return false;
}

void
parked_answer(struct client *client)
{
	struct client *found = parked_find(client->clients, client->session.id);

	if (found == NULL || !has_same_owner(&found->session, &client->session))
		client_refuse(client, REFUSAL_NO_WORKSPACE,
		    "there is no such session");
	else if (found->state == CLIENT_PARKED)
		parked_lend(found, client);
	else if (is_second(client))
		client_refuse(client, REFUSAL_BUSY,
		    "another client waits for the session");
}

enum refusal
request_resume(struct client *client, const struct frame_view *view)
{
	return parked_read_names(client, view, true) ?
	    request_wait(client, CLIENT_RESUMES) :
	    REFUSAL_INPUT;
}

/* ---- removing workspaces ---- */

/* Delete the files when nothing uses them any more.  Containers from before the
 * request may still have the volumes; newer ones have none of them. */
void
remove_answer(struct client *client)
{
	const struct host *host = client->host;
	const struct container *c;
	struct err err;

	TAILQ_FOREACH(c, &host->cells->all, link) {
		if (c->number <= client->number &&
		    strcmp(c->sandbox, client->ticket.sandbox) == 0)
			return;
	}
	if (folder_delete(host->base, client->retired, 0, &err) == 0) {
		client_done(client);
		return;
	}
	log_err("%s sandbox=%s", err.text, client->ticket.sandbox);
	client_refuse(client, REFUSAL_START, err.text);
}

/* The sandbox's folder is renamed at once, so no cell is started for it any
 * more. */
enum refusal
request_remove(struct client *client, const struct frame_view *view)
{
	struct host *host = client->host;
	char *id = client->ticket.sandbox;
	struct err err;
	int rc;

	if (!client_read_id(view, id))
		return REFUSAL_INPUT;
	rc = workspace_retire(host->base, id, client->retired, &err);
	if (rc < 0)
		return client_because(client, REFUSAL_START, err.text);
	if (rc > 0) {
		client_done(client);
		return REFUSAL_NONE;
	}
	client->number = host->serial;
	policy_end_sandbox(host->pool, id);
	return request_wait(client, CLIENT_REMOVES);
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

	TAILQ_FOREACH(client, &clients->all, link)
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
	struct host *host = client->host;
	bool creates = client->state == CLIENT_WAITS_TO_CREATE;
	struct err err;

	client->state = CLIENT_IDLE;
	if (room)
		client->reservation = reservation_of_bytes(host->ledger,
		    steal_fd(&client->room_fd), client->bytes);
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
void
space_answer(struct client *client)
{
	enum admission room = ADMIT_NEVER;
	int64_t bytes = client->bytes;

	if (client->host->phase != PHASE_SERVING)
		return;
	if (client->state == CLIENT_WAITS_TO_CREATE) {
		if (count_in(client->clients, CLIENT_CREATES) >= CREATIONS_MAX)
			return;
		/* A new sandbox must have room to be written to. */
		if (!client->creation.only_packages)
			bytes += volume_total_bytes(&client->creation.sizes[0]);
	}
	if (ledger_has_files(client->room_fd))
		room = pool_make_room(client->host->pool, client->room_fd,
		    bytes, NULL, client->since_ms);
	if (room != ADMIT_LATER)
		space_grant(client, room == ADMIT);
}

static enum refusal
space_wait(struct client *client, enum client_state state, int64_t bytes,
    int room_fd)
{
	if (room_fd < 0)
		return client_because(client, REFUSAL_DISK,
		    "there is no such folder");
	client->bytes = bytes;
	client->room_fd = room_fd;
	return request_wait(client, state);
}

enum refusal
space_wait_to_create(struct client *client, int64_t bytes)
{
	return space_wait(client, CLIENT_WAITS_TO_CREATE,
	    CREATION_BYTES + bytes,
	    fcntl(client->host->base, F_DUPFD_CLOEXEC, 0));
}

/* ---- making a workspace, and reserving space ---- */

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
create_read(struct client *client, const struct frame_view *view)
{
	const struct config *config = client->host->config;
	struct creation *c = &client->creation;
	struct volume_size *sizes = c->sizes;
	struct image_entry entry;
	enum refusal code;

	c->only_packages = client_has_field(view, TAG_INTERPRETER);
	if (!client_read_id(view, c->id) ||
	    (!c->only_packages &&
		(!frame_get_int(view, TAG_QUOTA_BYTES, &sizes[0].bytes) ||
		    !frame_get_int(view, TAG_QUOTA_FILES, &sizes[0].files) ||
		    sizes[0].bytes < QUOTA_MIN || sizes[0].bytes > QUOTA_MAX ||
		    sizes[0].files < 1 || sizes[0].files > FILES_MAX)))
		return REFUSAL_INPUT;
	code = client_read_interpreter(client, view, config->chat_images,
	    &entry);
	if (code != REFUSAL_NONE)
		return code;
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
enum refusal
request_create(struct client *client, const struct frame_view *view)
{
	int base = client->host->base;
	struct creation *c = &client->creation;
	enum refusal code = create_read(client, view);
	bool exists;

	if (code != REFUSAL_NONE)
		return code;
	exists = workspace_has(base, c->id, WORKSPACE_VOLUME);
	if (c->only_packages && !exists)
		return client_because(client, REFUSAL_NO_WORKSPACE,
		    "there is no such workspace");
	if (c->only_packages ? workspace_has(base, c->id, c->packages) :
			       exists) {
		client_done(client);
		return REFUSAL_NONE;
	}
	if (!c->only_packages && is_one_too_many(client->clients))
		return client_because(client, REFUSAL_SANDBOXES,
		    "there are IL_SANDBOXES sandboxes");
	return space_wait_to_create(client, 0);
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

	TAILQ_FOREACH(other, &clients->all, link) {
		if (other->state == CLIENT_HAS_SPACE ||
		    other->state == CLIENT_WAITS_TO_RESERVE)
			left -= other->bytes;
	}
	return left;
}

/* Reserve bytes that il-api writes itself, for as long as the connection lasts.
 */
enum refusal
request_reserve(struct client *client, const struct frame_view *view)
{
	int64_t bytes;

	if (!frame_get_int(view, TAG_SIZE, &bytes) || bytes < 1)
		return REFUSAL_INPUT;
	if (bytes > reserve_left(client->clients))
		return client_because(client, REFUSAL_DISK,
		    "il-api has reserved as much as it may");
	return space_wait(client, CLIENT_WAITS_TO_RESERVE, bytes,
	    files_place(client->host->config));
}
