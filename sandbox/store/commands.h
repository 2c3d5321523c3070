/* SPDX-License-Identifier: MIT */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct db;
struct err;

/*
 * The tables of commands.def, where each command and each button has its row:
 * what Discord is told of a command, what il-fcgi takes for it, which kind of
 * job it makes.  Options fill the fields of the job.
 */
enum job_kind {
#define COMMAND(kind, ...) JOB_##kind,
#include "store/commands.def"
	JOB_UNKNOWN, /* read from the database: a newer program's */
};

enum action {
#define ACTION(action, ...) ACTION_##action,
#include "store/commands.def"
	ACTION_COUNT,
};

enum command_place {
	COMMAND_NOWHERE,
	COMMAND_UNDER_IL, /* /il name */
	COMMAND_ROOT,	  /* /name; "/il name" is understood, too */
	COMMAND_BOTH,	  /* /il name and /name */
	COMMAND_MENU,	  /* in the menu of a message, by its description */
};

/* Each asks for what those before it ask for, too. */
enum command_needs {
	COMMAND_NEEDS_NOTHING,
	COMMAND_NEEDS_TURN,    /* one of these at a time for each person */
	COMMAND_NEEDS_OWNER,   /* il-fcgi takes it from who has a sandbox */
	COMMAND_NEEDS_SANDBOX, /* the worker prolongs the sandbox's life, or
				* makes one */
	COMMAND_NEEDS_LOOK,    /* and only looks: also beside a run of theirs */
};

/* As Discord numbers them. */
enum option_type {
	OPTION_STRING = 3,
	OPTION_INTEGER = 4,
	OPTION_BOOLEAN = 5,
	OPTION_ATTACHMENT = 11,
};

struct command_option {
	const char *name; /* NULL: there is none */
	enum option_type type;
	size_t at;    /* the field of a job that it fills */
	int most;     /* of a text: characters, as Discord is told */
	size_t bytes; /* and bytes, which il-fcgi takes */
	bool required;
	const char *description;
	const char *suggest; /* kinds of names (sandbox.h); NULL: none */
};

#define COMMAND_OPTIONS_MAX 8

struct command {
	const char *name; /* "group/name" of one in a group */
	enum command_place place;
	enum command_needs needs;
	const char *description;
	struct command_option options[COMMAND_OPTIONS_MAX];
};

/* By enum job_kind; that of JOB_UNKNOWN has only a name. */
extern const struct command commands[JOB_UNKNOWN + 1];

/* Group of commands under /il: the word before their names. */
struct command_group {
	const char *name;
	const char *description;
};

/* Ends with a row without a name. */
extern const struct command_group command_groups[];

enum action_type {
	ACTION_BUTTON,
	ACTION_EDITOR,
	ACTION_SELECT,
};

enum action_answer {
	ACTION_TO_UPDATE,
	ACTION_TO_MESSAGE,
	ACTION_TO_EDITOR,
};

struct command_action {
	const char *name;
	enum action_type type;
	enum job_kind kind; /* of its view */
	enum job_kind job;  /* that it makes */
	enum action_answer answer;
	int step; /* from the view's page to the next */
};

/* By enum action. */
extern const struct command_action command_actions[ACTION_COUNT];

/* Bounds, in bytes, of what people may send; everything longer is refused with
 * a friendly text. */
#define COMMAND_PATH_MAX 1024
#define COMMAND_VERSION_MAX 32 /* as IMAGES_NAME_MAX */
#define COMMAND_CODE_MAX 24000 /* 6,000 code points */
#define COMMAND_CONTENT_MAX 65536
#define COMMAND_PACKAGE_MAX 100
/* Highest page that Discord lets people choose; il-fcgi takes some more. */
#define COMMAND_PAGE_MAX 100000

/* As people type it, without the slash before it: "il session start", "health".
 * False: nobody types it. */
#define COMMAND_SPELT_MAX 40
bool command_spell(enum job_kind kind, char spelt[COMMAND_SPELT_MAX]);
/* The kind of a name. */
enum job_kind job_kind_find(const char *name);

/* The id that Discord carries, heap: of a view, or of another object. */
char *action_id(enum action action, int64_t id);

/* ---- the job of a command or an action ---- */

/* First response to Discord, unless the answer is there in time: then that is
 * the first response (protocol/handover.h). */
enum job_answer {
	ANSWER_DEFERRED,	/* type 5 was sent: PATCH @original */
	ANSWER_DEFERRED_UPDATE, /* type 6 was sent: PATCH @original edits the
				   * message that holds the button */
	ANSWER_EDITOR, /* it opens an editor, or a button that asks again */
};

/* Everything of a job.  Strings are heap; in a job that was read they are never
 * NULL ("" when absent) except where it says NULL.  job_init() leaves them
 * NULL, which job_insert() stores as "".  job_release() frees them; il-fcgi
 * lends its jobs the strings of the interaction, and releases none. */
struct job {
#define JOB(type, name) type name;
#include "store/columns.def"
	enum job_kind kind;
	bool lost; /* its worker died during it: that is still to be told */
	enum job_answer answer;
	char *body; /* finished: the message, JSON; NULL before */
};
#define JOB_HELD_NOWHERE (-1) /* held_by */

/* ---- ids of commands ---- */

/*
 * The ids that Discord gave the commands when they were registered for all
 * servers: with them people can click a command that a text names.
 */
struct command_ids {
	int64_t of[JOB_UNKNOWN]; /* by kind; 0: not known */
};

/* Of all kinds, for this application.  -1: ids is unchanged. */
int command_ids_load(struct db *db, int64_t application_id,
    struct command_ids *ids, struct err *err);
/* Keep those of Discord's answer, a list of objects, in the place of those that
 * were there (DB_WORKER or DB_ADMIN). */
int command_ids_keep(struct db *db, int64_t application_id, const char *answer,
    struct err *err);

/* Append a text of ours.  A command that it names in back-ticks and without
 * options, `/il create`, becomes one that is clicked, </il create:123>, where
 * its id is known; ids may be NULL.  At most four times as long. */
void command_add_text(struct buf *out, const struct command_ids *ids,
    const char *text);

#endif
