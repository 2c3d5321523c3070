/* SPDX-License-Identifier: MIT */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "store/commands.h"

struct db;
struct err;

/* Texts of a run. */
struct view_texts {
#define VIEW_TEXT(type, name) type name;
#include "store/columns.def"
};

/*
 * Object that a button or a modal refers to.  Discord carries "<action>:<view
 * id>" and nothing else.  Owner and subject stand here, so a button works after
 * a restart and cannot be forged into something else.
 */
struct view {
#define VIEW(type, name, ...) type name __VA_ARGS__;
#include "store/columns.def"
	enum job_kind kind; /* the command it is of; JOB_UNKNOWN: a newer one */
	/* borrowed, for view_insert() and view_set_run(); NULL: none */
	const struct view_texts *texts;
};

/* Bytes of output and of files at most: who inserts cuts them. */
#define VIEW_TEXT_MAX 65536
#define VIEW_FILES_MAX 25

/* Heap; all NULL, before and after. */
void view_texts_release(struct view_texts *texts);
#define auto_view_texts __attribute__((cleanup(view_texts_release)))

/* Sets view->id.  The trigger views_bounded of sql/ deletes what is
 * beyond the owner's newest 500 rows and 4 MiB. */
int view_insert(struct db *db, struct view *view, struct err *err);
/* 1: there is no such view (any more). */
int view_find(struct db *db, int64_t id, struct view *view, struct err *err);
/* 1: there is no such view. */
int view_set_page(struct db *db, int64_t id, int64_t page, struct err *err);

/* Number of a user's newest `most` views that were made after since_ms; -1:
 * error. */
int64_t view_count(struct db *db, int64_t user_id, int64_t since_ms,
    int64_t most, struct err *err);

/* ---- for workers ---- */

/* view_find() with its texts, "" where there are none; release them when the
 * result is 0. */
int view_load(struct db *db, int64_t id, struct view *view,
    struct view_texts *texts, struct err *err);
/* Keep text, input, version and timeit.  1: there is no such view. */
int view_set_program(struct db *db, const struct view *view, struct err *err);
/* It was run again: keep version, input, output, files and package.  1: there
 * is no such view. */
int view_set_run(struct db *db, const struct view *view, struct err *err);
/* Make a copy that everybody may see, without output.  1: there is no such
 * view, or it was shared less than ten seconds ago. */
int view_share(struct db *db, const struct view *view, int64_t *copy,
    struct err *err);
/* 1: this user has no such view. */
int view_remove(struct db *db, int64_t id, int64_t user_id, struct err *err);
/* All of a user's: how many they were, or -1. */
int view_forget(struct db *db, int64_t user_id, struct err *err);

#endif
