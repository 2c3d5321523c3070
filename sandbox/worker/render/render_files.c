/* SPDX-License-Identifier: MIT */
#include "worker/render/render_where.h"

#include <inttypes.h>
#include <string.h>

#include "base/config.h"
#include "base/text.h"
#include "base/utf8.h"

#define ENTRY_MOST 46 /* of a name in a listing, of which 20 must fit */
#define LEFT_MOST 6
#define LEFT_NAME_MOST 32
#define PROBE 8192			/* bytes in which a file must be text */
#define TIME_LAST INT64_C(253402300799) /* of the year 9999 */
#define SHOWN_MAX 16384 /* bytes of a file that can matter for a block */

/* ---- listings ---- */

/* Size of an entry; only that of a file has a meaning. */
static struct phrase
entry_size(const struct collected_entry *entry)
{
	if (entry->kind == ENTRY_FILE)
		return phrase_words("%s", text_size(entry->size).text);
	if (entry->kind == ENTRY_DIRECTORY)
		return phrase_words("%s", _("dir"));
	return phrase_words("%s",
	    entry->kind == ENTRY_LINK ? _("link") : _("other"));
}

static int
points(const struct phrase *word)
{
	return (int)text_codepoints(word->text, strlen(word->text));
}

/* Set the block to a line for each entry. */
static void
set_entries(struct message *m, const struct collect *c)
{
	auto_buf struct buf lines = BUF_INIT(65536);
	struct phrase sizes[COLLECT_ENTRIES];
	int width = 0;

	/* no wider than it must be: on a telephone a line has some 37
	 * columns */
	for (size_t i = 0; i < c->entry_count; i++) {
		int len;

		sizes[i] = entry_size(&c->entries[i]);
		len = points(&sizes[i]);
		width = len > width ? len : width;
	}
	for (size_t i = 0; i < c->entry_count; i++) {
		const struct collected_entry *entry = &c->entries[i];

		/* an impossible time is as wide as any other */
		buf_addf(&lines, "%*s%s  %s  ", width - points(&sizes[i]), "",
		    sizes[i].text,
		    entry->mtime < 0 || entry->mtime > TIME_LAST ?
			"       ?        " :
			text_time(entry->mtime).text);
		message_add_word(&lines, entry->name, ENTRY_MOST);
		buf_adds(&lines, entry->kind == ENTRY_DIRECTORY ? "/\n" : "\n");
	}
	message_set_block(m, buf_str(&lines), lines.len, "", MESSAGE_CUT_END);
}

void
render_listing(struct message *m, const struct render_listing *l,
    const struct config *config)
{
	int64_t total = l->result->total;

	if (l->moved && l->back_id != 0)
		buf_addf(&m->lead, _("You are in %s now.\n"),
		    phrase_path(l->path).text);
	if (total == 0)
		buf_addf(&m->lead, _("%s is empty."),
		    phrase_path(l->path).text);
	else
		buf_addf(&m->lead, Q_("%s: %s entry", "%s: %s entries", total),
		    phrase_path(l->path).text, phrase_count(total).text);
	if (l->pages > 1)
		buf_addf(&m->lead, _(", page %" PRId64 " of %" PRId64), l->page,
		    l->pages);
	if (l->asked > l->page) {
		buf_adds(&m->lead, total == 0 ? " " : ". ");
		buf_addf(&m->lead, _("There is no page %" PRId64 "."),
		    l->asked);
	}
	set_entries(m, l->collect);
	render_space(&m->tail, l->result, config);
	if (l->back_id != 0)
		render_way(m, WAY_BACK, l->back_id, l->back);
	if (l->view_id != 0)
		render_pages(m, ACTION_LOOK_PREVIOUS, ACTION_LOOK_NEXT,
		    l->view_id, l->page, l->pages);
}

/* ---- one file ---- */

