/* SPDX-License-Identifier: MIT */
#ifndef VIEW_H
#define VIEW_H

#include <stdint.h>

#include "commands.h"

struct db;
struct err;

/*
 * What a button or a modal refers to.  Discord carries "<action>:<view id>" and
 * nothing else; whose it is and what it is about stands here, so that it works
 * after a restart and cannot be forged into something else.
 */
struct view {
	int64_t id;
	int64_t user_id;
	enum job_kind kind; /* the command it is of; JOB_UNKNOWN: a newer one */
	char path[1025];    /* LOOK: what is listed; WRITE: what is edited;
			     * DELETE: the sandbox's id */
	int64_t page;	    /* LOOK */
	int64_t share;	    /* PY */
	char version[COMMAND_VERSION_MAX + 1]; /* PY: of Python, "": usual */
	const char *text;  /* borrowed, for view_insert() alone: PY: code */
	const char *input; /* and its standard input */
};

/* Sets view->id. */
int view_insert(struct db *db, struct view *view, struct err *err);
/* 1: there is no such view (any more). */
int view_find(struct db *db, int64_t id, struct view *view, struct err *err);
/* il-worker: what view_insert() was given as its text; heap, "" for none.  1:
 * there is no such view (any more). */
int view_text(struct db *db, int64_t id, char **text, struct err *err);
int view_set_text(struct db *db, int64_t id, const char *text, struct err *err);
/* 1: there is no such view. */
int view_set_page(struct db *db, int64_t id, int64_t page, struct err *err);

#endif
