/* SPDX-License-Identifier: MIT */
#ifndef NAMING_H
#define NAMING_H

struct cell_request;
struct task;

/*
 * The names in a sandbox, for il-fcgi to suggest (store/names.h).  They are
 * asked of the cell that a command has leased, after its answer has left, and
 * only when the command may have changed them: most runs do not.
 */

/* After a request that has a result: has it changed names? */
void naming_heed(struct task *task, const struct cell_request *request);
/* Close the lease; but not yet if the cell has still to tell names. */
void naming_close(struct task *task);
/* Ask the cell for them, if it is still there, keep them, close the lease. */
void naming_keep(struct task *task);

#endif
