/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>

#include "worker/worker.h"

struct source;

/*
 * In this room a bool that a function of a task returns is false when the
 * command ends here: message and outcome word are the answer, or another worker
 * has the job, or task->err is set.  That is a fault of ours, and the message
 * is replaced by "sandbox error" with a reference.
 */

/* One function per kind of job. */
#define COMMAND(kind, name, function, ...) \
	bool cmd_##function(struct task *task);
#include "store/commands.def"

/* Do the task's job: check its sandbox, call its command.  The message is ready
 * afterwards unless task->taken. */
void command_run(struct task *task);

/* Answer with this text alone, in which the arguments are put; NULL ends them.
 * Returns false. */
bool command_say(struct task *task, enum say id, ...) __attribute__((sentinel));
/* Give a field of the job another text, which is moved. */
void command_set(const char **field, char *text);
/* Load a view into task->view.  1: there is none; -1: task->err is set. */
int command_load_view(struct task *task, int64_t id);
/* Store the view of a button.  0: that failed, and is logged. */
int64_t command_store_view(struct task *task, struct view *view);
/* Choose the job's Python, by default the first one. */
bool command_choose_version(struct task *task);
/* Answer that a path is too long.  Returns false. */
bool command_refuse_long(struct task *task);
/* Resolve the job's path into task->path: a view's path from the top of the
 * sandbox, any other from its current directory. */
bool command_resolve(struct task *task);
/* Answer with an editor, which comes back with this id.  The inputs are
 * moved. */
bool command_open_editor(struct task *task, const char *custom_id,
    const char *title, json_t *inputs);
/* Store the sandbox's usage that the last request reported. */
void command_note_usage(struct task *task);
/* Fill message and outcome word for a request that did not succeed. */
void command_not_done(struct task *task);
/* For task->tick: show the output so far, and a button that cancels the job.  A
 * failure is ignored, as the answer follows. */
void command_show_progress(void *task);
/* Did the last request succeed? */
bool command_succeeded(struct task *task);
/* Did the program run, however it ended? */
bool command_has_run(struct task *task);
/* Send one request about a path to the leased cell, after dropping the results
 * of the one before.  Did it succeed? */
bool command_ask(struct task *task, struct cell_request request);
/* Fetch an uploaded file of at most max bytes.  Heap, with a NUL behind; NULL:
 * the answer says why not. */
void *command_download(struct task *task, const char *url, int64_t max,
    size_t *len);
/* Answer that the file could not be fetched, as its length differs from the
 * announced one.  Returns false. */
bool command_not_as_announced(struct task *task);
/* Lease a cell of the user's for one request. */
bool command_do(struct task *task, struct cell_request *request);
/* ---- the current directory ---- */

/* Make a directory the current one.  False: that failed, and is logged. */
bool place_set(struct task *task, const char *path);
/* After a request that failed: is the current directory gone?  Then its nearest
 * existing parent becomes the current one, and the answer says so.  True: ask
 * once more.  It needs the lease, and leaves task->run unchanged. */
bool place_find(struct task *task);
/* place_find() for a request that writes a file.  True: the nearest directory
 * has no such file, so task->path is changed to it: write it.  An existing file
 * stays, as it was not named.  name: within the job's path if that is a folder;
 * or "". */
bool place_find_room(struct task *task, const char *name);
/* After a request that did not find the job's path: set task->elsewhere if the
 * path exists at the top.  It needs the lease, as place_find() does. */
void place_look_at_top(struct task *task);
/* A path was removed: if the current directory is in it, its parent becomes the
 * current one, and the answer says so. */
void place_leave(struct task *task, const char *removed);
/* Store the view of a button that looks at a path from the top, or gets it.  0:
 * there is none, as for a path that is too long for a view. */
int64_t place_make_way(struct task *task, enum job_kind kind, const char *path);

/* ---- the program of a job ---- */

/* Find the code in the text of a message and in its files, which are fetched.
 * view_id: the view of the run that the message answers, whose code has
 * precedence; 0: the message is no answer of ours.  If that run was of a file,
 * the source is empty and the job's path is that of the file.  Release the
 * source in any case. */
bool program_find(struct task *task, int64_t view_id, struct source *source);
/* Read the code of the uploaded file; release the source in any case. */
bool program_read_file(struct task *task, struct source *source);
/* Answer that the source has too many pieces.  Returns false. */
bool program_refuse_many(struct task *task);
/* Run the source, or the file of the job's path, as `/il py` does, and say what
 * was left out. */
bool py_run_source(struct task *task, struct source *source);
/* Answer with an editor that comes back with this id, filled with code and
 * input.  code NULL: with the input alone, which is required then. */
bool py_open_editor(struct task *task, const char *custom_id, const char *code,
    const char *input);

/* Make the sandbox of the job's user, unless there is a usable one; an expired
 * one is replaced. */
bool command_make_sandbox(struct task *task, bool *created);
/* Remove the files of a sandbox whose row says so, and then the row.  The
 * sweeper removes what is left. */
bool command_remove_files(struct worker *worker, const char *sandbox,
    int wait_ms);

/* Would an editor return the text unchanged?  Discord drops control characters
 * and may change line ends. */
bool command_is_editable(const char *text, size_t len);
/* Read task->path for an editor into task->collect, as its only file; may_miss:
 * a missing file is no error. */
bool command_read_editable(struct task *task, bool may_miss);

/* Wall clock limit of an operation on files. */
#define FILE_OP_MS 15000
/* Limit of such an operation during a run, whose code may delay it.  With
 * LIMIT_OUTSIDE_MS it is less than LIMIT_LOOK_MS. */
#define BESIDE_OP_MS 1000

#endif
