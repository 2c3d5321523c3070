/* SPDX-License-Identifier: MIT */
#ifndef POOL_H
#define POOL_H

#include <sys/queue.h>

#include "broker/cell_metrics.h"
#include "broker/container.h"
#include "broker/notes.h"

struct client;

/* Request for a cell.  The client owns it and fills in the first part. */
struct ticket {
	const struct cell_class *class;
	char sandbox[33]; /* "" for a class in memory */
	struct image_entry interpreter;
	bool any_interpreter;		/* any will do where there is a cell */
	char packages[VOLUME_NAME_MAX]; /* file name of the packages */
	int64_t lease_ms;
	enum access access; /* to a sandbox */
	bool keep_session,
	    no_imports;	  /* wants a session; wants no preloaded modules */
	uint32_t imports; /* of its run: base/preload.h */
	char folder[CLASS_FOLDER_MAX]; /* where its run writes; "": any */
	struct client *client;

	TAILQ_ENTRY(ticket) link;
	struct container *container;	/* of the lease; NULL: none */
	bool waiting, cold, no_standby; /* the last: no standby cell */
	int64_t since_ms;
	enum refusal refusal; /* decided at once, sent from the loop */
};

/* Removal of a workspace, whose folder has been renamed to `retired`. */
struct removal {
	TAILQ_ENTRY(removal) link;
	char sandbox[33];
	char retired[64];
	unsigned int number;   /* wait for containers up to this number */
	struct client *client; /* NULL: hung up */
};

struct pool {
	struct host *host;
	TAILQ_HEAD(container_list, container) containers;
	struct container_list mounters; /* ending ones included */
	bool unmountable;		/* mounters cannot work on this host */
	struct pause mount_pause;	/* after failures of mounters */
	TAILQ_HEAD(ticket_list, ticket) tickets;
	TAILQ_HEAD(removal_list, removal) removals;
	size_t waiting;
	char python[32];
	int64_t isolation; /* from the last API cell; 0: none yet */
	char isolation_reason[128];
	int64_t warm_not_ms; /* no warm cell is started before */
	struct pause pause;  /* after failed starts */
	int64_t came_up_ms;  /* monotonic: last successful start */
	struct session_notes sessions;
	struct preload preload;
	struct cell_metrics metrics;
};

/* ---- for clients ---- */

void pool_init(struct pool *pool, struct host *host);
void pool_release(struct pool *pool);
/* Queue the ticket. ticket_granted() or ticket_refuse() answers later, from the
 * loop. */
void pool_request(struct pool *pool, struct ticket *ticket);
/* Take the ticket out of the queue, or end its lease. */
void pool_withdraw(struct pool *pool, struct ticket *ticket);
/* End the cells of the sandbox, delete its files, call removal_done(). */
void pool_remove(struct pool *pool, struct removal *removal);
/* Act on the state of each container, then schedule. */
void pool_pass(struct pool *pool);
/* End idle and starting cells; leases: all cells.  False: nothing is left to
 * wait for.  Leases of a lasting class are not waited for. */
bool pool_end(struct pool *pool, bool leases);

/* ---- answers (client.c) ---- */

/* Each of these may free the ticket. */
void ticket_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access);
/* Refuse the ticket, with a text. */
void ticket_refuse(struct pool *pool, struct ticket *ticket, enum refusal code,
    const char *text);
/* The cell of a granted ticket has ended by itself. */
void ticket_lost(struct ticket *ticket, bool out_of_memory);
/* trouble: NULL, or why the files are still there. */
void removal_done(struct removal *removal, const char *trouble);

/* ---- between pool.c, scheduler.c and space.c ---- */

/* A request waits that long for a leased sandbox, which may just be coming
 * back. */
#define POOL_BUSY_MS 1000

/* Slots of a budget. */
struct pool_slots {
	int64_t taken;
	int64_t leased, ending; /* parts of `taken` */
	bool full;		/* no slot comes free at the moment */
};

struct pool_count {
	int64_t cells; /* all, ending ones included */
	int64_t leased, starting;
	int64_t runs;		/* docker run is running */
	int64_t runs_in_memory; /* of those */
	struct pool_slots slots[BUDGETS];
};

void pool_count(const struct pool *pool, struct pool_count *count);
/* The ticket has its answer, or needs none: count it and take it out of the
 * queue. */
void ticket_leave_queue(struct pool *pool, struct ticket *ticket,
    enum lease_way way);
/* Find the container of the ticket's sandbox: there is one at most.  (A
 * container that is gone counts until it was settled, since its failure is
 * reported before another try.) For a class in memory, find the best one that
 * can serve the ticket now. */
struct container *pool_container_of(const struct pool *pool,
    const struct ticket *ticket);
/* Are class, sandbox and interpreter the ticket's, and do the imports suit it?
 */
bool pool_matches(const struct container *c, const struct ticket *ticket);
/* Could it be leased to the ticket now? */
bool pool_serves(const struct container *c, const struct ticket *ticket);

enum admission {
	ADMIT,		 /* now */
	ADMIT_OTHERWISE, /* by a container with the other mount option */
	ADMIT_LATER,	 /* idle cells are ending: ask again */
	ADMIT_NEVER,	 /* the disk is too full */
};

/* Admit the ticket to an idle container of its sandbox. *granted: the access
 * that it gets; the space for that is reserved. */
enum admission admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted);
/* Admit the ticket to a container that has yet to be started. *writable,
 * *grows: how its volume is to be mounted. */
enum admission admission_to_new(struct pool *pool, const struct ticket *ticket,
    bool *writable, bool *grows);

/* Serve waiting tickets, trim and refill warm cells, call docker run. */
void scheduler_run(struct pool *pool);
/* A lease was requested: note the modules that its run imports. */
void warm_note(struct pool *pool, const struct ticket *ticket);
/* Modules that a cell started for this ticket shall import: none where a client
 * waits for it and another cell that has them is kept ready. */
uint32_t warm_imports(const struct pool *pool, const struct ticket *ticket);

#endif
