/* SPDX-License-Identifier: MIT */
#ifndef RUN_FILES_H
#define RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/basics.h"

struct cell_result;
struct libre_file;

/*
 * The end of a run and the files that it left, for the answers of all
 * contracts; and the paths of its files, those that it begins with and those
 * that it leaves.
 */

/* No request may ask for more time than this: MAX_EXEC_TIMEOUT_MS of the
 * code-interpreter. */
#define OUTCOME_TIMEOUT_MAX_MS 60000

/* Why a file does not come back that the run has removed. */
#define RUN_FILE_REMOVED "removed"

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
/* The same in JSON, to be released: null where the code did not end the run. */
json_t *outcome_pack_exit_code(const struct cell_result *result);
/* "exit", "signal", "time", "memory", "output", "error": static. */
const char *outcome_reason(const struct cell_result *result);

/* ---- paths ---- */

/*
 * Whether files of given paths can be written one after the other into an empty
 * folder, told from the paths alone, so that nothing has to be started to find
 * out.  A path here is relative and normalised: no "//", ".", "..", NUL.
 */
enum stage_outcome {
	STAGE_FINE,
	STAGE_EMPTY,	      /* it is the folder itself */
	STAGE_LONG,	      /* over LIMIT_PATH, or a name over LIMIT_NAME */
	STAGE_FULL,	      /* over STAGE_ENTRIES_MAX files and folders */
	STAGE_IS_FOLDER,      /* a folder that an earlier file needed */
	STAGE_PARENT_IS_FILE, /* its folder is an earlier file */
	STAGE_ABOVE_IS_FILE,  /* so is one further up */
};

#define STAGE_ENTRIES_MAX 20000

struct stage {
	void *tree;
	size_t count;
};

/* Is a path over LIMIT_PATH bytes, or one of its names over LIMIT_NAME? */
bool stage_is_long(const char *path);
void stage_release(struct stage *stage);
/* Use as `auto_stage struct stage stage = { .count = 0 };` */
#define auto_stage __attribute__((cleanup(stage_release)))
/* The path is kept, not copied.  The same path again is fine. */
enum stage_outcome stage_add(struct stage *stage, const char *path);

/* Uses of ".." in a path: none, within it, or out of where the path begins. */
enum stage_up { STAGE_DOWN, STAGE_UP, STAGE_OUT };

/* Make a path normalised: append its parts to the n bytes of a path that are at
 * out, without empty ones and ".", and with ".." undone as far as there is
 * something.  out has room for n + len + 2 bytes; its new length, and a NUL
 * follows. */
size_t stage_resolve(const char *path, size_t len, char *out, size_t n,
    enum stage_up *up);

/*
 * Paths on disk are bytes, and answers are UTF-8.  A name that is UTF-8 is its
 * own text.  In any other name each byte that belongs to no character becomes
 * "%FF", and each '%' becomes "%25".  So does the '%' of a name that could be
 * such a text itself ("a%FF"): two paths never have one text.
 */

/* Append the text of a path. */
void path_text_write(struct buf *out, const char *path);

/* The path of a text.  False: the path is the text itself. */
bool path_text_read(struct buf *out, const char *text);

/* Append the text under which a file of a run is kept as a new file.  A name
 * that is UTF-8 stays as it is.  The text is cut to what a path and its names
 * may have.  A number stands before its last name if an earlier file of the run
 * has the text. */
void path_text_write_new(struct buf *out, const char *path,
    const struct run_files *earlier);

#endif
