/* SPDX-License-Identifier: MIT */
#include "mcp_result.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "../base64.h"
#include "../path_text.h"
#include "mcp_answer.h"
#include "mcp_media.h"
#include "mcp_message.h"
#include "mcp_picture.h"

#include "../../../sandbox/base/utf8.h"
#include "../../../sandbox/protocol/frame_limits.h"

/* How long a client may keep a file: it never changes, but goes at its time. */
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

/* ---- parts ---- */

/* An item of content: a text.  Its comma is the caller's. */
static void
add_text_item(struct buf *out, const char *text, size_t len)
{
	buf_adds(out, "{\"type\":\"text\",\"text\":");
	mcp_add_text(out, text, len);
	buf_addc(out, '}');
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

static void
add_string(struct buf *out, const char *s)
{
	mcp_add_text(out, s, strlen(s));
}

/* The end of a result whose content is one text and which is structured as
 * given, a JSON object. */
static void
end_with(struct buf *out, const struct buf *text, const struct buf *structured)
{
	buf_adds(out, ",\"content\":[");
	add_text_item(out, buf_str(text), text->len);
	buf_adds(out, "],\"structuredContent\":");
	buf_add(out, buf_str(structured), structured->len);
	buf_adds(out, ",\"isError\":false");
	mcp_end(out);
}

void
mcp_add_trouble(struct buf *out, const struct mcp_message *m, const char *text)
{
	mcp_begin(out, m, MCP_NOT_KEPT, false);
	buf_adds(out, ",\"content\":[");
	add_text_item(out, text, strlen(text));
	buf_adds(out, "],\"isError\":true");
	mcp_end(out);
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

static const char *
kind_name(enum entry_kind kind)
{
	switch (kind) {
	case ENTRY_FILE:
		return "file";
	case ENTRY_DIRECTORY:
		return "folder";
	case ENTRY_LINK:
		return "link";
	case ENTRY_OTHER:
		break;
	}
	return "other";
}

void
mcp_add_listing(struct buf *out, const struct mcp_message *m,
    const char *folder, const struct mcp_entry *entries, size_t count,
    bool truncated)
{
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
		buf_addf(&list, "%s{\"path\":", i == 0 ? "" : ",");
		mcp_add_text(&list, buf_str(&path), path.len);
		buf_addf(&list, ",\"kind\":\"%s\",\"size\":%" PRId64 "}",
		    kind_name(entry->kind), is_file ? entry->size : 0);
		if (list.len > HALF) {
			list.len = before;
			truncated = true;
			break;
		}
		buf_add(&text, buf_str(&path), path.len);
		if (is_file)
			buf_addf(&text, "\t%" PRId64 " bytes\n", entry->size);
		else
			buf_addf(&text, "\t%s\n", kind_name(entry->kind));
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
	size_t whole = utf8_span(data, len, false);

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
	if (!mcp_media_is_picture(*type))
		return NULL;
	return whole ? mcp_picture_fault(type, data, len) :
		       "this is a part of it";
}

void
mcp_add_read(struct buf *out, const struct mcp_message *m, const char *path,
    const char *data, size_t len, int64_t offset, int64_t size)
{
	const char *type = mcp_media_type(path, data, len);
	bool whole = offset == 0 && (int64_t)len == size;
	size_t taken = text_len(data, len, offset + (int64_t)len >= size);
	bool text = len == 0 || taken > 0;
	const char *hidden = hidden_picture(&type, data, len, whole);
	bool shown = !text && mcp_media_is_picture(type) && hidden == NULL;

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
mcp_add_resource(struct buf *out, const char *id, const char *name,
    int64_t size)
{
	auto_buf struct buf uri = BUF_INIT((size_t)64 << 10);

	mcp_add_uri(&uri, id, name);
	buf_adds(out, "{\"uri\":");
	mcp_add_text(out, buf_str(&uri), uri.len);
	buf_adds(out, ",\"name\":");
	add_string(out, name);
	buf_addf(out, ",\"mimeType\":\"%s\",\"size\":%" PRId64 "}",
	    mcp_media_of_name(name), size);
}

void
mcp_add_contents(struct buf *out, const struct mcp_message *m,
    const struct pyvalue *uri, const char *name, const char *data, size_t len)
{
	const char *type = mcp_media_type(name, data, len);

	/* Clients put into a conversation what is called a picture. */
	if (mcp_media_is_picture(type))
		(void)mcp_picture_fault(&type, data, len);
	mcp_begin(out, m, CONTENTS_MS, false);
	buf_adds(out, ",\"contents\":[{\"uri\":");
	mcp_add_value(out, uri);
	buf_addf(out, ",\"mimeType\":\"%s\",", type);
	if (mcp_media_is_text(type) && utf8_valid(data, len) &&
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
