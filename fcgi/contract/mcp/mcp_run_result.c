/* SPDX-License-Identifier: MIT */
/*
 * The answer of a run: what it printed, how it ended, what it left.
 */
#include <inttypes.h>
#include <string.h>

#include "../base64.h"
#include "mcp_answer.h"
#include "mcp_media.h"
#include "mcp_message.h"
#include "mcp_output.h"
#include "mcp_picture.h"
#include "mcp_result.h"

#include "../../../sandbox/base/utf8.h"

#define ITEM_SLACK 64
#define TEXT_MAX ((size_t)512 << 10)
#define LINES_MAX 20 /* that tell of files, in the text */
/* What the content has beside the streams, links and those lines. */
#define SLACK 16384

#define NO_ROOM "the rest of the answer leaves no room for it"

static const char *
reason_name(const struct cell_result *cell)
{
	switch (cell->reason) {
	case REASON_EXIT:
		return "exit";
	case REASON_SIGNAL:
		return "signal";
	case REASON_TIME:
		return "time";
	case REASON_MEMORY:
		return "memory";
	case REASON_OUTPUT:
	case REASON_ERROR:
		break;
	}
	return "output";
}

/* What a shell makes of it; null where the code did not end the run. */
static void
add_exit_code(struct buf *out, const struct cell_result *cell)
{
	if (cell->reason == REASON_EXIT)
		buf_addf(out, "%" PRId64, cell->status);
	else if (cell->reason == REASON_SIGNAL)
		buf_addf(out, "%" PRId64, 128 + cell->signal);
	else if (cell->reason == REASON_MEMORY)
		buf_adds(out, "137");
	else
		buf_adds(out, "null");
}

/* The line that says how it ended. */
static void
add_end(struct buf *text, const struct mcp_run *run)
{
	const struct cell_result *cell = run->cell;

	switch (cell->reason) {
	case REASON_EXIT:
		buf_addf(text, "[exit code %" PRId64 ", %" PRId64 " ms]\n",
		    cell->status, run->duration_ms);
		break;
	case REASON_SIGNAL:
		buf_addf(text, "[ended by signal %" PRId64 "]\n", cell->signal);
		break;
	case REASON_TIME:
		buf_addf(text,
		    "[timed out: ended after timeout_seconds, %" PRId64 "]\n",
		    run->timeout_s);
		break;
	case REASON_MEMORY:
		buf_adds(text, "[ended: it used up its memory]\n");
		break;
	case REASON_OUTPUT:
	case REASON_ERROR:
		buf_adds(text, "[ended: it printed too much]\n");
		break;
	}
	if (cell->disk_full == DISK_FULL_FILES)
		buf_adds(text, "[its folder is full: too many files]\n");
	else if (cell->disk_full != 0)
		buf_adds(text, "[its folder is full]\n");
}

/* A stream on lines of its own. */
static void
add_stream(struct buf *text, const struct mcp_output *o, const char *title)
{
	if (o->total == 0)
		return;
	if (title != NULL)
		buf_addf(text, "[%s]\n", title);
	mcp_output_text(text, o);
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_addc(text, '\n');
}

static void
add_bare_uri(struct buf *out, const struct mcp_left *file)
{
	const char *slash = strrchr(file->path, '/');

	mcp_add_uri(out, file->id, slash == NULL ? file->path : slash + 1);
}

static void
add_uri(struct buf *out, const struct mcp_left *file)
{
	auto_buf struct buf uri = BUF_INIT(8192);

	add_bare_uri(&uri, file);
	mcp_add_text(out, buf_str(&uri), uri.len);
}

/* For clients that show nothing but text.  A file that has no link has its URI
 * here. */
static void
add_file_lines(struct buf *text, const struct mcp_message *m,
    const struct mcp_run *run)
{
	size_t i;

	for (i = 0; i < run->left_count && i < LINES_MAX; i++) {
		const struct mcp_left *file = &run->left[i];

		buf_addf(text, "[file %s, %" PRId64 " bytes", file->path,
		    file->size);
		if (file->id != NULL)
			buf_addf(text, ", %s", file->type);
		else
			buf_addf(text, ": not kept, %s", file->why);
		if (file->id != NULL && (file->content.len > 0 || !m->links)) {
			buf_adds(text, ", ");
			add_bare_uri(text, file);
		}
		if (file->hidden != NULL)
			buf_addf(text, "; not shown: %s", file->hidden);
		buf_adds(text, "]\n");
	}
	if (i < run->left_count || run->more_left)
		buf_adds(text, "[there are more files]\n");
}

/* ---- what is structured ---- */

static void
add_left(struct buf *out, const struct mcp_run *run, bool kept)
{
	const char *comma = "";

	for (size_t i = 0; i < run->left_count; i++) {
		const struct mcp_left *file = &run->left[i];

		if ((file->id != NULL) != kept)
			continue;
		buf_addf(out, "%s{\"path\":", comma);
		comma = ",";
		mcp_add_text(out, file->path, strlen(file->path));
		buf_addf(out, ",\"size\":%" PRId64, file->size);
		if (kept) {
			buf_addf(out,
			    ",\"mime_type\":\"%s\",\"uri\":", file->type);
			add_uri(out, file);
		} else {
			buf_addf(out, ",\"why\":\"%s\"", file->why);
		}
		if (file->hidden != NULL)
			buf_addf(out, ",\"not_shown\":\"%s\"", file->hidden);
		buf_addc(out, '}');
	}
}

