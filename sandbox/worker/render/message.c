/* SPDX-License-Identifier: MIT */
#include "worker/render/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "base/text.h"
#include "base/utf8.h"
#include "locale/locale.h"
#include "protocol/path.h"
#include "store/sandbox.h"
#include "worker/render/collect.h"
#include "worker/render/terminal.h"

#define LEAD_MOST 900 /* code points */
#define TAIL_MOST 900
#define TITLE_MOST 1024
#define BLOCK_LEAST 16 /* a shorter piece of a block is not worth it */
#define FLAG_EPHEMERAL 64
#define FLAG_NO_EMBEDS 4

#define FALLBACK \
	"{\"content\":\"Sandbox error: the answer is lost.\"," \
	"\"allowed_mentions\":{\"parse\":[]}}"

/* Keeps two back-ticks of a block apart: a zero-width space. */
#define APART "\xe2\x80\x8b"
#define TICK_LOOKALIKE "\xcb\x8b" /* modifier letter grave accent */
#define ELLIPSIS "\xe2\x80\xa6"

#define SNAP_BYTES 160 /* distance that a cut moves to a line's end */
/* The line between two parts, and the colours that end and begin there. */
#define CUT_POINTS (64 + sizeof(SGR_RESET) - 1 + SGR_MAX)
#define DESCRIPTION_MOST 1024 /* code points of an alt text */

void
message_release(struct message *message)
{
	struct message empty = MESSAGE_FOR(message->ids);

	buf_release(&message->lead);
	buf_release(&message->block);
	buf_release(&message->tail);
	buf_release(&message->without);
	for (size_t i = 0; i < message->file_count; i++) {
		free(message->files[i].name);
		free(message->files[i].data);
		free(message->titles[i]);
		free(message->descriptions[i]);
	}
	json_decref(message->rows);
	empty.banner = message->banner;
	*message = empty;
}

/* ---- text ---- */

/* Append a name as one clean line, at most `most` code points.  False: it is
 * cut.  It is cleaned first, so that dropped characters take no room. */
static bool
add_line(struct buf *out, const char *name, size_t most)
{
	auto_buf struct buf clean = BUF_INIT(3 * strlen(name) + 1);
	size_t shown;

	text_add_clean(&clean, name, strlen(name));
	shown = text_prefix(buf_str(&clean), clean.len, most);
	for (size_t i = 0; i < shown; i++) {
		char c = clean.data[i];

		buf_addc(out, c == '\n' || c == '\t' ? ' ' : c);
	}
	return shown == clean.len;
}

void
message_add_word(struct buf *out, const char *name, size_t most)
{
	auto_buf struct buf line = BUF_INIT(4 * most + 1);
	bool whole = add_line(&line, name, most);
	char *next = line.data;
	char *part;

	while ((part = strsep(&next, "`")) != NULL)
		buf_addf(out, "%s%s", part, next != NULL ? TICK_LOOKALIKE : "");
	if (!whole)
		buf_adds(out, ELLIPSIS);
	else if (line.len == 0)
		buf_addc(out, ' ');
}

void
message_add_name(struct buf *out, const char *name, size_t most)
{
	buf_addc(out, '`');
	message_add_word(out, name, most);
	buf_addc(out, '`');
}

char *
message_line(const char *prefix, const char *name, size_t most)
{
	auto_buf struct buf line = BUF_INIT(strlen(prefix) + 4 * most + 1);

	buf_adds(&line, prefix);
	(void)add_line(&line, name,
	    most - text_codepoints(prefix, strlen(prefix)));
	return line.len > 0 ? buf_steal(&line, NULL) : NULL;
}

const char *
message_part(struct buf *out, const char *next)
{
	size_t stop = utf8_step(next, strlen(next));

	if (stop > 0 && out->len >= stop &&
	    memcmp(out->data + out->len - stop, next, stop) == 0)
		buf_cut(out, out->len - stop);
	return next;
}

/* Make the text the block, without the line ends at its end.  No two back-ticks
 * may be adjacent in it. */
