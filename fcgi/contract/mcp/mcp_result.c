/* SPDX-License-Identifier: MIT */
#include "contract/mcp/mcp_result.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "contract/json.h"
#include "contract/mcp/mcp_message.h"
#include "contract/media.h"
#include "contract/run_files.h"

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/frame_limits.h"

#define PATH_MAX_BYTES (3 * (LIMIT_PATH + LIMIT_NAME + 1))
/* An answer has the same twice, as a text and structured: bytes of each. */
#define HALF ((size_t)MCP_RESULT_MAX / 2 - 16384)
/* As base64 these are HALF at most. */
#define HALF_BYTES (HALF / 4 * 3)
/* A text of more, as JSON, is sent as base64, which always fits. */
#define CONTENTS_TEXT_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)512 << 10)
#define LINES_MAX 20 /* about files, in the text */
/* Bytes of a run's answer beside its content and what is structured. */
#define SLACK 16384
#define URI_PREFIX "inline://files/"

/* ---- output of a run ---- */

/* Where there is no room the middle is dropped, up to the last bytes. */
void
mcp_output_add(struct mcp_output *o, const void *data, size_t len)
{
	struct buf *kept = &o->kept;
	const char *at = data;

	o->total += (int64_t)len;
	while (len > 0) {
		size_t room = kept->max - kept->len;
		size_t n = len < room ? len : room;

		buf_add(kept, at, n);
		at += n;
		len -= n;
		if (len == 0)
			break;
		memmove(kept->data + MCP_HEAD_BYTES,
		    kept->data + kept->len - MCP_TAIL_BYTES, MCP_TAIL_BYTES);
		buf_cut(kept, MCP_HEAD_BYTES + MCP_TAIL_BYTES);
	}
}

bool
mcp_output_is_cut(const struct mcp_output *o)
{
	return o->total > MCP_HEAD_BYTES + MCP_TAIL_BYTES;
}

/* The decoder keeps the beginning of a character at the end of the head. */
void
mcp_output_text(struct buf *out, const struct mcp_output *o)
{
	struct utf8_decoder head = { .count = 0 };
	const char *kept = buf_str(&o->kept);
	const char *end = kept + o->kept.len;
	const char *tail;

	if (!mcp_output_is_cut(o)) {
		utf8_decoder_add_whole(out, kept, o->kept.len);
		return;
	}
	tail = end - MCP_TAIL_BYTES;
	for (int i = 0; i < 3 && utf8_is_tail(*tail); i++)
		tail++;
	utf8_decoder_add(&head, out, kept, MCP_HEAD_BYTES);
	buf_addf(out, "\n[... %" PRId64 " bytes are left out here ...]\n",
	    o->total - MCP_HEAD_BYTES + (int64_t)head.count - (end - tail));
	utf8_decoder_add_whole(out, tail, (size_t)(end - tail));
}

