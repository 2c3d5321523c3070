/* SPDX-License-Identifier: MIT */
#ifndef EVAL_MESSAGE_H
#define EVAL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/json.h"
#include "contract/run_files.h"

#include "base/basics.h"
#include "protocol/cell.h"

/*
 * POST /eval: from the bytes of a request to what is to be run, or to the
 * answer that it gets without a run; then from the end of the run to the
 * answer.  The contract is snekbox's; of several faults the first one is
 * reported.
 */

/* An answer of /eval that is no result. */
struct eval_refusal {
	int status;	 /* 200: the body is what the run "printed" */
	struct buf body; /* to be released */
};

#define EVAL_TOO_LONG "The arguments, or standard input, are too long."

/* Refuse with {"title": …, "description": …}, without an empty description.
 * Always false, so that a check can end with it. */
bool eval_refuse(struct eval_refusal *refusal, int status, const char *title,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* All that it points to is of the document; but interpreter, which is one of
 * those that eval_parse() was given. */
struct eval_request {
	/* Members of the body; data or items NULL: not sent. */
	struct cell_bytes code;
	struct cell_bytes input; /* standard input */
	struct cell_bytes executable;
	struct field_list args;
	struct field_list files;
	int64_t timeout_ms; /* 0: as configured */
	/* What is to be run: arguments of the interpreter, and files to be
	 * there before; of equal paths the last one counts.  A file whose path
	 * had a ".." comes back in any case. */
	struct cell_bytes *words;
	size_t word_count;
	struct cell_input *inputs;
	size_t input_count;
	const char *interpreter; /* NULL: the default one */
	bool stands_in;		 /* that one, for one that is not there */
	struct jtree doc;	 /* to be released */
};

/* interpreters: "3.11", …, NULL; the first one is the default.  fallback: the
 * nearest of them stands in for one that is not there.  content_type NULL: none
 * was sent.  A NUL follows the body; one without Content-Length counts as
 * empty.  True: the document is to be released.  False: answer with
 * the refusal, which is to be released; if its status is 200, with
 * `returncode: null`, and its body as `stdout`. */
bool eval_parse(struct eval_request *req, const char *const *interpreters,
    bool fallback, const char *content_type, const char *body, size_t len,
    struct eval_refusal *refusal);

/* ---- output ---- */

/*
 * Output of a run: strict UTF-8, every newline a "\n", up to a bound.
 */
enum eval_output_state {
	EVAL_OUTPUT_OPEN,
	EVAL_OUTPUT_FULL,    /* the run is to be ended: 143 */
	EVAL_OUTPUT_INVALID, /* the result is null */
};

#define EVAL_OUTPUT_MAX 1000000 /* bytes */

/* To begin with: .text = BUF_INIT(EVAL_OUTPUT_MAX), to be released. */
struct eval_output {
	enum eval_output_state state;
	struct buf text;
	size_t valid; /* bytes of it that are UTF-8; all, once it has ended */
};

/* False: it takes no more, now or ever. */
bool eval_output_add(struct eval_output *out, const void *data, size_t len);
void eval_output_end(struct eval_output *out);

/* ---- the answer ---- */

/* Is a file of this path given back?  Not below anything whose name starts with
 * a dot, and not if its own name starts with '_'. */
bool eval_wants(const char *path);

#define EVAL_FILES_MAX 101
#define EVAL_FILES_TOTAL ((int64_t)48 << 20)

#define EVAL_NULL_OUTPUT "UnicodeDecodeError: invalid Unicode in output pipe"
#define EVAL_NULL_NAME \
	"FileParsingError: invalid bytes in filename while parsing attachments"
#define EVAL_NULL_DEPTH \
	"FileParsingError: Exceeded directory depth limit while parsing " \
	"attachments"
#define EVAL_NULL_TIME \
	"TimeoutError: Exceeded time limit while parsing attachments"

struct eval_result {
	const char *null_text;	/* nothing usable, but this; NULL: there is */
	const struct buf *text; /* of an eval_output that has ended */
	/* NULL: none.  After a null just those that were left out are told. */
	const struct run_files *files;
	bool extras; /* with files that were left out, and what the cell says */
	const struct cell_result *cell; /* NULL: it never ran, after a null */
};

/* Append the answer without the contents of its files, each of which belongs,
 * in base64, where it sets the file's `at`; 0: the file is not in the answer.
 * The length with them. */
size_t eval_answer(struct buf *out, const struct eval_result *result);
/* More than it can append, with as many files as a cell may tell of; a byte of
 * the output may become "\u001b". */
#define EVAL_ANSWER_MAX ((size_t)48 << 20)
/* Append the answer of GET /versions: "3.11", …, NULL; the first name is the
 * default one's. */
void eval_add_versions(struct buf *out, const char *const *interpreters);

#endif
