/* SPDX-License-Identifier: MIT */
#ifndef ATTACH_H
#define ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "host.h"
#include "pause.h"

struct container;
struct err;
struct pool;

/*
 * The containers that mount volumes in cells which are up already: the broker
 * itself may not mount, and the engine mounts only at a start.  Each spare cell
 * (spare.h) has a mounter of its own, which is there before the cell.  A
 * mounter may use the loop devices of that cell and no other, runs one program
 * of ours (../mounter/) in an image that has no other file, serves one request,
 * and ends.  Where the host does not let it do that, there are spare cells only
 * to try it again, less and less often.
 */
struct attach {
	struct host *host;
	/* also those that are ending */
	TAILQ_HEAD(mounter_list, mounter) mounters;
	bool unavailable;   /* for this life of the broker's */
	struct pause pause; /* after failures of the host's, or ours */
};

void attach_init(struct attach *a, struct host *host);
/* Mounters end by themselves after that, or the last sweep ends them. */
void attach_release(struct attach *a);
/* Are there no mounters, nor any that are ending? */
bool attach_is_idle(const struct attach *a);
/* May one more be started now? */
bool attach_may_start(struct attach *a);

/* Start the mounter of this spare cell, whose devices are known.  It is ready
 * when the cell is PREPARED; what fails ends the cell. */
void attach_start(struct attach *a, struct container *c);
/* Have it mount the volumes, which are attached to those devices.  spare_done()
 * is called with what came of it. */
int attach_send(struct container *c, struct err *err);
/* The cell's mounter does not do its work: the cell ends, and for a while none
 * is started. */
void attach_fail(struct container *c, const char *what);

/* ---- spare.c, for attach.c ---- */

/* The volumes are mounted, or trouble says why they are not. */
void spare_done(struct container *c, const char *trouble);

#endif
