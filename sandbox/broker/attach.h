/* SPDX-License-Identifier: MIT */
#ifndef ATTACH_H
#define ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "subprocess.h"

struct container;
struct err;
struct pool;

/*
 * A container of ours that mounts volumes in cells which are up already
 * (sandbox/cell/python/attach.py): the broker itself may not mount, and the
 * engine mounts only at a start.  It is there while there are spare cells
 * (spare.h), has the rights to mount and nothing else, and ends with us.  Where
 * the host does not let it do that, there are no spare cells.
 */
struct attach {
	struct host *host;
	char name[64];
	char old[64]; /* the one before, until it is gone; "" */
	bool called;  /* docker run was begun: there may be one */
	struct subprocess run, remove;
	int listen_fd, control_fd;
	bool ready;
	bool given_up;	   /* for this life of the broker's */
	int failures;	   /* in a row, of the host's */
	int64_t failed_ms; /* the last of them */
	int64_t next_ms;   /* not to be started before */
	struct loop_timer *timer;
};

void attach_init(struct attach *a, struct host *host);
/* It ends by itself then. */
void attach_release(struct attach *a);
/* Is it ready?  If not, it is started, unless that was in vain. */
bool attach_ready(struct attach *a);

/* Mount the volumes of this one, which are attached to their devices.  One of
 * the two below answers. */
int attach_send(struct attach *a, struct container *c, struct err *err);
/* It does not do its work: it ends, and after a while another one is
 * started. */
void attach_fail(struct attach *a, const char *what);

/* Begins a new argv: docker run for it (docker_run.c). */
void docker_run_attach_argv(struct argv *argv, const struct host *host,
    const char *name, const char *image);

/* ---- what becomes of it (spare.c) ---- */

/* It is done, in the container of that number; trouble: or why not.  False:
 * nothing waits for it any more. */
bool attach_done(struct pool *pool, int64_t number, const char *trouble);
/* Nobody can mount any more. */
void attach_lost(struct pool *pool);

#endif
