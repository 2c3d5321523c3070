/* SPDX-License-Identifier: MIT */
#ifndef CANCEL_H
#define CANCEL_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;

/*
 * Cancelling a job that is not over: an empty file STATE/cancels/<job id>, made
 * by il-fcgi when its owner asks for it.  Workers watch the folder, so that the
 * one that runs the job ends it now; one that has not begun it never does.
 * Whoever ends the job removes the file.  One that nobody removed, as its job
 * was over or its worker was killed, is swept away when no job can be so old.
 */
#define CANCEL_KEEP_SECONDS 1800

/* ---- il-fcgi ---- */

/* Ask for it.  Twice is as good as once. */
int cancel_ask(const struct config *config, int64_t job_id, struct err *err);

/* ---- il-worker ---- */

/* Make the folder, if it is missing, and watch it: a descriptor that becomes
 * readable when something is asked for; -1: err says why. */
int cancel_watch(const struct config *config, struct err *err);
/* Forget what made it readable. */
void cancel_heard(int watch_fd);
/* Is this job to be cancelled? */
bool cancel_is_asked(const struct config *config, int64_t job_id);
/* It is over, cancelled or not. */
void cancel_forget(const struct config *config, int64_t job_id);
/* Remove those that nobody needs any more. */
void cancel_sweep(const struct config *config);

#endif