void
mcp_output_last_line(struct buf *out, const struct mcp_output *o, size_t max)
{
	struct utf8_decoder line = { .count = 0 };
	const char *s = buf_str(&o->kept);
	size_t end = o->kept.len;
	size_t start;

	while (end > 0 && (s[end - 1] == '\n' || s[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && s[start - 1] != '\n' && s[start - 1] != '\r')
		start--;
	end = end - start > max ? start + max : end;
	utf8_decoder_add(&line, out, s + start, end - start);
}

/* ---- parts ---- */

/* An item of content: a text, which is taken over. */
static json_t *
pack_text_item(json_t *text)
{
	return json_pack("{s:s, s:o}", "type", "text", "text", text);
}

static json_t *
pack_base64(const char *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(2 * len + 4);

	base64_add(&text, data, len);
	return json_stringn_nocheck(buf_str(&text), text.len);
}

static json_t *
pack_picture_item(const char *type, json_t *base64)
{
	return json_pack("{s:s, s:s, s:o}", "type", "image", "mimeType", type,
	    "data", base64);
}

/* A result whose content is one text; structured NULL: it is an error. */
static json_t *
pack_result(const struct buf *text, json_t *structured)
{
	return json_pack("{s:[o], s:o*, s:b}", "content",
	    pack_text_item(jtext_pack(buf_str(text), text->len)),
	    "structuredContent", structured, "isError", structured == NULL);
}

json_t *
mcp_trouble(const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(8192);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return pack_result(&text, NULL);
}

/* ---- sessions and their files ---- */

json_t *
mcp_pack_session(const char *id, int64_t expires_s)
{
	auto_buf struct buf text = BUF_INIT(1024);
	time_t seconds = (time_t)expires_s;
	struct tm tm;
	char when[32];

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_addf(&text, "Session %s, until %s.", id, when);
	return pack_result(&text,
	    json_pack("{s:s, s:s}", "session", id, "expires_at", when));
}

json_t *
mcp_pack_closed(void)
{
	auto_buf struct buf text = BUF_INIT(64);

	buf_adds(&text, "The session has ended.");
	return pack_result(&text, json_pack("{s:b}", "closed", 1));
}

json_t *
mcp_pack_written(const char *path, size_t size)
{
	auto_buf struct buf text = BUF_INIT(PATH_MAX_BYTES + 64);

	path_text_write(&text, path);
	buf_addf(&text, " has %zu bytes now.", size);
	return pack_result(&text, json_pack("{s:I}", "size", (json_int_t)size));
}

/* An entry's line is shorter than its JSON. */
void
mcp_listing_add(struct mcp_listing *list, const char *name,
    enum entry_kind kind, int64_t size)
{
	static const char *const kinds[] = {
		[ENTRY_FILE] = "file",
		[ENTRY_DIRECTORY] = "folder",
		[ENTRY_LINK] = "link",
		[ENTRY_OTHER] = "other",
	};
	auto_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);
	bool is_file = kind == ENTRY_FILE;
	json_t *entry;

	path_text_write(&path, list->folder);
	buf_adds(&path, list->folder[0] == '\0' ? "" : "/");
	path_text_write(&path, name);
	entry = json_pack("{s:o, s:s, s:I}", "path",
	    jtext_pack(buf_str(&path), path.len), "kind", kinds[kind], "size",
	    (json_int_t)(is_file ? size : 0));
	list->size += mcp_json_size(entry) + 1;
	list->cut |= list->size > HALF;
	if (list->cut) {
		json_decref(entry);
		return;
	}
	(void)json_array_append_new(list->files, entry);
	buf_add(&list->text, buf_str(&path), path.len);
	if (is_file)
		buf_addf(&list->text, "\t%" PRId64 " bytes\n", size);
	else
		buf_addf(&list->text, "\t%s\n", kinds[kind]);
}

json_t *
mcp_pack_listing(struct mcp_listing *list, int64_t total)
{
	size_t count = json_array_size(list->files);
	bool cut = list->cut || total > (int64_t)count;

	if (cut)
		buf_adds(&list->text, "[there are more]");
	else if (count == 0)
		buf_adds(&list->text, "[the folder is empty]");
	return pack_result(&list->text,
	    json_pack("{s:O, s:b}", "files", list->files, "truncated", cut));
}

void
mcp_listing_release(struct mcp_listing *list)
{
	json_decref(list->files);
	buf_release(&list->text);
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

/* As much of a text as fits into half of an answer: its share of the length is
 * tried, until it does. */
static json_t *
pack_fitting(const char *data, size_t *len)
{
	json_t *text = json_stringn(data, *len);
	size_t size;

	while ((size = mcp_json_size(text)) > HALF) {
		*len = (size_t)((double)*len * (double)HALF / (double)size);
		while (*len > 0 && utf8_is_tail(data[*len]))
			--*len;
		json_decref(text);
		text = json_stringn(data, *len);
	}
	return text;
}

json_t *
mcp_pack_read(const char *path, const char *data, size_t len, int64_t offset,
    int64_t size)
{
	const char *type = media_type(path, data, len);
	bool whole = offset == 0 && (int64_t)len == size;
	size_t taken = text_len(data, len, offset + (int64_t)len >= size);
	bool is_text = len == 0 || taken > 0;
	const char *hidden = NULL;
	bool shown;
	json_t *value;
	json_t *again;
	json_t *content;
	int64_t next;

	if (media_is_picture(type))
		hidden = whole ? media_picture_fault(&type, data, len) :
				 "this is a part of it";
	shown = !is_text && hidden == NULL && media_is_picture(type);
	if (!is_text)
		taken = len <= HALF_BYTES || shown ? len : HALF_BYTES;
	value = is_text ? pack_fitting(data, &taken) : pack_base64(data, taken);
	next = offset + (int64_t)taken;
	/* A large picture has no room a second time. */
	again = is_text || taken <= HALF_BYTES ? json_incref(value) : NULL;
	content = json_pack("[o]",
	    shown ? pack_picture_item(type, value) : pack_text_item(value));
	if (!is_text && hidden != NULL)
		(void)json_array_append_new(content,
		    pack_text_item(json_sprintf("[not shown as a picture: %s]",
			hidden)));
	if (next < size)
		(void)json_array_append_new(content,
		    pack_text_item(json_sprintf("[%zu of %" PRId64
						" bytes; the next offset is "
						"%" PRId64 "]",
			taken, size, next)));
	return json_pack("{s:o, s:{s:o*, s:I, s:s, s:o}, s:b}", "content",
	    content, "structuredContent", is_text ? "text" : "base64", again,
	    "size", (json_int_t)size, "mime_type", type, "next_offset",
	    next < size ? json_integer(next) : json_null(), "isError", 0);
}

/* ---- resources ---- */

void
mcp_add_uri(struct buf *out, const char *id, const char *name)
{
	buf_addf(out, URI_PREFIX "%s/", id);
	text_add_escaped(out, name, strlen(name), "-._~");
}

static json_t *
pack_uri(const char *id, const char *name)
{
	auto_buf struct buf uri = BUF_INIT(MCP_URI_MAX);

	mcp_add_uri(&uri, id, name);
	return json_stringn(buf_str(&uri), uri.len);
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

json_t *
mcp_pack_resource(const char *id, const char *name, int64_t size)
{
	return json_pack("{s:o, s:o, s:s, s:I}", "uri", pack_uri(id, name),
	    "name", jtext_pack(name, strlen(name)), "mimeType",
	    media_of_name(name), "size", (json_int_t)size);
}

json_t *
mcp_pack_contents(const json_t *uri, const char *name, const char *data,
    size_t len)
{
	const char *type = media_type(name, data, len);
	json_t *text = NULL;

	/* Clients put into a conversation what is called a picture. */
	if (media_is_picture(type))
		(void)media_picture_fault(&type, data, len);
	if (media_is_text(type))
		text = json_stringn(data, len);
	if (text != NULL && mcp_json_size(text) > CONTENTS_TEXT_MAX) {
		json_decref(text);
		text = NULL;
	}
	return json_pack("{s:[{s:O, s:s, s:o*, s:o*}]}", "contents", "uri", uri,
	    "mimeType", type, "text", text, "blob",
	    text == NULL ? pack_base64(data, len) : NULL);
}

/* ---- the answer of a run ---- */

/* The line that says how it ended. */
static void
add_outcome(struct buf *text, const struct mcp_run *run)
{
	static const char *const ends[] = {
		[REASON_EXIT] = "exit code",
		[REASON_SIGNAL] = "ended by signal",
		[REASON_TIME] = "timed out: ended after timeout_seconds,",
		[REASON_MEMORY] = "ended: it used up its memory",
		[REASON_OUTPUT] = "ended: it printed too much",
	};
	const struct cell_result *cell = run->cell;

	buf_addf(text, "[%s", ends[cell->reason]);
	if (cell->reason == REASON_EXIT)
		buf_addf(text, " %" PRId64 ", %" PRId64 " ms", cell->status,
		    cell->wall_us / 1000);
	else if (cell->reason == REASON_SIGNAL)
		buf_addf(text, " %" PRId64, cell->signal);
	else if (cell->reason == REASON_TIME)
		buf_addf(text, " %" PRId64, run->timeout_s);
	buf_adds(text, "]\n");
	if (cell->disk_full != 0)
		buf_addf(text, "[its folder is full%s]\n",
		    cell->disk_full == DISK_FULL_FILES ? ": too many files" :
							 "");
}

/* A stream on lines of its own. */
static void
add_stream(struct buf *text, const struct mcp_output *o, const char *title)
{
	if (o->total == 0)
		return;
	buf_adds(text, title);
	mcp_output_text(text, o);
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_addc(text, '\n');
}

/* The lines about files, for clients that show nothing but text.  A file that
 * has no link has its URI here. */
static void
add_file_lines(struct buf *text, const struct mcp_run *run)
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
		if (file->id != NULL &&
		    (file->content.len > 0 || !run->links)) {
			buf_adds(text, ", ");
			mcp_add_uri(text, file->id, basename(file->path));
		}
		if (file->hidden != NULL)
			buf_addf(text, "; not shown: %s", file->hidden);
		buf_adds(text, "]\n");
	}
	if (i < run->files->count || run->more_left)
		buf_adds(text, "[there are more files]\n");
}

/* The files that the store has, or those that it has not. */
static json_t *
mcp_pack_files(const struct mcp_run *run, bool stored)
{
	json_t *list = json_array();

	for (size_t i = 0; i < run->files->count; i++) {
		const struct run_file *file = &run->files->items[i];

		if ((file->id != NULL) == stored)
			(void)json_array_append_new(list,
			    json_pack("{s:o, s:I, s:s*, s:o*, s:s*, s:s*}",
				"path",
				jtext_pack(file->path, strlen(file->path)),
				"size", (json_int_t)file->size, "mime_type",
				stored ? file->type : NULL, "uri",
				stored ?
				    pack_uri(file->id, basename(file->path)) :
				    NULL,
				"why", stored ? NULL : file->why, "not_shown",
				file->hidden));
	}
	return list;
}

static json_t *
pack_stream(const struct mcp_output *o)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);

	mcp_output_text(&text, o);
	return json_stringn(buf_str(&text), text.len);
}

