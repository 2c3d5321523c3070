#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/frame.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "class.h"
#include "workspace.h"

#define ASK_MS 10000  /* to say what it wants */
#define PAUSE_MS 1000 /* out of descriptors */
#define CREATIONS_MAX 4
#define REQUEST_MAX 1024
#define LEASE_MS_MAX (INT64_C(24) * 3600 * 1000)
#define FRESH_MS 5000 /* a status may be so old */

/* What CREATE may ask for. */
#define QUOTA_MIN (INT64_C(4) << 20)
#define QUOTA_MAX (INT64_C(16) << 40)
#define FILES_MAX INT64_C(100000000)
/* Packages are many small files. */
#define BYTES_PER_PACKAGE_FILE 8192

enum client_state {
	CLIENT_ASKED_NOTHING,
	CLIENT_WANTS_LEASE, /* in the queue, or leased */
	CLIENT_WANTS_STATUS,
	CLIENT_WAITS_TO_CREATE,
	CLIENT_CREATES,
	CLIENT_REMOVES,
};

struct client {
	LIST_ENTRY(client) link;
	TAILQ_ENTRY(client) turn; /* CLIENT_WAITS_TO_CREATE */
	struct clients *clients;
	enum client_state state;
	int fd;
	struct loop_timer *timer;
	struct ticket ticket;
	struct creation creation;
	struct removal *removal; /* its own, for it outlives us */
};

/* A removal goes on when its client has hung up. */
struct client_removal {
	struct removal removal; /* first */
	struct client *client;	/* NULL: gone */
};

static void creations_next(struct clients *clients);
static void clients_resume(void *arg);

/* ---- hanging up ---- */

/* Let go of what it asked for. */
static void
client_abandon(struct client *client)
{
	struct clients *clients = client->clients;

	switch (client->state) {
	case CLIENT_ASKED_NOTHING:
	case CLIENT_WANTS_STATUS:
		break;
	case CLIENT_WANTS_LEASE:
		pool_withdraw(clients->pool, &client->ticket);
		break;
	case CLIENT_WAITS_TO_CREATE:
		TAILQ_REMOVE(&clients->creating, client, turn);
		break;
	case CLIENT_CREATES:
		creation_cancel(&client->creation);
		clients->creations--;
		creations_next(clients);
		break;
	case CLIENT_REMOVES:
		((struct client_removal *)client->removal)->client = NULL;
		break;
	}
	client->state = CLIENT_ASKED_NOTHING;
}

static void
client_close(struct client *client)
{
	struct clients *clients = client->clients;

	client_abandon(client);
	if (client->timer != NULL)
		loop_timer_cancel(clients->loop, client->timer);
	loop_remove(clients->loop, client->fd);
	(void)close(client->fd);
	LIST_REMOVE(client, link);
	clients->count--;
	free(client);
	if (clients->paused && clients->resume == NULL)
		clients_resume(clients);
}

/* ---- answering ---- */

/* One that does not take an answer as small as this is hung up on. */
static bool
client_send(const struct client *client, const struct frame *frame, int fd)
{
	struct err err;

	if (fd_send_packet(client->fd, frame->data, frame->len, fd, -1, 0,
		&err) == 0)
		return true;
	log_debug("answer: %s", err.text);
	return false;
}

static void
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

