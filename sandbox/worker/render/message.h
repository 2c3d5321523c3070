/* SPDX-License-Identifier: MIT */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/basics.h"
#include "rest/rest.h"
#include "store/commands.h"
#include "store/job.h"

/*
 * A message under construction, and the only place that knows Discord's limits:
 * 2,000 code points, ten files, five rows.  A longer message is cut, never
 * refused, and none can mention anyone.
 *
 * Its parts are lead, code block and tail; only the block is cut if there is
 * not room for all.
 */
#define MESSAGE_CONTENT_MAX 2000
#define MESSAGE_FILES_MAX 10
#define MESSAGE_OPTIONS_MAX 25 /* of a menu */
#define MESSAGE_LINES_MAX 20   /* of a program's output */
/* Of all files together: a request may have 25 MiB. */
#define MESSAGE_BYTES_MAX (24 * 1024 * 1024)

/* Part of the block that is cut. */
enum message_cut {
	MESSAGE_CUT_END,
	MESSAGE_CUT_MIDDLE,
	MESSAGE_CUT_START,
};

struct message {
	struct buf lead;  /* Markdown; valid UTF-8 by construction */
	struct buf block; /* text of the block, defused */
	const char *language;
	enum message_cut cut;
	size_t lines_max; /* that are shown of it; 0: any number */
	struct buf tail;
	struct buf without; /* follows the tail when the files are not sent */
	struct rest_file files[MESSAGE_FILES_MAX]; /* heap, owned */
	/* of each file, heap: its real name, if that differs; its alt text;
	 * NULL: none */
	char *titles[MESSAGE_FILES_MAX];
	char *descriptions[MESSAGE_FILES_MAX];
	size_t file_count;
	json_t *rows; /* of buttons and menus, as Discord takes them; NULL:
		       * none */
	/* of those, borrowed: the last row if it has buttons, the options of
	 * the last menu; or NULL */
	json_t *buttons;
	json_t *options;
	/* ids of the commands that its texts name in back-ticks, `/il rm`, and
	 * that can be clicked then (commands.h); borrowed, NULL: none */
	const struct command_ids *ids;
	/* the operator's text below the message (store/sandbox.h); borrowed,
	 * NULL or "": none */
	const char *banner;
};

#define MESSAGE_PART_MAX 16384 /* bytes of lead, tail or without */
/* Empty message; commands: the ids.  The block gets its size when it is set. */
/* clang-format off */
#define MESSAGE_FOR(commands) { .lead = BUF_INIT(MESSAGE_PART_MAX), \
	.language = "", .tail = BUF_INIT(MESSAGE_PART_MAX), \
	.without = BUF_INIT(MESSAGE_PART_MAX), .ids = (commands) }
#define MESSAGE_INIT MESSAGE_FOR(NULL)
/* clang-format on */
/* Empty the message, which keeps its ids and banner. */
void message_release(struct message *message);
#define auto_message __attribute__((cleanup(message_release)))

/* Our own Markdown is added to the parts with buf_add*().  Strangers' texts go
 * through message_add_name(), message_set_block() or message_set_output().
 *
 * Append a stranger's name or word as inline code: one line, at most `most`
 * code points, nothing in it is markup. */
void message_add_name(struct buf *out, const char *name, size_t most);

/* Append a word likewise, without the back-ticks: for a line of a block. */
void message_add_word(struct buf *out, const char *name, size_t most);

/* Prefix and the beginning of a name that fits into a title or label; heap,
 * NULL: it is empty. */
char *message_line(const char *prefix, const char *name, size_t most);

/* Cut a full stop at the end of out, since `next` begins with one.  Returns
 * next. */
const char *message_part(struct buf *out, const char *next)
    __attribute__((format_arg(2)));

/* Set the code block's text, which is made safe to show and cannot end its
 * block.  language: "" or a tag of ours. */
void message_set_block(struct message *message, const char *text, size_t len,
    const char *language, enum message_cut cut);
/* Set a program's output as the block's text: as a terminal shows it
 * (terminal.h), in colours where it has some, and MESSAGE_LINES_MAX lines. */
void message_set_output(struct message *message, const char *text, size_t len,
    enum message_cut cut);
/* Remove the zero-width spaces between the back-ticks of a block, in place. */
void message_join_ticks(char *text);
/* Does the whole block fit? */
bool message_fits(const struct message *message);

/* Append the message as a text file shows it: the whole block, and the text for
 * the case without files. */
void message_add_text(struct buf *out, const struct message *message);

/* Attach a file, whose data is moved in any case.  Returns the unique name that
 * was made of it (collect.h); NULL: ten are there, or it is too much. */
const char *message_attach(struct message *message, const char *path,
    struct buf *data);

/* Set the alt text of the last attached file, cut at Discord's limit.  name: a
 * stranger's, at its end. */
void message_describe(struct message *message, const char *text,
    const char *name);

/* style: Discord's, 1 blue, 2 grey, 3 green, 4 red; a disabled one is shown but
 * cannot be pressed. */
void message_add_button(struct message *message, enum action action,
    int64_t view_id, const char *label, int style, bool disabled);
/* Add a menu to choose one option from, and then its options,
 * MESSAGE_OPTIONS_MAX at most. */
void message_add_menu(struct message *message, enum action action,
    int64_t view_id, const char *hint);
/* name: a stranger's; value: ours; chosen: shown while nothing else is. */
void message_add_option(struct message *message, const char *name,
    const char *value, bool chosen);

/* The JSON of an edit or follow-up; heap, caller frees.  Without files: with
 * the text for that case instead. */
char *message_json(const struct message *message, bool with_files);
/* Such a JSON as that of a further message that only its invoker sees, as the
 * server's moderation refused it; it says so where there is room. */
char *message_private_json(const char *json);
/* Is the message one that only its user sees? */
bool message_is_private(const char *json);
/* The same as the first response to an interaction, without files: a message
 * that only its invoker sees, or the new content of a button's message. */
char *message_response_json(const struct message *message,
    enum job_answer answer);

/* ---- phrase.c: pieces of a sentence ---- */

#define PATH_SHOWN 80 /* code points of a path in a sentence */

/* Piece of a sentence, in its language, which lives as long as the call that it
 * is an argument of. */
struct phrase {
	char text[512];
};

struct phrase phrase_words(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* "10000", for a number that people do not count. */
struct phrase phrase_number(int64_t n);
/* "10,000", not negative. */
struct phrase phrase_count(int64_t n);
/* "1.5 MiB", "812 B". */
struct phrase phrase_size(int64_t bytes);
/* "0.5" for 500. */
struct phrase phrase_thousandths(int64_t n);
/* "1 file", "10,000 files". */
struct phrase phrase_files(int64_t n);
/* "12 ms", "1.25 s", "2 min 5 s". */
struct phrase phrase_duration(int64_t us);
/* A time in its largest whole unit: 15 minutes, 7 days. */
struct phrase phrase_span(int64_t seconds);
/* A stranger's word as inline code, at most `most` (<= 80) code points. */
struct phrase phrase_name(const char *name, size_t most);
/* A path of a sandbox, as ~/name; heap. */
char *phrase_tilde(const char *path);
/* The same as inline code. */
struct phrase phrase_path(const char *path);

#endif
