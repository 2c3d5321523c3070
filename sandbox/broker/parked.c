/* SPDX-License-Identifier: MIT */
/*
 * Sessions of the APIs: leases that outlive the connections of their clients.
 * A session is the client whose LEASE has named it.  PARK closes its
 * connection, while the lease and the client's end of the socket to the cell
 * stay here.  RESUME gives both to another client of the same owner.  A client
 * that hangs up without PARK ends its session, since the broker cannot know
 * what was left half done in the cell.
 */
#include "broker/client.h"

#include <string.h>
#include <sys/socket.h>

#include "base/basics.h"
#include "base/loop.h"

#define MORE_MS 600000 /* of a lease over its session's life */
/* A session is at rest while it is parked.  After so long it may be evicted for
 * a new session of the same owner. */
#define EVICTED_AFTER_MS 10000

/* The session of that id, in use or parked; NULL: there is none. */
static struct client *
parked_find(const struct clients *clients, const char *id)
{
	struct client *client;

	LIST_FOREACH(client, &clients->all, link) {
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
parked_read_owner(struct session *session, const struct frame_view *view)
{
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, TAG_TOKEN, &data, &len) ||
	    len != sizeof(session->owner))
		return false;
	memcpy(session->owner, data, len);
	return true;
}

static bool
parked_read_id(struct session *session, const struct frame_view *view)
{
	return frame_get_text(view, TAG_SESSION, session->id,
		   sizeof(session->id)) &&
	    strlen(session->id) == sizeof(session->id) - 1 &&
	    strspn(session->id, "0123456789abcdef") == strlen(session->id);
}

enum refusal
parked_read(struct client *client, const struct frame_view *view)
{
	struct session *session = &client->session;
	const unsigned char *data;
	size_t len;

	if (!frame_get_bytes(view, TAG_SESSION, &data, &len))
		return REFUSAL_NONE;
	session->rest_ms = LIMIT_WALL_MS;
	session->rests = frame_get_int(view, TAG_REST_MS, &session->rest_ms);
	if (!client->ticket.class->lasting || session->rest_ms < 1 ||
	    !parked_read_id(session, view) || !parked_read_owner(session, view))
		return REFUSAL_INPUT;
	session->life_ms = client->ticket.lease_ms;
	client->ticket.lease_ms += MORE_MS;
	return parked_find(client->clients, session->id) != NULL ?
	    REFUSAL_BUSY :
	    REFUSAL_NONE;
}

/* ---- ends ---- */

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
	loop_timer_set(client->clients->host->loop, &client->timer,
	    parked_end_ms(client) - clock_monotonic_ms(), parked_on_timer,
	    client);
}

void
parked_release(struct client *client)
{
	/* A client that still uses the cell has a copy of this socket. */
	if (client->session.cell_fd >= 0)
		(void)shutdown(client->session.cell_fd, SHUT_RDWR);
	loop_close(client->clients->host->loop, &client->session.cell_fd);
	/* A client that waits for the session is refused. */
	if (client->session.id[0] != '\0')
		host_schedule(client->clients->host, 0);
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

	LIST_FOREACH(client, &asker->clients->all, link) {
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

void
request_end_session(struct client *client, const struct frame_view *view)
{
	const unsigned char *data;
	struct client *found;
	int64_t evict = 0;
	int64_t rests = 0;
	size_t len;
	bool named = frame_get_bytes(view, TAG_SESSION, &data, &len);

	if (!parked_read_owner(&client->session, view) ||
	    (named && !parked_read_id(&client->session, view))) {
		client_refuse(client, REFUSAL_INPUT, "a malformed END_SESSION");
		return;
	}
	(void)frame_get_int(view, TAG_RETIRE, &evict);
	client->session.rests = frame_get_int(view, TAG_REST_MS, &rests);
	found = named ? parked_find(client->clients, client->session.id) :
			find_evicted(client, false);
	if (found == NULL ||
	    !has_same_owner(&found->session, &client->session)) {
		client_refuse(client,
		    named ? REFUSAL_NO_WORKSPACE : REFUSAL_FULL,
		    named ? "there is no such session" :
			    "no session may be evicted yet");
		return;
	}
	if (named || evict != 0)
		client_close(found);
	client_done(client);
}

/* ---- parking and resuming ---- */

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
	struct loop *loop = client->clients->host->loop;
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
	host_schedule(client->clients->host, 0);
}

/* The session gets the connection of the client that has waited for it, which
 * is freed. */
static void
parked_lend(struct client *session, struct client *waiting)
{
	struct frame frame;

	loop_remove(session->clients->host->loop, session->session.cell_fd);
	client_move(waiting, session);
	session->state = CLIENT_WANTS_LEASE;
	parked_set_timer(session);
	frame_start(&frame, FRAME_GRANTED);
	frame_add_text(&frame, TAG_CELL_NAME, session->ticket.container->name);
	if (!client_send(session, &frame, session->session.cell_fd))
		parked_park(session); /* the client has given up */
}

/* Does an earlier client wait for the same session? */
static bool
is_second(const struct client *waiting)
{
	const struct client *other;

	TAILQ_FOREACH(other, &waiting->clients->asking, turn) {
		if (other == waiting)
			return false;
		if (other->state == CLIENT_RESUMES &&
		    strcmp(other->session.id, waiting->session.id) == 0)
			return true;
	}
	return false;
}

/* One client may wait for a session that is in use.  A waiting client occupies
 * a process of il-api; with more of them the commands of one session could make
 * all others wait. */
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

void
request_resume(struct client *client, const struct frame_view *view)
{
	if (!parked_read_id(&client->session, view) ||
	    !parked_read_owner(&client->session, view)) {
		client_refuse(client, REFUSAL_INPUT, "a malformed RESUME");
		return;
	}
	client->state = CLIENT_RESUMES;
	TAILQ_INSERT_TAIL(&client->clients->asking, client, turn);
	host_schedule(client->clients->host, 0);
}