/* Is the beginning of a file text: valid UTF-8 without a NUL? */
static bool
is_text(const struct buf *data)
{
	size_t len = data->len < PROBE ? data->len : PROBE;

	if (memchr(buf_str(data), '\0', len) != NULL)
		return false;
	/* the probe may end within a character */
	for (size_t cut = 0; cut < 4 && cut <= len; cut++)
		if (utf8_valid(buf_str(data), len - cut))
			return true;
	return false;
}

/* Attach a file's data, or say why that is not possible. */
static void
attach(struct message *m, struct collected_file *file, int64_t total,
    const struct render_env *env)
{
	bool whole = total <= (int64_t)file->data.len;

	if (!env->may_attach)
		buf_adds(&m->tail,
		    _("I may not attach files here: the permission is missing. "
		      "In a direct message with me I may."));
	else if (!whole || message_attach(m, file->path, &file->data) == NULL)
		buf_addf(&m->tail,
		    _("It is too large to be attached: here a file may have "
		      "%s."),
		    text_size(whole ? MESSAGE_BYTES_MAX : env->file_most).text);
	else
		buf_adds(&m->without, _("It could not be attached."));
}

/* A text that fits is shown; any other file is attached, and the beginning of a
 * longer text shown. */
void
render_file(struct message *m, struct collected_file *file, int64_t total,
    const struct render_env *env)
{
	bool text = is_text(&file->data);
	size_t shown = file->data.len < SHOWN_MAX ? file->data.len : SHOWN_MAX;

	buf_addf(&m->lead, "%s: %s%s", phrase_path(file->path).text,
	    text_size(total).text, total == 0 ? _(", it is empty.") : "");
	if (total == 0)
		return;
	if (text)
		message_set_block(m, buf_str(&file->data), shown,
		    filename_language(file->path), MESSAGE_CUT_END);
	if (text && m->block.len > 0 && message_fits(m) &&
	    total == (int64_t)shown)
		return;
	attach(m, file, total, env);
}

void
render_get(struct message *message, struct collected_file *file,
    const struct render_env *env)
{
	buf_addf(&message->lead, "%s: %s", phrase_path(file->path).text,
	    text_size(file->size).text);
	if (file->size == 0)
		buf_adds(&message->tail, _("It is empty."));
	else
		attach(message, file, file->size, env);
}

/* Name the first few entries that are not in the zip. */
static void
name_not_archived(struct buf *out, const struct collect *c, int64_t count)
{
	size_t shown = c->left_count < LEFT_MOST ? c->left_count : LEFT_MOST;

	if (shown == 0)
		return;
	buf_adds(out,
	    _("\nNot in it, as they are no files, too many or not readable: "));
	for (size_t i = 0; i < shown; i++) {
		buf_adds(out, i > 0 ? ", " : "");
		message_add_name(out, c->left[i].path, LEFT_NAME_MOST);
	}
	if (count > (int64_t)shown)
		buf_addf(out, _(" and %zu more"), (size_t)count - shown);
}

void
render_archive(struct message *message, const char *path,
    struct collect *collect, int64_t left_out, const struct render_env *env)
{
	struct collected_file *file = &collect->files[0];

	if (collect->file_count == 0) {
		buf_addf(&message->lead, _("%s is empty."),
		    phrase_path(path).text);
	} else {
		buf_addf(&message->lead, _("%s as a zip: %s"),
		    phrase_path(path).text, text_size(file->size).text);
		attach(message, file, file->size, env);
	}
	name_not_archived(&message->tail, collect, left_out);
}

void
render_written(struct message *message, const char *path, int64_t size,
    const struct run_outcome *outcome, const struct render_env *env)
{
	const struct cell_result *result = &outcome->result;

	buf_addf(&message->lead, _("Saved %s: %s."), phrase_path(path).text,
	    text_size(size).text);
	/* a sandbox that is nearly full is mentioned */
	if (result->used_bytes / 3 >= env->config->quota / 4 ||
	    result->used_files / 3 >= env->config->files / 4)
		render_space(&message->tail, result, env->config);
}
