/* SPDX-License-Identifier: MIT */
/*
 * The sockets of the programs, and a connection from its accept() to its end.
 * What is asked on it is in request.c and space.c.
 */
#include "client.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../protocol/frame.h"

#define ASK_MS 10000  /* to say what it wants */
#define PAUSE_MS 1000 /* out of descriptors */
#define REQUEST_MAX 1024

static void listener_resume(void *arg);

/* Let go of what it asked for, and of the connection; who waits to be accepted
 * may have its place. */
void
client_close(struct client *client)
{
	struct clients *clients = client->clients;
	struct listener *listener = client->listener;

	request_abandon(client);
	loop_timer_clear(clients->loop, &client->timer);
	loop_close(clients->loop, &client->fd);
	LIST_REMOVE(client, link);
	listener->count--;
	free(client);
	if (listener->paused && listener->resume == NULL)
		listener_resume(listener);
}

/* ---- answering ---- */

/* One that does not take an answer as small as this is hung up on. */
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

/* ---- listening ---- */

/* One request for each connection; anything after it is a fault, and an end of
 * file lets go of the lease. */
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
	/* It hung up, or it says more than it may. */
	if (len <= 0 || client->state != CLIENT_ASKED_NOTHING) {
		client_close(client);
		return;
	}
	loop_timer_clear(client->clients->loop, &client->timer);
	if (frame_parse(&view, packet, (size_t)len))
		request_take(client, &view);
	else
		client_refuse(client, REFUSAL_INPUT, "not a frame");
}

/* A connection is not to be kept for later. */
static void
client_on_silence(void *arg)
{
	log_info("a client asked for nothing");
	client_close(arg);
}

static void
client_new(struct listener *listener, int fd)
{
	struct clients *clients = listener->clients;
	struct client *client = xcalloc(1, sizeof(*client));

	client->clients = clients;
	client->listener = listener;
	client->fd = fd;
	LIST_INSERT_HEAD(&clients->all, client, link);
	listener->count++;
	loop_add(clients->loop, fd, EPOLLIN, client_on_packet, client);
	loop_timer_set(clients->loop, &client->timer, ASK_MS, client_on_silence,
	    client);
}

/* The others wait to be accepted, in the kernel. */
static void
listener_pause(struct listener *listener, bool timed)
{
	struct loop *loop = listener->clients->loop;

	loop_remove(loop, listener->fd);
	listener->paused = true;
	if (timed)
		loop_timer_set(loop, &listener->resume, PAUSE_MS,
		    listener_resume, listener);
}

/* Without descriptors accept() would fail again at once: the listener pauses
 * for a while. */
static void
listener_on_connection(void *arg, int fd, uint32_t events)
{
	struct listener *listener = arg;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (client >= 0) {
		client_new(listener, client);
		if (listener->count >= listener->max)
			listener_pause(listener, false);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		log_err("accept: %s", strerror(errno));
		listener_pause(listener, true);
	}
}

/* When a place is free, or the pause is over. */
static void
listener_resume(void *arg)
{
	struct listener *listener = arg;

	if (listener->fd < 0 || !listener->paused)
		return;
	listener->paused = false;
	loop_add(listener->clients->loop, listener->fd, EPOLLIN,
	    listener_on_connection, listener);
}

static void
listener_close(struct listener *listener, const struct config *config)
{
	auto_free char *path = config_state_path(config,
	    programs[listener->program].socket);

	loop_timer_clear(listener->clients->loop, &listener->resume);
	if (listener->fd >= 0)
		(void)unlink(path);
	loop_close(listener->clients->loop, &listener->fd);
}

/* In a folder whose group is the program's, the socket is its group's, too. */
static int
listener_open(struct listener *listener, const struct config *config,
    struct err *err)
{
	auto_free char *path = config_state_path(config,
	    programs[listener->program].socket);
	auto_free char *copy = xstrdup(path);

	if (fd_make_dirs(dirname(copy), 0750, err) != 0)
		return -1;
	listener->fd = fd_listen_unix(path, SOCK_SEQPACKET | SOCK_NONBLOCK,
	    0660, err);
	return listener->fd < 0 ? -1 : 0;
}

/* The listeners are paused until the rest of the broker is there. */
int
clients_listen(struct clients *clients, const struct config *config,
    struct err *err)
{
	clients->config = config;
	for (size_t i = 0; i < PROGRAMS; i++) {
		struct listener *listener = &clients->listeners[i];

		*listener = (struct listener){ .clients = clients,
			.program = (enum program_name)i,
			.max = program_connections((enum program_name)i,
			    config),
			.paused = true };
		if (listener_open(listener, config, err) != 0)
			return -1;
	}
	return 0;
}

void
clients_open(struct clients *clients, struct loop *loop, struct pool *pool)
{
	clients->loop = loop;
	clients->pool = pool;
	LIST_INIT(&clients->all);
	TAILQ_INIT(&clients->waiting);
	for (size_t i = 0; i < PROGRAMS; i++)
		listener_resume(&clients->listeners[i]);
}

void
clients_close(struct clients *clients)
{
	clients->closed = true;
	for (size_t i = 0; i < PROGRAMS; i++)
		listener_close(&clients->listeners[i], clients->config);
	while (!LIST_EMPTY(&clients->all))
		client_close(LIST_FIRST(&clients->all));
}