static void
set_block(struct message *message, struct buf *text, const char *language,
    enum message_cut cut, size_t lines_max)
{
	struct buf *block = &message->block;
	char *next = text->data;
	char *part;

	while (text->len > 0 && text->data[text->len - 1] == '\n')
		buf_cut(text, text->len - 1);
	buf_release(block);
	buf_init(block, 4 * text->len + 1); /* were it all back-ticks */
	while ((part = strsep(&next, "`")) != NULL) {
		buf_adds(block, part);
		if (next != NULL)
			buf_adds(block, *next == '`' ? "`" APART : "`");
	}
	message->language = language;
	message->cut = cut;
	message->lines_max = lines_max;
}

void
message_join_ticks(char *text)
{
	static const char apart[] = "`" APART "`";
	const char *p = text;
	const char *found;
	char *to = text;

	while ((found = strstr(p, apart)) != NULL) {
		memmove(to, p, (size_t)(found + 1 - p));
		to += found + 1 - p;
		p = found + sizeof(apart) - 2;
	}
	memmove(to, p, strlen(p) + 1);
}

void
message_set_block(struct message *message, const char *text, size_t len,
    const char *language, enum message_cut cut)
{
	auto_buf struct buf clean = BUF_INIT(3 * len + 1);

	text_add_clean(&clean, text, len);
	set_block(message, &clean, language, cut, 0);
}

void
message_set_output(struct message *message, const char *text, size_t len,
    enum message_cut cut)
{
	auto_buf struct buf shown = BUF_INIT(TERMINAL_SHOWN_MAX(len));
	bool coloured = terminal_show(&shown, text, len, TERMINAL_COLOURS);

	set_block(message, &shown, coloured ? "ansi" : "", cut,
	    MESSAGE_LINES_MAX);
}

/* ---- cutting a block ---- */

/*
 * A text that is too long is cut to both ends, or to one, and a line says how
 * much is left out.  A cut is at a line's end if one is near.  The text is
 * valid UTF-8, with colours as in terminal.h.  Colours count as code points,
 * end before that line and go on after it.
 */

/* The end of the first lines: their last line end, or the end of all. */
static size_t
lines_end(const char *text, size_t len, size_t lines)
{
	const char *at = text;

	while ((at = memchr(at, '\n', (size_t)(text + len - at))) != NULL &&
	    --lines > 0)
		at++;
	return at != NULL ? (size_t)(at - text) : len;
}

/* The beginning of the last lines. */
static size_t
lines_begin(const char *text, size_t len, size_t lines)
{
	const char *at = text + len;

	while ((at = memrchr(text, '\n', (size_t)(at - text))) != NULL &&
	    --lines > 0)
		continue;
	return at != NULL ? (size_t)(at + 1 - text) : 0;
}

/* The sequence before a place in a text, which has the colours that hold there
 * (terminal.h); "": there is none. */
static const char *
sequence_before(const char *text, size_t at)
{
	const char *escape = memrchr(text, '\033', at);

	return escape != NULL ? escape : "";
}

/* Length of a sequence with colours; 0: it ends them, or is none. */
static int
colours(const char *sequence)
{
	return *sequence == '\0' ||
		strncmp(sequence, SGR_RESET, strlen(SGR_RESET)) == 0 ?
	    0 :
	    (int)strcspn(sequence, "m") + 1;
}

/* Move a place within a sequence before that sequence. */
static size_t
outside(const char *text, size_t at)
{
	const char *sequence = sequence_before(text, at);

	return *sequence != '\0' &&
		sequence + strcspn(sequence, "m") >= text + at ?
	    (size_t)(sequence - text) :
	    at;
}

/* Count visible code points, without those of the colours. */
static size_t
seen_points(const char *text, size_t len)
{
	size_t points = text_codepoints(text, len);
	const char *end = text + len;

	for (; (text = memchr(text, '\033', (size_t)(end - text))) != NULL;
	     text++)
		points -= strcspn(text, "m") + 1;
	return points;
}

