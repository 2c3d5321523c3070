/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>

#include "worker/run.h"
#include "worker/task.h"

struct source;

/* One function per kind of job.  0 or 1: the message says what came of it; -1:
 * our fault, the message is replaced by "sandbox error" with a reference. */
#define COMMAND(kind, name, function, ...) \
	int cmd_##function(struct task *task, struct err *err);
#include "store/commands.def"

/* Do the task's job: check its sandbox, call its command.  The message is ready
 * afterwards unless task->taken. */
void command_run(struct task *task);

/* Which Python the job is for, the usual one where it does not say.  False: the
 * message says that there is no such one. */
bool command_choose_version(struct task *task);
/* Resolve the job's path into task->path, against the sandbox's current
 * directory or, when a view gave it, against its top.  False: the message says
 * what is wrong. */
bool command_resolve(struct task *task);
/* Resolve a file's path likewise; it does not end as a directory's does. */
bool command_resolve_file(struct task *task);
/* Open an editor that is sent back with this id; takes the inputs. */
int command_open_editor(struct task *task, const char *custom_id,
    const char *title, json_t *inputs, struct err *err);
/* After a request: the sandbox's usage as the cell told it. */
void command_note_usage(struct task *task);
/* The request did not succeed: message and outcome word say so. */
void command_not_done(struct task *task);
/* For task->tick: show the output so far, and a button that cancels the job.
 * What Discord says to it does not matter: the last edit tells all. */
void command_show_progress(void *task);
/* Did the last request succeed?  False: message and outcome word say why not,
 * or the job was taken away. */
bool command_succeeded(struct task *task);
/* The same of a program that was to run: it did, however it ended. */
bool command_has_run(struct task *task);
/* Send one request about a path to the leased cell: did it succeed?  The
 * results of the request before are forgotten. */
bool command_ask(struct task *task, struct cell_request request);
/* Have ask() ask such things only to see what there is: beside a run of the
 * user's where one goes on.  When that ends in between, ask() is called again,
 * in a leased cell.  Was it true?  Else as command_succeeded(). */
bool command_look(struct task *task, bool (*ask)(struct task *, void *),
    void *arg);
/* Fetch an uploaded file of at most max bytes.  Heap, with a NUL behind; NULL:
 * message and outcome word say why not. */
void *command_download(struct task *task, const char *url, int64_t max,
    size_t *len);
/* Say in the message that the file is not as long as was announced.  Returns
 * false. */
bool command_not_as_announced(struct task *task);
/* One request in a cell of the user's for it alone; message and outcome word
 * say why not. */
bool command_do(struct task *task, struct cell_request *request);
/* ---- place.c: where somebody is ---- */

/* Go to a directory: the current one from now on.  False: that is logged. */
bool place_set(struct task *task, const char *path);
/* The last request failed: is the current directory gone?  Then it is the
 * nearest one that is there, which the answer says: ask once more.  Within the
 * lease; task->run is as before. */
bool place_find(struct task *task);
/* place_find() of a request that writes a file: does the nearest directory have
 * no file of that name?  Then task->path is that file: write it.  A file that
 * is there stays, as nobody named it.  name: in the folder that the job's path
 * is, or "". */
bool place_find_room(struct task *task, const char *name);
/* The last request did not find the job's path: is there one at the top?
 * task->elsewhere says which.  Within the lease, as place_find(). */
void place_look_at_top(struct task *task);
/* This path was removed: a person who was in it is above it now, and the answer
 * says so. */
void place_leave(struct task *task, const char *removed);
/* The view of a button that looks at a path, or gets it, from the top.  0: the
 * path is too long for one; -1: error. */
int64_t place_make_way(struct task *task, enum job_kind kind, const char *path,
    struct err *err);
/* Offer another place below an answer that something does not exist. */
void place_offer(struct task *task);
/* Say below any answer where one is, outside of the top. */
void place_tell(struct task *task);

/* ---- program.c, py.c: the program that a job is about, as Python ---- */

/* When these return false or 1, message and outcome word say why there is no
 * program.  Release the source in any case. */

/* The code in the text of a message and in its files, which are fetched.
 * view_id: if the message is an answer of ours, that of its run, whose code
 * goes before all that the message shows; 0: it is none.  If that run was of a
 * file, the source is empty and the job's path is the file's. */
int program_find(struct task *task, int64_t view_id, struct source *source,
    struct err *err);
/* The code of the option, of the editor or of the uploaded file. */
bool program_read(struct task *task, struct source *source);
/* Run it, or the file of the job's path, as `/il py` does, and say what was
 * left out. */
int program_run(struct task *task, struct source *source, struct err *err);

/* ---- py_view.c: what is kept of a run for the buttons below it ---- */

/* The job becomes the run that the view is about; the job's own input and
 * version take precedence.  1: the message says that it is not kept any
 * more. */
int py_view_again(struct task *task, struct err *err);
/* The run is over: keep it, anew or in the view of the run before it, and put
 * the buttons under its answer.  A run that cannot be kept gets no buttons. */
void py_view_keep(struct task *task, const struct cell_request *request,
    bool again);
/* Open an editor that is sent back with this id, filled: with the code and what
 * it reads, or without code (NULL) with that alone, which must be given then.
 */
int py_view_editor(struct task *task, const char *custom_id, const char *code,
    const char *input, struct err *err);
/* The buttons of the job's own view, where it could not be run again. */
void py_view_offer(struct task *task);

/* create.c: make the sandbox of the job's user, unless there is one that
 * can be used; in the place of one whose time is over.  *created says which.
 * 1: message and outcome word say why not, or the job was taken away. */
int command_make_sandbox(struct task *task, bool *created, struct err *err);
/* The row says that the sandbox is being removed: remove its files, and then
 * the row.  What is left is the sweeper's. */
bool command_remove_files(struct worker *worker, const char *sandbox,
    int wait_ms);

/* Would an editor give it back as it was?  Discord drops control characters and
 * may change line ends. */
bool command_is_editable(const char *text, size_t len);
/* Read task->path for an editor, as the only file of task->collect; may_miss:
 * or as none, if it does not exist.  False: message and outcome word say why
 * not. */
bool command_read_editable(struct task *task, bool may_miss);

/* Wall clock limit of an operation on files. */
#define FILE_OP_MS 15000
/* Beside a run, whose code may hold it up, and with it a worker: with
 * LIMIT_OUTSIDE_MS it is less than LIMIT_LOOK_MS. */
#define BESIDE_OP_MS 1000

#endif
