#ifndef RENDER_H
#define RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../store/job.h"
#include "collect.h"
#include "message.h"
#include "outcome.h"
#include "path.h"
#include "requirement.h"

struct config;
struct lease_status;
struct sandbox;

/*
 * A typed result becomes a message: pure functions, and the only place of the
 * worker that holds texts for people.  They tell the program's faults (exit
 * status, signal, limits) apart from ours ("sandbox error, reference 12"), and
 * never show an internal text.
 */
struct render_env {
	const struct config *config; /* for the limits that it names */
	int64_t reference;	     /* the job's id */
	int64_t file_most;	     /* bytes of one attachment */
	bool may_attach;
};

/* ---- render_run.c: what a run came to ---- */

/* Output, why it ended, its files (they move into the message). */
void render_run(struct message *message, const struct run_outcome *outcome,
    struct collect *collect, const struct render_env *env);
/* pip: while it runs, and at its end.  words: what was asked for. */
void render_pip_progress(struct message *message, const struct buf *log,
    int64_t elapsed_ms);
void render_pip(struct message *message, const struct run_outcome *outcome,
    const struct buf *log, char *const *words, const struct render_env *env);

/* ---- render_fault.c: why nothing came of it ---- */

/* A request that did not succeed; path: what it was about, "" for a run. */
void render_not_done(struct message *message, const struct run_outcome *outcome,
    const char *path, const struct render_env *env);
void render_refusal(struct message *message, enum refusal refusal,
    int64_t reference);
void render_error(struct message *message, int64_t reference);
void render_lost(struct message *message, enum job_kind kind,
    int64_t reference);
void render_too_late(struct message *message);
/* A newer il-fcgi took a command that this worker does not have. */
void render_unknown(struct message *message);
void render_no_sandbox(struct message *message);
void render_expired(struct message *message, const struct sandbox *sandbox);
void render_path(struct message *message, enum path_result result);
void render_not_editable(struct message *message, const char *path);
void render_too_large(struct message *message, int64_t size, int64_t most);
/* An attachment could not be fetched; gone: its link has expired. */
void render_not_fetched(struct message *message, bool gone);
void render_bad_requirements(struct message *message,
    enum requirements_result result, const char *word);

/* ---- render_files.c: files of a sandbox ---- */

struct render_listing {
	const char *path; /* of the directory */
	const struct collected_entry *entries;
	size_t count;
	int64_t total;
	int64_t page; /* from 1 */
	int64_t pages;
	int64_t used_bytes; /* -1: not told */
	int64_t used_files;
	int64_t view_id; /* for the buttons; 0: no buttons */
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
void render_written(struct message *message, const char *path, int64_t size,
    const struct run_outcome *outcome, const struct render_env *env);
void render_removed(struct message *message, const char *path);

/* ---- render_sandbox.c: sandboxes and the service ---- */

void render_created(struct message *message, const struct sandbox *sandbox,
    bool created, const struct config *config);
void render_deleted(struct message *message, bool at_once);

struct render_health {
	const char *broker_error; /* NULL: it answered */
	const struct lease_status *status;
	bool database;
	const struct job_counts *counts;
	int64_t skew_ms; /* our clock against Discord's */
	int64_t queue_max;
};

void render_health(struct message *message, const struct render_health *health);

/* ---- pieces ---- */

/* "12 ms", "1.25 s", "2 min 5 s". */
void render_add_duration(struct buf *out, int64_t us);
/* "1 file", "10,000 files": what in the singular. */
void render_add_count(struct buf *out, int64_t n, const char *what);
/* A path as `~/name`. */
void render_add_path(struct buf *out, const char *path);

#endif
