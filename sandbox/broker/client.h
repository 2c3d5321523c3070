/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "broker/policy.h"
#include "broker/workspace.h"
#include "protocol/lease.h"

/*
 * Clients of the broker.  Each connection makes one request: a lease, which
 * lasts until the client hangs up, or a command, after whose answer the broker
 * hangs up.
 */
struct err;
struct frame;
struct frame_view;

/* Socket of one program. */
struct listener {
	struct clients *clients;
	enum program_name program;
	int fd;	     /* -1: closed */
	bool paused; /* new connections stay in the backlog */
	struct loop_timer *resume;
	size_t count;
	size_t max;
};

struct clients {
	struct host *host;
	struct listener listeners[PROGRAMS];
	TAILQ_HEAD(client_list, client) all; /* in the order of requests */
};

enum client_state {
	CLIENT_IDLE,
	CLIENT_WANTS_LEASE, /* queued or leased */
	CLIENT_PARKED,	    /* a session without a connection */
	CLIENT_RESUMES,	    /* waits for a session */
	CLIENT_ASKS_KEPT,
	CLIENT_WAITS_TO_CREATE, /* both wait for space */
	CLIENT_WAITS_TO_RESERVE,
	CLIENT_CREATES,
	CLIENT_STAGES, /* this and the next two: api_packages.c */
	CLIENT_PUBLISHES,
	CLIENT_LISTS,
	CLIENT_HAS_SPACE,
	CLIENT_REMOVES, /* to its end, even if the client hangs up */
};

/* A lease that outlives its connection, or the one that a client asks for. */
struct session {
	char id[33]; /* "": the lease is no session */
	unsigned char owner[LEASE_OWNER_LEN];
	int64_t life_ms;  /* from the first PARK on */
	int64_t rest_ms;  /* limit of the time at rest */
	bool rests;	  /* the client set that limit */
	int64_t until_ms; /* monotonic: its end; 0: it was never parked */
	int cell_fd;	  /* copy of the client's end of the lease; -1 */
};

struct client {
	TAILQ_ENTRY(client) link;
	struct host *host;
	struct clients *clients;
	struct listener *listener; /* its socket */
	enum client_state state;
	int fd;	     /* -1: it is parked, or removes and has hung up */
	int slot_fd; /* came with the request, and closes with it; -1: none */
	struct loop_timer *timer;
	struct ticket ticket; /* also the sandbox of KEPT and REMOVE */
	struct session session;
	char why[256];	 /* for a refusal: as long as err.text */
	int64_t next_ms; /* for a refusal: TAG_REST_MS; 0: none */
	struct creation creation;
	bool retire;	     /* end the session, too */
	int64_t bytes;	     /* requested */
	int64_t since_ms;    /* start of the wait; of a session's rest */
	int room_fd;	     /* descriptor: on this file system; -1: none */
	unsigned int number; /* REMOVE: the containers up to this number */
	char retired[64];    /* REMOVE: name of the sandbox's folder */
	struct reservation *reservation;
	int staged_fd;		/* volume to publish; -1 */
	struct lock_wait wait;	/* for staged_fd */
	struct subprocess tool; /* e2fsck, debugfs */
};

/* ---- client.c ---- */

/* Make the sockets, each in a folder below the state folder, which is made when
 * it is missing. */
int clients_listen(struct clients *clients, struct host *host, struct err *err);
/* Begin to accept connections. */
void clients_open(struct clients *clients);
/* Serve the waiting clients: a cell may have come back, or a session, or there
 * may be more space than before. */
void clients_pass(struct clients *clients);
/* Close all connections and sockets; removals go on. */
void clients_close(struct clients *clients);
/* Give up the removals that have not ended. */
void clients_release(struct clients *clients);

/* Is the field in the frame? */
bool client_has_field(const struct frame_view *view, enum frame_tag tag);
bool client_read_id(const struct frame_view *view, char id[33]);
/* Find the interpreter that the client names in the list; without a name, the
 * first one. */
enum refusal client_read_interpreter(struct client *client,
    const struct frame_view *view, const char *list, struct image_entry *entry);
/* Note why the request is refused; returns the code. */
enum refusal client_because(struct client *client, enum refusal code,
    const char *text);
/* Answer the client, as client_refuse() does (policy.h).  All but client_send()
 * hang up afterwards, and the client is freed; client_keep() hangs up later,
 * and the state lasts until then. */
bool client_send(const struct client *client, const struct frame *frame,
    int fd);
void client_done(struct client *client);
void client_keep(struct client *client, enum client_state state);
void client_close(struct client *client);
/* The connection becomes the other client's, which has none; `from` is freed.
 */
void client_move(struct client *from, struct client *to);

/* ---- requests.c ---- */

/*
 * The functions that serve a request return REFUSAL_NONE when the client has
 * its answer, or will get it from a later pass.  With any other code they have
 * done nothing, and the client is refused.
 */
enum refusal request_kept(struct client *client, const struct frame_view *view);
enum refusal request_remove(struct client *client,
    const struct frame_view *view);
enum refusal request_create(struct client *client,
    const struct frame_view *view);
enum refusal request_reserve(struct client *client,
    const struct frame_view *view);
enum refusal request_resume(struct client *client,
    const struct frame_view *view);
enum refusal request_end_session(struct client *client,
    const struct frame_view *view);
/* Answer a client that waits, if that can be done by now. */
void kept_answer(struct client *client);
void remove_answer(struct client *client);
void space_answer(struct client *client);
void parked_answer(struct client *client);
/* Queue the client until there is room for client->creation and these bytes. */
enum refusal space_wait_to_create(struct client *client, int64_t bytes);
/* Read the session that a LEASE names. */
enum refusal parked_read(struct client *client, const struct frame_view *view);
/* PARK: the client's lease stays without its connection. */
void parked_park(struct client *client);

/* ---- status.c ---- */

enum refusal request_cells(struct client *client,
    const struct frame_view *view);
enum refusal request_status(struct client *client,
    const struct frame_view *view);
/* host->publish */
void status_publish(void *arg);

/* ---- api_packages.c ---- */

/* Remove the leftovers of a killed installation; called at the start. */
void api_packages_sweep(int base);
/* Set the staging volume's name, for a lease of the class "install". */
void api_packages_staging(const char *interpreter, char name[VOLUME_NAME_MAX]);
enum refusal request_stage(struct client *client,
    const struct frame_view *view);
/* The client hung up: remove the staging volume that it did not publish. */
void stage_abandon(struct client *client);
enum refusal request_publish(struct client *client,
    const struct frame_view *view);
/* List names and versions of the installed packages. */
enum refusal request_packages(struct client *client,
    const struct frame_view *view);

#endif