/* Append the line in the place of the text between head and tail; it counts
 * lines if whole lines are cut. */
static void
add_left_out(struct buf *out, const char *text, size_t len, size_t head,
    size_t tail)
{
	bool whole = (head == 0 || text[head] == '\n') &&
	    (tail == len || text[tail - 1] == '\n');
	size_t lines = tail == len ? 1 : 0;
	size_t amount;

	for (size_t i = head > 0 ? head + 1 : 0; i < tail; i++)
		lines += text[i] == '\n' ? 1 : 0;
	amount = whole ? lines : seen_points(text + head, tail - head);
	buf_addf(out, "%s" ELLIPSIS " ", head > 0 ? "\n" : "");
	buf_addf(out,
	    whole ? /* Translators: at most 40 characters */
		Q_("%zu line left out", "%zu lines left out", (int64_t)amount) :
		/* Translators: at most 40 characters */
		Q_("%zu character left out", "%zu characters left out",
		    (int64_t)amount),
	    amount);
	buf_addf(out, " " ELLIPSIS "%s", tail < len ? "\n" : "");
}

/* Does the text have at most `room` code points and lines_max lines (0: any
 * number)? */
static bool
cut_fits(const char *text, size_t len, size_t lines_max, size_t room)
{
	return text_codepoints(text, len) <= room &&
	    (lines_max == 0 || lines_end(text, len, lines_max) == len);
}

/* The end of the part that is shown of the beginning: after some lines or code
 * points; a line's end near those is better. */
static size_t
cut_head(const char *text, size_t len, size_t points, size_t lines)
{
	size_t head = text_prefix(text, len, points);
	size_t end = lines > 0 ? lines_end(text, len, lines) : len;
	size_t near = head < SNAP_BYTES ? head : SNAP_BYTES;
	const char *line;

	if (end <= head)
		return end;
	line = memrchr(text + head - near, '\n', near);
	return line != NULL ? (size_t)(line - text) : outside(text, head);
}

/* The beginning of the part that is shown of the end. */
static size_t
cut_tail(const char *text, size_t len, size_t points, size_t lines)
{
	size_t total = text_codepoints(text, len);
	size_t tail = text_prefix(text, len,
	    total > points ? total - points : 0);
	size_t begin = lines > 0 ? lines_begin(text, len, lines) : 0;
	size_t near = len - tail < SNAP_BYTES ? len - tail : SNAP_BYTES;
	const char *line;

	if (begin >= tail)
		return begin;
	line = memchr(text + tail, '\n', near);
	return line != NULL ? (size_t)(line + 1 - text) : outside(text, tail);
}

/* Append the text, cut if it does not fit. */
static void
add_cut(struct buf *out, const char *text, size_t len, enum message_cut cut,
    size_t lines_max, size_t room)
{
	size_t keep = room > CUT_POINTS ? room - CUT_POINTS : 0;
	size_t lines = lines_max > 0 ? lines_max - 1 : 0;
	size_t head = 0;
	size_t tail = len;
	const char *sequence;

	if (cut_fits(text, len, lines_max, room)) {
		buf_add(out, text, len);
		return;
	}
	if (cut == MESSAGE_CUT_END) {
		head = cut_head(text, len, keep, lines);
	} else if (cut == MESSAGE_CUT_START) {
		tail = cut_tail(text, len, keep, lines);
	} else {
		head = cut_head(text, len, keep / 3, lines / 3);
		tail = cut_tail(text, len, keep - keep / 3, lines - lines / 3);
	}
	/* colours end before the line that counts, and go on after it */
	buf_add(out, text, head);
	if (colours(sequence_before(text, head)) > 0)
		buf_adds(out, SGR_RESET);
	add_left_out(out, text, len, head, tail);
	sequence = sequence_before(text, tail);
	if (tail < len)
		buf_addf(out, "%.*s", colours(sequence), sequence);
	buf_add(out, text + tail, len - tail);
}

/* ---- fitting it in ---- */

