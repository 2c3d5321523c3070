/* SPDX-License-Identifier: MIT */
#ifndef KEPT_H
#define KEPT_H

#include <stdbool.h>

#include "../protocol/frame.h"
#include "../store/session.h"

struct cell_request;
struct task;

/*
 * A run whose interpreter may be kept, or was: in a session each, else those
 * that say so.  What a session came to is in the database before the run as
 * "broken off", so that the next answer tells the truth whatever dies.
 */

/* Before the cell is leased: shall it be kept, and is one there? */
int kept_before(struct task *task, struct cell_request *request,
    struct session *session, struct err *err);
/* After the run: note what came of it.  Returns why there was none, though
 * there should have been; 0: nothing to tell. */
enum kept_end kept_after(struct task *task, bool keep,
    const struct session *before);

#endif
