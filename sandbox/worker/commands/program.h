/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>

#include "source.h"

struct err;
struct task;

/*
 * The program that a job is about, as Python (source.h).  False, or 1: message
 * and outcome word say why there is none.  Release the source in any case.
 */

/* The code in the text of a message and in its files, which are fetched.
 * view_id: if the message is an answer of ours, that of its run, whose code
 * goes before all that the message shows; 0: it is none.  If that run was of a
 * file, the source is empty and the job's path is the file's. */
int program_find(struct task *task, int64_t view_id, struct source *source,
    struct err *err);
/* The code of the option, of the editor or of the uploaded file. */
bool program_read(struct task *task, struct source *source);
/* Run it, or the file of the job's path, as `/il py` does, and say what was
 * left out. */
int program_run(struct task *task, struct source *source, struct err *err);

#endif
