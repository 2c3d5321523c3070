/* SPDX-License-Identifier: MIT */
#ifndef POOL_H
#define POOL_H

#include <sys/queue.h>

#include "broker/cell_metrics.h"
#include "broker/container.h"
#include "broker/notes.h"

struct client;

/* Somebody who wants a cell.  The owner's, who fills in the first part. */
struct ticket {
	const struct cell_class *class;
	char sandbox[33]; /* "" for a class in memory */
	struct image_entry interpreter;
	bool any_interpreter;		/* of a cell that is there */
	char packages[VOLUME_NAME_MAX]; /* of a sandbox, for the interpreter */
	int64_t lease_ms;
	enum access access;	       /* for a sandbox */
	bool keep, apart;	       /* an interpreter may be kept */
	uint32_t imports;	       /* its run's: base/preload.h */
	char folder[CLASS_FOLDER_MAX]; /* its run writes to; "": any */
	struct client *client;

	TAILQ_ENTRY(ticket) link;
	struct container *container; /* granted */
	bool waiting, cold, as_ever; /* the last: wants no spare cell */
	int64_t since_ms;
	enum refusal refusal; /* decided at once, told from the loop */
};

/* A workspace that is being removed: its folder has been renamed to retired. */
struct removal {
	TAILQ_ENTRY(removal) link;
	char sandbox[33];
	char retired[64];
	unsigned int number;   /* containers up to this one must be gone */
	struct client *client; /* who asked; NULL: hung up */
};

struct pool {
	struct host *host;
	TAILQ_HEAD(container_list, container) containers;
	struct container_list mounters; /* also those that are ending */
	bool unmountable;	  /* by them, for this life of the broker's */
	struct pause mount_pause; /* after failures of theirs */
	TAILQ_HEAD(ticket_list, ticket) tickets;
	TAILQ_HEAD(removal_list, removal) removals;
	size_t waiting;
	char python[32];
	int64_t isolation; /* what the last api cell said; 0: none has */
	char isolation_reason[128];
	int64_t warm_not_ms; /* a start failed: keep none warm before this */
	struct pause pause;  /* after failed starts */
	int64_t came_up_ms;  /* monotonic: when the newest cell did */
	struct kept_notes kept;
	struct preload preload;
	struct cell_metrics metrics;
};

/* ---- for those who ask ---- */

void pool_init(struct pool *pool, struct host *host);
void pool_release(struct pool *pool);
/* Either ticket_granted() or ticket_refuse() answers, never from within. */
void pool_request(struct pool *pool, struct ticket *ticket);
/* The owner does not want it any more: out of the queue, or the lease ends. */
void pool_withdraw(struct pool *pool, struct ticket *ticket);
/* End the cells that use it, delete it, call removal_done(). */
void pool_remove(struct pool *pool, struct removal *removal);
/* Tell what became of the containers, then begin what can be begun. */
void pool_look(struct pool *pool);
/* End what is idle or starting, or with leases all; those of a lasting class
 * are not waited for.  False: there is nothing more to wait for. */
bool pool_end(struct pool *pool, bool leases);

/* ---- what they do (client.c) ---- */

/* The ticket may be freed in each of these. */
void ticket_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access);
/* Out of the queue, with a word. */
void ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text);
/* After it was granted: the cell has ended by itself. */
void ticket_lost(struct ticket *ticket, bool out_of_memory);
/* trouble: NULL, or why its files are still there. */
void removal_done(struct removal *removal, const char *trouble);

/* ---- between pool.c, scheduler.c and space.c ---- */

/* The time that a leased sandbox is waited for: it may just be coming back. */
#define POOL_BUSY_MS 1000

/* The places of a budget. */
struct pool_places {
	int64_t taken;
	int64_t leased, ending; /* of those; on their way out */
	bool full;		/* nothing more to be had at the moment */
};

struct pool_count {
	int64_t cells; /* all that exist, ending ones included */
	int64_t leased, starting;
	int64_t runs;		/* docker run is going on */
	int64_t runs_in_memory; /* of those */
	struct pool_places places[BUDGETS];
};

void pool_count(const struct pool *pool, struct pool_count *count);
/* The ticket has its answer, or wants none any more, which is counted. */
void ticket_leave_queue(struct pool *pool, struct ticket *ticket,
    enum lease_way way);
/* The container of a ticket's sandbox, of which there is at most one (one that
 * is gone counts until it was settled: its failure has to be told before there
 * is another try); for a class in memory one that serves it now. */
struct container *pool_container_of(const struct pool *pool,
    const struct ticket *ticket);
/* Of the same class and sandbox, for the same interpreter, and apart. */
bool pool_matches(const struct container *c, const struct ticket *ticket);
/* It could be leased to the ticket now. */
bool pool_serves(const struct container *c, const struct ticket *ticket);

enum admission {
	ADMIT,		 /* now */
	ADMIT_OTHERWISE, /* by a container that is mounted the other way */
	ADMIT_LATER,	 /* cells that were idle are ending: ask again */
	ADMIT_NEVER,	 /* the disk is too full for what it wants */
};

/* Admission to an idle container of the ticket's sandbox: *granted is what it
 * may do there, and the room for that is reserved. */
enum admission admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted);
/* Admission to a container that has yet to be started: how is its volume
 * mounted, and does it grow? */
enum admission admission_to_new(struct pool *pool, const struct ticket *ticket,
    bool *writable, bool *grows);

/* Serve those who wait, see to what stays warm, call docker run. */
void scheduler_run(struct pool *pool);
/* A lease is asked for: the modules that its run imports may come to be wanted.
 */
void warm_note(struct pool *pool, const struct ticket *ticket);
/* The modules that a cell started for this ticket imports: none where somebody
 * waits for it and another cell that has them is kept ready. */
uint32_t warm_imports(const struct pool *pool, const struct ticket *ticket);

#endif
