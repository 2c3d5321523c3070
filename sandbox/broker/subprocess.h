/* SPDX-License-Identifier: MIT */
#ifndef SUBPROCESS_H
#define SUBPROCESS_H

#include <stdbool.h>

#include "../base/process.h"
#include "argv.h"

struct loop;
struct loop_timer;

/*
 * A program that runs beside the event loop.  `done` is called once, from the
 * loop, with the result: also when the program could not be started
 * (PROCESS_NOT_STARTED).  The subprocess may be started again from there.  One
 * that is cancelled is killed, and done is not called.
 */
typedef void (*subprocess_fn)(void *arg, const struct process_result *result);

struct subprocess {
	struct loop *loop;
	struct process process;
	struct loop_timer *timer;
	bool running;
	subprocess_fn done;
	void *arg;
};

void subprocess_init(struct subprocess *sub, struct loop *loop);
/* The words need only live for the call, what is to be its standard input until
 * the end.  It must not be running. */
void subprocess_start(struct subprocess *sub, const struct argv *argv,
    int timeout_ms, subprocess_fn done, void *arg);
/* Nothing happens when it is not running. */
void subprocess_cancel(struct subprocess *sub);

#endif
