/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>

#include "source.h"

struct err;
struct task;

/*
 * The program that a job is about, as Python (source.h).  False: message and
 * outcome word say why there is none.  Release the source in any case.
 */

/* The code in the text of a message and in its files, which are fetched. */
bool program_find(struct task *task, struct source *source);
/* The code of the option, of the editor or of the uploaded file. */
bool program_take(struct task *task, struct source *source);
/* Run it, as `/il py` does, and say what was left out. */
int program_run(struct task *task, struct source *source, struct err *err);

#endif