static void
client_done(struct client *client)
{
	struct frame frame;

	frame_start(&frame, FRAME_GRANTED);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

/* ---- leases ---- */

static struct client *
client_of(struct ticket *ticket)
{
	char *at = (char *)ticket - offsetof(struct client, ticket);

	return (struct client *)(void *)at;
}

static void
lease_on_granted(struct ticket *ticket, int client_end)
{
	struct client *client = client_of(ticket);
	struct frame frame;
	bool sent;

	frame_start(&frame, FRAME_GRANTED);
	frame_add_int(&frame, TAG_COLD, ticket->cold ? 1 : 0);
	frame_add_text(&frame, TAG_CELL_NAME, ticket->container->name);
	sent = client_send(client, &frame, client_end);
	(void)close(client_end);
	log_info("leased %s after %" PRId64 " ms cell=%s sandbox=%s",
	    ticket->cold ? "cold" : "warm",
	    clock_monotonic_ms() - ticket->since_ms, ticket->container->name,
	    ticket->sandbox);
	if (!sent)
		client_close(client);
}

static void
lease_on_refused(struct ticket *ticket, enum refusal code, const char *text)
{
	client_refuse(client_of(ticket), code, text);
}

static void
lease_on_lost(struct ticket *ticket)
{
	client_close(client_of(ticket));
}

static void
client_lease(struct client *client, const struct frame_view *view)
{
	struct ticket *ticket = &client->ticket;
	char class[16];
	int64_t lease_ms;

	if (!frame_get_text(view, TAG_CLASS, class, sizeof(class)) ||
	    !frame_get_text(view, TAG_SANDBOX, ticket->sandbox,
		sizeof(ticket->sandbox)) ||
	    !frame_get_int(view, TAG_LEASE_MS, &lease_ms) ||
	    !workspace_id_valid(ticket->sandbox) || lease_ms < 1 ||
	    lease_ms > LEASE_MS_MAX || class_find(class) == NULL) {
		client_refuse(client, REFUSAL_INPUT, "a malformed LEASE");
		return;
	}
	ticket->class = class_find(class);
	ticket->lease_ms = lease_ms;
	ticket->granted = lease_on_granted;
	ticket->refused = lease_on_refused;
	ticket->lost = lease_on_lost;
	client->state = CLIENT_WANTS_LEASE;
	pool_request(client->clients->pool, ticket);
}

/* ---- making workspaces ---- */

static void
creation_on_done(void *arg, const struct err *failure)
{
	struct client *client = arg;
	struct clients *clients = client->clients;
	int64_t free_bytes;
	struct err err;
	bool low;

	client->state = CLIENT_ASKED_NOTHING;
	clients->creations--;
	if (failure == NULL || failure->code == ERR_CONFLICT)
		client_done(client);
	else if (workspace_space(clients->base, &free_bytes, &low, &err) == 0 &&
	    low)
		client_refuse(client, REFUSAL_DISK, failure->text);
	else
		client_refuse(client, REFUSAL_START, failure->text);
	creations_next(clients);
}

/* mkfs by mkfs: a crowd of new users must not starve the leases. */
static void
creations_next(struct clients *clients)
{
	struct client *client = TAILQ_FIRST(&clients->creating);

	if (client == NULL || clients->creations >= CREATIONS_MAX)
		return;
	TAILQ_REMOVE(&clients->creating, client, turn);
	client->state = CLIENT_CREATES;
	clients->creations++;
	creation_start(&client->creation, clients->loop, creation_on_done,
	    client);
}

static void
client_create(struct client *client, const struct frame_view *view)
{
	const struct clients *clients = client->clients;
	struct creation *c = &client->creation;
	struct image_size *sizes = c->sizes;
	int64_t free_bytes;
	struct err err;
	bool low;

	if (!frame_get_text(view, TAG_SANDBOX, c->id, sizeof(c->id)) ||
	    !workspace_id_valid(c->id) ||
	    !frame_get_int(view, TAG_QUOTA_BYTES, &sizes[0].bytes) ||
	    !frame_get_int(view, TAG_QUOTA_FILES, &sizes[0].files) ||
	    sizes[0].bytes < QUOTA_MIN || sizes[0].bytes > QUOTA_MAX ||
	    sizes[0].files < 1 || sizes[0].files > FILES_MAX) {
		client_refuse(client, REFUSAL_INPUT, "a malformed CREATE");
		return;
	}
	if (workspace_exists(clients->base, c->id)) {
		client_done(client);
		return;
	}
	if (workspace_space(clients->base, &free_bytes, &low, &err) != 0 ||
	    low) {
		client_refuse(client, REFUSAL_DISK, "the host's disk is full");
		return;
	}
	sizes[1].bytes = clients->config->pip_quota;
	sizes[1].files = sizes[1].bytes / BYTES_PER_PACKAGE_FILE;
	c->base = clients->base;
	c->base_path = clients->config->base_dir;
	client->state = CLIENT_WAITS_TO_CREATE;
	TAILQ_INSERT_TAIL(&client->clients->creating, client, turn);
	creations_next(client->clients);
}

/* ---- removing them ---- */

static void
removal_on_done(struct removal *removal, const char *trouble)
{
	struct client_removal *own = (struct client_removal *)removal;
	struct client *client = own->client;

	if (trouble != NULL)
		log_err("%s sandbox=%s", trouble, removal->sandbox);
	if (client != NULL) {
		client->state = CLIENT_ASKED_NOTHING;
		if (trouble == NULL)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, trouble);
	}
	free(own);
}

static void
client_remove(struct client *client, const struct frame_view *view)
{
	struct clients *clients = client->clients;
	struct client_removal *own;
	char id[33];
	struct err err;
	int rc;

	if (!frame_get_text(view, TAG_SANDBOX, id, sizeof(id)) ||
	    !workspace_id_valid(id)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed REMOVE");
		return;
	}
	own = xcalloc(1, sizeof(*own));
	rc = workspace_retire(clients->base, id, own->removal.retired, &err);
	if (rc != 0) {
		free(own);
		if (rc > 0)
			client_done(client);
		else
			client_refuse(client, REFUSAL_START, err.text);
		return;
	}
	memcpy(own->removal.sandbox, id, sizeof(id));
	own->removal.done = removal_on_done;
	own->client = client;
	client->removal = &own->removal;
	client->state = CLIENT_REMOVES;
	pool_remove(clients->pool, &own->removal);
}

/* ---- the status ---- */

