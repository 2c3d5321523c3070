/* SPDX-License-Identifier: MIT */
#ifndef DELIVER_H
#define DELIVER_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct task;
struct worker;

/*
 * Getting answers to Discord.  An answer is in the database before it is sent;
 * what could not be sent (Discord is away, this worker was killed) is sent from
 * there, as long as its token lives.  Files are not in the database: they are
 * kept in memory for a while, and after a crash the answer says where they are.
 */

/* Read what the operator has said that is about this job; its banner stands
 * below all answers. */
void deliver_read_rules(struct worker *worker, const struct job *job);

/* The task is over: finished, then delivered if that is possible now.  The
 * message may move out of the task. */
void deliver_task(struct task *task);

/* Note what is owed to the database.  False: it still fails. */
bool deliver_note(struct worker *worker);

/* Tell what `slot` left untold: interrupted jobs and answers that are waiting.
 * Each has one try.  After two that failed the others wait for the next round,
 * which begins with them. */
void deliver_untold(struct worker *worker, int64_t slot);

void deliver_release(struct worker *worker);

#endif
