#ifndef TASK_H
#define TASK_H

#include <stdbool.h>

#include "../base/process.h"

struct err;
struct loop;
struct loop_timer;

/*
 * A program that runs beside the event loop.  `done` is called once, from the
 * loop, with the result; the task may be started again from there.  A task that
 * is cancelled is killed, and done is not called.
 */
typedef void (*task_fn)(void *arg, const struct process_result *result);

struct task {
	struct loop *loop;
	struct process process;
	struct loop_timer *timer;
	bool running;
	bool watched;
	task_fn done;
	void *arg;
};

void task_init(struct task *task, struct loop *loop);
/* argv is copied by nobody: it need only live for the call.  -1 when the
 * program could not be started; done is not called then. */
int task_start(struct task *task, const struct process_spec *spec, task_fn done,
    void *arg, struct err *err);
void task_cancel(struct task *task);

#endif
