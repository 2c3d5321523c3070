#ifndef CLIENT_H
#define CLIENT_H

#include <stddef.h>
#include <sys/queue.h>

#include "creation.h"
#include "engine.h"
#include "pool.h"

/*
 * Those who ask the broker.  Each connection asks one thing: a lease, which
 * lasts until it hangs up, or a command, after whose answer we hang up.
 */
struct client;

LIST_HEAD(client_list, client);
TAILQ_HEAD(client_queue, client);

struct clients {
	struct loop *loop;
	const struct config *config;
	struct engine *engine;
	struct pool *pool;
	int base;
	int listener; /* -1: closed */
	bool paused;  /* as many as we take; the others wait to be accepted */
	struct loop_timer *resume;
	size_t count;
	size_t max;
	struct client_list all;
	struct client_queue creating; /* waiting for their turn to create */
	size_t creations;
};

/* The rest of *clients is filled in by the caller. */
void clients_open(struct clients *clients);
/* Hang up on everybody, accept no one. */
void clients_close(struct clients *clients);
/* The engine's state is known anew. */
void clients_engine_changed(struct clients *clients);

#endif
