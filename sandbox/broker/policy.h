/* SPDX-License-Identifier: MIT */
#ifndef POLICY_H
#define POLICY_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/config.h"
#include "broker/container.h"

struct client;

/* Request for a cell.  The client owns it and fills in the first part. */
struct ticket {
	const struct cell_class *class;
	char sandbox[33]; /* "" for a class in memory */
	struct image_entry interpreter;
	bool any_interpreter;		/* any will do where there is a cell */
	char packages[VOLUME_NAME_MAX]; /* file name of the packages */
	int64_t lease_ms;
	enum access access;	       /* to a sandbox */
	bool keep_session;	       /* its interpreter may stay */
	bool no_imports;	       /* preloaded modules would do harm */
	uint32_t imports;	       /* of its run: base/config.h */
	char folder[CLASS_FOLDER_MAX]; /* where its run writes; "": any */
	struct client *client;	       /* NULL: none waits for it */

	TAILQ_ENTRY(ticket) link;
	struct container *container; /* of the lease; NULL: none */
	bool waiting, cold, no_standby;
	int64_t since_ms;
};

/* End of a sandbox's session.  A sandbox without a note had no session in this
 * life of the broker. */
struct session_note {
	char sandbox[33];
	enum kept_end why;
};
#define SESSION_NOTES 10000 /* 400 KiB; beyond, the oldest goes */

/* Modules that a warm cell shall have imported: all that IL_PRELOAD names, or
 * with "auto" those of two leases within IL_TUNE_WARM_SECONDS.  Masks are those
 * of base/config.h.  Times are monotonic, 0: never. */
struct preload {
	int64_t asked_ms[PRELOAD_BITS][2]; /* the last two times */
	int64_t absent_ms[PRELOAD_BITS];   /* end of "not in the image" */
};

struct pool {
	struct host *host;
	struct cells *cells;
	TAILQ_HEAD(ticket_list, ticket) tickets;
	size_t waiting;
	char python[32];
	int64_t isolation; /* from the last API cell; 0: none yet */
	char isolation_reason[128];
	int64_t warm_not_ms;	    /* no warm cell is started before */
	struct pause pause;	    /* after failed starts */
	int64_t came_up_ms;	    /* monotonic: last successful start */
	struct session_note *notes; /* a ring */
	size_t note_next;
	struct preload preload;
	struct counters *counters;
};

/* ---- policy.c ---- */

void policy_init(struct pool *pool, struct host *host);
void policy_release(struct pool *pool);
/* Queue the ticket; the answer comes later, from the loop.
 * REFUSAL_NO_WORKSPACE and REFUSAL_FULL: it is not queued. */
enum refusal policy_request(struct pool *pool, struct ticket *ticket);
/* Take the ticket out of the queue, or end its lease. */
void policy_withdraw(struct pool *pool, struct ticket *ticket);
/* The sandbox is removed: end its cells, and forget its session. */
void policy_end_sandbox(struct pool *pool, const char *sandbox);
/* Act on the state of each container, then serve tickets. */
void policy_pass(struct pool *pool);
/* End idle and starting cells; leases: all cells.  False: nothing is left to
 * wait for, except leases of a lasting class. */
bool policy_end(struct pool *pool, bool leases);

/* ---- answers, which are the clients' (client.c, requests.c) ---- */

/* The ticket has a cell: its name, the client's end of the lease. */
void ticket_granted(struct ticket *ticket, const char *cell, int client_end,
    enum access access);
/* The cell of a granted ticket has ended by itself.  The ticket is freed. */
void ticket_lost(struct ticket *ticket, bool out_of_memory);
/* The ticket's client is refused and freed. */
void client_refuse(struct client *client, enum refusal code, const char *text);
/* Evict a session at rest for that ticket's, which has the same owner.  False:
 * there is none. */
bool parked_evict(struct ticket *ticket);

/* ---- pool.c ---- */

/* Wait for a leased sandbox, which may just be coming back. */
#define POOL_BUSY_MS 1000
/* Limit of concurrent docker run: more would only slow down each. */
#define POOL_RUNS_MAX 2

/* Slots of a budget. */
struct pool_slots {
	int64_t taken;
	int64_t leased, ending; /* parts of `taken` */
	bool full;		/* no slot comes free at the moment */
};

struct pool_count {
	int64_t cells; /* all, ending ones included */
	int64_t leased, starting;
	int64_t runs, runs_in_memory; /* docker run is running */
	struct pool_slots slots[BUDGETS];
};

void pool_count(const struct pool *pool, struct pool_count *count);
/* Find the one container of the sandbox, which counts until its end was
 * settled; NULL: there is none. */
struct container *pool_cell_of(const struct pool *pool, const char *sandbox);
/* Find the container of the ticket's sandbox; for a class in memory the best
 * that can serve the ticket now. */
struct container *pool_container_of(const struct pool *pool,
    const struct ticket *ticket);
/* Are class, sandbox and interpreter the ticket's, and do the imports suit? */
bool pool_matches(const struct container *c, const struct ticket *ticket);
/* Could it be leased to the ticket now? */
bool pool_serves(const struct container *c, const struct ticket *ticket);
/* Is the cell starting, or coming back from a lease for the next one? */
bool pool_is_coming(const struct container *c);
/* The idle cell of the budget, or of its sessions, that is evicted first. */
struct container *pool_oldest_idle(const struct pool *pool,
    enum cell_budget budget, bool session);

/* End an idle cell; why: for its session, if it has one. */
void cell_end_idle(struct container *c, enum kept_end why);
/* A cell is ending: note the end of its session, once. */
void session_note_end(struct pool *pool, struct container *c);
/* Why did the sandbox's last session end?  The note goes. */
enum kept_end session_recall(struct pool *pool, const char *sandbox);

/* A lease was requested for a program that seems to import these. */
void preload_note(struct preload *p, uint32_t mask, int64_t now_ms);
/* A cell could not import these modules: try again after ten minutes. */
void preload_note_absent(struct preload *p, uint32_t mask, int64_t now_ms);
uint32_t preload_wanted(const struct preload *p, const struct config *config,
    int64_t now_ms);

enum admission {
	ADMIT,		 /* now */
	ADMIT_OTHERWISE, /* by a container with the other mount option */
	ADMIT_LATER,	 /* idle cells are ending: ask again */
	ADMIT_NEVER,	 /* the disk is too full */
};

/* Make room for the bytes on the file system of fd; since_ms: start of the
 * wait; except: NULL, or a container that stays.  Never ADMIT_OTHERWISE. */
enum admission pool_make_room(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms);
/* Admit the ticket to an idle container of its sandbox.  *granted: the access
 * that it gets; the space for that is reserved. */
enum admission admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted);
/* Admit the ticket to a new container, and set how its volume is mounted (see
 * container_new()). */
enum admission admission_to_new(struct pool *pool, const struct ticket *ticket,
    bool *writable, bool *grows);

/* A lease was requested: note the modules that its run imports. */
void warm_note(struct pool *pool, const struct ticket *ticket);
/* Modules that a cell started for this ticket shall import: none where a client
 * waits for it and another cell that has them is kept ready. */
uint32_t warm_imports(const struct pool *pool, const struct ticket *ticket);
/* End worn cells; end idle cells that do not stay; start missing ones. */
void warm_end_worn(struct pool *pool);
void warm_trim(struct pool *pool);
void warm_refill(struct pool *pool);

#endif
