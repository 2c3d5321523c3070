/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/log.h"
#include "../../base/text.h"
#include "../../base/utf8.h"
#include "../../locale/locale.h"
#include "../../protocol/path.h"
#include "../../store/rule.h"
#include "terminal.h"

#define LEAD_MOST 900 /* code points */
#define TAIL_MOST 900
#define TITLE_MOST 1024
#define BLOCK_LEAST 16 /* a shorter piece of a block is not worth it */
#define FLAG_EPHEMERAL 64
#define FLAG_NO_EMBEDS 4

#define FALLBACK \
	"{\"content\":\"Sandbox error: the answer is lost.\"," \
	"\"allowed_mentions\":{\"parse\":[]}}"

#define TICK_LOOKALIKE "\xcb\x8b" /* modifier letter grave accent */
#define ELLIPSIS "\xe2\x80\xa6"

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

/* Cleaned before it is cut: what is dropped takes no room. */
void
message_add_word(struct buf *out, const char *name, size_t most)
{
	size_t len = strlen(name);
	auto_buf struct buf clean = BUF_INIT(3 * len + 1);
	size_t shown;

	text_add_clean(&clean, name, len);
	shown = text_prefix(buf_str(&clean), clean.len, most);
	for (size_t i = 0; i < shown; i++) {
		char c = clean.data[i];

		if (c == '`')
			buf_adds(out, TICK_LOOKALIKE);
		else
			buf_addc(out, c == '\n' || c == '\t' ? ' ' : c);
	}
	if (shown < clean.len)
		buf_adds(out, ELLIPSIS);
	else if (shown == 0)
		buf_addc(out, ' ');
}

void
message_add_name(struct buf *out, const char *name, size_t most)
{
	buf_addc(out, '`');
	message_add_word(out, name, most);
	buf_addc(out, '`');
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

/* Take the text, without the line ends at its end.  No two back-ticks may stand
 * side by side in a block. */
static void
set_defused(struct message *message, struct buf *text)
{
	const char *s = buf_str(text);
	size_t len = text->len;

	while (len > 0 && s[len - 1] == '\n')
		len--;
	buf_release(&message->block);
	if (memmem(s, len, "``", 2) == NULL) {
		buf_cut(text, len);
		message->block = *text;
		*text = (struct buf)BUF_INIT(0);
		return;
	}
	buf_init(&message->block, 4 * len + 1); /* were it all back-ticks */
	while (len > 0) {
		const char *tick = memchr(s, '`', len);
		size_t n = tick == NULL ? len : (size_t)(tick - s) + 1;

		buf_add(&message->block, s, n);
		s += n;
		len -= n;
		if (len > 0 && tick != NULL && *s == '`')
			buf_adds(&message->block, MESSAGE_APART);
	}
}

void
message_set_block(struct message *message, const char *text, size_t len,
    const char *language, enum message_cut cut)
{
	auto_buf struct buf clean = BUF_INIT(3 * len + 1);

	text_add_clean(&clean, text, len);
	set_defused(message, &clean);
	message->language = language;
	message->cut = cut;
	message->lines_max = 0;
}

void
message_set_output(struct message *message, const char *text, size_t len,
    enum message_cut cut)
{
	auto_buf struct buf shown = BUF_INIT(TERMINAL_SHOWN_MAX(len));
	bool coloured = terminal_show(&shown, text, len, TERMINAL_COLOURS);

	set_defused(message, &shown);
	message->language = coloured ? "ansi" : "";
	message->cut = cut;
	message->lines_max = MESSAGE_LINES_MAX;
}

/* ---- fitting it in ---- */

/* The end of the text, or the back-tick before it that nothing closes: a name
 * of the next part would close it, and stand outside of its own. */
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

/* So many code points of a part, with commands that are clicked. */
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

/* Code points that the message may have beside the operator's words. */
static size_t
content_most(const struct message *m)
{
	return MESSAGE_CONTENT_MAX -
	    (m->banner != NULL && *m->banner != '\0' ? RULE_SHOWN_MOST : 0);
}

/* What stands before and after the block.  Returns the code points that are
 * left for the block's text, 0: too few to be of use. */
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
		message_cut_add(out, buf_str(&m->block), m->block.len, m->cut,
		    m->lines_max, room);
		buf_adds(out, "\n```\n");
	}
	/* its sentences begin with a line end, whichever is the first */
	skip = strspn(buf_str(&tail), "\n");
	if (tail.len > skip)
		end_line(out);
	buf_add(out, buf_str(&tail) + skip, tail.len - skip);
	/* the last word, whatever was said above */
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

	/* as if nothing could be attached: that is the longer text */
	return message_cut_fits(buf_str(&message->block), message->block.len,
	    message->lines_max, make_frame(&lead, &tail, message, false));
}

