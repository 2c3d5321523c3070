/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_ID_H
#define COMMAND_ID_H

#include <stddef.h>
#include <stdint.h>

#include "store/commands.h"

struct buf;
struct db;
struct err;

/*
 * The ids that Discord gave the commands when they were registered for all
 * servers: with them people can click a command that a text names.
 */
struct command_ids {
	int64_t of[JOB_UNKNOWN]; /* by kind; 0: not known */
};

/* A registered command: "il" stands for all that are under it. */
struct command_id {
	char name[33];
	int64_t id;
};

/* Of all kinds, for this application.  -1: ids is unchanged. */
int command_ids_load(struct db *db, int64_t application_id,
    struct command_ids *ids, struct err *err);
/* In the place of those that were there (DB_WORKER or DB_ADMIN). */
int command_ids_keep(struct db *db, int64_t application_id,
    const struct command_id *list, size_t count, struct err *err);

/* Append a text of ours.  A command that it names in back-ticks and without
 * options, `/il create`, becomes one that is clicked, </il create:123>, where
 * its id is known; ids may be NULL.  At most four times as long. */
void command_add_text(struct buf *out, const struct command_ids *ids,
    const char *text);

#endif