static void
client_tell_status(struct client *client)
{
	const struct clients *clients = client->clients;
	const struct engine *engine = clients->engine;
	struct pool_count count;
	int64_t free_bytes = 0;
	struct frame frame;
	struct err err;
	bool low;

	pool_count(clients->pool, &count);
	(void)workspace_space(clients->base, &free_bytes, &low, &err);
	frame_start(&frame, FRAME_STATUS_IS);
	frame_add_int(&frame, TAG_ENGINE, engine->up ? 1 : 0);
	frame_add_int(&frame, TAG_IMAGE, engine->image ? 1 : 0);
	frame_add_text(&frame, TAG_IMAGE_NAME, clients->config->sandbox_image);
	frame_add_text(&frame, TAG_PYTHON, clients->pool->python);
	frame_add_int(&frame, TAG_CELLS, count.cells);
	frame_add_int(&frame, TAG_LEASED, count.leased);
	frame_add_int(&frame, TAG_STARTING, count.starting);
	frame_add_int(&frame, TAG_WAITING, count.waiting);
	frame_add_int(&frame, TAG_FREE_BYTES, free_bytes);
	(void)client_send(client, &frame, -1);
	client_close(client);
}

/* Truthful rather than quick: what is old is asked for anew, which takes as
 * long as the probe's deadline at most. */
static void
client_status(struct client *client)
{
	client->state = CLIENT_WANTS_STATUS;
	if (!engine_refresh(client->clients->engine, FRESH_MS))
		client_tell_status(client);
}

void
clients_engine_changed(struct clients *clients)
{
	struct client *client;
	struct client *next;

	if (clients->engine->probe.running)
		return;
	for (client = LIST_FIRST(&clients->all); client != NULL;
	     client = next) {
		next = LIST_NEXT(client, link);
		if (client->state == CLIENT_WANTS_STATUS)
			client_tell_status(client);
	}
}

/* ---- listening to them ---- */

static void
client_take(struct client *client, const struct frame_view *view)
{
	if (view->kind == FRAME_LEASE)
		client_lease(client, view);
	else if (view->kind == FRAME_CREATE)
		client_create(client, view);
	else if (view->kind == FRAME_REMOVE)
		client_remove(client, view);
	else if (view->kind == FRAME_STATUS)
		client_status(client);
	else
		client_refuse(client, REFUSAL_INPUT, "not for the broker");
}

static void
client_on_packet(void *arg, int fd, uint32_t events)
{
	struct client *client = arg;
	char packet[REQUEST_MAX];
	struct frame_view view;
	struct err err;
	ssize_t len = fd_receive_packet(fd, packet, sizeof(packet), NULL, NULL,
	    0, &err);

	(void)events;
	if (len < 0 && err.code == ERR_TIMEOUT)
		return;
	/* It hung up, or it says more than it may. */
	if (len <= 0 || client->state != CLIENT_ASKED_NOTHING) {
		client_close(client);
		return;
	}
	if (client->timer != NULL)
		loop_timer_cancel(client->clients->loop, client->timer);
	client->timer = NULL;
	if (frame_parse(&view, packet, (size_t)len))
		client_take(client, &view);
	else
		client_refuse(client, REFUSAL_INPUT, "not a frame");
}

static void
client_on_silence(void *arg)
{
	struct client *client = arg;

	client->timer = NULL;
	log_info("a client asked for nothing");
	client_close(client);
}

static void
client_new(struct clients *clients, int fd)
{
	struct client *client = xcalloc(1, sizeof(*client));

	client->clients = clients;
	client->fd = fd;
	LIST_INSERT_HEAD(&clients->all, client, link);
	clients->count++;
	loop_add(clients->loop, fd, EPOLLIN, client_on_packet, client);
	client->timer = loop_timer_add(clients->loop,
	    clock_monotonic_ms() + ASK_MS, client_on_silence, client);
}

/* The others wait to be accepted, in the kernel. */
static void
clients_pause(struct clients *clients, bool timed)
{
	loop_remove(clients->loop, clients->listener);
	clients->paused = true;
	if (timed)
		clients->resume = loop_timer_add(clients->loop,
		    clock_monotonic_ms() + PAUSE_MS, clients_resume, clients);
}

static void
clients_on_connection(void *arg, int fd, uint32_t events)
{
	struct clients *clients = arg;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (client >= 0) {
		client_new(clients, client);
		if (clients->count >= clients->max)
			clients_pause(clients, false);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		log_err("accept: %s", strerror(errno));
		clients_pause(clients, true);
	}
}

static void
clients_resume(void *arg)
{
	struct clients *clients = arg;

	clients->resume = NULL;
	if (clients->listener < 0 || !clients->paused)
		return;
	clients->paused = false;
	loop_add(clients->loop, clients->listener, EPOLLIN,
	    clients_on_connection, clients);
}

void
clients_open(struct clients *clients)
{
	LIST_INIT(&clients->all);
	TAILQ_INIT(&clients->creating);
	clients->paused = true;
	clients_resume(clients);
}

void
clients_close(struct clients *clients)
{
	if (clients->resume != NULL)
		loop_timer_cancel(clients->loop, clients->resume);
	clients->resume = NULL;
	loop_remove(clients->loop, clients->listener);
	(void)close(clients->listener);
	clients->listener = -1;
	while (!LIST_EMPTY(&clients->all))
		client_close(LIST_FIRST(&clients->all));
}
