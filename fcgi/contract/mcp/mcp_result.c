/* SPDX-License-Identifier: MIT */
#include "contract/mcp/mcp_result.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "contract/json.h"
#include "contract/media.h"
#include "contract/mcp/mcp_message.h"
#include "contract/run_files.h"

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/frame_limits.h"

/* A client may keep a file for so long: it never changes, but goes at its
 * time. */
#define CONTENTS_MS 60000
#define PATH_MAX_BYTES (3 * (LIMIT_PATH + LIMIT_NAME + 1))
/* An answer has the same twice, as a text and structured: bytes of each. */
#define HALF ((size_t)MCP_RESULT_MAX / 2 - 16384)
/* Six bytes of JSON for each of a path, and what is around it. */
#define ENTRY_MAX (6 * PATH_MAX_BYTES + 64)
/* As base64 these are HALF at most. */
#define HALF_BYTES (HALF / 4 * 3)
/* A text of more, as JSON, is sent as base64, which always fits. */
#define CONTENTS_TEXT_MAX ((size_t)16 << 20)
#define ITEM_SLACK 64
#define TEXT_MAX ((size_t)512 << 10)
#define LINES_MAX 20 /* that tell of files, in the text */
/* Bytes of the content beside the streams, links and those lines. */
#define SLACK 16384

#define URI_PREFIX "inline://files/"
#define NO_ROOM "the rest of the answer leaves no room for it"

/* ---- output of a run ---- */

/* Keep the last MCP_TAIL_BYTES of the end, and what came since. */
static void
add_tail(struct buf *tail, const char *data, size_t len)
{
	if (len >= MCP_TAIL_BYTES) {
		buf_reset(tail);
		data += len - MCP_TAIL_BYTES;
		len = MCP_TAIL_BYTES;
	}
	if (tail->len + len > tail->max)
		buf_drop(tail, tail->len - MCP_TAIL_BYTES);
	buf_add(tail, data, len);
}

void
mcp_output_add(struct mcp_output *o, const void *data, size_t len)
{
	size_t room = MCP_HEAD_BYTES - o->head.len;
	size_t head = len < room ? len : room;

	o->total += (int64_t)len;
	buf_add(&o->head, data, head);
	if (len > head)
		add_tail(&o->tail, (const char *)data + head, len - head);
}

void
mcp_output_release(struct mcp_output *o)
{
	buf_release(&o->head);
	buf_release(&o->tail);
}

bool
mcp_output_is_cut(const struct mcp_output *o)
{
	return o->total > MCP_HEAD_BYTES + MCP_TAIL_BYTES;
}

/* The length without the beginning of a character at the end. */
static size_t
whole_len(const char *s, size_t len)
{
	size_t back = 0;

	while (back < 3 && back < len && utf8_is_tail(s[len - 1 - back]))
		back++;
	if (back < len && (unsigned char)s[len - 1 - back] >= 0xc0 &&
	    utf8_step(s + len - 1 - back, back + 1) == 0)
		return len - 1 - back;
	return len;
}

void
mcp_output_text(struct buf *out, const struct mcp_output *o)
{
	auto_buf struct buf all = BUF_INIT(o->head.len + o->tail.len);
	const char *tail = buf_str(&o->tail);
	size_t tail_len = o->tail.len;
	size_t head_len;

	if (!mcp_output_is_cut(o)) {
		buf_add(&all, buf_str(&o->head), o->head.len);
		buf_add(&all, tail, tail_len);
		utf8_decoder_add_whole(out, buf_str(&all), all.len);
		return;
	}
	head_len = whole_len(buf_str(&o->head), o->head.len);
	tail += tail_len - MCP_TAIL_BYTES;
	tail_len = MCP_TAIL_BYTES;
	for (int i = 0; i < 3 && utf8_is_tail(*tail); i++) {
		tail++;
		tail_len--;
	}
	utf8_decoder_add_whole(out, buf_str(&o->head), head_len);
	buf_addf(out, "\n[... %" PRId64 " bytes are left out here ...]\n",
	    o->total - (int64_t)head_len - (int64_t)tail_len);
	utf8_decoder_add_whole(out, tail, tail_len);
}

