/* SPDX-License-Identifier: MIT */
#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct err;

/*
 * The names in a sandbox, for il-fcgi to complete what somebody types: paths of
 * directories and files, projects that are installed.  A worker keeps what a
 * cell told last; nothing but these suggestions depends on it.  They are
 * forgotten with the sandbox.
 */
#define NAMES_MOST 1000 /* directories and files; packages of one Python */
#define NAMES_BYTES 200 /* of each; longer ones are not kept */

enum name_kind {
	NAME_DIRECTORY,
	NAME_FILE,
	NAME_PACKAGE,
	NAME_KINDS,
};

struct name {
	enum name_kind kind;
	const char *text; /* borrowed */
};

/* Can it be shown, chosen and sent back as it is?  Valid UTF-8 of at most
 * NAMES_BYTES without anything that is not seen, and no blank at either end,
 * where Discord strips it. */
bool name_is_fit(const char *text, size_t len);

/*
 * Keep these, fit ones, in the place of those that there are: directories and
 * files, of which there are `files`; or, when that is -1, the packages of
 * `python`.  1: the sandbox is on its way out, nothing is kept.
 */
int names_keep(struct db *db, const char *sandbox_id, const char *python,
    int64_t files, const struct name *list, size_t count, struct err *err);

/* Give each name of a kind to `take`, of packages those of every Python. */
int names_each(struct db *db, const char *sandbox_id, enum name_kind kind,
    void (*take)(void *arg, const struct name *name), void *arg,
    struct err *err);

int names_forget(struct db *db, const char *sandbox_id, struct err *err);

#endif
