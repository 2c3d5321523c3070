/* SPDX-License-Identifier: MIT */
#include "admission.h"

#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "ledger.h"
#include "pool.h"
#include "workspace.h"

/* For idle cells to end and their devices to be cleared. */
#define ROOM_WAIT_MS 5000

/* ---- room ---- */

/* What containers keep from others on a file system. */
struct held {
	int64_t yielding;	  /* those on their way out, or back */
	int64_t idle;		  /* those that could be made to go */
	struct container *oldest; /* of these, the first to go: kept.h */
};

static void
held_look(const struct pool *pool, const struct container *except, dev_t device,
    struct held *held)
{
	struct container *c;

	*held = (struct held){ .yielding = 0 };
	TAILQ_FOREACH(c, &pool->containers, link) {
		const struct reservation *r = c->reserved[0];

		if (c == except || r == NULL || !r->grows ||
		    r->device != device)
			continue;
		if (c->state == CONTAINER_RELEASING ||
		    c->state == CONTAINER_ENDING)
			held->yielding += reservation_bytes(r);
		if (c->state != CONTAINER_IDLE)
			continue;
		held->idle += reservation_bytes(r);
		if (kept_goes_before(c, held->oldest))
			held->oldest = c;
	}
}

enum admission
room_for(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms)
{
	int64_t due = since_ms + ROOM_WAIT_MS;
	struct ledger_space space;
	struct held held;
	struct err err;

	if (ledger_look(pool->host->ledger, fd, &space, &err) != 0) {
		log_err("%s", err.text);
		return ADMIT_NEVER;
	}
	if (ledger_has_room(&space, bytes))
		return ADMIT;
	held_look(pool, except, space.device, &held);
	/* Would there be room when all that can go were gone? */
	space.promised -= space.leaving + held.yielding + held.idle;
	if (clock_monotonic_ms() >= due || !ledger_has_room(&space, bytes))
		return ADMIT_NEVER;
	/* Then idle cells end, until what is on its way out is enough. */
	space.promised += held.idle;
	while (!ledger_has_room(&space, bytes) && held.oldest != NULL) {
		space.promised -= reservation_bytes(held.oldest->reserved[0]);
		log_debug("making room on the disk cell=%s", held.oldest->name);
		kept_end(held.oldest, KEPT_GAVE_WAY);
		held_look(pool, except, space.device, &held);
	}
	host_look(pool->host, due);
	return ADMIT_LATER;
}

/* ---- leases ---- */

/* Those who tidy up or look need no new blocks. */
static bool
wants_to_write(const struct ticket *ticket)
{
	return ticket->access == ACCESS_WRITE || ticket->access == ACCESS_ANY;
}

/* What the room means to somebody who wants to write: without any, some are
 * content to read. */
static enum admission
admission_by(enum admission room, const struct ticket *ticket, bool *writable)
{
	*writable = room == ADMIT;
	return room == ADMIT_NEVER && ticket->access == ACCESS_ANY ? ADMIT :
								     room;
}

/* The container is there: what may the ticket do in it, and is it mounted for
 * that? */
enum admission
admission_to(struct pool *pool, const struct ticket *ticket,
    struct container *c, enum access *granted)
{
	struct reservation *r = c->reserved[0];
	enum admission admission = ADMIT;
	bool writable = true;

	*granted = ticket->access == ACCESS_LOOK ? ACCESS_TIDY : ticket->access;
	/* without a reservation there is nothing to write to */
	if (ticket->class->in_memory || r == NULL)
		return ADMIT;
	if (wants_to_write(ticket)) {
		admission = admission_by(room_for(pool, r->fd,
					     reservation_more(r), c,
					     ticket->since_ms),
		    ticket, &writable);
		*granted = writable ? ACCESS_WRITE : ACCESS_READ;
	}
	if (admission != ADMIT)
		return admission;
	if (c->writable != writable)
		return ADMIT_OTHERWISE;
	if (*granted == ACCESS_WRITE)
		r->grows = true;
	return ADMIT;
}

/* The container is not there yet: how shall its volume be mounted? */
enum admission
admission_to_new(struct pool *pool, const struct ticket *ticket, bool *writable,
    bool *grows)
{
	enum admission admission;
	struct err err;
	auto_close int fd = -1;

	*writable = true;
	*grows = false;
	if (ticket->class->in_memory || !wants_to_write(ticket))
		return ADMIT;
	fd = workspace_volume_open(pool->host->base, ticket->sandbox,
	    class_volume(ticket->class, 0, ticket->packages), &err);
	if (fd < 0)
		return ADMIT; /* its start will say what is wrong */
	admission = admission_by(room_for(pool, fd, ledger_volume_bytes(fd),
				     NULL, ticket->since_ms),
	    ticket, writable);
	*grows = *writable;
	return admission;
}
