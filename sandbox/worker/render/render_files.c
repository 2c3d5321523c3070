#include "render.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "../../base/config.h"
#include "../../base/text.h"
#include "../../base/utf8.h"

#define PATH_MOST 80	/* code points of a path in a sentence */
#define ENTRY_MOST 46	/* of a name in a listing: 20 of them must fit */
#define PROBE 8192	/* bytes that tell text from other things */
#define SHOWN_MAX 16384 /* bytes of a file that can matter for a block */

void
render_add_path(struct buf *out, const char *path)
{
	auto_buf struct buf shown = BUF_INIT(PATH_SIZE + 8);

	buf_addf(&shown, path[0] != '\0' ? "~/%s" : "~%s", path);
	message_add_name(out, buf_str(&shown), PATH_MOST);
}

static void
add_number(struct buf *out, int64_t n)
{
	if (n >= 1000) {
		add_number(out, n / 1000);
		buf_addf(out, ",%03d", (int)(n % 1000));
	} else {
		buf_addf(out, "%" PRId64, n);
	}
}

void
render_add_count(struct buf *out, int64_t n, const char *what)
{
	add_number(out, n);
	buf_addf(out, n == 1 ? " %s" : " %ss", what);
}

/* ---- listings ---- */

static void
add_time(struct buf *out, int64_t seconds)
{
	time_t when = (time_t)seconds;
	struct tm tm = { 0 };
	char text[32];

	if (seconds < 0 || seconds > INT64_C(253402300799) ||
	    gmtime_r(&when, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm) == 0)
		memcpy(text, "       ?        ", sizeof("       ?        "));
	buf_adds(out, text);
}

static void
add_size(struct buf *out, const struct collected_entry *entry)
{
	if (entry->kind == ENTRY_FILE)
		text_add_size(out, entry->size);
	else if (entry->kind == ENTRY_DIRECTORY)
		buf_adds(out, "dir");
	else
		buf_adds(out, entry->kind == ENTRY_LINK ? "link" : "other");
}

/* No wider than it must be: on a telephone a line has some 37 columns. */
static int
size_width(const struct render_listing *l)
{
	auto_buf struct buf size = BUF_INIT(64);
	size_t most = 0;

	for (size_t i = 0; i < l->count; i++) {
		buf_reset(&size);
		add_size(&size, &l->entries[i]);
		most = size.len > most ? size.len : most;
	}
	return (int)most;
}

/* A name as one line: whatever is in it, it takes one line and ends there. */
static void
add_entry_name(struct buf *out, const struct collected_entry *entry)
{
	message_add_word(out, entry->name, ENTRY_MOST);
	if (entry->kind == ENTRY_DIRECTORY)
		buf_addc(out, '/');
}

static void
add_entries(struct message *m, const struct render_listing *l)
{
	auto_buf struct buf lines = BUF_INIT(65536);
	auto_buf struct buf size = BUF_INIT(64);
	int width = size_width(l);

	for (size_t i = 0; i < l->count; i++) {
		buf_reset(&size);
		add_size(&size, &l->entries[i]);
		buf_addf(&lines, "%*s  ", width, buf_str(&size));
		add_time(&lines, l->entries[i].mtime);
		buf_adds(&lines, "  ");
		add_entry_name(&lines, &l->entries[i]);
		buf_addc(&lines, '\n');
	}
	message_set_block(m, buf_str(&lines), lines.len, "", MESSAGE_CUT_END);
}

static void
add_usage(struct buf *out, int64_t bytes, int64_t files,
    const struct config *config)
{
	if (bytes < 0)
		return;
	buf_adds(out, "-# ");
	text_add_size(out, bytes);
	buf_adds(out, " of ");
	text_add_size(out, config->quota);
	buf_adds(out, " used");
	if (files < 0)
		return;
	buf_adds(out, ", ");
	add_number(out, files);
	buf_adds(out, " of ");
	render_add_count(out, config->files, "file");
}

