/* SPDX-License-Identifier: MIT */
#ifndef PY_VIEW_H
#define PY_VIEW_H

#include <stdbool.h>

#include "../../store/view.h"

struct cell_request;
struct err;
struct task;

/* What is kept of a run for the buttons under its answer. */

/* The job becomes the run that the view is about; what the job itself says goes
 * before it.  1: the message says that it is not kept any more. */
int py_view_again(struct task *task, struct err *err);
/* The run is over: keep it, anew or in the view of the run before it, and put
 * the buttons under its answer.  Where it cannot be kept there are none. */
void py_view_keep(struct task *task, const struct cell_request *request,
    bool again);
/* Open an editor that is sent back with this id, filled: with the code and what
 * it reads, or without code (NULL) with that alone, which must be given then.
 */
int py_view_editor(struct task *task, const char *custom_id, const char *code,
    const char *input, struct err *err);
/* The buttons of the job's own view, where it could not be run again. */
void py_view_offer(struct task *task);

#endif
