/* SPDX-License-Identifier: MIT */
#ifndef CELL_H
#define CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fd.h"
#include "protocol/frame.h"

struct err;
struct pollfd;

/*
 * Talk to a leased cell: send one request, then take its events until the
 * result.  A cell is hostile: everything that comes from it is checked here,
 * once, and reaches the caller as a typed event, good until the next call.
 */

struct cell_bytes {
	const char *data; /* borrowed */
	size_t len;
};

/* A file for a run; in an api cell it is made with mode and mtime. */
struct cell_input {
	const char *path; /* relative to the workspace */
	struct cell_bytes content;
	int mode;      /* 0: 0644 */
	int64_t mtime; /* Unix seconds; -1: now */
	bool always;   /* send it back even if it did not change */
};

/* A request; pointers are borrowed for the call of cell_send(). */
struct cell_request {
	enum cell_op op;
	const char *source; /* inline code; NULL: run the file at path */
	size_t source_len;
	const char *input; /* standard input */
	size_t input_len;
	int live_fd;	     /* the end to read of a pipe, with `live` */
	const char *content; /* for OP_WRITE */
	size_t content_len;
	const struct cell_bytes *words; /* without a NUL inside */
	size_t word_count;
	const struct cell_input *inputs; /* files, in this order */
	size_t input_count;
#define TEXT(member, ...) const char *member;
#define TEXTS(member, ...) const char *const *member;
#define NUMBER(type, member, ...) type member;
#include "protocol/cell.def"
};

struct cell_result {
	int64_t signal;			 /* REASON_SIGNAL */
	enum cell_error error;		 /* REASON_ERROR */
	char error_text[256];		 /* for the log, not for people */
	char error_path[LIMIT_PATH + 1]; /* of the file that could not be
					  * staged, or "" */
	int64_t total; /* of a listing; size of a file too large */
#define RESULT(type, member, ...) type member;
#include "protocol/cell.def"
};

enum cell_event_kind {
	CELL_STARTED,
	CELL_OUTPUT,   /* stream, data */
	CELL_ENTRY,    /* name, entry_kind, size, mtime */
	CELL_FILE,     /* name (a path), size, mtime, displayed: its bytes
			* follow */
	CELL_BYTES,    /* data: of the last CELL_FILE, never past its size */
	CELL_LEFT_OUT, /* name (a path), size, why, displayed */
	CELL_RESULT,   /* result */
	CELL_QUIET,    /* nothing came until the deadline of this call */
};

struct cell_event {
	enum cell_event_kind kind;
	int64_t stream; /* 1 stdout, 2 stderr */
	const unsigned char *data;
	size_t len;
	char name[LIMIT_PATH + 1]; /* not empty, any bytes but NUL */
	enum entry_kind entry_kind;
	int64_t size;
	int64_t mtime;
	bool displayed; /* a picture, in no workspace */
	enum left_out why;
	struct cell_result result;
};
/* The state of one lease's requests; initialise with cell_init().  Counters
 * go down from the bounds of the request to what the cell may still send.  A
 * cell that sends more breaks the protocol, so the request bounds the caller's
 * memory. */
struct cell {
	int fd; /* borrowed from the lease */
	bool in_request;
	bool started;
	int64_t file_left;   /* bytes still to come of the last file */
	int64_t output_left; /* bytes of output */
	int64_t entries_left;
	int64_t files_left;
	int64_t bytes_left;    /* of all files together */
	int64_t left_out_left; /* names of files that were left out */
	unsigned char packet[FRAME_MAX];
	struct fd_packets waiting; /* in packet, until a request is sent */
	int64_t send_until_ms;
};

void cell_init(struct cell *cell, int fd);
/* Send a whole request, head, pieces and GO, within timeout_ms; while it runs:
 * have the run end as it does at its output limit. */
int cell_send(struct cell *cell, const struct cell_request *request,
    int timeout_ms, struct err *err);
void cell_enough(struct cell *cell);
void cell_signal(struct cell *cell, int number); /* likewise: send it one */

/* Wait for the next event until the monotonic time deadline_ms.  Returns 0 with
 * an event (CELL_QUIET when none came in time), -1 with ERR_PROTOCOL when the
 * cell broke the protocol or is gone: the caller closes the lease then. */
int cell_next(struct cell *cell, struct cell_event *event, int64_t deadline_ms,
    struct err *err);

/*
 * One request in a leased cell, from its head to its result.  The cell keeps
 * the request's limits; here they are kept once more from outside.  A request
 * that is not over a few seconds after its limit gets no more time: the caller
 * closes the lease, and with it goes the cell.
 */

struct conversation {
	/* set by the caller; everything is borrowed */
	int cell_fd; /* of the lease, as broker_fd */
	int broker_fd;
	/* All but CELL_RESULT and CELL_QUIET; NULL: nobody wants them. */
	void (*event)(void *arg, const struct cell_event *event);
	void (*tick)(void *arg); /* NULL, or: every tick_ms while it goes on */
	int64_t tick_ms;
	int64_t tick_first_ms; /* from then on; 0: from tick_ms */
	/* NULL, or: once this happens, cancelled() empties it and says whether
	 * this run is meant.  It is ended as with `enough`, then, and the cell
	 * has at most cancel_ms left. */
	const struct pollfd *cancel;
	int64_t cancel_ms;
	bool (*cancelled)(void *arg);
	void *arg;
	int send_ms;	   /* for the request to be sent in */
	int64_t within_ms; /* from then on: its limits, all together */
	/* NULL, or: once this happens the cell has at most stop_ms left. */
	const struct pollfd *stop;
	int64_t stop_ms;
	/* NULL, or: what else is waited for, CONVERSATION_OTHERS at most, which
	 * may change in any of the functions; once one of them has happened,
	 * other() may do what the event function may. */
	const struct pollfd *others;
	size_t other_count;
	void (*other)(void *arg);
	/* set by the event function */
	bool enough;  /* the run is to end as it does at its output limit */
	bool hang_up; /* the result is not wanted any more */
	/* set by conversation_hold() */
	struct cell *cell; /* while it holds: for cell_signal() */
	bool heard;	   /* the cell has sent something */
	bool died; /* the run's memory has taken the cell with it, and the
		     * result says so */
};

#define CONVERSATION_OTHERS 2

/* Outcome of a request to a cell: an expected one, not an error.  The
 * first ones are ends of a conversation.  After all of these but RUN_RESULT,
 * and when the cell has died, the lease is of no use. */
enum run_end {
	RUN_RESULT,   /* the cell answered: enum run_reason says more */
	RUN_BROKEN,   /* the cell broke off or broke the protocol */
	RUN_OVERDUE,  /* past the limits from outside, and the cell was ended */
	RUN_STOPPED,  /* by stop or hang_up: nobody waits for it any more */
	RUN_REFUSED,  /* there was no cell: enum refusal */
	RUN_TOO_LATE, /* the token would have died before the end: not begun */
	RUN_TAKEN,    /* the job is not ours any more: say nothing */
	RUN_CANCELLED, /* its owner did not want it any more: not begun */
};

/* Send the request and take its events to the end.  err is filled, for the log,
 * when the cell has died, RUN_BROKEN and RUN_OVERDUE, and otherwise
 * untouched. */
enum run_end conversation_hold(struct conversation *c,
    const struct cell_request *request, struct cell_result *result,
    struct err *err);

#endif
