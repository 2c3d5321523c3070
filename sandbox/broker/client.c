/* SPDX-License-Identifier: MIT */
/*
 * The sockets of the programs, the life of a connection, the table of requests,
 * and leases.  Other requests are in requests.c, api_packages.c and status.c.
 * Every field is checked before anything is done.
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

#include "base/basics.h"
#include "base/fd.h"
#include "base/loop.h"

#define REQUEST_MS 10000 /* for the request to arrive */
#define PAUSE_MS 1000	 /* out of descriptors */
#define REQUEST_MAX 1024

/*
 * The programs that may connect.  Each has a socket of its own, and a
 * connection on it is trusted to be that program's: the file system decides who
 * may open the socket.  The table of requests and the classes (docker.c) say
 * what the program may ask for.
 *
 * il-api has far fewer connections than tickets may wait for a cell (policy.c).
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

/* Undo the request, whatever it has come to, and close the connection; another
 * one may be accepted in its place. */
void
client_close(struct client *client)
{
	struct host *host = client->host;
	struct listener *listener = client->listener;
	/* Another client may get its cell, or has waited for its session;
	 * reservation_free() sees to those that wait for space. */
	bool waits_end = client->ticket.client != NULL ||
	    client->session.id[0] != '\0';

	policy_withdraw(host->pool, &client->ticket);
	/* A client that still uses a session's cell has a copy of its socket.
	 */
	if (client->session.cell_fd >= 0)
		(void)shutdown(client->session.cell_fd, SHUT_RDWR);
	loop_close(host->loop, &client->session.cell_fd);
	if (client->state == CLIENT_STAGES)
		stage_abandon(client);
	if (client->creation.draft[0] != '\0')
		creation_cancel(&client->creation);
	lock_wait_stop(&client->wait);
	subprocess_cancel(&client->tool);
	reservation_free(client->reservation);
	cleanup_close(&client->room_fd);
	cleanup_close(&client->staged_fd);
	cleanup_close(&client->slot_fd);
	loop_timer_clear(host->loop, &client->timer);
	loop_close(host->loop, &client->fd);
	TAILQ_REMOVE(&client->clients->all, client, link);
	listener->count--;
	free(client);
	listener_resume(listener);
	if (waits_end)
		host_schedule(host, 0);
}

/* The client has gone.  A removal goes on without it. */
static void
client_hang_up(struct client *client)
{
	if (client->state == CLIENT_REMOVES)
		loop_close(client->host->loop, &client->fd);
	else
		client_close(client);
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
	frame_add_nonzero(&frame, TAG_REST_MS, client->next_ms);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

void
client_keep(struct client *client, enum client_state state)
{
	struct frame frame;

	client->state = state;
	frame_start(&frame, FRAME_GRANTED);
	if (!client_send(client, &frame, -1) || state == CLIENT_IDLE)
		client_close(client);
}

void
client_done(struct client *client)
{
	client_keep(client, CLIENT_IDLE);
}

enum refusal
client_because(struct client *client, enum refusal code, const char *text)
{
	(void)snprintf(client->why, sizeof(client->why), "%s", text);
	return code;
}

/* The client's program may not ask for that. */
static enum refusal
client_forbid(struct client *client, const char *what)
{
	(void)snprintf(client->why, sizeof(client->why),
	    "%s may not ask for %s", programs[client->listener->program].title,
	    what);
	return REFUSAL_INPUT;
}

/* ---- fields ---- */

bool
client_has_field(const struct frame_view *view, enum frame_tag tag)
{
	const unsigned char *data;
	size_t len;

	return frame_get_bytes(view, tag, &data, &len);
}

bool
client_read_id(const struct frame_view *view, char id[33])
{
	return frame_get_text(view, TAG_SANDBOX, id, 33) &&
	    workspace_id_valid(id);
}

enum refusal
client_read_interpreter(struct client *client, const struct frame_view *view,
    const char *list, struct image_entry *entry)
{
	char name[IMAGES_NAME_MAX + 1] = "";

	if ((client_has_field(view, TAG_INTERPRETER) &&
		!frame_get_text(view, TAG_INTERPRETER, name, sizeof(name))) ||
	    !images_find(list, name, entry))
		return client_because(client, REFUSAL_INTERPRETER,
		    "no such interpreter");
	return REFUSAL_NONE;
}

/* ---- leases ---- */

/* A client that is gone by now is closed, which ends the lease.  A client with
 * read access during a run has no lease: nothing ends with it. */
void
ticket_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access)
{
	struct client *client = ticket->client;
	struct frame frame;
	bool sent;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, cell);
	frame_add_int(&frame, TAG_ACCESS, access);
	if (ticket->keep_session && !ticket->container->has_session)
		frame_add_int(&frame, TAG_ENDED,
		    session_recall(client->host->pool, ticket->sandbox));
	sent = client_send(client, &frame, client_end);
	if (client->session.id[0] != '\0')
		client->session.cell_fd = client_end;
	else
		(void)close(client_end);
	log_info("%s%s after %" PRId64 " ms cell=%s sandbox=%s",
	    access == ACCESS_LOOK ? "reads during its run" :
		ticket->cold	  ? "leased cold" :
				    "leased warm",
	    access == ACCESS_READ ? ", to read only," : "",
	    clock_monotonic_ms() - ticket->since_ms, cell, ticket->sandbox);
	if (!sent)
		client_close(client);
}

