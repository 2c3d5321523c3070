/* SPDX-License-Identifier: MIT */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <sys/queue.h>

#include "base/config.h"
#include "broker/class.h"
#include "broker/host.h"
#include "broker/volume.h"
#include "broker/workspace.h"
#include "protocol/frame.h"

struct reservation;
struct ticket;

/*
 * The life of one container, a state machine on the event loop.  `struct
 * cells` owns it; the pool acts on its state after each change.
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
	char
	    packages[VOLUME_NAME_MAX]; /* file name of the sandbox's packages */
	uint32_t uid, owner;	  /* of the code; of the files that it mounts */
	uint32_t imports, absent; /* modules; of those, the missing ones */
	bool standby, adopting, adopted; /* prepare.c */
	bool gives;	       /* prepare.c: the volume gets another owner */
	bool derived, claimed; /* image has byte code; policy.c's mark */
	char python[32];       /* from READY; "" before */
	int64_t isolation;     /* from READY: enum isolation; 0: unset */
	char isolation_reason[128]; /* from READY: why not more */
	int64_t runs;		    /* finished leases */
	bool retire, masked;	    /* not to be leased again; docker.c */
	bool keep_session,
	    has_session;	   /* a session may stay in it; one is in it */
	enum kept_end session_end; /* of its session; 0: it has died */
	enum container_state state;
	int64_t since_ms, run_ms; /* start of the state; of docker run */
	struct ticket *ticket;	  /* the policy's: whose lease it is */
	enum access access;	  /* of that lease, or of the last one */
	bool called;	/* docker run was begun: the engine may have it */
	bool idle_seen; /* IDLE came before the client's end was seen */
	bool repaired, reported,
	    came_up;	      /* the pool's: failure reported, start counted */
	unsigned int number;  /* serial, in this life of the broker */
	enum refusal failure; /* of the start; 0: none */
	char failure_text[200];
	bool writable; /* the first volume; the other is for reading */
	struct reservation *reserved[CLASS_VOLUMES];
	struct attachment volumes[CLASS_VOLUMES]; /* empty: no volume */
	struct attachment
	    api_packages;	   /* a copy of the device: api_packages.c */
	struct container *mounter; /* of a standby cell: prepare.c */
	struct container
	    *cell; /* of a mounter; NULL: it is not needed any more */
	struct lock_wait
	    wait; /* for the older container that has the next volume */
	size_t volume_next;
	int listen_fd, control_fd;
	int pidfd;	    /* of its first process; -1: unknown */
	int ooms_fd;	    /* counter of out-of-memory kills; -1: unknown */
	int64_t ooms;	    /* its value before the lease */
	bool out_of_memory; /* the end of its lease */
	struct subprocess run, remove;
	struct subprocess tool;	  /* docker wait, docker import, e2fsck */
	struct loop_timer *timer; /* limit of the state */
	struct loop_timer *watch; /* next check whether it died at its start */
};

/* The packages of a version for the runs of the APIs (prepare.c).  All its
 * cells mount one loop device, so that the kernel has one file system for them,
 * and one copy of what they read. */
struct api_packages_volume {
	char name[VOLUME_NAME_MAX];
	struct attachment volume;
};

/* All containers, and the devices that they share. */
struct cells {
	TAILQ_HEAD(container_list, container) all;
	struct container_list mounters; /* ending ones included */
	bool unmountable;		/* mounters cannot work on this host */
	struct pause mount_pause;	/* after failures of mounters */
	struct api_packages_volume *packages;
	size_t package_count;
};

void cells_init(struct cells *cells);
void cells_release(struct cells *cells);

/* ---- for the policy ---- */

/* Begin a container for the ticket's class, sandbox and interpreter.  writable:
 * the first volume is mounted for writing; grows: all that it may grow by is
 * reserved.  The first state, PREPARING, may fail at once. */
void container_new(struct host *host, const struct ticket *ticket,
    uint32_t imports, bool writable, bool grows);
/* Release all that the container holds, and free it. */
void container_free(struct container *c);
/* PREPARED → STARTING. */
void container_run(struct container *c);
/* IDLE → LEASED, with that access; keep_session: the interpreter may stay.
 * Returns the client's end of the lease, or -1 (and the cell ends). */
int container_lease(struct container *c, int64_t lease_ms, enum access access,
    bool keep_session, const char *folder);
/* Does a sandbox's run go on in it, or may one begin at any moment? */
bool container_is_running(const struct container *c);
/* Returns the client's end of a socket into such a cell, for read access during
 * its run; -1: failed. */
int container_open_reader(struct container *c);
/* The client has gone: LEASED → RELEASING or IDLE. */
void container_release(struct container *c);
/* End it from any state; kill: without time to exit by itself. */
void container_end(struct container *c, bool kill);

/* ---- container.c, for prepare.c ---- */

void container_set(struct container *c, enum container_state state);
/* Replace the timer of the state; ms < 0: none. */
void container_timer(struct container *c, int64_t ms, void (*fn)(void *));
/* The start failed: note why, for the waiting ticket, and end it. */
void container_fail(struct container *c, enum refusal failure,
    const char *text);
/* Make a container that holds nothing yet. */
struct container *container_alloc(struct host *host,
    const struct cell_class *class);
/* The cell is up, or back from a lease: it becomes IDLE, or ends where it may
 * not be leased again. */
void container_idle(struct container *c);
/* Undo a start that failed: the next try has another name. */
void container_undo_run(struct container *c);
/* Release the volumes: they are mounted now, or never will be. */
void container_release_volumes(struct container *c);

/* ---- prepare.c, for the others ---- */

/* PREPARING → PREPARED; also called for a second try. */
void prepare_begin(struct container *c);
/* The standby cell becomes the cell of the ticket's sandbox. */
void standby_adopt(struct container *c, const struct ticket *ticket,
    bool writable, bool grows);
/* The adopted cell is PREPARED: let its mounter mount the volumes. */
void standby_mount(struct container *c);
/* Act on a mounter's state; it may be freed. */
void mounter_settle(struct container *m);
/* End the cell's mounter, if it has one. */
void mounter_end(struct container *c);
/* The mounter's image is missing: import it and start the mounter again. */
void mounter_import(struct container *m);
/* The pids of containers are unknown here, so no mounter can work. */
void mounter_forbid(struct container *m);
/* Handle a mounter's frame.  False: the frame breaks the protocol. */
bool mounter_handle(struct container *m, const struct frame_view *view);

/* ---- packages of the APIs' runs (prepare.c) ---- */

/* Close the device of a version's older volume; cells that have mounted it, or
 * are about to, are not leased again. */
void api_packages_replace(struct host *host, const char *name);

#endif