/* The end of the text, or a back-tick before it that is not closed.  The next
 * part would close that, and show its names as markup. */
static size_t
before_open_tick(const char *text, size_t end)
{
	size_t open = end;

	for (size_t i = 0; i < end; i++)
		if (open == end && text[i] == '\\')
			i++; /* the next character stands for itself */
		else if (text[i] == '`')
			open = open == end ? i : end;
	return open;
}

/* Append `most` code points of a part, with commands that can be clicked. */
static void
add_prefix(struct buf *out, const struct message *m, const struct buf *part,
    size_t most)
{
	auto_buf struct buf text = BUF_INIT(4 * MESSAGE_PART_MAX);
	size_t end;

	command_add_text(&text, m->ids, buf_str(part));
	end = text_prefix(buf_str(&text), text.len, most);
	buf_add(out, buf_str(&text), before_open_tick(buf_str(&text), end));
}

static void
end_line(struct buf *out)
{
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

/* Code points that the banner leaves to the message. */
static size_t
content_most(const struct message *m)
{
	return MESSAGE_CONTENT_MAX -
	    (m->banner != NULL && *m->banner != '\0' ? RULE_SHOWN_MOST : 0);
}

/* Make the text before and after the block.  Returns the code points that are
 * left for the block's text; 0: too few to be of use. */
static size_t
make_frame(struct buf *lead, struct buf *tail, const struct message *m,
    bool with_files)
{
	bool alone = m->block.len + m->tail.len + m->without.len == 0;
	size_t used;

	add_prefix(lead, m, &m->lead, alone ? content_most(m) : LEAD_MOST);
	add_prefix(tail, m, &m->tail, TAIL_MOST);
	if (!with_files && m->without.len > 0) {
		if (tail->len > 0)
			buf_addc(tail, '\n');
		add_prefix(tail, m, &m->without, TAIL_MOST / 2);
	}
	used = text_codepoints(buf_str(lead), lead->len) +
	    text_codepoints(buf_str(tail), tail->len) +
	    strlen("\n```\n\n```\n") + strlen(m->language);
	if (m->block.len == 0 || used + BLOCK_LEAST > content_most(m))
		return 0;
	return content_most(m) - used;
}

static void
compose(struct buf *out, const struct message *m, bool with_files)
{
	auto_buf struct buf tail = BUF_INIT(2 * MESSAGE_PART_MAX);
	size_t room = make_frame(out, &tail, m, with_files);
	size_t skip;
	size_t end;

	if (room > 0) {
		end_line(out);
		buf_addf(out, "```%s\n", m->language);
		add_cut(out, buf_str(&m->block), m->block.len, m->cut,
		    m->lines_max, room);
		buf_adds(out, "\n```\n");
	}
	/* the tail's sentences begin with a line end, the first one, too */
	skip = strspn(buf_str(&tail), "\n");
	if (tail.len > skip)
		end_line(out);
	buf_add(out, buf_str(&tail) + skip, tail.len - skip);
	/* the last line end goes, and the limit holds in any case */
	end = text_prefix(buf_str(out), out->len, content_most(m));
	while (end > 0 && out->data[end - 1] == '\n')
		end--;
	buf_cut(out, end);
	if (end == 0 && !(with_files && m->file_count > 0))
		buf_adds(out, _("(nothing to show)"));
	if (m->banner != NULL && *m->banner != '\0')
		rule_add_text(out, m->banner);
}

bool
message_fits(const struct message *message)
{
	auto_buf struct buf lead = BUF_INIT(MESSAGE_PART_MAX);
	auto_buf struct buf tail = BUF_INIT(2 * MESSAGE_PART_MAX);

	/* the text for the case without files is the longer one */
	return cut_fits(buf_str(&message->block), message->block.len,
	    message->lines_max, make_frame(&lead, &tail, message, false));
}

/* ---- files ---- */

const char *
message_attach(struct message *message, const char *path, struct buf *data)
{
	const char *taken[MESSAGE_FILES_MAX];
	size_t count = message->file_count;
	char clean[FILENAME_SIZE];
	size_t total = data->len;

	/* names and bytes of those that are there */
	for (size_t i = 0; i < count; i++) {
		taken[i] = message->files[i].name;
		total += message->files[i].len;
	}
	if (count == MESSAGE_FILES_MAX || total > MESSAGE_BYTES_MAX) {
		buf_release(data);
		return NULL;
	}
	(void)filename_clean(clean, path);
	(void)filename_unique(clean, taken, count);
	message->files[count].name = xstrdup(clean);
	message->files[count].data = buf_steal(data,
	    &message->files[count].len);
	if (strcmp(clean, path_name(path)) != 0)
		message->titles[count] = message_line("", path_name(path),
		    TITLE_MOST);
	message->file_count++;
	return message->files[count].name;
}

/* ---- buttons and menus ---- */

/* Buttons, five in a row, and menus, each of which is a row. */

#define ROWS_MAX 5
#define ROW_BUTTONS_MAX 5
#define LABEL_MOST 100 /* code points of an option's label */

enum component {
	COMPONENT_ROW = 1,
	COMPONENT_BUTTON = 2,
	COMPONENT_SELECT = 3,
};

/* Append a row.  Returns its parts; NULL: there are five rows. */
static json_t *
add_row(struct message *message)
{
	json_t *parts = NULL;

	if (message->rows == NULL)
		message->rows = json_array();
	message->buttons = NULL;
	message->options = NULL;
	if (json_array_size(message->rows) < ROWS_MAX) {
		parts = json_array();
		json_array_append_new(message->rows,
		    json_pack("{s:i, s:o}", "type", COMPONENT_ROW, "components",
			parts));
	}
	return parts;
}

void
message_add_button(struct message *message, enum action action, int64_t view_id,
    const char *label, int style, bool disabled)
{
	auto_free char *id = action_id(action, view_id);

	if (message->buttons == NULL ||
	    json_array_size(message->buttons) == ROW_BUTTONS_MAX)
		message->buttons = add_row(message);
	/* without a row for it the button is dropped */
	json_array_append_new(message->buttons,
	    json_pack("{s:i, s:i, s:s, s:s, s:b}", "type", COMPONENT_BUTTON,
		"style", style, "label", label, "custom_id", id, "disabled",
		(int)disabled));
}

void
message_add_menu(struct message *message, enum action action, int64_t view_id,
    const char *hint)
{
	auto_free char *id = action_id(action, view_id);
	json_t *row = add_row(message);

	json_array_append_new(row,
	    json_pack("{s:i, s:s, s:s, s:[]}", "type", COMPONENT_SELECT,
		"custom_id", id, "placeholder", hint, "options"));
	message->options = json_object_get(json_array_get(row, 0), "options");
}

/* Is the label blank?  Discord refuses such a label; characters without width
 * are named already. */
static bool
message_is_blank(const struct buf *label)
{
	size_t step = 0;
	size_t at = 0;

	for (; at < label->len; at += step) {
		step = utf8_step(label->data + at, label->len - at);
		if (step == 0 ||
		    !utf8_is_blank(utf8_decode(label->data + at, step)))
			break;
	}
	return at == label->len;
}

void
message_add_option(struct message *message, const char *name, const char *value,
    bool chosen)
{
	auto_buf struct buf label = BUF_INIT(16 * LABEL_MOST);

	if (json_array_size(message->options) == MESSAGE_OPTIONS_MAX)
		return;
	/* the ellipsis counts, too */
	message_add_word(&label, name, LABEL_MOST - 1);
	if (message_is_blank(&label)) {
		buf_reset(&label);
		buf_addf(&label, _("(a name of blanks, %zu bytes)"),
		    strlen(name));
	}
	json_array_append_new(message->options,
	    json_pack("{s:s, s:s, s:b}", "label", buf_str(&label), "value",
		value, "default", (int)chosen));
}

/* ---- the message as text ---- */

void
message_add_text(struct buf *out, const struct message *message)
{
	/* the block without its colours */
	auto_free char *block = xstrdup(buf_str(&message->block));
	const struct buf *parts[] = { &message->lead, &message->block,
		&message->tail, &message->without };

	message_join_ticks(block);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i] == &message->block)
			text_add_clean(out, block, strlen(block));
		else
			buf_add(out, buf_str(parts[i]), parts[i]->len);
		end_line(out);
	}
}