/* Only an end for lack of memory is reported.  The client sees any other end on
 * its socket to the cell. */
void
ticket_lost(struct ticket *ticket, bool out_of_memory)
{
	struct frame frame;

	frame_start(&frame, FRAME_LOST);
	frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
	if (out_of_memory && ticket->client->fd >= 0)
		(void)client_send(ticket->client, &frame, -1);
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

/* Read a LEASE. A class either needs a sandbox or allows none. */
static enum refusal
lease_read(struct client *client, const struct frame_view *view)
{
	const struct config *config = client->host->config;
	struct ticket *ticket = &client->ticket;
	const struct cell_class *class = ticket->class;
	int64_t imports = 0;

	if (!frame_get_int(view, TAG_LEASE_MS, &ticket->lease_ms) ||
	    ticket->lease_ms < 1 || ticket->lease_ms > LIMIT_WALL_MS ||
	    (class->in_memory ? client_has_field(view, TAG_SANDBOX) :
				!lease_read_sandbox(ticket, view)) ||
	    (client_has_field(view, TAG_FOLDER) &&
		(!frame_get_text(view, TAG_FOLDER, ticket->folder,
		     sizeof(ticket->folder)) ||
		    !class_has_folder(class, config, ticket->folder))))
		return REFUSAL_INPUT;
	(void)frame_get_int(view, TAG_IMPORTS, &imports);
	ticket->imports = (uint32_t)imports;
	ticket->no_imports = (imports & PRELOAD_APART) != 0 &&
	    preload_is_auto(config->preload);
	/* A cell that is reused has its interpreter already. */
	ticket->any_interpreter = class->reuse == REUSE_SANDBOX &&
	    !client_has_field(view, TAG_INTERPRETER);
	return client_read_interpreter(client, view,
	    class->in_memory || class->installs ? config->sandbox_images :
						  config->chat_images,
	    &ticket->interpreter);
}

static enum refusal
request_lease(struct client *client, const struct frame_view *view)
{
	struct pool *pool = client->host->pool;
	struct ticket *ticket = &client->ticket;
	char class[CLASS_NAME_MAX] = "";
	enum refusal code;

	(void)frame_get_text(view, TAG_CLASS, class, sizeof(class));
	ticket->class = class_find(class);
	if (ticket->class == NULL)
		return REFUSAL_INPUT;
	if (ticket->class->program != client->listener->program)
		return client_forbid(client, class);
	code = lease_read(client, view);
	if (code == REFUSAL_NONE && client_has_field(view, TAG_SESSION))
		code = parked_read(client, view);
	if (code != REFUSAL_NONE)
		return code;
	if (ticket->class->installs)
		api_packages_staging(ticket->interpreter.name,
		    ticket->packages);
	else if (!ticket->class->in_memory)
		workspace_packages_name(ticket->interpreter.name,
		    ticket->packages);
	ticket->client = client;
	warm_note(pool, ticket);
	code = policy_request(pool, ticket);
	if (code != REFUSAL_NONE)
		return client_because(client, code,
		    code == REFUSAL_FULL ? "too many are waiting for a cell" :
					   "there is no such workspace");
	client->state = CLIENT_WANTS_LEASE;
	return REFUSAL_NONE;
}

/* ---- the table of requests ---- */

#define BY(program) (1U << PROGRAM_##program)

/* The requests, and the programs that may make them. */
static const struct {
	enum frame_kind kind;
	unsigned int programs;
	const char *name;
	enum refusal (*serve)(struct client *client,
	    const struct frame_view *view);
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
static enum refusal
client_serve(struct client *client, const struct frame_view *view)
{
	const char *name = "an unknown request";

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].kind != view->kind)
			continue;
		name = requests[i].name;
		if ((requests[i].programs & 1U << client->listener->program) ==
		    0)
			break;
		(void)snprintf(client->why, sizeof(client->why),
		    "a malformed %s", name);
		return requests[i].serve(client, view);
	}
	return client_forbid(client, name);
}