void
mcp_output_last_line(struct buf *out, const struct mcp_output *o, size_t max)
{
	const struct buf *last = o->tail.len > 0 ? &o->tail : &o->head;
	const char *s = buf_str(last);
	size_t end = last->len;
	size_t start;

	while (end > 0 && (s[end - 1] == '\n' || s[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && s[start - 1] != '\n' && s[start - 1] != '\r')
		start--;
	end = end - start > max ? start + max : end;
	utf8_decoder_add_whole(out, s + start,
	    whole_len(s + start, end - start));
}

/* ---- parts ---- */

/* An item of content: a text.  Its comma is the caller's. */
static void
add_text_item(struct buf *out, const char *text, size_t len)
{
	jtext_addf(out, JTEXT_ASCII, "{\"type\":\"text\",\"text\":\"%.*s\"}",
	    (int)len, text);
}

static void
add_picture_item(struct buf *out, const char *type, const char *data,
    size_t len)
{
	buf_addf(out, "{\"type\":\"image\",\"mimeType\":\"%s\",\"data\":\"",
	    type);
	base64_add(out, data, len);
	buf_adds(out, "\"}");
}

/* The end of a result whose content is one text and which is structured as
 * given, a JSON object. */
static void
end_with(struct buf *out, const struct buf *text, const struct buf *structured)
{
	jtext_addf(out, JTEXT_ASCII,
	    ",\"content\":[{\"type\":\"text\",\"text\":\"%.*s\"}],"
	    "\"structuredContent\":%.*s,\"isError\":false}}",
	    (int)text->len, buf_str(text), (int)structured->len,
	    buf_str(structured));
}

void
mcp_add_trouble(struct buf *out, const struct mcp_message *m, const char *text)
{
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	jtext_addf(out, JTEXT_ASCII,
	    ",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],"
	    "\"isError\":true}}",
	    text);
}

/* ---- sessions and their files ---- */

void
mcp_add_session(struct buf *out, const struct mcp_message *m, const char *id,
    int64_t expires_s)
{
	auto_buf struct buf text = BUF_INIT(1024);
	auto_buf struct buf structured = BUF_INIT(1024);
	time_t seconds = (time_t)expires_s;
	struct tm tm;
	char when[32];

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_addf(&text, "Session %s, until %s.", id, when);
	buf_addf(&structured, "{\"session\":\"%s\",\"expires_at\":\"%s\"}", id,
	    when);
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	end_with(out, &text, &structured);
}

void
mcp_add_closed(struct buf *out, const struct mcp_message *m)
{
	auto_buf struct buf text = BUF_INIT(64);
	auto_buf struct buf structured = BUF_INIT(64);

	buf_adds(&text, "The session has ended.");
	buf_adds(&structured, "{\"closed\":true}");
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	end_with(out, &text, &structured);
}

void
mcp_add_written(struct buf *out, const struct mcp_message *m, const char *path,
    size_t size)
{
	auto_buf struct buf text = BUF_INIT(8192);
	auto_buf struct buf structured = BUF_INIT(64);

	path_text_write(&text, path);
	buf_addf(&text, " has %zu bytes now.", size);
	buf_addf(&structured, "{\"size\":%zu}", size);
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	end_with(out, &text, &structured);
}

void
mcp_add_listing(struct buf *out, const struct mcp_message *m,
    const char *folder, const struct mcp_entry *entries, size_t count,
    bool truncated)
{
	static const char *const kinds[] = {
		[ENTRY_FILE] = "file",
		[ENTRY_DIRECTORY] = "folder",
		[ENTRY_LINK] = "link",
		[ENTRY_OTHER] = "other",
	};
	auto_buf struct buf text = BUF_INIT(HALF);
	auto_buf struct buf list = BUF_INIT(HALF + ENTRY_MAX);
	auto_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);

	buf_adds(&list, "{\"files\":[");
	for (size_t i = 0; i < count; i++) {
		const struct mcp_entry *entry = &entries[i];
		const size_t before = list.len;
		bool is_file = entry->kind == ENTRY_FILE;

		buf_reset(&path);
		path_text_write(&path, folder);
		buf_adds(&path, folder[0] == '\0' ? "" : "/");
		path_text_write(&path, entry->name);
		jtext_addf(&list, JTEXT_ASCII,
		    "%s{\"path\":\"%s\",\"kind\":\"%s\",\"size\":%" PRId64 "}",
		    i == 0 ? "" : ",", buf_str(&path), kinds[entry->kind],
		    is_file ? entry->size : 0);
		if (list.len > HALF) {
			list.len = before;
			truncated = true;
			break;
		}
		buf_add(&text, buf_str(&path), path.len);
		if (is_file)
			buf_addf(&text, "\t%" PRId64 " bytes\n", entry->size);
		else
			buf_addf(&text, "\t%s\n", kinds[entry->kind]);
	}
	buf_addf(&list, "],\"truncated\":%s}", truncated ? "true" : "false");
	if (truncated)
		buf_adds(&text, "[there are more]");
	else if (count == 0)
		buf_adds(&text, "[the folder is empty]");
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	end_with(out, &text, &list);
}

/* Bytes of it that are text, without a part of a character at its end; 0: it is
 * none. */
static size_t
text_len(const char *data, size_t len, bool at_end)
{
	size_t whole = utf8_span(data, len);

	if (memchr(data, '\0', whole) != NULL)
		return 0;
	return whole == len || (!at_end && whole > 0 && len - whole < 4) ?
	    whole :
	    0;
}

/* A part of a file that is no text: a picture where it is a whole one, else
 * base64, and if it looks like a picture a line that says why. */
static void
add_bytes_items(struct buf *out, const char *type, const char *data, size_t len,
    bool shown, const char *hidden)
{
	if (shown) {
		add_picture_item(out, type, data, len);
		return;
	}
	buf_adds(out, "{\"type\":\"text\",\"text\":\"");
	base64_add(out, data, len);
	buf_adds(out, "\"}");
	if (hidden != NULL)
		buf_addf(out,
		    ",{\"type\":\"text\",\"text\":"
		    "\"[not shown as a picture: %s]\"}",
		    hidden);
}

/* Why a picture is not shown as one; NULL: it is, or these bytes are none. */
static const char *
hidden_picture(const char **type, const char *data, size_t len, bool whole)
{
	if (!media_is_picture(*type))
		return NULL;
	return whole ? media_picture_fault(type, data, len) :
		       "this is a part of it";
}

void
mcp_add_read(struct buf *out, const struct mcp_message *m, const char *path,
    const char *data, size_t len, int64_t offset, int64_t size)
{
	const char *type = media_type(path, data, len);
	bool whole = offset == 0 && (int64_t)len == size;
	size_t taken = text_len(data, len, offset + (int64_t)len >= size);
	bool text = len == 0 || taken > 0;
	const char *hidden = hidden_picture(&type, data, len, whole);
	bool shown = !text && media_is_picture(type) && hidden == NULL;

	if (text)
		taken = mcp_fit_text(data, taken, HALF);
	else
		taken = len <= HALF_BYTES || shown ? len : HALF_BYTES;
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	buf_adds(out, ",\"content\":[");
	if (text)
		add_text_item(out, data, taken);
	else
		add_bytes_items(out, type, data, taken, shown, hidden);
	if (offset + (int64_t)taken < size)
		buf_addf(out,
		    ",{\"type\":\"text\",\"text\":\"[%zu of %" PRId64
		    " bytes; the next offset is %" PRId64 "]\"}",
		    taken, size, offset + (int64_t)taken);
	buf_adds(out, "],\"structuredContent\":{");
	if (text) {
		buf_adds(out, "\"text\":");
		mcp_add_text(out, data, taken);
		buf_addc(out, ',');
	} else if (taken <= HALF_BYTES) {
		/* a large picture has no room a second time */
		buf_adds(out, "\"base64\":\"");
		base64_add(out, data, taken);
		buf_adds(out, "\",");
	}
	buf_addf(out,
	    "\"size\":%" PRId64 ",\"mime_type\":\"%s\",\"next_offset\":", size,
	    type);
	if (offset + (int64_t)taken < size)
		buf_addf(out, "%" PRId64, offset + (int64_t)taken);
	else
		buf_adds(out, "null");
	buf_adds(out, "},\"isError\":false");
	mcp_end(out);
}

/* ---- resources ---- */

void
mcp_add_uri(struct buf *out, const char *id, const char *name)
{
	buf_addf(out, URI_PREFIX "%s/", id);
	text_add_escaped(out, name, strlen(name), "-._~");
}

size_t
mcp_uri_id(const char *uri, size_t len, const char **id)
{
	const size_t prefix = strlen(URI_PREFIX);
	const char *slash;

	if (len < prefix || memcmp(uri, URI_PREFIX, prefix) != 0)
		return 0;
	*id = uri + prefix;
	slash = memchr(*id, '/', len - prefix);
	return slash == NULL ? 0 : (size_t)(slash - *id);
}

void
mcp_add_resource(struct buf *out, const char *id, const char *name,
    int64_t size)
{
	auto_buf struct buf uri = BUF_INIT((size_t)64 << 10);

	mcp_add_uri(&uri, id, name);
	jtext_addf(out, JTEXT_ASCII,
	    "{\"uri\":\"%s\",\"name\":\"%s\",\"mimeType\":\"%s\","
	    "\"size\":%" PRId64 "}",
	    buf_str(&uri), name, media_of_name(name), size);
}

void
mcp_add_contents(struct buf *out, const struct mcp_message *m,
    const json_t *uri, const char *name, const char *data, size_t len)
{
	const char *type = media_type(name, data, len);

	/* Clients put into a conversation what is called a picture. */
	if (media_is_picture(type))
		(void)media_picture_fault(&type, data, len);
	mcp_begin(out, m, CONTENTS_MS, false);
	buf_adds(out, ",\"contents\":[{\"uri\":");
	mcp_add_value(out, uri);
	buf_addf(out, ",\"mimeType\":\"%s\",", type);
	if (media_is_text(type) && utf8_valid(data, len) &&
	    mcp_fit_text(data, len, CONTENTS_TEXT_MAX) == len) {
		buf_adds(out, "\"text\":");
		mcp_add_text(out, data, len);
	} else {
		buf_adds(out, "\"blob\":\"");
		base64_add(out, data, len);
		buf_addc(out, '"');
	}
	buf_adds(out, "}]");
	mcp_end(out);
}

/* ---- the answer of a run ---- */

/* The line that says how it ended. */
static void
mcp_add_end(struct buf *text, const struct mcp_run *run)
{
	const struct cell_result *cell = run->cell;

	if (cell->reason == REASON_EXIT)
		buf_addf(text, "[exit code %" PRId64 ", %" PRId64 " ms]\n",
		    cell->status, run->duration_ms);
	else if (cell->reason == REASON_SIGNAL)
		buf_addf(text, "[ended by signal %" PRId64 "]\n", cell->signal);
	else if (cell->reason == REASON_TIME)
		buf_addf(text,
		    "[timed out: ended after timeout_seconds, %" PRId64 "]\n",
		    run->timeout_s);
	else if (cell->reason == REASON_MEMORY)
		buf_adds(text, "[ended: it used up its memory]\n");
	else
		buf_adds(text, "[ended: it printed too much]\n");
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
add_uri(struct buf *out, const struct run_file *file)
{
	const char *slash = strrchr(file->path, '/');

	mcp_add_uri(out, file->id, slash == NULL ? file->path : slash + 1);
}

/* The lines about files, for clients that show nothing but text.  A file that
 * has no link has its URI here. */
static void
add_file_lines(struct buf *text, const struct mcp_message *m,
    const struct mcp_run *run)
{
	size_t i;

	for (i = 0; i < run->files->count && i < LINES_MAX; i++) {
		const struct run_file *file = &run->files->items[i];

		buf_addf(text, "[file %s, %" PRId64 " bytes", file->path,
		    file->size);
		if (file->id != NULL)
			buf_addf(text, ", %s", file->type);
		else
			buf_addf(text, ": not kept, %s", file->why);
		if (file->id != NULL && (file->content.len > 0 || !m->links)) {
			buf_adds(text, ", ");
			add_uri(text, file);
		}
		if (file->hidden != NULL)
			buf_addf(text, "; not shown: %s", file->hidden);
		buf_adds(text, "]\n");
	}
	if (i < run->files->count || run->more_left)
		buf_adds(text, "[there are more files]\n");
}

/* ---- structured content ---- */

static void
mcp_add_left(struct buf *out, const struct mcp_run *run, bool kept)
{
	const char *comma = "";

	for (size_t i = 0; i < run->files->count; i++) {
		const struct run_file *file = &run->files->items[i];

		if ((file->id != NULL) != kept)
			continue;
		jtext_addf(out, JTEXT_ASCII,
		    "%s{\"path\":\"%s\",\"size\":%" PRId64, comma, file->path,
		    file->size);
		comma = ",";
		if (kept) {
			buf_addf(out, ",\"mime_type\":\"%s\",\"uri\":\"",
			    file->type);
			add_uri(out, file);
			buf_addc(out, '"');
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
	jtext_addf(out, JTEXT_ASCII, "\"%s\":\"%.*s\",", name, (int)text.len,
	    buf_str(&text));
}

static void
add_structured(struct buf *out, const struct mcp_run *run)
{
	bool cut = mcp_output_is_cut(run->out) || mcp_output_is_cut(run->err);
	json_auto_t *code = outcome_pack_exit_code(run->cell);

	buf_adds(out, ",\"structuredContent\":{");
	add_stream_member(out, "stdout", run->out);
	add_stream_member(out, "stderr", run->err);
	buf_adds(out, "\"exit_code\":");
	jtext_add(out, code, 0);
	buf_addf(out,
	    ",\"reason\":\"%s\",\"timed_out\":%s,\"duration_ms\":%" PRId64
	    ",\"truncated\":%s,\"files\":[",
	    outcome_reason(run->cell),
	    run->cell->reason == REASON_TIME ? "true" : "false",
	    run->duration_ms, cut ? "true" : "false");
	mcp_add_left(out, run, true);
	buf_adds(out, "],\"left_out\":[");
	mcp_add_left(out, run, false);
	buf_adds(out, "]}");
}

/* ---- content ---- */

static void
add_item(struct buf *out, const struct mcp_message *m,
    const struct run_file *file)
{
	const char *content = buf_str(&file->content);
	size_t len = file->content.len;

	if (len > 0 && media_is_picture(file->type)) {
		buf_addc(out, ',');
		add_picture_item(out, file->type, content, len);
	} else if (len > 0 && utf8_valid(content, len)) {
		buf_addc(out, ',');
		add_text_item(out, content, len);
	} else if (file->id != NULL && m->links) {
		buf_adds(out, ",{\"type\":\"resource_link\",\"uri\":\"");
		add_uri(out, file);
		jtext_addf(out, JTEXT_ASCII,
		    "\",\"name\":\"%s\",\"mimeType\":\"%s\",\"size\":%" PRId64
		    "}",
		    file->path, file->type, file->size);
	}
}

void
mcp_check_picture(struct run_file *file)
{
	const struct buf *content = &file->content;

	if (!media_is_picture(file->type))
		return;
	if (file->size > MEDIA_PICTURE_BYTES)
		file->hidden = MEDIA_PICTURE_TOO_LONG;
	else if (content->len == 0)
		file->hidden = NO_ROOM;
	else
		file->hidden = media_picture_fault(&file->type,
		    buf_str(content), content->len);
	if (file->hidden != NULL)
		buf_reset(&file->content);
}

/* The bytes of an item: base64, or JSON, in which a byte takes up to six. */
static size_t
measure_item(const struct run_file *file, struct buf *scratch)
{
	const size_t len = file->content.len;

	if (media_is_picture(file->type))
		return len / 3 * 4 + 4 + ITEM_SLACK;
	buf_reset(scratch);
	mcp_add_text(scratch, buf_str(&file->content), len);
	return scratch->overflow ? SIZE_MAX : scratch->len + ITEM_SLACK;
}

/* Hide files that do not fit into the room that the rest leaves.  The content
 * repeats the structured part, so that counts twice. */
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
	for (size_t i = 0; i < run->files->count; i++) {
		struct run_file *file = &run->files->items[i];
		size_t need;

		if (file->content.len == 0)
			continue;
		need = measure_item(file, &structured);
		if (need <= room) {
			room -= need;
			continue;
		}
		buf_reset(&file->content);
		file->hidden = media_is_picture(file->type) ? NO_ROOM : NULL;
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
	mcp_add_end(&text, run);
	add_file_lines(&text, m, run);
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	buf_adds(out, ",\"content\":[");
	add_text_item(out, buf_str(&text), text.len);
	for (size_t i = 0; i < run->files->count; i++)
		add_item(out, m, &run->files->items[i]);
	buf_addc(out, ']');
	add_structured(out, run);
	buf_addf(out, ",\"isError\":%s", fine ? "false" : "true");
	mcp_end(out);
}
