/* SPDX-License-Identifier: MIT */
#ifndef CELL_H
#define CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fd.h"
#include "protocol/frame.h"

struct err;

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
	const char *path;	 /* relative to the workspace; NULL: absent */
	const char *cwd;	 /* NULL: the workspace itself */
	const char *name;	 /* of inline source in tracebacks */
	const char *const *args; /* NULL-terminated, or NULL */
	const char *source;	 /* inline code; NULL: run the file at path */
	size_t source_len;
	const char *input; /* standard input */
	size_t input_len;
	bool live;	     /* input comes from a pipe, */
	int live_fd;	     /* the pipe's end to read */
	const char *content; /* for OP_WRITE */
	size_t content_len;
	bool echo;
	bool keep; /* the interpreter, for the next run */
	bool merge;
	bool recursive;
	bool cut;
	int64_t wall_ms;
	int64_t output_max;
	int64_t collect_files;
	int64_t collect_bytes;
	int64_t collect_total;
	int64_t offset;
	int64_t count;
	int64_t max_bytes;
	/* for cells of the classes api and session; zero or NULL: not said */
	const char *folder;	/* "/home" or "/workspace" */
	const char *const *env; /* "KEY=VALUE"…, NULL: as the cell has it */
	bool display;		/* pictures that it shows are files it leaves */
	bool end_all;		/* of a session: no process outlives the run */
	bool plain;		/* `python words`… */
	const struct cell_bytes *words; /* without a NUL inside */
	size_t word_count;
	const struct cell_input *inputs; /* files, in this order */
	size_t input_count;
	int64_t limit_memory;
	int64_t limit_processes;
	int64_t limit_files;
	int64_t limit_cpu; /* seconds */
	enum output_mode output_mode;
	int collect_how; /* enum collect_how, added up */
	int64_t collect_ms;
};

struct cell_result {
	enum run_reason reason;
	int64_t status;	       /* REASON_EXIT: 0..255 */
	int64_t signal;	       /* REASON_SIGNAL */
	enum cell_error error; /* REASON_ERROR */
	char error_text[256];  /* for the log, not for people */
	char error_path[LIMIT_PATH +
	    1]; /* of the file that could not be staged, or "" */
	int64_t wall_us;
	int64_t cpu_us;
	int64_t max_rss;
	int64_t used_bytes; /* -1: not told */
	int64_t used_files;
	int64_t used_packages;	  /* bytes; -1: not told */
	int64_t total;		  /* of a listing; size of a file too large */
	enum disk_full disk_full; /* 0: it is not */
	bool cut;	     /* there may be more files than were told of */
	bool kept;	     /* a run's interpreter, for the next one */
	bool went_on;	     /* it began in that of the run before, */
	enum kept_end ended; /* or why there was none; 0: not said */
	int64_t kept_names;  /* variables in it, as it says itself */
	int64_t kept_bytes;
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
	char name[LIMIT_PATH +
	    1]; /* no NUL inside, not empty, otherwise any bytes */
	enum entry_kind entry_kind;
	int64_t size;
	int64_t mtime;
	bool displayed; /* a picture, in no workspace */
	enum left_out why;
	struct cell_result result;
};
/* The conversation over one lease; initialise with cell_init().  Counters
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

#endif
