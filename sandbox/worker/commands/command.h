#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "../render/render.h"
#include "../run.h"
#include "../task.h"

struct err;

/* One function per kind of job.  0, or -1: our fault, the message is replaced
 * by "sandbox error" with a reference. */
#define COMMAND(kind, name, function, ...) \
	int cmd_##function(struct task *task, struct err *err);
#include "../../store/commands.def"

/* Do the task's job: check its token and its sandbox, call its command.  The
 * message is ready afterwards unless task->taken. */
void command_run(struct task *task);

/* Resolve a path against the sandbox's current directory, or, for one that a
 * view gave, against its top.  False: the message says what is wrong. */
bool command_resolve(struct task *task, const char *path, char *resolved);
/* After a request: the sandbox's usage as the cell told it. */
void command_note_usage(struct task *task, const struct run_outcome *outcome);
/* The request did not succeed: message and outcome word say so. */
void command_not_done(struct task *task, const struct run_outcome *outcome,
    const char *path);
/* One request about request->path, to a cell of the class.  False: it did not
 * succeed and the message says why, or the job was taken away. */
bool command_do(struct task *task, const char *class,
    const struct cell_request *request, const struct cell_sink *sink,
    struct run_outcome *outcome);
/* What renderers must know of this job. */
struct render_env command_env(const struct task *task);
void command_set_outcome(struct task *task, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Wall clock limit of an operation on files. */
#define FILE_OP_MS 15000

#endif
