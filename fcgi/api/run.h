/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/metrics.h"
#include "contract/run_files.h"
#include "files/filestore.h"

#include "protocol/cell.h"

struct api_app;
struct api_run;
struct buf;
struct err;
struct http_request;
struct lease;

/*
 * Guess which of these modules, or others of their packages, the program of a
 * run imports.  A wrong guess does no harm: the run is right in any cell, and
 * faster in one that has imported them.  modules: a list; the mask is that of
 * sandbox/base/config.h.
 *
 * PRELOAD_APART for a run with modules of its own, or a matplotlibrc: a later
 * import finds these before the packages, but not if the cell has imported the
 * packages already.
 */
int64_t imports_of(const char *modules, const struct cell_request *request);

/*
 * A front of a contract: how it takes a run's output and files, and how it
 * answers.  Functions may be NULL where the contract needs none.  A further
 * contract has one of these for each kind of run.
 */

/* An answer to a request that the cell could not begin. */
struct run_error {
	enum cell_error error; /* 0: any */
	bool has_path;	       /* only if the cell names a file */
	int status;	       /* 0: the end of the list */
	const char *text;      /* its '*' stands for the file */
};

/* Files of a run that come back. */
enum run_keep {
	RUN_KEEP_NONE,
	RUN_KEEP_HERE,	/* with their contents, and the paths that they have */
	RUN_KEEP_STORE, /* in the store; no two of them with one text */
	RUN_KEEP_PATHS, /* in the store; a path can be read from its text */
};

struct run_front {
	enum api_kind kind;
	enum run_keep keep;
	size_t files_max;  /* in the list; 0: as many as come */
	bool stores_paths; /* a file's name in the store is its whole path */
	void (*started)(struct api_run *run);
	void (*output)(struct api_run *run, const struct cell_event *event);
	/* A file begins.  False: it is not kept. */
	bool (*file)(struct api_run *run, const struct cell_event *event);
	void (*bytes)(struct api_run *run, const struct cell_event *event);
	/* run->file has come, and is in the store, or not. */
	void (*whole)(struct api_run *run);
	/* A file does not come back.  False: nor is it told. */
	bool (*left_out)(struct api_run *run, const struct cell_event *event);

	/* The run has a result. */
	void (*answer)(struct api_run *run);
	/* The first row that fits an error of the cell goes to refuse();
	 * without one the error is a result.  After the answer has begun,
	 * refuse() also says that there was no cell, or that it is lost. */
	const struct run_error *errors;
	void (*refuse)(struct api_run *run, int status, const char *text);
	/* There was no cell; NULL: reply_busy(), or refuse(). */
	void (*busy)(struct api_run *run);
	/* The cell is lost; NULL: api_answer_lost(), or refuse(). */
	void (*lost)(struct api_run *run);
};

#define API_REFERENCE_LEN 16

/*
 * A run in a leased cell.  If its client hangs up, the lease is closed, which
 * ends the run.
 */
struct api_run {
	/* set by the caller; all else is zero */
	const struct run_front *front;
	void *arg; /* the front's own */
	struct api_app *app;
	struct http_request *req;
	const struct cell_request *request;
	int lease_wait_ms; /* for a cell; 0: as it is configured */
	/* The caller may set tick, which is also called during the wait for a
	 * cell, and others; without a front, event and arg.  With a front they
	 * get the struct api_run.  All of them may set c.enough and c.hang_up.
	 * run.c sets the rest. */
	struct conversation c;
	enum run_end end;
	enum refusal refusal;		       /* of RUN_REFUSED */
	struct cell_result result;	       /* of RUN_RESULT */
	char reference[API_REFERENCE_LEN + 1]; /* of RUN_BROKEN, in the log */
	int64_t waited_us;		       /* for the cell */
	int64_t duration_us;		       /* from there to the end */
	bool cancelled;		    /* in a session: its client has gone */
	struct run_files files;	    /* that it has left */
	bool more_files;	    /* there are more than files_max */
	struct run_file *file;	    /* the incoming one; NULL: none is kept */
	struct filestore_new fresh; /* the same in the store */
	const char *note;	    /* for the store, or NULL */
};

/* The environment of a run, except for /eval: "KEY=VALUE"…, NULL. */
extern const char *const api_environment[];

/* Add a file to the list.  why: it does not come back: static.  NULL: the list
 * is full. */
struct run_file *api_run_add_file(struct api_run *run, const char *path,
    int64_t size, const char *why);
/* Append the header with the number of files that do not come back.  A full
 * list gets none. */
void api_run_add_left_out(struct buf *headers, const struct api_run *run);

/* interpreter NULL: the default one. */
void api_run(struct api_run *run, const char *interpreter);

/* The same in a session's cell, which is leased already.  The run goes on when
 * its client hangs up, since the session goes on, too.  If `ends`, it is
 * cancelled instead, with RUN_STOPPED; then the cell is lost unless the run and
 * its files come to an end within the time for files.  The connection reports
 * what became of the cell (lease_is_out_of_memory()).  False: the cell is lost,
 * which is noted. */
bool api_run_in(struct api_run *run, struct lease *b, bool ends);

/* Remove the program of a run there, which is not a file of the session.
 * False: as above. */
bool api_remove_in(const struct api_run *run, struct lease *b,
    const char *path);

/* Answer by the front, count the run, and release its files. */
void api_run_answer(struct api_run *run);

/* The row for the cell's error, or NULL; its text with the file's name is
 * appended. */
const struct run_error *api_run_error(const struct run_error *rows,
    const struct cell_result *result, struct buf *text);

/* The answer to RUN_BROKEN: 500, not 137, since it is unknown what the run
 * did. */
void api_answer_lost(const struct api_run *run);

/* ---- bodies and files of a request ---- */

/* Read the whole body.  False: it was too long, which was answered, or its
 * sender is gone. */
bool api_read_body(struct http_request *req, struct buf *body);

/* Read the whole body as a form: event() gets each part as it begins, and each
 * slice of data.  After a fault, or once event() returns false, the rest is
 * read and dropped: a client sends all of it before it reads the answer.
 * False: the client is gone. */
struct multipart;
bool api_read_form(struct http_request *req, struct multipart *form,
    bool (*event)(void *arg, bool part), void *arg);

/* Files for a run.  Files of the store are mapped, as a request may name many
 * large ones. */
struct api_inputs {
	struct cell_input *items; /* heap */
	size_t count;
	struct cell_bytes *maps; /* heap */
	size_t map_count;
};

/* Add a file of mode 0644 with these bytes, which are borrowed, as the path. */
struct cell_input *api_inputs_add(struct api_inputs *in, const char *path,
    const char *data, size_t len);
/* The same with the content of an open file, which is closed.  NULL: it cannot
 * be had. */
struct cell_input *api_inputs_add_file(struct api_inputs *in, const char *path,
    int fd);
void api_inputs_release(struct api_inputs *in);

#endif