void
render_listing(struct message *message, const struct render_listing *listing,
    const struct config *config)
{
	const struct render_listing *l = listing;
	struct message *m = message;

	render_add_path(&m->lead, l->path);
	if (l->total == 0) {
		buf_adds(&m->lead, " is empty.");
	} else {
		buf_adds(&m->lead, ": ");
		add_number(&m->lead, l->total);
		buf_adds(&m->lead, l->total == 1 ? " entry" : " entries");
	}
	if (l->pages > 1)
		message_leadf(m, ", page %" PRId64 " of %" PRId64, l->page,
		    l->pages);
	add_entries(m, l);
	add_usage(&m->tail, l->used_bytes, l->used_files, config);
	if (l->view_id == 0)
		return;
	message_add_button(m, ACTION_LOOK_PREVIOUS, l->view_id, "Previous", 2,
	    l->page <= 1);
	message_add_button(m, ACTION_LOOK_NEXT, l->view_id, "Next", 2,
	    l->page >= l->pages);
}

/* ---- one file ---- */

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

static void
lead_with_file(struct message *m, const char *path, int64_t total)
{
	render_add_path(&m->lead, path);
	buf_adds(&m->lead, ": ");
	text_add_size(&m->lead, total);
}

/* Attach its data; say so where that is not possible. */
static bool
attach(struct message *m, struct collected_file *file, int64_t total,
    const struct render_env *env)
{
	size_t len = 0;
	const char *name = NULL;
	char *data;

	if (!env->may_attach) {
		buf_adds(&m->tail,
		    "I may not attach files here: the "
		    "permission is missing. In a direct message with me I "
		    "may.");
		return false;
	}
	if (total > (int64_t)file->data.len) {
		buf_adds(&m->tail,
		    "It is too large to be attached: here a "
		    "file may have ");
		text_add_size(&m->tail, env->file_most);
		buf_addc(&m->tail, '.');
		return false;
	}
	data = buf_steal(&file->data, &len);
	if (!message_attach(m, file->path, data, len, &name)) {
		buf_adds(&m->tail, "It is too large to be attached.");
		return false;
	}
	if (strcmp(name, path_name(file->path)) != 0)
		message_tailf(m, "Attached as `%s`.", name);
	buf_adds(&m->without, "It could not be attached.");
	return true;
}

void
render_file(struct message *message, struct collected_file *file, int64_t total,
    const struct render_env *env)
{
	struct message *m = message;
	bool text = is_text(&file->data);
	size_t shown = file->data.len < SHOWN_MAX ? file->data.len : SHOWN_MAX;

	lead_with_file(m, file->path, total);
	if (total == 0) {
		buf_adds(&m->lead, ", it is empty.");
		return;
	}
	if (text)
		message_set_block(m, buf_str(&file->data), shown,
		    filename_language(file->path), MESSAGE_CUT_END);
	if (text && m->block.len > 0 && message_fits(m) &&
	    total == (int64_t)shown)
		return;
	(void)attach(m, file, total, env);
}

void
render_get(struct message *message, struct collected_file *file,
    const struct render_env *env)
{
	lead_with_file(message, file->path, file->size);
	if (file->size == 0)
		buf_adds(&message->tail, "It is empty.");
	else
		(void)attach(message, file, file->size, env);
}

/* Worth a word to somebody who did not ask. */
static bool
is_filling(const struct cell_result *result, const struct config *config)
{
	return result->used_bytes / 3 >= config->quota / 4 ||
	    result->used_files / 3 >= config->files / 4;
}

void
render_written(struct message *message, const char *path, int64_t size,
    const struct run_outcome *outcome, const struct render_env *env)
{
	buf_adds(&message->lead, "Saved ");
	lead_with_file(message, path, size);
	buf_addc(&message->lead, '.');
	if (is_filling(&outcome->result, env->config))
		add_usage(&message->tail, outcome->result.used_bytes,
		    outcome->result.used_files, env->config);
}

void
render_removed(struct message *message, const char *path)
{
	buf_adds(&message->lead, "Removed ");
	render_add_path(&message->lead, path);
	buf_addc(&message->lead, '.');
}