void
clients_pass(struct clients *clients)
{
	struct client *client;
	struct client *next;

	for (client = TAILQ_FIRST(&clients->all); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, link);
		if (client->state == CLIENT_RESUMES)
			parked_answer(client);
		else if (client->state == CLIENT_ASKS_KEPT)
			kept_answer(client);
		else if (client->state == CLIENT_REMOVES)
			remove_answer(client);
		else if (client->state == CLIENT_WAITS_TO_CREATE ||
		    client->state == CLIENT_WAITS_TO_RESERVE)
			space_answer(client);
	}
}

/* ---- listening ---- */

/* Each connection makes one request, which PARK may follow.  An end of file
 * ends the lease. */
static void
client_on_packet(void *arg, int fd, uint32_t events)
{
	struct client *client = arg;
	char packet[REQUEST_MAX];
	struct frame_view view;
	struct err err;
	enum refusal code = REFUSAL_INPUT;
	auto_close int passed = -1;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), &passed, 0,
	    &err);
	bool parsed = len > 0 && frame_parse(&view, packet, (size_t)len);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	loop_timer_clear(client->host->loop, &client->timer);
	if (len > 0 && client->state == CLIENT_IDLE && !parsed) {
		client_refuse(client, REFUSAL_INPUT, "not a frame");
	} else if (parsed && client->state == CLIENT_IDLE) {
		client->slot_fd = steal_fd(&passed);
		code = client_serve(client, &view);
		if (code != REFUSAL_NONE)
			client_refuse(client, code, client->why);
	} else if (parsed && view.kind == FRAME_PARK &&
	    client->state == CLIENT_WANTS_LEASE) {
		parked_park(client);
	} else {
		client_hang_up(client);
	}
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

	client->host = clients->host;
	client->clients = clients;
	client->listener = listener;
	client->fd = fd;
	client->staged_fd = -1;
	client->room_fd = -1;
	client->slot_fd = -1;
	client->session.cell_fd = -1;
	TAILQ_INSERT_TAIL(&clients->all, client, link);
	listener->count++;
	loop_add(loop, fd, EPOLLIN, client_on_packet, client);
	loop_timer_set(loop, &client->timer, REQUEST_MS, client_on_silence,
	    client);
}

void
client_move(struct client *from, struct client *to)
{
	struct loop *loop = to->host->loop;

	loop_remove(loop, from->fd);
	to->fd = steal_fd(&from->fd);
	loop_add(loop, to->fd, EPOLLIN, client_on_packet, to);
	client_close(from);
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
	TAILQ_INIT(&clients->all);
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
	struct client *client;
	struct client *next;

	for (size_t i = 0; i < PROGRAMS; i++) {
		struct listener *listener = &clients->listeners[i];
		auto_free char *path = config_state_path(clients->host->config,
		    programs[i].socket);

		loop_timer_clear(clients->host->loop, &listener->resume);
		(void)unlink(path);
		loop_close(clients->host->loop, &listener->fd);
	}
	for (client = TAILQ_FIRST(&clients->all); client != NULL;
	     client = next) {
		next = TAILQ_NEXT(client, link);
		client_hang_up(client);
	}
}

/* The next start sweeps the folders. */
void
clients_release(struct clients *clients)
{
	while (!TAILQ_EMPTY(&clients->all)) {
		struct client *client = TAILQ_FIRST(&clients->all);

		log_err("removal cut short sandbox=%s", client->ticket.sandbox);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is unlinked */
		client_close(client);
	}
}