/* ---- files ---- */

/* The last part of a path as people may read it; heap, NULL: nothing is left of
 * it. */
static char *
title_of(const char *path)
{
	const char *name = path_name(path);
	size_t len = strlen(name);
	auto_buf struct buf title = BUF_INIT(3 * len + 1);

	text_add_clean(&title, name, len);
	for (size_t i = 0; i < title.len; i++)
		if (title.data[i] == '\n' || title.data[i] == '\t')
			title.data[i] = ' ';
	buf_cut(&title, text_prefix(buf_str(&title), title.len, TITLE_MOST));
	return title.len > 0 ? buf_steal(&title, NULL) : NULL;
}

bool
message_attach(struct message *message, const char *path, void *data,
    size_t len, const char **name)
{
	const char *taken[MESSAGE_FILES_MAX];
	char clean[FILENAME_SIZE];
	size_t total = len;

	/* names and bytes of those that are there */
	for (size_t i = 0; i < message->file_count; i++) {
		taken[i] = message->files[i].name;
		total += message->files[i].len;
	}
	if (message->file_count == MESSAGE_FILES_MAX ||
	    total > MESSAGE_BYTES_MAX) {
		free(data);
		return false;
	}
	(void)filename_clean(clean, path);
	(void)filename_unique(clean, taken, message->file_count);
	message->files[message->file_count] = (struct rest_file){
		.name = xstrdup(clean),
		.data = data,
		.len = len,
	};
	if (strcmp(clean, path_name(path)) != 0)
		message->titles[message->file_count] = title_of(path);
	*name = message->files[message->file_count++].name;
	return true;
}

/* ---- JSON ---- */

/* An empty list takes away those that the message had. */
static json_t *
json_rows(const struct message *m)
{
	return m->rows == NULL ? json_array() : json_incref(m->rows);
}

/* An empty list takes away the files of an earlier edit. */
static json_t *
json_attachments(const struct message *m, bool with_files)
{
	json_t *list = json_array();
	char id[24];

	for (size_t i = 0; with_files && i < m->file_count; i++) {
		(void)snprintf(id, sizeof(id), "%zu", i);
		json_array_append_new(list,
		    json_pack("{s:s, s:s, s:s*, s:s*}", "id", id, "filename",
			m->files[i].name, "title", m->titles[i], "description",
			m->descriptions[i]));
	}
	return list;
}

/* Takes root. */
static char *
dump(json_t *root)
{
	char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	if (text != NULL)
		return text;
	/* all strings are valid UTF-8 by construction: a bug otherwise, and
	 * its user shall not wait for ever */
	log_err("a message could not be written as JSON");
	return xstrdup(FALLBACK);
}

char *
message_json(const struct message *message, bool with_files)
{
	auto_buf struct buf content = BUF_INIT(MESSAGE_PART_MAX * 4);

	compose(&content, message, with_files);
	return dump(json_pack("{s:s, s:{s:[]}, s:o, s:o, s:i}", "content",
	    buf_str(&content), "allowed_mentions", "parse", "attachments",
	    json_attachments(message, with_files), "components",
	    json_rows(message), "flags", FLAG_NO_EMBEDS));
}

char *
message_response_json(const struct message *message, enum job_answer answer)
{
	enum { NEW_MESSAGE = 4, UPDATE_MESSAGE = 7 };
	auto_buf struct buf content = BUF_INIT(MESSAGE_PART_MAX * 4);
	bool update = answer == ANSWER_DEFERRED_UPDATE;
	int flags = FLAG_NO_EMBEDS | (update ? 0 : FLAG_EPHEMERAL);

	compose(&content, message, false);
	return dump(json_pack("{s:i, s:{s:s, s:{s:[]}, s:o, s:o, s:i}}", "type",
	    update ? UPDATE_MESSAGE : NEW_MESSAGE, "data", "content",
	    buf_str(&content), "allowed_mentions", "parse", "attachments",
	    json_array(), "components", json_rows(message), "flags", flags));
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
	auto_free char *longer = xprintf("%s\n%s", _(TEXT_MODERATED),
	    content != NULL ? content : "");

	if (text_codepoints(longer, strlen(longer)) <= MESSAGE_CONTENT_MAX)
		json_object_set_new(root, "content", json_string(longer));
	json_object_set_new(root, "flags",
	    json_integer(FLAG_NO_EMBEDS | FLAG_EPHEMERAL));
	return dump(root);
}
