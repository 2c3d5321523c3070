/* SPDX-License-Identifier: MIT */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "rest/rest.h"
#include "store/commands.h"
#include "store/job.h"
#include "worker/render/filename.h"

/*
 * A message under construction, and the only place that knows what Discord
 * takes: 2,000 code points, ten files, five rows.  A message that would be
 * longer is cut, never refused, and none can mention anyone.
 *
 * It is put together as lead, code block, tail; only the block gives way when
 * there is not room for all.
 */
#define MESSAGE_CONTENT_MAX 2000
#define MESSAGE_FILES_MAX 10
#define MESSAGE_OPTIONS_MAX 25 /* of a menu */
#define MESSAGE_LINES_MAX 20   /* of a program's output */
/* Of all files together: a request may have 25 MiB. */
#define MESSAGE_BYTES_MAX (24 * 1024 * 1024)

/* The part that goes when the block does not fit. */
enum message_cut {
	MESSAGE_CUT_END,
	MESSAGE_CUT_MIDDLE,
	MESSAGE_CUT_START,
};

struct message {
	struct buf lead;  /* Markdown; valid UTF-8 by construction */
	struct buf block; /* what the block shows, defused */
	const char *language;
	enum message_cut cut;
	size_t lines_max; /* that are shown of it; 0: any number */
	struct buf tail;
	struct buf without; /* follows the tail when the files are not sent */
	struct rest_file files[MESSAGE_FILES_MAX]; /* heap, owned */
	/* of each file, heap: the name that it really has, where that is
	 * another; for who does not see a picture, NULL: none */
	char *titles[MESSAGE_FILES_MAX];
	char *descriptions[MESSAGE_FILES_MAX];
	size_t file_count;
	json_t *rows; /* of buttons and menus, as Discord takes them; NULL:
		       * none */
	/* of the commands that its texts name in back-ticks, `/il rm`, and that
	 * are clicked then (commands.h); borrowed, NULL: none */
	const struct command_ids *ids;
	/* the operator's, below all of it (store/rule.h); borrowed, NULL or
	 * "": none */
	const char *banner;
};

#define MESSAGE_PART_MAX 16384 /* bytes of lead, tail or without */
/* An empty one; commands: the ids.  The block is given its size when it is
 * set. */
/* clang-format off */
#define MESSAGE_FOR(commands) { .lead = BUF_INIT(MESSAGE_PART_MAX), \
	.language = "", .tail = BUF_INIT(MESSAGE_PART_MAX), \
	.without = BUF_INIT(MESSAGE_PART_MAX), .ids = (commands) }
#define MESSAGE_INIT MESSAGE_FOR(NULL)
/* clang-format on */
/* Forget everything but ids and banner; it is an empty message again. */
void message_release(struct message *message);
#define auto_message __attribute__((cleanup(message_release)))

/* Our own Markdown is added to the parts with buf_add*().  Anything of a
 * stranger's goes through message_add_name(), message_set_block() or
 * message_set_output().
 *
 * Append a stranger's name or word as inline code: one line, at most `most`
 * code points, nothing in it is markup. */
void message_add_name(struct buf *out, const char *name, size_t most);

/* Append it without the back-ticks around it: for a line of a block. */
void message_add_word(struct buf *out, const char *name, size_t most);

/* The beginning of a name that fits into a title or label, one line after our
 * prefix; heap, NULL: nothing is left of it. */
char *message_line(const char *prefix, const char *name, size_t most);

/* The next part, which begins with a full stop: so one at the end goes. */
const char *message_part(struct buf *out, const char *next)
    __attribute__((format_arg(2)));

/* The code block's text: made safe to show, and unable to end its block.
 * language: "" or a tag of ours. */
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

/* Append all that it says as a text file may show it: the block whole, and what
 * is said when the files are not sent. */
void message_add_text(struct buf *out, const struct message *message);

/* Attach a file, whose data is moved in any case.  Returns the unique name that
 * was made of it (filename.h); NULL: ten are there, or it is too much. */
const char *message_attach(struct message *message, const char *path,
    struct buf *data);

/* What the file that was attached last shows, for who does not see it (alt
 * text): cut at Discord's limit.  name: a stranger's, for the end of it. */
void message_describe(struct message *message, const char *text,
    const char *name);

/* style: Discord's, 1 blue, 2 grey, 3 green, 4 red; `disabled` shows it and
 * lets nobody press it. */
void message_add_button(struct message *message, enum action action,
    int64_t view_id, const char *label, int style, bool disabled);
/* A menu to choose one option from; then its options, MESSAGE_OPTIONS_MAX of
 * them are kept. */
void message_add_menu(struct message *message, enum action action,
    int64_t view_id, const char *hint);
/* name: a stranger's; value: ours; chosen: shown while nothing else is. */
void message_add_option(struct message *message, const char *name,
    const char *value, bool chosen);

/* The JSON of an edit or follow-up; heap, caller frees.  Without files: with
 * the text for that case instead. */
char *message_json(const struct message *message, bool with_files);
/* Such a JSON as that of a further message, which its invoker alone sees since
 * the server's moderation forbids it: that is said where there is room. */
char *message_private_json(const char *json);
/* Does the message say that its user alone sees it? */
bool message_is_private(const char *json);
/* The same as the first response to an interaction, without files: a message of
 * its own, which its invoker alone sees, or the new text of the message that a
 * button stands in. */
char *message_response_json(const struct message *message,
    enum job_answer answer);

#endif
