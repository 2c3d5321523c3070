/* SPDX-License-Identifier: MIT */
#ifndef RENDER_H
#define RENDER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "locale/locale.h"
#include "protocol/path.h"
#include "store/job.h"
#include "store/sandbox.h"
#include "worker/render/collect.h"
#include "worker/render/message.h"

struct config;
struct view;

/* Likely mistakes in typed code that Python's errors do not name. */
enum slip_kind {
	SLIP_NONE,
	SLIP_STRING, /* quotes around all of it, as if they were back-ticks */
	SLIP_ODD,    /* a character that looks like a blank, or like nothing */
	SLIP_FENCE,  /* a back-tick outside of strings */
	SLIP_LANGUAGE, /* its block's tag is another language's */
	SLIP_QUOTES,   /* curly quotes in it */
	SLIP_TABS,     /* some lines begin with tabs, some with spaces */
};

#define SLIP_WORD_SIZE 33

struct slip {
	enum slip_kind kind;
	/* SLIP_LANGUAGE: the tag, of letters, digits and "+-_.#" */
	char word[SLIP_WORD_SIZE];
	int line;	/* SLIP_ODD: line of the first one */
	uint32_t point; /* its code point */
};

/* Fault of a notebook. */
enum source_fault {
	SOURCE_FINE,
	SOURCE_NOT_JSON, /* fault_line: line of the error */
	SOURCE_NO_CELLS,
	SOURCE_NO_CODE,
	SOURCE_TOO_DEEP, /* more parts than can be read */
};

/*
 * A typed result becomes a message: pure functions, and the only place of the
 * worker that holds texts for people.  They tell the program's faults (exit
 * status, signal, limits) apart from ours ("sandbox error, reference 12"), and
 * never show an internal text.
 */
struct render_env {
	struct message *message;
	const struct run_outcome *run; /* of the last request */
	struct collect *collect;       /* what the cell has sent for it */
	const char *path;	       /* in the sandbox, that it is about */
	const struct config *config;   /* for the limits in texts */
	enum job_kind kind;
	int64_t reference; /* the job's id */
	int64_t file_most; /* bytes of one attachment */
	bool may_attach;
	bool has_input;	     /* the code was given some */
	struct slip slip;    /* in the code that runs */
	const char *version; /* of Python, if it is not the default one */
};

/* ---- render_run.c: results of runs ---- */

/* A run: its output, its end, its files (they move into the message). */
void render_run(const struct render_env *env);
/* Outcome of a request for statistics, as "exit 0"; in word, or static. */
#define WORD_SIZE 48
const char *render_word(const struct run_outcome *outcome,
    char word[WORD_SIZE]);
/* Say below a run why its session began anew; 0: it did not. */
void render_session_ended(struct message *message, enum kept_end why);
/* Progress of a run or an installation, with a button that ends it. */
void render_progress(struct message *message, enum job_kind kind,
    int64_t job_id, const struct buf *output, int64_t elapsed_ms);
/* Result of pip.  words: the requirements. */
void render_pip(const struct render_env *env, char *const *words);

/* ---- render_fault.c: refusals and failures ---- */

/* A request that did not succeed. */
void render_not_done(const struct render_env *env);
/* The same in a word, for statistics. */
const char *render_refusal_word(enum refusal refusal);
void render_error(struct message *message, int64_t reference);
void render_lost(struct message *message, enum job_kind kind,
    int64_t reference);
/* Answer that Discord refused, as a file of at most `most` bytes: the whole
 * message, or, where that is gone, the content of the refused body. */
void render_as_file(struct message *message, const struct message *refused,
    const char *body, int64_t most);
void render_not_accepted(struct message *message,
    const struct rest_reply *reply, int64_t reference);

/* ---- render_fault.c: whole answers of texts.def ---- */

enum say {
#define SAY(id, outcome, text) SAY_##id,
#define NOTE(id, text) NOTE_##id,
#include "worker/render/texts.def"
};

/* Append a text, with the arguments in its "{}"; NULL ends them. */
void render_put(struct buf *out, const char *text, ...)
    __attribute__((sentinel));
/* The same for a text of texts.def. */
void render_add(struct buf *out, enum say id, ...) __attribute__((sentinel));
/* The same; returns its word for statistics, which is static. */
const char *render_add_list(struct buf *out, enum say id, va_list arguments);

/* ---- render_view.c: the buttons below a run, and their answers ---- */

/* view: with its texts; elsewhere: path at the top of the file that was not
 * found, or ""; cut: not all of the output is shown; input: the run needs
 * input. */
void render_buttons(const struct render_env *env, const struct view *view,
    const char *elsewhere, bool cut, bool input);
/* A shared run: code, input and output. */
void render_shared(const struct render_env *env, const struct view *view,
    int64_t copy_id);
/* A page of output; *page becomes the last page if it is beyond that. */
void render_output(struct message *message, const struct view *view,
    int64_t *page);
/* Code that is too long for an editor, as a file. */
void render_long_code(const struct render_env *env, const char *code);

/* ---- render_fault.c: code that was not run, and why ---- */

#define SCRIPT_SHOWN 60 /* code points of a file's name */

/* The languages of other code, "`js`, `c`, `go`"; heap. */
char *render_languages(const struct slip *others, size_t count);
/* Name below an answer the languages of blocks that were not run. */
void render_left_out(struct message *message, const struct slip *others,
    size_t count);
/* ---- requirement.c ---- */

/*
 * Arguments of /il pip: words as a shell splits them, each of which must be a
 * requirement (PEP 508) without a direct reference.  Options, paths, names of
 * archives and URLs are refused, as pip would read files or run code for those.
 */
#define REQUIREMENTS_MAX 32

struct requirements {
	char *words[REQUIREMENTS_MAX + 1]; /* heap; NULL after the last */
	size_t count;
	const char *bad; /* REQUIREMENTS_BAD: one of them that is none */
};

enum requirements_result {
	REQUIREMENTS_OK,
	REQUIREMENTS_NONE,  /* no word at all */
	REQUIREMENTS_QUOTE, /* a quote is not closed */
	REQUIREMENTS_TOO_MANY,
	REQUIREMENTS_BAD,
};

/* Split and check.  Release in any case.  A leading "pip install" is dropped,
 * though both are names of packages. */
enum requirements_result requirements_parse(struct requirements *requirements,
    const char *text);
void requirements_release(struct requirements *requirements);
#define auto_requirements __attribute__((cleanup(requirements_release)))

/* Is the word a requirement: name, extras, versions, marker? */
bool requirement_is_valid(const char *word);

/* Package of a module, where a package may have its name; "": none. */
const char *requirement_of_module(const char *module);
/* Packages with a name like this one. */
struct nearest render_need_nearest(const char *name);

#endif