void
message_describe(struct message *message, const char *text, const char *name)
{
	auto_buf struct buf out = BUF_INIT(8 * DESCRIPTION_MOST);
	char **description = &message->descriptions[message->file_count - 1];

	buf_adds(&out, text);
	/* the ellipsis counts, too */
	message_add_word(&out, name,
	    DESCRIPTION_MOST - text_codepoints(text, strlen(text)) - 1);
	free(*description);
	*description = buf_steal(&out, NULL);
}

/* ---- JSON ---- */

/* Attachments of a message; an empty list removes the files of an earlier
 * edit. */
static json_t *
json_attachments(const struct message *m, bool with_files)
{
	json_t *list = json_array();

	for (size_t i = 0; with_files && i < m->file_count; i++) {
		auto_free char *id = xprintf("%zu", i);

		json_array_append_new(list,
		    json_pack("{s:s, s:s, s:s*, s:s*}", "id", id, "filename",
			m->files[i].name, "title", m->titles[i], "description",
			m->descriptions[i]));
	}
	return list;
}

/* Text of a JSON, whose reference is dropped; heap. */
static char *
dump(json_t *root)
{
	char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	if (text != NULL)
		return text;
	/* all strings are valid UTF-8 by construction; a bug must not leave its
	 * user without an answer */
	log_err("a message could not be written as JSON");
	return xstrdup(FALLBACK);
}

