/* SPDX-License-Identifier: MIT */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/basics.h"
#include "protocol/cell.h"
#include "protocol/counters.h"

/*
 * Everything that a cell sends during one request.  All of it is bounded here
 * once more, as a cell is not trusted.
 */
#define COLLECT_FILES 10
#define COLLECT_LEFT 25 /* as many as a menu can offer */
#define COLLECT_ENTRIES 20

/* File that a cell has sent or left out, or entry of a directory. */
struct collected {
	char *path;	   /* heap, any bytes; of an entry its name */
	int64_t size;	   /* as announced */
	bool displayed;	   /* a picture that is in no workspace */
	struct buf data;   /* of a file that was sent */
	enum left_out why; /* of a file that was not */
	enum entry_kind kind;
	int64_t mtime;
};

struct collect {
	struct buf output;
	struct collected files[COLLECT_FILES];
	size_t file_count;
	size_t file_bytes; /* of all that are accepted */
	size_t file_bytes_max;
	bool taking; /* the bytes that arrive belong to the last file */
	struct collected left[COLLECT_LEFT];
	size_t left_count;
	size_t left_more; /* files whose names are not stored */
	/* number of all files that the cell reported, without displayed
	 * pictures */
	size_t images;
	size_t others;
	char *folder; /* folder of all the others, heap; NULL: there are none */
	bool folded;  /* collect_fold() */
	struct collected entries[COLLECT_ENTRIES];
	size_t entry_count;
};

/* output_max, file_bytes_max: bytes that are kept. */
void collect_init(struct collect *collect, size_t output_max,
    size_t file_bytes_max);
/* Drop all events but keep the limits, for the next request. */
void collect_release(struct collect *collect);
/* Collect an event of a cell. */
void collect_event(struct collect *collect, const struct cell_event *event);
/* Fold the files that are no images: one line of the answer counts them, and
 * the names of those that were left out are dropped. */
void collect_fold(struct collect *collect);
/* Is the file folded? */
bool collect_is_folded(const struct collect *collect,
    const struct collected *file);
/* Note a file as not attached; its path is copied. */
void collect_leave_out(struct collect *collect, const struct collected *file,
    enum left_out why);

struct run_outcome {
	enum run_end end;
	enum refusal refusal;
	bool read_only; /* the cell could not write, as the disk is nearly
			 * full */
	bool beside;	/* in the cell of another run, which may end at any
			 * moment */
	bool cancelled; /* by its owner, while it ran */
	struct cell_result result;
};

/* Kind of an outcome: for statistics, and for a session that it has ended. */
struct outcome_kind {
	const char *word; /* one word: a number follows it */
	enum job_end counted;
	enum kept_end kept;
};

const struct outcome_kind *outcome_kind(const struct run_outcome *outcome);

/* Did the operation succeed, or the program exit with status 0? */
bool outcome_succeeded(const struct run_outcome *outcome);
/* Did the run begin, however it ended?  A run that was broken off has output
 * and effects. */
bool outcome_began(const struct run_outcome *outcome);
/* Did the operation fail with this error? */
bool outcome_failed_with(const struct run_outcome *outcome,
    enum cell_error error);

/* ---- needs of a run ---- */

/* Last line of output, in which an uncaught error ends; heap. */
char *render_last_line(const struct buf *output);

/* The error of an input() that found nothing to read. */
#define RENDER_NO_INPUT "EOFError: EOF when reading a line"

#define PACKAGE_SIZE 65

struct render_need {
	char package[PACKAGE_SIZE]; /* to install; "": none */
	bool input;		    /* to read */
};

/* Find the needs of a run by its last error. */
void render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output);
/* Put a line end between the prompt of an input() and the traceback of its
 * error, as Python does not. */
void render_part_prompt(const struct run_outcome *outcome, struct buf *output);

/*
 * Names of attachments.  Discord changes some names, so only names that it
 * leaves alone are sent: letters, digits, '.', '-' and '_', beginning with a
 * letter or digit, not ending in '.' or '_', no number, at most 100 bytes.  The
 * file's real name is sent as the attachment's title (message.h).
 */
#define FILENAME_SIZE 101

/* Make such a name of the last part of a path (any bytes), with the same
 * ending.  A stem without a letter becomes "file".  Returns true when the name
 * had to be changed. */
bool filename_clean(char name[FILENAME_SIZE], const char *path);

/* Change name so that it is none of the count taken ones (letter case does not
 * tell two names apart).  Returns true when it had to be changed. */
bool filename_unique(char name[FILENAME_SIZE], const char *const *taken,
    size_t count);

/* Does the name end in one of Discord's inline image formats? */
bool filename_is_image(const char *name);
/* The tag of a code block for this file, "" when none fits. */
const char *filename_language(const char *name);

#endif
