/* SPDX-License-Identifier: MIT */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <sys/queue.h>

#include "base/config_images.h"
#include "broker/class.h"
#include "broker/host.h"
#include "broker/subprocess.h"
#include "broker/volume.h"
#include "broker/workspace.h"
#include "protocol/frame.h"

struct pool;
struct reservation;
struct ticket;

/*
 * One container, from its first thought to its last trace.  It is a state
 * machine on the event loop; the pool, whose it is, looks at its state after
 * each change.
 *
 *	PREPARING ─ volumes locked and attached ─▶ PREPARED ─ container_run() ─▶
 *	STARTING ─ READY ─▶ IDLE ◀─▶ LEASED ─▶ RELEASING ─ IDLE ─▶ IDLE
 *	any ─ container_end() or a fault ─▶ ENDING ─ the process is dead ─▶ GONE
 */
enum container_state {
	CONTAINER_PREPARING,
	CONTAINER_PREPARED,
	CONTAINER_STARTING,
	CONTAINER_IDLE,
	CONTAINER_LEASED,
	CONTAINER_RELEASING,
	CONTAINER_ENDING,
	CONTAINER_GONE,
};

struct container {
	TAILQ_ENTRY(container) link;
	struct host *host;
	const struct cell_class *class;
	char sandbox[33];
	char name[64];
	struct image_entry interpreter;
	char packages[VOLUME_NAME_MAX]; /* of a sandbox, for that */
	uint32_t uid, owner;	  /* who code runs as; whose files it mounts */
	uint32_t imports, absent; /* modules, and of those: not to be had */
	bool spare, adopting, adopted; /* prepare.c */
	bool derived, promised; /* has byte code; the pool's: somebody waits */
	char python[32];	/* as it said itself, "" before */
	int64_t isolation; /* likewise: enum isolation, 0 where it is none */
	char isolation_reason[128]; /* why no more, as the cell says */
	int64_t runs;		    /* leases that are over */
	bool retire, masked; /* nobody is to get it again; docker_run.c */
	bool keep, kept; /* an interpreter may stay in it, and has: notes.h */
	enum kept_end kept_end; /* why that ends with it; 0: it has died */
	enum container_state state;
	int64_t since_ms, run_ms; /* the state began; docker run did */
	struct ticket *ticket;	  /* whose lease it is; kept by the pool */
	enum access access;	  /* of that lease, or of the last */
	bool called;		  /* docker run was begun: there may be one */
	bool idle_told;		  /* IDLE came before we knew of the end */
	bool repaired, told, came_up; /* the last two are kept by the pool: its
				       * failure told, its start noted */
	unsigned int number;	      /* of all containers of this life */
	enum refusal failure;	      /* why it did not start; 0: it did */
	char failure_text[200];
	bool writable; /* the first volume; a cell may read the other */
	struct reservation *reserved[CLASS_VOLUMES];
	struct attachment volumes[CLASS_VOLUMES]; /* not there: empty */
	struct attachment api_packages;		  /* a copy: api_packages.h */
	struct container *mounter;		  /* a spare one's: prepare.c */
	struct container *cell; /* a mounter's; NULL: not any more */
	struct lock_wait wait;	/* for an older holder of the next one */
	size_t volume_next;
	int listen_fd, control_fd;
	int pidfd;	    /* of its first process; -1: not known */
	int ooms_fd;	    /* counts kills for want of memory; -1: not known */
	int64_t ooms;	    /* before the lease */
	bool out_of_memory; /* that ended it in a lease */
	struct subprocess run, remove;
	struct subprocess tool;	  /* docker wait, docker import, e2fsck */
	struct loop_timer *timer; /* what the state waits for at most */
	struct loop_timer *watch; /* when to ask whether it died at start */
};

/* ---- for the pool and those around it ---- */

/* Begin one more, for the class, sandbox and interpreter of the ticket.
 * writable: it mounts what its class writes to for writing; grows: room for
 * that is reserved.  The first state, PREPARING, may fail at once. */
void container_new(struct pool *pool, const struct ticket *ticket,
    bool writable, bool grows);
/* Frees all; whatever it still holds is let go. */
void container_free(struct container *c);
/* PREPARED → STARTING. */
void container_run(struct container *c);
/* IDLE → LEASED, to do what access says; keep: its interpreter may stay.  The
 * client's end of the lease, or -1 (and the cell ends). */
int container_lease(struct container *c, int64_t lease_ms, enum access access,
    bool keep, const char *folder);
/* Does a run of a person's go on in it, or may one at any moment? */
bool container_is_running(const struct container *c);
/* The client's end of a socket into such a cell, to look beside its run; -1:
 * there is none. */
int container_look(struct container *c);
/* The client is gone: LEASED → RELEASING or IDLE. */
void container_release(struct container *c);
/* End it from any state; kill: do not even ask it to go by itself. */
void container_end(struct container *c, bool kill);

/* ---- container.c, for prepare.c ---- */

void container_set(struct container *c, enum container_state state);
/* Replace the timer of the state; ms < 0: none. */
void container_timer(struct container *c, int64_t ms, void (*fn)(void *));
/* It did not start: why, for the one who waits for it; then it ends. */
void container_fail(struct container *c, enum refusal failure,
    const char *text);
/* A new container that holds nothing yet. */
struct container *container_alloc(struct host *host,
    const struct cell_class *class);
/* The cell is up, or back from a lease: it becomes IDLE, unless nobody may get
 * it again. */
void container_idle(struct container *c);
/* This try to start it is over: the next one has another name. */
void container_undo_run(struct container *c);
/* The volumes are mounted now, or never will be. */
void container_release_volumes(struct container *c);

/* ---- prepare.c, for the others ---- */

/* PREPARING → PREPARED, once more. */
void prepare_begin(struct container *c);
/* A spare cell becomes the ticket's sandbox's; as container_new(). */
void spare_adopt(struct container *c, const struct ticket *ticket,
    bool writable, bool grows);
/* The adopted cell is PREPARED: have its volumes mounted. */
void spare_run(struct container *c);
/* Act on what became of a mounter; it may be freed. */
void mounter_settle(struct container *m);
/* The cell needs its mounter no more, if it has one. */
void mounter_end(struct container *c);
/* The mounter's image is not there: make it, and start the mounter anew. */
void mounter_import(struct container *m);
/* No process of a container is known here, so nobody mounts. */
void mounter_forbid(struct container *m);
/* Act on what the mounter says.  False: that breaks the protocol. */
bool mounter_take(struct container *m, const struct frame_view *view);

#endif
