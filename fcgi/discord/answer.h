/* SPDX-License-Identifier: MIT */
#ifndef ANSWER_H
#define ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "store/commands.h"

/*
 * The JSON of what Discord is answered at once.  Pure functions; each returns
 * heap that the caller frees.  Every message carries allowed_mentions with an
 * empty parse list.  Texts are valid UTF-8 and within Discord's limits.
 */

struct buf;
struct suggestion;

/* The sentences of texts.def. */
enum text_id {
#define TEXT(id, ...) TEXT_##id,
#include "discord/texts.def"
	TEXT_COUNT,
};

/* In the language that is set; static. */
const char *text_of(enum text_id id);

/* Append one with the argument in the place of "{}".  The argument is made safe
 * to show and cut at 100 code points. */
void text_add(struct buf *out, enum text_id id, const char *argument);

/* 1: to a PING. */
#define ANSWER_JSON_PONG "{\"type\":1}"
/* 5: "thinking…".  Whether only the invoker sees it cannot be changed later. */
#define ANSWER_JSON_PUBLIC "{\"type\":5}"
#define ANSWER_JSON_PRIVATE "{\"type\":5,\"data\":{\"flags\":64}}"
/* 6: a button's press is taken, the message stays as it is for now. */
#define ANSWER_JSON_UPDATE "{\"type\":6}"
/* 8: no suggestions. */
#define ANSWER_JSON_NO_CHOICES "{\"type\":8,\"data\":{\"choices\":[]}}"

/* The same answer, with words below what it says; json is freed.  What is no
 * message, or has no room for them, stays as it is. */
char *answer_below(char *json, const char *words);
/* 8: these, in their order. */
char *answer_choices(const struct suggestion *list, size_t count);
/* 4: a message that only the invoker sees. */
char *answer_message(const char *text);
/* 4: one that everybody sees. */
char *answer_message_public(const char *text);
/* 7: the message of the button becomes this text, without buttons. */
char *answer_update(const char *text);
/* 4, private, with the buttons delete-yes:<view> and delete-no:<view>. */
char *answer_delete_question(enum text_id question, int64_t view_id);
/* 4, private: a text, and the buttons example:1 and so on; five at most. */
char *answer_examples(const char *text, int count);
/* 4, private: a job is running, with the button cancel-other:<job>; fault: it
 * may be ours that it still does. */
char *answer_running(int64_t job_id, bool fault);
/* 4, private: the editor did not open in time, the button <action>:<view> tries
 * again. */
char *answer_editor_later(enum action action, int64_t view_id);
/* 9: the editor py:<view>, with the inputs `code` and `stdin`; the latter holds
 * `input` already, if it is not NULL. */
char *answer_editor(int64_t view_id, const char *input);

#endif
