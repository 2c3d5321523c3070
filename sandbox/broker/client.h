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
	LIST_HEAD(client_list, client) all;
	TAILQ_HEAD(client_queue, client) waiting; /* for space */
	struct client_queue asking;		  /* KEPT and RESUME requests */
	/* Serve the request; the client may be freed. */
	void (*serve)(struct client *client, const struct frame_view *view);
	/* Undo the request that the client's state stands for. */
	void (*abandon)(struct client *client);
};

enum client_state {
	CLIENT_IDLE,
	CLIENT_WANTS_LEASE, /* queued or leased */
	CLIENT_PARKED,	    /* a session without a connection: parked.c */
	CLIENT_RESUMES,	    /* waits for a session */
	CLIENT_ASKS_KEPT,
	CLIENT_WAITS_TO_CREATE, /* both wait for space */
	CLIENT_WAITS_TO_RESERVE,
	CLIENT_CREATES,
	CLIENT_STAGES, /* this and the next two: api_packages.c */
	CLIENT_PUBLISHES,
	CLIENT_LISTS,
	CLIENT_HAS_SPACE,
	CLIENT_REMOVES,
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
	LIST_ENTRY(client) link;
	TAILQ_ENTRY(client) turn; /* in `waiting` or `asking` */
	struct clients *clients;
	struct listener *listener; /* its socket */
	enum client_state state;
	int fd;	     /* -1: it is parked */
	int slot_fd; /* came with the request, and closes with it; -1: none */
	struct loop_timer *timer;
	struct ticket ticket;
	struct session session;
	int64_t next_ms; /* for a refusal: TAG_REST_MS; 0: none */
	struct creation creation;
	bool retire;	  /* end the session, too */
	int64_t bytes;	  /* requested */
	int64_t since_ms; /* start of the wait; of a session's rest */
	int room_fd;	  /* descriptor: on this file system */
	struct reservation *reservation;
	struct removal *removal;
	int staged_fd;		/* volume to publish; -1 */
	struct lock_wait wait;	/* for staged_fd */
	struct subprocess tool; /* e2fsck, debugfs */
};

/* ---- client.c ---- */

/* Make the sockets, each in a folder below the state folder, which is made when
 * it is missing.  The caller has set serve and abandon. */
int clients_listen(struct clients *clients, struct host *host, struct err *err);
/* Begin to accept connections. */
void clients_open(struct clients *clients);
/* Close all connections and sockets. */
void clients_close(struct clients *clients);

/* The client's program, for people. */
const char *client_title(const struct client *client);
/* Find the interpreter that the client names in the list; without a name, the
 * first one.  False: it is not in the list. */
bool client_names_interpreter(const struct frame_view *view, const char *list,
    struct image_entry *entry);
/* Grant the request; the state lasts until the client hangs up. */
void client_keep(struct client *client, enum client_state state);
/* Answer the client.  All but client_send() hang up afterwards, and the client
 * is freed. */
bool client_send(const struct client *client, const struct frame *frame,
    int fd);
void client_refuse(struct client *client, enum refusal code, const char *text);
void client_done(struct client *client);
void client_close(struct client *client);
/* The connection becomes the other client's, which has none; `from` is freed.
 */
void client_move(struct client *from, struct client *to);

/* ---- requests.c ---- */

extern const struct policy_answers requests_answers;
void requests_serve(struct client *client, const struct frame_view *view);
void requests_abandon(struct client *client);
/* Answer KEPT and RESUME requests: a cell may have come back, or a session. */
void clients_answer(struct clients *clients);
/* Serve waiting clients: there may be more space than before. */
void clients_serve_space(struct clients *clients);
/* Queue the client until there is room for client->creation and these bytes. */
void space_wait_to_create(struct client *client, int64_t bytes);

/* ---- parked.c ---- */

/* Read the session that a LEASE names, if it does. */
enum refusal parked_read(struct client *client, const struct frame_view *view);
/* PARK: the client's lease stays without its connection. */
void parked_park(struct client *client);
/* The session has ended, or the client was none. */
void parked_release(struct client *client);
/* Evict a session at rest for that ticket's, which has the same owner.  False:
 * there is none. */
bool parked_evict(struct ticket *ticket);
void request_resume(struct client *client, const struct frame_view *view);
void request_end_session(struct client *client, const struct frame_view *view);
/* Answer RESUME: the session may have been parked, or have ended. */
void parked_answer(struct client *client);

/* ---- status.c ---- */

void request_cells(struct client *client, const struct frame_view *view);
void request_status(struct client *client, const struct frame_view *view);
/* host->publish */
void status_publish(void *arg);

/* ---- api_packages.c ---- */

/* Remove the leftovers of a killed installation; called at the start. */
void api_packages_sweep(int base);
/* Set the staging volume's name, for a lease of the class "install". */
void api_packages_staging(const char *interpreter, char name[VOLUME_NAME_MAX]);
void request_stage(struct client *client, const struct frame_view *view);
/* The client hung up: remove the staging volume that it did not publish. */
void stage_abandon(struct client *client);
void request_publish(struct client *client, const struct frame_view *view);
void publish_abandon(struct client *client);
/* List names and versions of the installed packages. */
void request_packages(struct client *client, const struct frame_view *view);

#endif
