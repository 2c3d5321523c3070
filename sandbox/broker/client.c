/* SPDX-License-Identifier: MIT */
/*
 * The sockets of the programs, and the life of a connection.  requests.c serves
 * its request.
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
#include "base/config.h"
#include "base/fd.h"
#include "base/loop.h"
#include "broker/volume.h"
#include "protocol/lease.h"

#define REQUEST_MS 10000 /* for the request to arrive */
#define PAUSE_MS 1000	 /* out of descriptors */
#define REQUEST_MAX 1024

/*
 * The programs that may connect.  Each has a socket of its own, and a
 * connection on it is trusted to be that program's: the file system decides who
 * may open the socket.  The table of requests (requests.c) and the classes
 * (docker.c) say what the program may ask for.
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

/* Undo the request and close the connection; another one may be accepted in its
 * place. */
void
client_close(struct client *client)
{
	struct loop *loop = client->clients->host->loop;
	struct listener *listener = client->listener;

	client->clients->abandon(client);
	cleanup_close(&client->slot_fd);
	/* Another client may be served now. */
	reservation_free(client->reservation);
	loop_timer_clear(loop, &client->timer);
	loop_close(loop, &client->fd);
	LIST_REMOVE(client, link);
	listener->count--;
	free(client);
	listener_resume(listener);
}

/* ---- answering ---- */

const char *
client_title(const struct client *client)
{
	return programs[client->listener->program].title;
}

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
	auto_close int passed = -1;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), &passed, 0,
	    &err);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	if (len <= 0) {
		client_close(client);
		return;
	}
	loop_timer_clear(client->clients->host->loop, &client->timer);
	if (client->state == CLIENT_IDLE)
		client->slot_fd = steal_fd(&passed);
	if (frame_parse(&view, packet, (size_t)len))
		client->clients->serve(client, &view);
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
	client->slot_fd = -1;
	client->session.cell_fd = -1;
	LIST_INSERT_HEAD(&clients->all, client, link);
	listener->count++;
	loop_add(loop, fd, EPOLLIN, client_on_packet, client);
	loop_timer_set(loop, &client->timer, REQUEST_MS, client_on_silence,
	    client);
}

void
client_move(struct client *from, struct client *to)
{
	struct loop *loop = to->clients->host->loop;

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
