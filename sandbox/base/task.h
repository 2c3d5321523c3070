#ifndef TASK_H
#define TASK_H

struct err;
struct loop;
struct process_result;
struct process_spec;

/*
 * A program in the background of an event loop: process.h and loop.h together.
 * The task owns itself from the start until its callback has returned.
 */
struct task;

/* Called once when the program has ended; result is borrowed for the call. */
typedef void (*task_fn)(void *arg, const struct process_result *result);

/* Start it; spec is not needed afterwards but for its input, which is borrowed
 * until the end.  NULL (and err) when it could not be started: fn is then not
 * called. */
struct task *task_start(struct loop *loop, const struct process_spec *spec,
    task_fn fn, void *arg, struct err *err);
/* Kill it with its group, and do not call fn.  NULL and the task whose callback
 * runs are passed over. */
void task_cancel(struct task *task);

#endif
