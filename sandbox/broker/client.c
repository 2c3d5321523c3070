/* SPDX-License-Identifier: MIT */
/*
 * The sockets of the programs, the life of a connection, and the requests for
 * leases, sessions and the removal of a workspace.  (space.c has the requests
 * that take space, status.c those about the broker's state.) Every field is
 * checked before anything is done.
 */
#include "broker/client.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "broker/ledger.h"
#include "protocol/lease.h"

#define REQUEST_MS 10000 /* for the request to arrive */
#define PAUSE_MS 1000	 /* out of descriptors */
#define REQUEST_MAX 1024

/*
 * The programs that may connect.  Each has a socket of its own, and a
 * connection on it is trusted to be that program's: the file system decides who
 * may open the socket.  The table of requests below and the classes (class.c)
 * say what the program may ask for.
 *
 * il-api has far fewer connections than tickets may wait for a cell (pool.c).
 * So when all of them wait there is still room for the workers.
 */
static const struct {
	const char *title;
	const char *socket; /* below IL_STATE_DIR */
	size_t connections; /* at one time, besides those of its leases */
} programs[PROGRAMS] = {
	[PROGRAM_WORKER] = { "il-worker", SOCKET_BROKER_WORKER, 1200 },
	[PROGRAM_API] = { "il-api", SOCKET_BROKER_API, 256 },
	[PROGRAM_CTL] = { "ilctl", SOCKET_BROKER_CTL, 16 },
};

static void listener_resume(void *arg);

/* Undo the request that the state stands for. */
static void
request_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	switch (client->state) {
	case CLIENT_IDLE:
	case CLIENT_HAS_SPACE:
		break;
	case CLIENT_WANTS_LEASE:
		pool_withdraw(clients->host->pool, &client->ticket);
		break;
	case CLIENT_WAITS_TO_CREATE:
	case CLIENT_WAITS_TO_RESERVE:
		TAILQ_REMOVE(&clients->waiting, client, turn);
		(void)close(client->room_fd);
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
	/* Another client may be served now. */
	reservation_free(client->reservation);
	client->state = CLIENT_IDLE;
}

/* Undo the request and close the connection; another one may be accepted in its
 * place. */
void
client_close(struct client *client)
{
	struct loop *loop = client->clients->host->loop;
	struct listener *listener = client->listener;

	request_abandon(client);
	loop_timer_clear(loop, &client->timer);
	loop_close(loop, &client->fd);
	LIST_REMOVE(client, link);
	listener->count--;
	free(client);
	listener_resume(listener);
}

/* ---- answering ---- */

/* The answers are small.  A client whose socket buffer is full is closed. */
bool
client_send(const struct client *client, const struct frame *frame, int fd)
{
	struct err err;

	if (fd_send_packet(client->fd, frame->data, frame->len, fd, 0, &err) ==
	    0)
		return true;
	log_debug("answer: %s", err.text);
	return false;
}

void
client_refuse(struct client *client, enum refusal code, const char *text)
{
	struct frame frame;

	log_info("refused: %s", text);
	frame_start(&frame, FRAME_REFUSED);
	frame_add_int(&frame, TAG_CODE, code);
	frame_add_text(&frame, TAG_TEXT, text);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

void
client_done(struct client *client)
{
	struct frame frame;

	frame_start(&frame, FRAME_GRANTED);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

void
client_keep(struct client *client, enum client_state state)
{
	struct frame frame;

	client->state = state;
	frame_start(&frame, FRAME_GRANTED);
	if (!client_send(client, &frame, -1))
		client_close(client);
}

/* Refuse what the client's program may not ask for. */
static void
request_forbid(struct client *client, const char *what)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s may not ask for %s",
	    programs[client->listener->program].title, what);
	client_refuse(client, REFUSAL_INPUT, text);
}

bool
client_names_interpreter(const struct frame_view *view, const char *list,
    struct image_entry *entry)
{
	char name[IMAGES_NAME_MAX + 1] = "";
	const unsigned char *data;
	size_t len;

	return (!frame_get_bytes(view, TAG_INTERPRETER, &data, &len) ||
		   frame_get_text(view, TAG_INTERPRETER, name, sizeof(name))) &&
	    images_find(list, name, entry);
}

/* ---- leases ---- */

/* A client that is gone by now is closed, which ends the lease.  A client with
 * read access during a run has no lease: nothing ends with it. */
void
ticket_granted(struct ticket *ticket, const char *cell, int client_end,
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
		    session_recall(&ticket->client->clients->host->pool
					->sessions,
			ticket->sandbox));
	sent = client_send(ticket->client, &frame, client_end);
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

void
ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text)
{
	ticket_leave_queue(pool, ticket, WAY_REFUSED + code);
	client_refuse(ticket->client, code, text);
}

/* Only an end for lack of memory is reported.  The client sees any other end on
 * its socket to the cell. */
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

/* ---- sessions ---- */

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
session_cell_of(const struct pool *pool, const char *sandbox,
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
		if (c->state == CONTAINER_IDLE && c->has_session)
			return c;
	}
	return NULL;
}

/* A client that asks while the cell is being released waits for it, but not for
 * a run that goes on. */
void
clients_answer_kept(struct clients *clients)
{
	const struct host *host = clients->host;
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->asking); client != NULL;
	     client = next) {
		int64_t due_ms = client->since_ms + POOL_BUSY_MS;
		const struct container *used;
		struct container *c = session_cell_of(host->pool,
		    client->ticket.sandbox, &used);

		next = TAILQ_NEXT(client, turn);
		if (used == NULL)
			request_kept_answer(client, c);
		else if (used->state == CONTAINER_LEASED &&
		    clock_monotonic_ms() >= due_ms)
			client_refuse(client, REFUSAL_BUSY,
			    "the cell is leased");
		else if (used->state == CONTAINER_LEASED)
			host_schedule(clients->host, due_ms);
	}
}

