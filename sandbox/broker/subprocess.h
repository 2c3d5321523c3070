#ifndef SUBPROCESS_H
#define SUBPROCESS_H

#include <stdbool.h>

#include "../base/process.h"

struct err;
struct loop;
struct loop_timer;

/*
 * A program that runs beside the event loop.  `done` is called once, from the
 * loop, with the result; the subprocess may be started again from there.  One
 * that is cancelled is killed, and done is not called.
 */
typedef void (*subprocess_fn)(void *arg, const struct process_result *result);

struct subprocess {
	struct loop *loop;
	struct process process;
	struct loop_timer *timer;
	bool running;
	bool watched;
	subprocess_fn done;
	void *arg;
};

void subprocess_init(struct subprocess *sub, struct loop *loop);
/* argv is copied by nobody: it need only live for the call.  -1 when the
 * program could not be started; done is not called then. */
int subprocess_start(struct subprocess *sub, const struct process_spec *spec,
    subprocess_fn done, void *arg, struct err *err);
void subprocess_cancel(struct subprocess *sub);

#endif
