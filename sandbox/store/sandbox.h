/* SPDX-License-Identifier: MIT */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct db;
struct err;

/*
 * The row of a user's sandbox.  The folder on disk belongs to the broker; which
 * sandboxes there are, whose they are and when they expire is said here alone.
 *
 *	active → expiring (sweeper, `ilctl expire`) → expired (folder is gone)
 *	active → removing (/il delete)              → row is deleted
 *
 * An expired row stays so that its owner is told; /il create replaces it with a
 * new one (new id).  Times are Unix seconds.
 */
#define SANDBOX_ID_LEN 32

enum sandbox_state {
	SANDBOX_ACTIVE,
	SANDBOX_EXPIRING,
	SANDBOX_EXPIRED,
	SANDBOX_REMOVING,
};

struct sandbox {
	char id[SANDBOX_ID_LEN + 1]; /* lower-case hex, random */
	int64_t user_id;
	enum sandbox_state state;
	char cwd[1025]; /* "" is the workspace itself */
	int64_t used_at;
	int64_t expires_at;
	bool pinned; /* never expires */
	int64_t used_bytes;
	int64_t used_files;
	int64_t named_files; /* when its names were kept; -1: they are not those
			      * of now */
};

/* Their names, in the database and for people. */
extern const char *const sandbox_states[];

/* The active one, otherwise the newest that expires or has expired; one that is
 * being removed is not found.  1: the user has none. */
int sandbox_find(struct db *db, int64_t user_id, struct sandbox *sandbox,
    struct err *err);
/* Make the user's row (a fresh random id), or take the active one that is
 * there.  *created says which. */
int sandbox_create(struct db *db, int64_t user_id, int64_t retention_seconds,
    struct sandbox *sandbox, bool *created, struct err *err);
/* The user's active one is not to be used any more once its time is over: its
 * files are the sweeper's, and a new one can be made.  1: there is none of that
 * kind, or something is just being done in it. */
int sandbox_give_up(struct db *db, int64_t user_id, struct err *err);
/* Active, and its time is not over. */
bool sandbox_is_usable(const struct sandbox *sandbox);
/* These return 1 when the sandbox is not active (any more).
 * It was used now: used_at, and expires_at = now + retention, but never earlier
 * than an operator has set it. */
int sandbox_touch(struct db *db, const char *id, int64_t retention_seconds,
    struct err *err);
int sandbox_set_cwd(struct db *db, const char *id, const char *cwd,
    struct err *err);
/* renamed: the names in it are not those that are kept. */
int sandbox_set_usage(struct db *db, const char *id, int64_t bytes,
    int64_t files, bool renamed, struct err *err);

/* Take one that has expired (active, not pinned, expires_at <= now, no
 * unfinished job of its user) or that was left expiring or removing: marks an
 * active one expiring.  The same row is not given again for 60 s, so that two
 * sweepers do not meet and a folder that cannot be removed now is tried again
 * later.  1: there is none. */
int sandbox_take_expired(struct db *db, struct sandbox *sandbox,
    struct err *err);
/* Make those that were left expiring or removing due at once; returns how
 * many. */
int sandbox_retry(struct db *db, struct err *err);
/* Its folder is gone, and its names go: expiring → expired, removing → row
 * deleted (the expired row too when its user has a new sandbox).  1: it was
 * neither. */
int sandbox_gone(struct db *db, const char *id, struct err *err);
/* active → removing.  1: it is not active any more. */
int sandbox_remove(struct db *db, const char *id, struct err *err);

struct sandbox_counts {
	/* overdue: active ones over their time, and not pinned */
	int64_t active, overdue, expiring, removing;
};
int sandbox_count(struct db *db, struct sandbox_counts *counts,
    struct err *err);

/* Seconds (at least 1, so that it can be slept) until the next active, unpinned
 * one expires; -1: none, or an error: err->code says which. */
int64_t sandbox_next_expiry(struct db *db, struct err *err);

/* ---- sessions ---- */

/*
 * Session of a sandbox, its memory from run to run, as last reported to its
 * owner.  The broker alone knows whether it is still there.  Times are Unix
 * seconds.
 */
struct session {
	int64_t started_at; /* 0: no session is on */
	int64_t kept_at;    /* an interpreter was kept then; 0: none */
	int64_t ended;	    /* why the last one has, to be told; 0: nothing */
	int64_t names;
	int64_t bytes;
};

/* All zeros when there was never one. */
int session_find(struct db *db, const char *sandbox, struct session *session,
    struct err *err);
int session_put(struct db *db, const char *sandbox,
    const struct session *session, struct err *err);

/* ---- names in a sandbox ---- */

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

/* Can it be shown, chosen and sent back as it is?  NAMES_BYTES of visible UTF-8
 * at most, and no blank at either end, where Discord strips it. */
bool name_is_fit(const char *text, size_t len);

/* Keep these, fit ones, in the place of those that there are: directories and
 * files, of which there are `files`; or, when that is -1, the packages of
 * `python`.  1: the sandbox is on its way out, nothing is kept. */
int names_keep(struct db *db, const char *sandbox_id, const char *python,
    int64_t files, const struct name *list, size_t count, struct err *err);

/* ---- rules ---- */

/* Rules that the operator writes by `ilctl service`, `guild`, `user`; il-fcgi
 * and the workers obey them with the next command. */
enum rule_subject { RULE_SERVICE, RULE_GUILD, RULE_USER, RULE_SUBJECTS };

/* As the database has them. */
extern const char *const rule_subjects[];

/* Of reason and banner, in code points; and their room. */
#define RULE_TEXT_MOST 300
#define RULE_TEXT_SIZE (4 * RULE_TEXT_MOST + 1)

struct rule {
	bool blocked; /* of the service: it is paused */
	char reason[RULE_TEXT_SIZE];
	char banner[RULE_TEXT_SIZE]; /* of the service: below all answers */
	/* 0: as the settings say, or no limit */
	int64_t rate; /* commands in 60 s */
	int64_t jobs; /* that are not over, at one time */
	int64_t timeout_ms;
	int64_t quota;
	int64_t changed_at; /* Unix seconds; 0: there is no rule */
};

/* The rules for a person in a server; ids of 0: of nobody. */
struct rules {
	struct rule of[RULE_SUBJECTS];
};
int rules_find(struct db *db, int64_t user_id, int64_t guild_id,
    struct rules *rules, struct err *err);
/* A number of struct rule, by its offset: the person's, else the server's, else
 * that of all, else what the settings say. */
int64_t rules_number(const struct rules *rules, size_t at, int64_t usual);

/* Append the operator's words as a line that is a quotation: made safe to show,
 * and unable to begin code.  RULE_SHOWN_MOST code points at most. */
#define RULE_SHOWN_MOST (RULE_TEXT_MOST + 4)
void rule_add_text(struct buf *out, const char *text);

/* Write one; a rule that says nothing leaves no row.  DB_ADMIN alone may. */
int rule_put(struct db *db, enum rule_subject subject, int64_t id,
    const struct rule *rule, struct err *err);

#endif