/* The parts of a message as JSON. */
static json_t *
json_body(const struct message *message, bool with_files, int flags)
{
	auto_buf struct buf content = BUF_INIT(MESSAGE_PART_MAX * 4);

	/* an empty list of rows removes those that there were */
	compose(&content, message, with_files);
	return json_pack("{s:s, s:{s:[]}, s:o, s:o, s:i}", "content",
	    buf_str(&content), "allowed_mentions", "parse", "attachments",
	    json_attachments(message, with_files), "components",
	    message->rows == NULL ? json_array() : json_incref(message->rows),
	    "flags", FLAG_NO_EMBEDS | flags);
}

char *
message_json(const struct message *message, bool with_files)
{
	return dump(json_body(message, with_files, 0));
}

char *
message_response_json(const struct message *message, enum job_answer answer)
{
	enum { NEW_MESSAGE = 4, UPDATE_MESSAGE = 7 };
	bool update = answer == ANSWER_DEFERRED_UPDATE;

	return dump(json_pack("{s:i, s:o}", "type",
	    update ? UPDATE_MESSAGE : NEW_MESSAGE, "data",
	    json_body(message, false, update ? 0 : FLAG_EPHEMERAL)));
}

bool
message_is_private(const char *json)
{
	json_auto_t *root = json_loads(json, 0, NULL);
	const json_t *flags = json_object_get(root, "flags");

	return (json_integer_value(flags) & FLAG_EPHEMERAL) != 0;
}

char *
message_private_json(const char *json)
{
	json_t *root = json_loads(json, 0, NULL);
	const char *content = json_string_value(json_object_get(root,
	    "content"));
	auto_free char *longer = xprintf("%s\n%s",
	    _("The moderation of this server does not let this answer be shown "
	      "to everybody, so only you see it."),
	    content != NULL ? content : "");

	if (text_codepoints(longer, strlen(longer)) <= MESSAGE_CONTENT_MAX)
		json_object_set_new(root, "content", json_string(longer));
	json_object_set_new(root, "flags",
	    json_integer(FLAG_NO_EMBEDS | FLAG_EPHEMERAL));
	return dump(root);
}
