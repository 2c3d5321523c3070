/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "broker/pool.h"
#include "broker/workspace.h"

/*
 * Those who ask the broker.  Each connection asks one thing: a lease, which
 * lasts until it hangs up, or a command, after whose answer we hang up.
 */
struct err;
struct frame;
struct frame_view;

/* Where one program connects. */
struct listener {
	struct clients *clients;
	enum program_name program;
	int fd;	     /* -1: closed */
	bool paused; /* those who connect wait to be accepted */
	struct loop_timer *resume;
	size_t count;
	size_t max;
};

struct clients {
	struct host *host;
	struct listener listeners[PROGRAMS];
	LIST_HEAD(client_list, client) all;
	TAILQ_HEAD(client_queue, client) waiting; /* for their turn, or space */
	struct client_queue asking;		  /* what is kept */
};

enum client_state {
	CLIENT_ASKED_NOTHING,
	CLIENT_WANTS_LEASE, /* in the queue, or leased */
	CLIENT_ASKS_KEPT,
	CLIENT_WAITS_TO_CREATE, /* these two for space */
	CLIENT_WAITS_TO_RESERVE,
	CLIENT_CREATES,
	CLIENT_STAGES, /* api_packages.h, as the next two */
	CLIENT_PUBLISHES,
	CLIENT_LISTS,
	CLIENT_HAS_SPACE,
	CLIENT_REMOVES,
};

struct client {
	LIST_ENTRY(client) link;
	TAILQ_ENTRY(client) turn; /* in one of the two queues */
	struct clients *clients;
	struct listener *listener; /* on which it came */
	enum client_state state;
	int fd;
	struct loop_timer *timer;
	struct ticket ticket;
	struct creation creation;
	bool retire;	  /* end what is kept */
	int64_t bytes;	  /* that it wants now, */
	int64_t since_ms; /* since then, */
	int place;	  /* on the file system of this descriptor */
	struct reservation *reservation;
	struct removal *removal;
	int staged_fd;		/* what it publishes; -1 */
	struct lock_wait wait;	/* for that */
	struct subprocess tool; /* e2fsck, debugfs */
};

/* Make the sockets, each in its folder below the state folder, which is made
 * when it is missing. */
int clients_listen(struct clients *clients, struct host *host, struct err *err);
/* Begin to accept. */
void clients_open(struct clients *clients);
/* Hang up on everybody, accept no one. */
void clients_close(struct clients *clients);

/* ---- between client.c, space.c and status.c ---- */

/* What it asks for; the client may be gone afterwards. */
void request_create(struct client *client, const struct frame_view *view);
/* For who copies its volumes: the idle cell of the client's sandbox ends. */
void cells_end_idle(const struct client *client);
void request_cells(struct client *client, const struct frame_view *view);
void request_reserve(struct client *client, const struct frame_view *view);
void request_status(struct client *client, const struct frame_view *view);
void request_metrics(struct client *client, const struct frame_view *view);
/* Wait for room for client->creation and so many bytes that it takes. */
void space_wait_to_create(struct client *client, int64_t bytes);
/* A cell may be back. */
void kept_look(struct clients *clients);
/* There may be more space than before. */
void space_look(struct clients *clients);

/* The interpreter of a list that a client asks for: the first where it names
 * none.  False: it is not in the list. */
bool client_names_interpreter(const struct frame_view *view, const char *list,
    struct image_entry *entry);

/* Grant the client what the state stands for, until it hangs up. */
void client_keep(struct client *client, enum client_state state);
/* Answers; the last two hang up afterwards, and the client is freed. */
bool client_send(const struct client *client, const struct frame *frame,
    int fd);
void client_refuse(struct client *client, enum refusal code, const char *text);
void client_done(struct client *client);
void client_close(struct client *client);

/* ---- api_packages.c, for client.c ---- */

/* The staging volume's name, where a lease of the class "install" needs it. */
void api_packages_staging(const char *interpreter, char name[VOLUME_NAME_MAX]);
void request_stage(struct client *client, const struct frame_view *view);
/* The client hung up: what it did not publish is removed. */
void stage_abandon(struct client *client);
void request_publish(struct client *client, const struct frame_view *view);
void publish_abandon(struct client *client);
/* The names and versions of what is installed. */
void request_packages(struct client *client, const struct frame_view *view);

#endif
