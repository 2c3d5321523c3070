/* SPDX-License-Identifier: MIT */
#ifndef CHAT_ANSWER_H
#define CHAT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/commands.h"

/*
 * Answers to Discord that need no worker: texts, /il help, suggested names, and
 * the JSON of all of them.  Only
 * answer_choices() reads the database.
 */

struct buf;
struct db;
struct err;

/* ---- texts ---- */

/* The sentences of texts.def. */
enum text_id {
#define TEXT(id, ...) TEXT_##id,
#include "discord/texts.def"
	TEXT_COUNT,
};

/* In the language that is set; static. */
const char *text_of(enum text_id id);
/* The word of a refusal for the log; static. */
const char *text_outcome(enum text_id id);

/* Append a text with the argument in the place of "{}".  The argument is made
 * safe to show and cut at 100 code points. */
void text_add(struct buf *out, enum text_id id, const char *argument);

/* ---- help ---- */

/* An example of `/il help`: its line, as typed, and the job that it makes. */
struct help_example {
	const char *line;
	enum job_kind kind;
	const char *text;  /* NULL: none */
	const char *input; /* likewise */
	bool timeit;
};

#define HELP_EXAMPLES 5
extern const struct help_example help_examples[HELP_EXAMPLES];

/* Append all of `/il help`; the examples are numbered from 1.  A command in
 * back-ticks can be clicked (sandbox/store/commands.h). */
void help_add(struct buf *out);
/* Append the names that are nearest to an unknown one, three at most: of
 * commands, or of one command's options. */
void help_add_near_command(struct buf *out, const char *name);
void help_add_near_option(struct buf *out, const struct command *command,
    const char *name);

/* ---- JSON ---- */

/*
 * Each function returns heap that the caller frees.  Every message carries
 * allowed_mentions with an empty parse list.  Texts are valid UTF-8 and within
 * Discord's limits.
 */

/* 1: to a PING. */
#define ANSWER_JSON_PONG "{\"type\":1}"
/* 5: "thinking…".  Whether only the invoker sees it cannot be changed later. */
#define ANSWER_JSON_PUBLIC "{\"type\":5}"
#define ANSWER_JSON_PRIVATE "{\"type\":5,\"data\":{\"flags\":64}}"
/* 6: a button's press is accepted, the message stays as it is for now. */
#define ANSWER_JSON_UPDATE "{\"type\":6}"
/* 8: no suggestions. */
#define ANSWER_JSON_NO_CHOICES "{\"type\":8,\"data\":{\"choices\":[]}}"

/* The same answer with words below its text; json is freed.  An answer that is
 * no message, or has no room for them, stays as it is. */
char *answer_below(char *json, const char *words);
/* 8: names of these kinds (sandbox.h) that are suggested for a half-typed one,
 * the best first; NULL: there are none, or err says why.  A suggestion can be
 * sent as it is: commands resolve it to that very name (protocol/path.h), from
 * cwd, the current directory of its sender. */
char *answer_choices(struct db *db, const char *sandbox_id, const char *cwd,
    const char *kinds, const char *typed, struct err *err);
/* 4: a message that only the invoker sees, or everybody. */
char *answer_message(const char *text, bool everybody);
/* 7: the message of the button becomes this text, without buttons. */
char *answer_update(const char *text);
/* 4, private, with the buttons delete-yes:<view> and delete-no:<view>. */
char *answer_delete_question(enum text_id question, int64_t view_id);
/* 4, private: a text, and the buttons example:1 and so on; five at most. */
char *answer_examples(const char *text, int count);
/* 4, private: a job is running, with the button cancel-other:<job>; fault: a
 * fault of ours may be the reason that it still is. */
char *answer_running(int64_t job_id, bool fault);
/* 4, private: the editor did not open in time; the button <action>:<view> tries
 * again. */
char *answer_editor_later(enum action action, int64_t view_id);
/* 9: the editor py:<view>, with the inputs `code` and `stdin`; the latter holds
 * `input` already, if it is not NULL. */
char *answer_editor(int64_t view_id, const char *input);

#endif