/* Is there a session for the next run, and shall it end? */
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
	host_schedule(clients->host, 0);
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

/* ---- the table of requests ---- */

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
	{ FRAME_KEPT, BY(WORKER) | BY(CTL), "KEPT", request_kept },
	{ FRAME_REMOVE, BY(WORKER) | BY(CTL), "REMOVE", request_remove },
	{ FRAME_RESERVE, BY(API), "RESERVE", request_reserve },
	{ FRAME_METRICS, BY(API), "METRICS", request_metrics },
	{ FRAME_STATUS, BY(WORKER) | BY(API) | BY(CTL), "STATUS",
	    request_status },
};

/* A request that this program may not make is refused before any field is read.
 */
static void
request_dispatch(struct client *client, const struct frame_view *view)
{
	const char *what = "an unknown request";

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

/* ---- listening ---- */

/* Each connection makes one request; a second packet is a fault, and an end of
 * file ends the lease. */
static void
client_on_packet(void *arg, int fd, uint32_t events)
{
	struct client *client = arg;
	char packet[REQUEST_MAX];
	struct frame_view view;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), NULL, 0,
	    &err);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	/* The client hung up, or sent a second packet. */
	if (len <= 0 || client->state != CLIENT_IDLE) {
		client_close(client);
		return;
	}
	loop_timer_clear(client->clients->host->loop, &client->timer);
	if (frame_parse(&view, packet, (size_t)len))
		request_dispatch(client, &view);
	else
		client_refuse(client, REFUSAL_INPUT, "not a frame");
}

/* A connection without a request is closed. */
static void
client_on_silence(void *arg)
{
	log_info("a client made no request");
	client_close(arg);
}

static void
client_new(struct listener *listener, int fd)
{
	struct clients *clients = listener->clients;
	struct loop *loop = clients->host->loop;
	struct client *client = xcalloc(1, sizeof(*client));

	client->clients = clients;
	client->listener = listener;
	client->fd = fd;
	client->staged_fd = -1;
	LIST_INSERT_HEAD(&clients->all, client, link);
	listener->count++;
	loop_add(loop, fd, EPOLLIN, client_on_packet, client);
	loop_timer_set(loop, &client->timer, REQUEST_MS, client_on_silence,
	    client);
}

/* The listener pauses when the program has all its connections, and when the
 * broker is out of descriptors, since accept() would fail again at once.  New
 * connections wait in the backlog. */
static void
listener_on_connection(void *arg, int fd, uint32_t events)
{
	struct listener *listener = arg;
	struct loop *loop = listener->clients->host->loop;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (client >= 0) {
		client_new(listener, client);
		if (listener->count < listener->max)
			return;
	} else {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		log_err("accept: %s", strerror(errno));
	}
	loop_remove(loop, fd);
	listener->paused = true;
	loop_timer_set(loop, &listener->resume, PAUSE_MS, listener_resume,
	    listener);
}

/* Called when a client has gone, and by the timer; the listener stays paused
 * while it has all its connections. */
static void
listener_resume(void *arg)
{
	struct listener *listener = arg;

	if (listener->fd < 0 || !listener->paused ||
	    listener->count >= listener->max)
		return;
	listener->paused = false;
	loop_add(listener->clients->host->loop, listener->fd, EPOLLIN,
	    listener_on_connection, listener);
}

/* The listener is paused until the rest of the broker is up.  In a folder whose
 * group is the program's, the socket is its group's, too. */
static int
listener_open(struct listener *listener, const struct config *config,
    struct err *err)
{
	enum program_name program = listener->program;
	auto_free char *path = config_state_path(config,
	    programs[program].socket);
	auto_free char *copy = xstrdup(path);
	const struct cell_class *class;

	listener->paused = true;
	listener->max = programs[program].connections;
	/* A budget that several classes share is counted several times, which
	 * does no harm. */
	for (size_t i = 0; (class = class_at(i)) != NULL; i++) {
		if (class->program == program)
			listener->max += (size_t)class_budget(class->budget,
			    config);
	}
	if (fd_make_dirs(dirname(copy), 0750, err) != 0)
		return -1;
	listener->fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK,
	    0660, err);
	return listener->fd < 0 ? -1 : 0;
}

int
clients_listen(struct clients *clients, struct host *host, struct err *err)
{
	clients->host = host;
	LIST_INIT(&clients->all);
	TAILQ_INIT(&clients->waiting);
	TAILQ_INIT(&clients->asking);
	for (size_t i = 0; i < PROGRAMS; i++) {
		clients->listeners[i].clients = clients;
		clients->listeners[i].program = (enum program_name)i;
		if (listener_open(&clients->listeners[i], host->config, err) !=
		    0)
			return -1;
	}
	return 0;
}

void
clients_open(struct clients *clients)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		listener_resume(&clients->listeners[i]);
}

void
clients_close(struct clients *clients)
{
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct listener *listener = &clients->listeners[i];
		auto_free char *path = config_state_path(clients->host->config,
		    programs[i].socket);

		loop_timer_clear(clients->host->loop, &listener->resume);
		(void)unlink(path);
		loop_close(clients->host->loop, &listener->fd);
	}
	while (!LIST_EMPTY(&clients->all))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		client_close(LIST_FIRST(&clients->all));
}
