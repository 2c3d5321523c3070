/* SPDX-License-Identifier: MIT */
#ifndef EVAL_ANSWER_H
#define EVAL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/outcome.h"

#include "base/buf.h"

struct cell_result;

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
/* A byte may become "\u001b" in JSON. */
#define EVAL_TEXT_MAX ((size_t)6 * EVAL_OUTPUT_MAX)

/* To begin with: .text = BUF_INIT(EVAL_OUTPUT_MAX), to be released. */
struct eval_output {
	enum eval_output_state state;
	struct buf text; /* once it has ended, the inside of a JSON string */
	size_t valid;	 /* bytes of it that are UTF-8 */
};

/* False: it takes no more, now or ever. */
bool eval_output_add(struct eval_output *out, const void *data, size_t len);
void eval_output_end(struct eval_output *out);

/* ---- the files that a run leaves ---- */

/* Is a file of this path given back?  Not below anything whose name starts with
 * a dot, and not if its own name starts with '_'. */
bool eval_wants(const char *path);

#define EVAL_FILES_MAX 101
#define EVAL_FILES_TOTAL ((int64_t)48 << 20)

/* ---- the answer ---- */

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
	const struct buf *text; /* of an eval_output */
	size_t text_at;		/* eval_answer() */
	/* NULL: none.  After a null just those that were left out are told. */
	const struct run_files *files;
	bool extras; /* with files that were left out, and what the cell says */
	const struct cell_result *cell; /* NULL: it never ran, after a null */
};

/* Append the answer without its text, which belongs where it sets `text_at`
 * unless null_text is there, and without the contents of its files, which
 * belong, in base64, where it sets the file's `at`.  The length with them. */
size_t eval_answer(struct buf *out, struct eval_result *result);
/* More than it can append, with as many files as a cell may tell of. */
#define EVAL_ANSWER_MAX ((size_t)32 << 20)
/* Append the answer of GET /versions: "3.11", …, NULL; the first name is the
 * default one's. */
void eval_add_versions(struct buf *out, const char *const *interpreters);

#endif
