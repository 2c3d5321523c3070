/* SPDX-License-Identifier: MIT */
#ifndef RESPOND_H
#define RESPOND_H

#include <stdbool.h>
#include <stdint.h>

#include "../protocol/first_response.h"

struct err;
struct task;
struct worker;

/* Give the answer of a task, whose job is noted as finished, to the front that
 * holds its interaction.  lasts: whether what was noted survives a power cut.
 * FIRST_RESPONSE_NOBODY: err says why. */
enum first_response respond_first(struct task *task, bool *lasts,
    struct err *err);
/* The latter, where nobody is responded to. */
bool respond_flush(struct worker *worker, int64_t job_id);
/* Until the first response has left for a while. */
void respond_wait_to_edit(const struct task *task);

#endif
