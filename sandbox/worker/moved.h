/* SPDX-License-Identifier: MIT */
#ifndef MOVED_H
#define MOVED_H

#include <stdbool.h>

struct err;
struct task;

/*
 * A sandbox whose host was lost (store/node.h): it has a new id and is at home
 * here, but its files are not here yet.
 */

/* Before anything is done in task->sandbox: bring what there is of its files,
 * make its workspace, and have its owner told.  Once for each move, also of two
 * jobs at a time.  1: task->run says why it cannot be used now, or the job is
 * not ours any more. */
int moved_bring(struct task *task, struct err *err);
/* Is task->sandbox at home on another host, since the job was claimed?  Then
 * the job is not ours: it is queued again, and goes there. */
bool moved_away(struct task *task);
/* The answer that says so is on its way. */
void moved_told(struct task *task);

#endif
