/* SPDX-License-Identifier: MIT */
#ifndef CONVERSATION_H
#define CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/cell.h"

struct err;
struct pollfd;

/*
 * One request in a leased cell, from its head to its result.  The cell keeps
 * the request's limits; here they are kept once more from outside.  A request
 * that is not over a few seconds after its limit gets no more time: the caller
 * closes the lease, and with it goes the cell.
 */

struct conversation {
	/* set by the caller; everything is borrowed */
	int cell_fd; /* of the lease, as broker_fd */
	int broker_fd;
	/* All but CELL_RESULT and CELL_QUIET; NULL: nobody wants them. */
	void (*event)(void *arg, const struct cell_event *event);
	void (*tick)(void *arg); /* NULL, or: every tick_ms while it goes on */
	int64_t tick_ms;
	int64_t tick_first_ms; /* from then on; 0: from tick_ms */
	/* NULL, or: once this happens, cancelled() empties it and says whether
	 * this run is meant.  It is ended as with `enough`, then, and the cell
	 * has at most cancel_ms left. */
	const struct pollfd *cancel;
	int64_t cancel_ms;
	bool (*cancelled)(void *arg);
	void *arg;
	int send_ms;	   /* for the request to be sent in */
	int64_t within_ms; /* from then on: its limits, all together */
	/* NULL, or: once this happens the cell has at most stop_ms left. */
	const struct pollfd *stop;
	int64_t stop_ms;
	/* NULL, or: what else is waited for, CONVERSATION_OTHERS at most, which
	 * may change in any of the functions; once one of them has happened,
	 * other() may do what the event function may. */
	const struct pollfd *others;
	size_t other_count;
	void (*other)(void *arg);
	/* set by the event function */
	bool enough;  /* the run is to end as it does at its output limit */
	bool hang_up; /* the result is not wanted any more */
	/* set by conversation_hold() */
	struct cell *cell; /* while it holds: for cell_signal() */
	bool heard;	   /* the cell has sent something */
	bool died; /* the run's memory has taken the cell with it, and the
		     * result says so */
};

#define CONVERSATION_OTHERS 2

/* Outcome of a request to a cell: an expected one, not an error.  The
 * first ones are ends of a conversation.  After all of these but RUN_RESULT,
 * and when the cell has died, the lease is of no use. */
enum run_end {
	RUN_RESULT,   /* the cell answered: enum run_reason says more */
	RUN_BROKEN,   /* the cell broke off or broke the protocol */
	RUN_OVERDUE,  /* past the limits from outside, and the cell was ended */
	RUN_STOPPED,  /* by stop or hang_up: nobody waits for it any more */
	RUN_REFUSED,  /* there was no cell: enum refusal */
	RUN_TOO_LATE, /* the token would have died before the end: not begun */
	RUN_TAKEN,    /* the job is not ours any more: say nothing */
	RUN_CANCELLED, /* its owner did not want it any more: not begun */
};

/* Send the request and take its events to the end.  err is filled, for the log,
 * when the cell has died, RUN_BROKEN and RUN_OVERDUE, and otherwise
 * untouched. */
enum run_end conversation_hold(struct conversation *c,
    const struct cell_request *request, struct cell_result *result,
    struct err *err);

#endif
