/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/metrics.h"

#include "protocol/conversation.h"

struct api_app;
struct buf;
struct err;
struct filestore_new;
struct http_request;
struct session_borrowed;

/*
 * Which of these modules does the program of a run look as if it imports, them
 * or others of their packages?  It is a guess, at no price: the run is right in
 * any cell, and faster in one that has them imported.  modules: a list; the
 * mask is that of sandbox/base/preload.h.
 *
 * PRELOAD_APART where it brings modules of its own, or a matplotlibrc: these
 * come before the packages' when they are imported, but not once those are
 * there.
 */
int64_t imports_of(const char *modules, const struct cell_request *request);

/*
 * One run in a leased cell, while its client is there: whoever hangs up has it
 * ended at once, since the lease closes then.
 */
#define API_REFERENCE_LEN 16

struct api_run {
	/* set by the caller; all else is zero */
	struct api_app *app;
	struct http_request *req;
	const struct cell_request *request;
	int lease_wait_ms; /* for a cell; 0: as it is configured */
	/* api_run() ends once this descriptor can be read from; 0 or -1: it
	 * ends with its client alone. */
	int stop_fd;
	/* The caller sets tick, which is also called while a cell is waited
	 * for, and event, which may set c.enough and c.hang_up.  run.c sets the
	 * rest. */
	struct conversation c;
	enum run_end end;
	enum refusal refusal;		       /* of RUN_REFUSED */
	struct cell_result result;	       /* of RUN_RESULT */
	char reference[API_REFERENCE_LEN + 1]; /* of RUN_BROKEN, in the log */
	int64_t waited_us;		       /* for the cell */
	int64_t duration_us;		       /* from there to the end */
};

/* The environment of a run, but for those of /eval: "KEY=VALUE"…, NULL. */
extern const char *const api_environment[];

/* Why a file does not come back, by enum left_out, in a few words. */
extern const char *const api_run_left_out[];

/* The store does not take a file of a run, which is over with that: why, in a
 * few words, static.  The log says more. */
const char *api_left_refused(struct filestore_new *fresh,
    const struct err *err);
/* A file of a run is whole: put it into the store, under the last part of its
 * path.  Its id, heap; NULL: it was not taken, *why as above. */
char *api_left_keep(struct filestore_new *fresh, const char *path,
    const char **why);

/* interpreter NULL: the default one. */
void api_run(struct api_run *run, const char *interpreter);

/* The same in a cell that is leased already, a session's: it goes on to its end
 * when the client hangs up, since the session goes on, too.  Over the
 * connection it is told what has become of the cell (lease_is_out_of_memory()).
 * False: the cell is lost, which is noted. */
bool api_run_in(struct api_run *run, struct session_borrowed *b);

/* After a run there, remove its program, which is not a file of the session.
 * False: as above. */
bool api_remove_in(const struct api_run *run, struct session_borrowed *b,
    const char *path);

/* Answer what is no result, unless an answer has begun, and count how it ended.
 */
void api_run_end(const struct api_run *run, enum api_kind kind);

/* Count it alone. */
void api_run_count(const struct api_run *run, enum api_kind kind);

/* The answer to RUN_BROKEN: 500, not 137, since nobody knows what the run
 * did. */
void api_answer_lost(const struct api_run *run);

/* ---- what it needs ---- */

/* The whole body.  False: it was too long, which was answered, or its sender is
 * gone. */
bool api_read_body(struct http_request *req, struct buf *body);
/* Map a file of the store, whole, as a request may name many large ones; an
 * empty one needs nothing.  False: it cannot be had. */
bool api_input_map(struct cell_input *input, int fd);
/* The same by its id; false: as nodes_get_file(). */
bool api_input_find(struct cell_input *input, struct api_app *app,
    const struct http_request *req, const char *id, size_t len,
    struct err *err);
void api_input_unmap(const struct cell_input *input);

#endif
