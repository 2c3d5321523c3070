/* SPDX-License-Identifier: MIT */
#include "worker/render/render_where.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/config.h"
#include "base/text.h"

#define LABEL_SHOWN 50 /* code points of a path in a label of 80 */

/* ---- texts ---- */

/* Begin a small note, on the line of the result where there is one. */
static void
begin_note(struct buf *tail)
{
	const char *text = buf_str(tail);
	const char *end = strrchr(text, '\n');
	const char *last = end == NULL ? text : end + 1;

	if (strncmp(last, "-# ", 3) == 0)
		buf_adds(tail, " · ");
	else
		buf_adds(tail, tail->len == 0 ? "-# " : "\n-# ");
}

/* Limit that was reached, of so many bytes and files. */
static struct phrase
phrase_full(const struct cell_result *result, int64_t bytes, int64_t files)
{
	return result->disk_full == DISK_FULL_FILES ?
	    phrase_files(files) :
	    phrase_words("%s", text_size(bytes).text);
}

void
render_quota_used(struct buf *tail, const struct cell_result *result,
    const struct config *config)
{
	buf_addf(tail,
	    _("\nThe disk quota is used up (%s): `/il rm` makes room."),
	    phrase_full(result, config->quota, config->files).text);
}

void
render_packages_full(struct buf *tail, const struct cell_result *result,
    const struct config *config)
{
	buf_addf(tail,
	    _("\nThe room for packages is used up (%s): `/il rm "
	      ".site-packages recursive:True` empties it."),
	    phrase_full(result, config->pip_quota,
		config->pip_quota / CONFIG_PACKAGE_FILE_BYTES)
		.text);
}

/* Used size, at most the quota: a volume holds a little more than that. */
static struct text_short
used_size(int64_t used, int64_t quota)
{
	return text_size(used < quota ? used : quota);
}

void
render_space(struct buf *tail, const struct cell_result *result,
    const struct config *config)
{
	if (result->used_bytes >= 0) {
		begin_note(tail);
		buf_addf(tail, _("%s of %s used"),
		    used_size(result->used_bytes, config->quota).text,
		    text_size(config->quota).text);
	}
	if (result->used_bytes >= 0 && result->used_files >= 0)
		buf_addf(tail, _(", %s of %s"),
		    phrase_count(result->used_files).text,
		    phrase_files(config->files).text);
	if (result->used_packages < 0)
		return;
	begin_note(tail);
	buf_addf(tail, _("packages: %s of %s"),
	    used_size(result->used_packages, config->pip_quota).text,
	    text_size(config->pip_quota).text);
}

void
render_place(struct buf *tail, const char *cwd, const char *gone, bool moved)
{
	begin_note(tail);
	if (*gone != '\0')
		buf_addf(tail, _("%s is gone or closed: you are in %s now."),
		    phrase_path(gone).text, phrase_path(cwd).text);
	else
		buf_addf(tail, moved ? _("You are in %s now.") : _("in %s"),
		    phrase_path(cwd).text);
}

/* ---- buttons ---- */

struct phrase
render_way_label(enum way way, const char *path)
{
	auto_free char *whole = xprintf(path[0] != '\0' ? "~/%s" : "~%s", path);
	auto_buf struct buf shown = BUF_INIT(sizeof(struct phrase) - 1);

	message_add_word(&shown, whole, LABEL_SHOWN);
	switch (way) {
	case WAY_BACK: /* Translators: at most 30 characters without %s */
		return phrase_words(_("Back to %s"), buf_str(&shown));
	case WAY_LOOK: /* Translators: at most 30 characters without %s */
		return phrase_words(_("Look at %s"), buf_str(&shown));
	case WAY_GET: /* Translators: at most 30 characters without %s */
		return phrase_words(_("Get %s"), buf_str(&shown));
	case WAY_RUN:
		break;
	}
	/* Translators: at most 30 characters without %s */
	return phrase_words(_("Run %s"), buf_str(&shown));
}

void
render_way(struct message *message, enum way way, int64_t view_id,
    const char *path)
{
	message_add_button(message,
	    way == WAY_GET ? ACTION_GET_GO : ACTION_LOOK_GO, view_id,
	    render_way_label(way, path).text, 2, false);
}

void
render_pages(struct message *message, enum action previous, enum action next,
    int64_t view_id, int64_t page, int64_t pages)
{
	message_add_button(message, previous, view_id, _("Previous"), 2,
	    page <= 1);
	message_add_button(message, next, view_id, _("Next"), 2, page >= pages);
}