static void
add_stream_member(struct buf *out, const char *name, const struct mcp_output *o)
{
	auto_buf struct buf text = BUF_INIT(MCP_OUTPUT_TEXT_MAX);

	mcp_output_text(&text, o);
	buf_addf(out, "\"%s\":", name);
	mcp_add_text(out, buf_str(&text), text.len);
	buf_addc(out, ',');
}

static void
add_structured(struct buf *out, const struct mcp_run *run)
{
	bool cut = mcp_output_is_cut(run->out) || mcp_output_is_cut(run->err);

	buf_adds(out, ",\"structuredContent\":{");
	add_stream_member(out, "stdout", run->out);
	add_stream_member(out, "stderr", run->err);
	buf_adds(out, "\"exit_code\":");
	add_exit_code(out, run->cell);
	buf_addf(out,
	    ",\"reason\":\"%s\",\"timed_out\":%s,\"duration_ms\":%" PRId64
	    ",\"truncated\":%s,\"files\":[",
	    reason_name(run->cell),
	    run->cell->reason == REASON_TIME ? "true" : "false",
	    run->duration_ms, cut ? "true" : "false");
	add_left(out, run, true);
	buf_adds(out, "],\"left_out\":[");
	add_left(out, run, false);
	buf_adds(out, "]}");
}

/* ---- content ---- */

static void
add_link(struct buf *out, const struct mcp_left *file)
{
	buf_adds(out, ",{\"type\":\"resource_link\",\"uri\":");
	add_uri(out, file);
	buf_adds(out, ",\"name\":");
	mcp_add_text(out, file->path, strlen(file->path));
	buf_addf(out, ",\"mimeType\":\"%s\",\"size\":%" PRId64 "}", file->type,
	    file->size);
}

static void
add_item(struct buf *out, const struct mcp_message *m,
    const struct mcp_left *file)
{
	const struct buf *content = &file->content;

	if (content->len > 0 && mcp_media_is_picture(file->type)) {
		buf_addf(out,
		    ",{\"type\":\"image\",\"mimeType\":\"%s\",\"data\":\"",
		    file->type);
		base64_add(out, buf_str(content), content->len);
		buf_adds(out, "\"}");
	} else if (content->len > 0 &&
	    utf8_valid(buf_str(content), content->len)) {
		buf_adds(out, ",{\"type\":\"text\",\"text\":");
		mcp_add_text(out, buf_str(content), content->len);
		buf_addc(out, '}');
	} else if (file->id != NULL && m->links) {
		add_link(out, file);
	}
}

void
mcp_check_picture(struct mcp_left *file)
{
	const struct buf *content = &file->content;

	if (!mcp_media_is_picture(file->type))
		return;
	if (file->size > MCP_PICTURE_BYTES)
		file->hidden = MCP_PICTURE_TOO_LONG;
	else if (content->len == 0)
		file->hidden = NO_ROOM;
	else
		file->hidden = mcp_picture_fault(&file->type, buf_str(content),
		    content->len);
	if (file->hidden != NULL)
		buf_reset(&file->content);
}

/* As base64, or as JSON in which a byte is up to six. */
static size_t
measure_item(const struct mcp_left *file, struct buf *scratch)
{
	const size_t len = file->content.len;

	if (mcp_media_is_picture(file->type))
		return len / 3 * 4 + 4 + ITEM_SLACK;
	buf_reset(scratch);
	mcp_add_text(scratch, buf_str(&file->content), len);
	return scratch->overflow ? SIZE_MAX : scratch->len + ITEM_SLACK;
}

/* What is shown shares the room that the rest leaves.  The content repeats what
 * is structured, so that counts twice. */
static void
hide_what_does_not_fit(const struct mcp_message *m, const struct mcp_run *run)
{
	auto_buf struct buf structured = BUF_INIT(MCP_ANSWER_MAX);
	auto_buf struct buf lines = BUF_INIT(TEXT_MAX);
	size_t rest;
	size_t room;

	add_structured(&structured, run);
	rest = 2 * structured.len + SLACK;
	add_file_lines(&lines, m, run);
	buf_reset(&structured);
	mcp_add_text(&structured, buf_str(&lines), lines.len);
	rest += structured.len;
	room = rest < MCP_RESULT_MAX ? MCP_RESULT_MAX - rest : 0;
	for (size_t i = 0; i < run->left_count; i++) {
		struct mcp_left *file = &run->left[i];
		const size_t len = file->content.len;
		const bool picture = mcp_media_is_picture(file->type);
		const size_t need = len == 0 ? 0 :
					       measure_item(file, &structured);

		if (len == 0)
			continue;
		if (need <= room) {
			room -= need;
			continue;
		}
		buf_reset(&file->content);
		file->hidden = picture ? NO_ROOM : NULL;
	}
}

void
mcp_add_run(struct buf *out, const struct mcp_message *m,
    const struct mcp_run *run)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	bool fine = run->cell->reason == REASON_EXIT && run->cell->status == 0;

	hide_what_does_not_fit(m, run);
	add_stream(&text, run->out, NULL);
	add_stream(&text, run->err, "stderr");
	add_end(&text, run);
	add_file_lines(&text, m, run);
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	buf_adds(out, ",\"content\":[{\"type\":\"text\",\"text\":");
	mcp_add_text(out, buf_str(&text), text.len);
	buf_addc(out, '}');
	for (size_t i = 0; i < run->left_count; i++)
		add_item(out, m, &run->left[i]);
	buf_addc(out, ']');
	add_structured(out, run);
	buf_addf(out, ",\"isError\":%s", fine ? "false" : "true");
	mcp_end(out);
}
