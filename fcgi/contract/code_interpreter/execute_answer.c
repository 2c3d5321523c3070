/* SPDX-License-Identifier: MIT */
#include "contract/code_interpreter/execute_answer.h"

#include <inttypes.h>
#include <string.h>

#include "contract/jtext.h"

#include "protocol/cell.h"

#define MARK "\\n...[truncated]" /* in a JSON string */
#define CAPTURE_LAST 32		 /* bytes that it takes the place of */

/* Count bytes against the bound; how many may stay.  More of them are dropped,
 * and `over` says so. */
static size_t
capture_count(struct capture *c, size_t len)
{
	c->over = c->over || len > c->left;
	len = len < c->left ? len : c->left;
	c->left -= len;
	return len;
}

void
capture_add(struct capture *c, const void *data, size_t len)
{
	buf_add(&c->text, data, capture_count(c, len));
}

void
capture_end(struct capture *c)
{
	struct buf raw = c->text;

	buf_init(&c->text, raw.max);
	if (c->over)
		raw.len -= raw.len < CAPTURE_LAST ? raw.len : CAPTURE_LAST;
	jtext_add_text(&c->text, buf_str(&raw), raw.len, JTEXT_UTF8);
	if (c->over)
		buf_adds(&c->text, MARK);
	buf_release(&raw);
}

/* Append a string without its text. */
static void
execute_add_capture(struct buf *out, struct capture *c)
{
	buf_adds(out, "\"\"");
	c->at = out->len - 1;
}

/* Append a list of the files that were kept, or of those that were left out. */
static void
execute_add_files(struct buf *out, const struct run_files *files, bool kept,
    enum jtext_style style)
{
	const char *comma = "";

	buf_addc(out, '[');
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if ((file->id != NULL) != kept)
			continue;
		jtext_addf(out, style, "%s{\"path\":\"%s\",", comma,
		    file->path);
		comma = ",";
		if (kept)
			buf_addf(out, "\"kind\":\"file\",\"file_id\":\"%s\"}",
			    file->id);
		else
			buf_addf(out,
			    "\"size_bytes\":%" PRId64 ",\"why\":\"%s\"}",
			    file->size, file->why);
	}
	buf_addc(out, ']');
}

/* All members from exit_code on, and the brace. */
static void
execute_add_end(struct buf *out, const struct execute_result *result,
    enum jtext_style style)
{
	const struct cell_result *cell = result->cell;

	buf_adds(out, "\"exit_code\":");
	outcome_add_exit_code(out, cell);
	buf_addf(out, ",\"timed_out\":%s,\"duration_ms\":%" PRId64,
	    cell->reason == REASON_TIME ? "true" : "false",
	    result->duration_ms);
	if (result->files != NULL) {
		buf_adds(out, ",\"files\":");
		execute_add_files(out, result->files, true, style);
	}
	if (result->extras) {
		buf_addf(out,
		    ",\"cpu_ms\":%" PRId64 ",\"max_rss_bytes\":%" PRId64
		    ",\"reason\":\"%s\",\"left_out\":",
		    cell->cpu_us / 1000, cell->max_rss, outcome_reason(cell));
		execute_add_files(out, result->files, false, style);
	}
	buf_addc(out, '}');
}

size_t
execute_answer(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "{\"stdout\":");
	execute_add_capture(out, result->out);
	buf_adds(out, ",\"stderr\":");
	execute_add_capture(out, result->err);
	buf_addc(out, ',');
	execute_add_end(out, result, JTEXT_UTF8);
	return out->len + result->out->text.len + result->err->text.len;
}

/* Append a time as seconds. */
static void
execute_add_seconds(struct buf *out, int64_t ms)
{
	buf_addf(out, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
}

void
execute_add_session(struct buf *out, const char *id, int64_t expires_ms)
{
	buf_addf(out, "{\"session_id\":\"%s\",\"expires_at\":", id);
	execute_add_seconds(out, expires_ms);
	buf_addc(out, '}');
}

void
execute_add_file(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms)
{
	jtext_addf(out, JTEXT_UTF8,
	    "{\"file_id\":\"%s\",\"filename\":\"%s\",\"size_bytes\":%" PRId64,
	    id, name, size);
	if (uploaded_ms >= 0) {
		buf_adds(out, ",\"upload_time\":");
		execute_add_seconds(out, uploaded_ms);
	}
	buf_addc(out, '}');
}

/* ---- as a stream ---- */

/* No frame for no text. */
static void
sse_add_frame(struct buf *out, const struct capture *c, const struct buf *text)
{
	if (text->len == 0)
		return;
	jtext_addf(out, JTEXT_ASCII,
	    "event: output\ndata: {\"stream\":\"%s\",\"data\":\"%.*s\"}\n\n",
	    c->name, (int)text->len, buf_str(text));
}

/* The bound counts bytes as they came; a character may end in a later slice. */
void
sse_add_output(struct buf *out, struct capture *c, const void *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * (len + 1));

	utf8_decoder_add(&c->decoder, &text, data, capture_count(c, len));
	sse_add_frame(out, c, &text);
}

/* The beginning of a character that did not come becomes U+FFFD. */
void
sse_add_rest(struct buf *out, struct capture *c)
{
	auto_buf struct buf text = BUF_INIT(8);

	utf8_decoder_end(&c->decoder, &text);
	sse_add_frame(out, c, &text);
}

void
sse_add_result(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "event: result\ndata: {");
	execute_add_end(out, result, JTEXT_ASCII);
	buf_adds(out, "\n\n");
}

void
sse_add_error(struct buf *out, const char *text)
{
	jtext_addf(out, JTEXT_ASCII,
	    "event: error\ndata: {\"message\":\"%s\"}\n\n", text);
}
