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

/* What it keeps from others; 0 when its volume does not grow. */
static int64_t
held_by(const struct container *c, dev_t device)
{
	const struct reservation *r = c->reserved[0];

	return r != NULL && r->grows && r->device == device ?
	    reservation_bytes(r) :
	    0;
}

/* On its way out, or back from a lease. */
static bool
is_yielding(const struct container *c)
{
	return c->state == CONTAINER_RELEASING || c->state == CONTAINER_ENDING;
}

/* The idle cell on that file system that was used least recently and whose end
 * would give room back. */
static struct container *
oldest_holder(const struct pool *pool, const struct container *except,
    dev_t device)
{
	struct container *oldest = NULL;
	struct container *c;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c != except && c->state == CONTAINER_IDLE &&
		    held_by(c, device) > 0 &&
		    (oldest == NULL || c->since_ms < oldest->since_ms))
			oldest = c;
	}
	return oldest;
}

/* What those who are yielding (or, with idle, could be made to) hold. */
static int64_t
yield(const struct pool *pool, const struct container *except, dev_t device,
    bool idle)
{
	const struct container *c;
	int64_t bytes = 0;

	TAILQ_FOREACH(c, &pool->containers, link)
	{
		if (c != except &&
		    (is_yielding(c) || (idle && c->state == CONTAINER_IDLE)))
			bytes += held_by(c, device);
	}
	return bytes;
}

/* Would there be room when what is leaving, and so much more, were gone? */
static bool
has_room_without(const struct ledger_space *space, int64_t yielded,
    int64_t bytes)
{
	struct ledger_space later = *space;

	later.promised -= later.leaving + yielded;
	return ledger_has_room(&later, bytes);
}

enum admission
room_for(struct pool *pool, int fd, int64_t bytes,
    const struct container *except, int64_t since_ms)
{
	int64_t due = since_ms + ROOM_WAIT_MS;
	struct ledger_space space;
	struct container *c;
	struct err err;

	if (ledger_look(pool->host->ledger, fd, &space, &err) != 0) {
		log_err("%s", err.text);
		return ADMIT_NEVER;
	}
	if (ledger_has_room(&space, bytes))
		return ADMIT;
	if (clock_monotonic_ms() >= due ||
	    !has_room_without(&space, yield(pool, except, space.device, true),
		bytes))
		return ADMIT_NEVER;
	/* End idle cells, until what is on its way out is enough. */
	while (!has_room_without(&space,
	    yield(pool, except, space.device, false), bytes)) {
		c = oldest_holder(pool, except, space.device);
		if (c == NULL)
			return ADMIT_NEVER;
		log_debug("making room on the disk cell=%s", c->name);
		container_end(c, false);
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

	*granted = ticket->access;
	if (ticket->class->in_memory)
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
	    class_volume(ticket->class, 0), &err);
	if (fd < 0)
		return ADMIT; /* its start will say what is wrong */
	admission = admission_by(room_for(pool, fd, ledger_volume_bytes(fd),
				     NULL, ticket->since_ms),
	    ticket, writable);
	*grows = *writable;
	return admission;
}
