/* SPDX-License-Identifier: MIT */
#ifndef DELIVER_H
#define DELIVER_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct task;
struct worker;

/*
 * Delivery of answers to Discord.  An answer is stored before it is sent.  If
 * it could not be sent (Discord was away, the worker was killed), it is sent
 * from the database, as long as its token lives.  Files are not in the
 * database: they stay in memory for a while, and after a crash the answer says
 * where they are.
 */

/* Load the operator's rules for this job; their banner stands below all
 * answers. */
void deliver_read_rules(struct worker *worker, const struct job *job);

/* Finish the task's job, and deliver its answer if that is possible now.  The
 * message may move out of the task. */
void deliver_task(struct task *task);

/* Store the end of a job that could not be stored before.  False: that still
 * fails. */
bool deliver_note(struct worker *worker);

/* Deliver the waiting answers of a slot, those of interrupted jobs among them.
 * Each has one try.  After two failures the others wait for the next round,
 * which begins with them. */
void deliver_untold(struct worker *worker, int64_t slot);

void deliver_release(struct worker *worker);

#endif
