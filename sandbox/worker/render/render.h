/* SPDX-License-Identifier: MIT */
#ifndef RENDER_H
#define RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locale/locale.h"
#include "protocol/path.h"
#include "store/job.h"
#include "store/rule.h"
#include "worker/render/collect.h"
#include "worker/render/message.h"
#include "worker/render/phrase.h"
#include "worker/render/requirement.h"
#include "worker/render/slip.h"

struct config;
struct sandbox;
struct session;

/*
 * A typed result becomes a message: pure functions, and the only place of the
 * worker that holds texts for people.  They tell the program's faults (exit
 * status, signal, limits) apart from ours ("sandbox error, reference 12"), and
 * never show an internal text.
 */
struct render_env {
	const struct config *config; /* for the limits in texts */
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
void render_run(struct message *message, const struct run_outcome *outcome,
    struct collect *collect, const struct render_env *env);
/* Progress of a run or an installation, with a button that ends it. */
void render_progress(struct message *message, enum job_kind kind,
    int64_t job_id, const struct buf *output, int64_t elapsed_ms);
/* Result of pip.  words: the requirements. */
void render_pip(struct message *message, const struct run_outcome *outcome,
    const struct buf *log, char *const *words, const struct render_env *env);

/* ---- render_fault.c: refusals and failures ---- */

/* The operator has blocked this person, or all of a server. */
void render_blocked(struct message *message, enum rule_subject who,
    const char *reason);
/* A request that did not succeed; path: its path, "" for a run. */
void render_not_done(struct message *message, const struct run_outcome *outcome,
    const char *path, const struct render_env *env);
/* Outcome of a request for statistics, as "exit 0"; in word, or static. */
#define WORD_SIZE 48
const char *render_word(const struct run_outcome *outcome,
    char word[WORD_SIZE]);
void render_error(struct message *message, int64_t reference);
void render_lost(struct message *message, enum job_kind kind,
    int64_t reference);
/* Answer that Discord refused, as a file of at most `most` bytes: the whole
 * message, or, where that is gone, the content of the refused body. */
void render_as_file(struct message *message, const struct message *refused,
    const char *body, int64_t most);
void render_not_accepted(struct message *message,
    const struct rest_reply *reply, int64_t reference);
void render_path(struct message *message, enum path_result result);
void render_no_version(struct message *message, const char *version,
    const char *list);
void render_bad_requirements(struct message *message,
    enum requirements_result result, const struct requirements *words);

/* Text in the place of an answer that the server's moderation refused. */
#define TEXT_MODERATED_FOR_ALL \
	N_("The moderation of this server does not let this answer be shown. " \
	   "Only the person who asked for it sees it.")
/* A newer il-fcgi accepted a command that this worker does not have. */
#define TEXT_UNKNOWN \
	N_("Inline is being updated, and that command is too new for the " \
	   "part that took it. It was not run. Try again in a moment.")
#define TEXT_NOT_EDITABLE \
	N_("%s cannot be edited here: it is not text, or has more than 4,000 " \
	   "characters. `/il get` sends it, `/il put` takes it back.")
#define TEXT_TOO_LARGE N_("That file is too large (%s): it may have %s.")
#define TEXT_NO_SANDBOX N_("You have no sandbox yet. `/il create` makes one.")
/* An attachment's link has expired; it could not be fetched otherwise. */
#define TEXT_UPLOAD_GONE \
	N_("Discord does not have that file any more. Upload it again.")
#define TEXT_NOT_FETCHED \
	N_("The file could not be fetched from Discord. Try again in a moment.")
#define TEXT_DELETED \
	N_("Your sandbox and all its files are deleted. `/il create` makes " \
	   "a new one.")
#define TEXT_REMOVING \
	N_("Your sandbox is closed. Its files cannot be removed at this " \
	   "moment; that is done by itself as soon as it can be.")

/* ---- render_files.c: files of a sandbox ---- */

struct render_listing {
	const char *path;		  /* of the directory */
	const struct collect *collect;	  /* its entries */
	const struct cell_result *result; /* with their number, and the usage */
	int64_t page;			  /* from 1 */
	int64_t asked;			  /* the page that was asked for */
	int64_t pages;
	int64_t view_id;      /* for the buttons; 0: no buttons */
	bool moved;	      /* the current directory was another one */
	char back[PATH_SIZE]; /* path of the button back */
	int64_t back_id;      /* view of that button; 0: no button */
};

void render_listing(struct message *message,
    const struct render_listing *listing, const struct config *config);
/* Show a file: text in a block, else as attachment.  total: its real size.
 * The data moves into the message. */
void render_file(struct message *message, struct collected_file *file,
    int64_t total, const struct render_env *env);
/* Send a file; the data moves into the message. */
void render_get(struct message *message, struct collected_file *file,
    const struct render_env *env);
/* Send a directory's zip; left_out: number of files that are not in it. */
void render_archive(struct message *message, const char *path,
    struct collect *collect, int64_t left_out, const struct render_env *env);
void render_written(struct message *message, const char *path, int64_t size,
    const struct run_outcome *outcome, const struct render_env *env);

/* ---- render_sandbox.c: sandboxes and their sessions ---- */

/* Sessions keep variables from run to run: their commands, and their notes in
 * the answers of runs. */
void render_session_start(struct message *message, const struct config *config);
void render_session_stop(struct message *message, bool was_on);
/* until: end of its interpreter's life, Unix seconds; 0: there is none. */
void render_session_status(struct message *message,
    const struct session *session, int64_t until);
/* Say below a run why its session began anew; 0: it did not. */
void render_session_ended(struct message *message, enum kept_end why);
/* Say below an answer that a sandbox was made; lost_at: when the one before it
 * expired, or 0. */
void render_made(struct message *message, int64_t lost_at);
void render_created(struct message *message, const struct sandbox *sandbox,
    bool created, const struct config *config);

#endif
