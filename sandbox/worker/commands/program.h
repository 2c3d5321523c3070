/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>

#include "blocks.h"

struct task;

/* The program that a job is about, as Python: the code in the text of a message
 * (blocks.h), and its files, which are fetched.  False: message and outcome
 * word say why there is none.  Release the blocks in any case. */
bool program_find(struct task *task, struct blocks *blocks);
/* The program of an uploaded file becomes the job's text. */
bool program_take_upload(struct task *task);

#endif
