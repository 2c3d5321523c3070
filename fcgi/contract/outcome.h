/* SPDX-License-Identifier: MIT */
#ifndef OUTCOME_H
#define OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cell_result;
struct libre_file;

/*
 * The end of a run and the files that it left, for the answers of all
 * contracts.
 */

/* No request may ask for more time than this: MAX_EXEC_TIMEOUT_MS of the
 * code-interpreter. */
#define OUTCOME_TIMEOUT_MAX_MS 60000

/* A file that it left. */
struct run_file {
	const char *path; /* heap, as id: the text that clients get */
	int64_t size;
	const char *why;    /* it was left out: static */
	bool refused;	    /* by the store */
	const char *id;	    /* in the store; NULL: it is not there */
	struct buf content; /* where the answer shows it: size bytes */
	/* Members for one contract each. */
	size_t at;	    /* /eval: where the content goes in an answer */
	const char *type;   /* MCP: static, as the next; of a whole file */
	const char *hidden; /* MCP: why a picture is not shown, or NULL */
	/* LibreChat: the input that it was before the run, or NULL; and it is
	 * unchanged. */
	const struct libre_file *was;
	bool unchanged;
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
/* The number of those that were left out. */
size_t run_files_left_out(const struct run_files *files);

/* The exit status that a shell gives to the end of a run. */
int outcome_returncode(const struct cell_result *result);
/* The same in JSON: null where the code did not end the run. */
void outcome_add_exit_code(struct buf *out, const struct cell_result *result);
/* "exit", "signal", "time", "memory", "output", "error": static. */
const char *outcome_reason(const struct cell_result *result);

#endif
