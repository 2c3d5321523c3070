/* SPDX-License-Identifier: MIT */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cell_result;

/*
 * The end of a run and the files that it left, for the answers of all
 * contracts.
 */

/* No request may ask for more time than this: MAX_EXEC_TIMEOUT_MS of the
 * code-interpreter. */
#define OUTCOME_TIMEOUT_MAX_MS 60000

/* A file that it left. */
struct run_file {
	const char *path; /* heap, as id */
	int64_t size;
	const char *why;    /* it was left out: static */
	const char *id;	    /* in the store; NULL: it is not there */
	struct buf content; /* where it is not in the store: size bytes */
	size_t at;	    /* where that goes in an answer */
};

struct run_files {
	struct run_file *items;
	size_t count;
};

/* One more at the end, which stays there until the next; its content comes. */
struct run_file *run_files_add(struct run_files *files, const char *path,
    int64_t size, const char *why);
/* By their paths. */
void run_files_sort(struct run_files *files);
void run_files_release(struct run_files *files);

/* The exit status that a shell gives to the end of a run. */
int outcome_returncode(const struct cell_result *result);
/* The same in JSON: null where the code did not end the run. */
void outcome_add_exit_code(struct buf *out, const struct cell_result *result);
/* "exit", "signal", "time", "memory", "output", "error": static. */
const char *outcome_reason(const struct cell_result *result);

#endif
