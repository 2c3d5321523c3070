/* SPDX-License-Identifier: MIT */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/frame.h"

struct supervisor;

/*
 * A kept process: the process of a person's session, kept between two runs with
 * all of its memory.  Only without jails, where we are PID 1.
 *
 * When its code is over it says so (struct kept_word), and waits.  The
 * supervisor stops it then, with all of its threads, and ends every other
 * process: no process of a user's runs between two runs.  A kept process that
 * continues by itself (a timer of its own can do that) is killed, with all
 * processes that it has made since.  The code in it can forge its word, and
 * only ends its own run by that.
 *
 * A clone reads the next request, as always.  If that is a run, the clone hands
 * its source and standard streams to the kept process, and ends.
 */

struct kept_word {
	uint64_t status; /* exit status of the code */
	uint64_t names;	 /* variables */
};

/* The process of the run says that it rests: stop it, and end all others.
 * False: no process is left, as it could not be stopped, or its word was not
 * valid. */
bool kept_stop(struct supervisor *k);

/* The clone has sent its plan.  From here on the run is the kept process's, if
 * there is one; else the clone goes on by itself. */
void kept_begin(struct supervisor *k);

/* End the kept process, if there is one; why: 0 if that is not reported. */
void kept_kill(struct supervisor *k, enum kept_end why);

/* End all processes but the kept one, and reap them. */
void kept_end_others(struct supervisor *k);

/* A clone has failed with errno.  True: kept or background processes may have
 * been the reason, and have been ended.  Try again. */
bool kept_make_room(struct supervisor *k);

/* Clone a child for one task, and wait for its end, while a kept process stays
 * at rest, or is ended: 0 in the child, else 1, or -1 when it has failed.  A
 * task that waits for a client ends with the broker. */
int kept_do(struct supervisor *k);

/* base_wait(), while a kept process stays at rest, or is ended. */
void kept_wait(struct supervisor *k, int above, short events_above, int fd,
    short events);

/* Report in a result what became of the kept process. */
void kept_report(struct supervisor *k);

/*
 * Processes that a command of an API session has left in the background: they
 * live as long as the session.  Only the cell of such a session has them: there
 * we are PID 1, and the lease is the session.
 */

/* Do background processes stay after the run of state->plan? */
bool background_stays(const struct supervisor *k);

/* The command is over, by itself or by its limits (cut).  In the first case its
 * processes stay, in the second they end; processes of earlier commands stay in
 * both. */
void background_settle(struct supervisor *k, bool cut);

/* The command's output has been passed on.  From here on a process of ours
 * empties its pipes, so that its background processes can go on writing. */
void background_release(struct supervisor *k);

#endif
