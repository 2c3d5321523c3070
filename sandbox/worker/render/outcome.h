/* SPDX-License-Identifier: MIT */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdbool.h>

#include "../../protocol/conversation.h"

/* What came of a request to a cell: an expected outcome, not an error.  The
 * first ones are ends of a conversation. */
enum run_end {
	RUN_RESULT = CONVERSATION_RESULT,   /* the cell answered: result */
	RUN_BROKEN = CONVERSATION_LOST,	    /* it died or broke the protocol */
	RUN_OVERDUE = CONVERSATION_OVERDUE, /* and the cell was ended */
	/* this worker has to end, and could not wait longer */
	RUN_STOPPED = CONVERSATION_STOPPED,
	RUN_REFUSED,   /* there was no cell: refusal */
	RUN_TOO_LATE,  /* the token would have died before the end: not begun */
	RUN_TAKEN,     /* the job is not ours any more: say nothing */
	RUN_CANCELLED, /* its owner did not want it any more: not begun */
};

struct run_outcome {
	enum run_end end;
	enum refusal refusal;
	bool read_only; /* the disk had no room for what it could write */
	bool beside;	/* in the cell of another run, which may end at once */
	bool cancelled; /* by its owner, while it ran */
	struct cell_result result;
};

/* Did the operation succeed, or the program exit with status 0? */
static inline bool
outcome_succeeded(const struct run_outcome *outcome)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_EXIT &&
	    outcome->result.status == 0;
}

/* Did it begin, however it ended?  What was broken off has output and effects.
 */
static inline bool
outcome_began(const struct run_outcome *outcome)
{
	return outcome->end == RUN_RESULT ?
	    outcome->result.reason != REASON_ERROR :
	    outcome->end < RUN_REFUSED;
}

/* Did the operation fail with this error? */
static inline bool
outcome_failed_with(const struct run_outcome *outcome, enum cell_error error)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_ERROR &&
	    outcome->result.error == error;
}

#endif
