/* SPDX-License-Identifier: MIT */
#ifndef CONTAINER_STATE_H
#define CONTAINER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "../protocol/frame.h"
#include "attachment.h"
#include "lock_wait.h"
#include "subprocess.h"

struct cell_class;
struct config;
struct derive;
struct engine;
struct image_entry;
struct ledger;
struct loop;
struct loop_timer;
struct reservation;
struct ticket;
struct uids;

/*
 * One container, from its first thought to its last trace.  It is a state
 * machine on the event loop; whoever owns it (the pool) is told of each change
 * and looks at the state.
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

struct container_list;

/* What all containers share; borrowed by each. */
struct container_host {
	struct loop *loop;
	const struct config *config;
	struct engine *engine;
	struct derive *derive;
	const char *instance;
	const char *cells_dir; /* absolute; a folder for each socket */
	int base;	       /* descriptor of IL_BASE_DIR */
	struct ledger *ledger;
	struct uids *uids;
	const struct container_list *all; /* kept by the pool */
	int64_t started_s;		  /* wall clock: makes names unique */
	unsigned int serial;
	void (*changed)(void *arg);
	void *arg;
};

#define CONTAINER_VOLUMES 2
struct container {
	TAILQ_ENTRY(container) link;
	struct container_host *host;
	const struct cell_class *class;
	char sandbox[33];
	char name[64];
	char interpreter[33]; /* for a class in memory: its name */
	char image[1025];
	uint32_t uid;	   /* who code runs as; 0: not chosen */
	bool derived;	   /* started from what was derived from that */
	char python[32];   /* as it said itself, "" before */
	int64_t isolation; /* likewise: enum isolation, 0 where it is none */
	char isolation_reason[128]; /* why no more, as the cell says */
	int64_t runs;		    /* leases that are over */
	bool retire;		    /* it has asked to be replaced */
	bool promised; /* somebody waits for it; kept by the pool */
	enum container_state state;
	int64_t since_ms;      /* when the state began */
	struct ticket *ticket; /* whose lease it is; kept by the pool */
	bool used;	       /* has been leased before */
	bool called;	       /* docker run was begun: there may be one */
	bool idle_told;	       /* IDLE came before we knew of the end */
	bool repaired, told, came_up; /* the last two are kept by the pool: its
				       * failure told, its start noted */
	unsigned int number;	      /* of all containers of this life */
	enum refusal failure;	      /* why it did not start; 0: it did */
	char failure_text[200];
	bool writable; /* the first volume; a cell may read the other */
	struct reservation *reserved[CONTAINER_VOLUMES];
	struct attachment volumes[CONTAINER_VOLUMES];
	struct lock_wait wait; /* for an older holder of the next one */
	size_t volume_count;
	size_t volume_next;
	int listen_fd;
	int control_fd;
	int pidfd;	    /* of its first process; -1: not known */
	int ooms_fd;	    /* ooms.h; -1: not known */
	int64_t ooms;	    /* before the lease */
	bool out_of_memory; /* that ended it in a lease */
	struct subprocess run;
	struct subprocess remove;
	struct subprocess tool;	  /* docker wait, e2fsck */
	struct loop_timer *timer; /* what the state waits for at most */
	struct loop_timer *watch; /* when to ask whether it died at start */
};

TAILQ_HEAD(container_list, container);

#endif
