#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "../store/job.h"
#include "../store/sandbox.h"
#include "render/message.h"

struct worker;

/*
 * A job while it is being done.  A command fills the message and the outcome
 * word; how it gets to Discord is not its concern.
 */
struct task {
	struct worker *worker;
	struct job *job;
	struct sandbox sandbox; /* for kinds that need one: it is active */
	struct message message;
	char outcome[48]; /* for statistics: "exit 0", "refused busy" */
	int64_t until_ms; /* wall clock: the token is dead */
	bool started;	  /* job_start() has succeeded */
	bool taken;	  /* the job is not ours any more */
	char *callback;	  /* heap: JSON of a callback that takes the
				 * message's place; NULL: none */
};

/* A callback must reach Discord within 3 s of the interaction: so much later
 * than the front has verified it, none is sent any more. */
#define CALLBACK_MS 2300

#endif