/* The result without the items of files. */
static json_t *
pack_without_items(const struct mcp_run *run)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	const struct cell_result *cell = run->cell;

	add_stream(&text, run->out, "");
	add_stream(&text, run->err, "[stderr]\n");
	add_outcome(&text, run);
	add_file_lines(&text, run);
	return json_pack("{s:[o], s:{s:o, s:o, s:o, s:s, s:b, s:I, s:b, s:o, "
			 "s:o}, s:b}",
	    "content", pack_text_item(jtext_pack(buf_str(&text), text.len)),
	    "structuredContent", "stdout", pack_stream(run->out), "stderr",
	    pack_stream(run->err), "exit_code", outcome_pack_exit_code(cell),
	    "reason", outcome_reason(cell), "timed_out",
	    cell->reason == REASON_TIME, "duration_ms",
	    (json_int_t)(cell->wall_us / 1000), "truncated",
	    mcp_output_is_cut(run->out) || mcp_output_is_cut(run->err), "files",
	    mcp_pack_files(run, true), "left_out", mcp_pack_files(run, false),
	    "isError", cell->reason != REASON_EXIT || cell->status != 0);
}

/* NULL: the file has none. */
static json_t *
pack_item(const struct run_file *file, bool links)
{
	const char *content = buf_str(&file->content);
	size_t len = file->content.len;

	if (len > 0 && media_is_picture(file->type))
		return pack_picture_item(file->type, pack_base64(content, len));
	if (len > 0 && utf8_valid(content, len))
		return pack_text_item(json_stringn(content, len));
	return file->id == NULL || !links ?
	    NULL :
	    json_pack("{s:s, s:o, s:o, s:s, s:I}", "type", "resource_link",
		"uri", pack_uri(file->id, basename(file->path)), "name",
		jtext_pack(file->path, strlen(file->path)), "mimeType",
		file->type, "size", (json_int_t)file->size);
}

/* The first result is measured: its files with contents share the room that it
 * leaves, and the last result says which of them are hidden. */
json_t *
mcp_pack_run(const struct mcp_run *run)
{
	json_t *items = json_array();
	json_t *result = pack_without_items(run);
	size_t used = mcp_json_size(result) + SLACK;

	json_decref(result);
	for (size_t i = 0; i < run->files->count; i++) {
		struct run_file *file = &run->files->items[i];
		json_t *item = pack_item(file, run->links);
		size_t size = mcp_json_size(item) + 1;

		if (file->content.len > 0 && used + size > MCP_RESULT_MAX) {
			json_decref(item);
			buf_reset(&file->content);
			if (media_is_picture(file->type))
				file->hidden = MCP_NO_ROOM;
			item = pack_item(file, run->links);
			size = mcp_json_size(item) + 1;
		}
		used += size;
		(void)json_array_append_new(items, item);
	}
	result = pack_without_items(run);
	(void)json_array_extend(json_object_get(result, "content"), items);
	json_decref(items);
	return result;
}
