/* SPDX-License-Identifier: MIT */
#include "contract/code_interpreter/execute_answer.h"

#include <inttypes.h>
#include <string.h>

#include "pytext/pydump.h"

#include "protocol/cell.h"

#define MARK "\n...[truncated]"

/* What is over the bound is dropped, but known.  How much is not. */
static size_t
take(struct capture *c, size_t len)
{
	c->over = c->over || len > c->left;
	len = len < c->left ? len : c->left;
	c->left -= len;
	return len;
}

/* With U+FFFD for what is no UTF-8. */
static void
add_text(struct capture *c, const char *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * (len + sizeof(c->decoder)));

	pyutf8_add(&c->decoder, &text, data, len);
	pydump_add_text(&c->text, buf_str(&text), text.len, PYDUMP_UTF8);
}

/* Of the last bytes nobody knows yet whether they stay: they wait. */
void
capture_add(struct capture *c, const void *data, size_t len)
{
	const char *bytes = data;
	size_t sure;
	size_t old;

	len = take(c, len);
	if (c->last_len + len > CAPTURE_LAST) {
		sure = c->last_len + len - CAPTURE_LAST;
		old = sure < c->last_len ? sure : c->last_len;
		add_text(c, c->last, old);
		c->last_len -= old;
		memmove(c->last, c->last + old, c->last_len);
		add_text(c, bytes, sure - old);
		bytes += sure - old;
		len -= sure - old;
	}
	memcpy(c->last + c->last_len, bytes, len);
	c->last_len += len;
}

void
capture_end(struct capture *c)
{
	auto_buf struct buf text = BUF_INIT(sizeof(MARK) + 8);

	if (!c->over)
		add_text(c, c->last, c->last_len);
	c->last_len = 0;
	pyutf8_end(&c->decoder, &text);
	if (c->over)
		buf_adds(&text, MARK);
	pydump_add_text(&c->text, buf_str(&text), text.len, PYDUMP_UTF8);
}

/* A string, the text of which is left out. */
static void
add_capture(struct buf *out, struct capture *c)
{
	buf_adds(out, "\"\"");
	c->at = out->len - 1;
}

/* Those that were kept, or those that were left out. */
static void
add_files(struct buf *out, const struct run_files *files, bool kept,
    enum pydump_style style)
{
	const char *comma = "";

	buf_addc(out, '[');
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if ((file->id != NULL) != kept)
			continue;
		pydump_addf(out, style, "%s{\"path\":\"%s\",", comma,
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
add_end(struct buf *out, const struct execute_result *result,
    enum pydump_style style)
{
	const struct cell_result *cell = result->cell;

	buf_adds(out, "\"exit_code\":");
	outcome_add_exit_code(out, cell);
	buf_addf(out, ",\"timed_out\":%s,\"duration_ms\":%" PRId64,
	    cell->reason == REASON_TIME ? "true" : "false",
	    result->duration_ms);
	if (result->files != NULL) {
		buf_adds(out, ",\"files\":");
		add_files(out, result->files, true, style);
	}
	if (result->extras) {
		buf_addf(out,
		    ",\"cpu_ms\":%" PRId64 ",\"max_rss_bytes\":%" PRId64
		    ",\"reason\":\"%s\",\"left_out\":",
		    cell->cpu_us / 1000, cell->max_rss, outcome_reason(cell));
		add_files(out, result->files, false, style);
	}
	buf_addc(out, '}');
}

/* What was printed, then how it ended. */
size_t
execute_answer(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "{\"stdout\":");
	add_capture(out, result->out);
	buf_adds(out, ",\"stderr\":");
	add_capture(out, result->err);
	buf_addc(out, ',');
	add_end(out, result, PYDUMP_UTF8);
	return out->len + result->out->text.len + result->err->text.len;
}

/* Times are seconds, with all their digits. */
void
execute_add_session(struct buf *out, const char *id, int64_t expires_ms)
{
	pydump_addf(out, PYDUMP_UTF8,
	    "{\"session_id\":\"%s\",\"expires_at\":%g}", id,
	    (double)expires_ms / 1000);
}

void
execute_add_file(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms)
{
	pydump_addf(out, PYDUMP_UTF8,
	    "{\"file_id\":\"%s\",\"filename\":\"%s\",\"size_bytes\":%" PRId64,
	    id, name, size);
	if (uploaded_ms >= 0)
		pydump_addf(out, PYDUMP_UTF8, ",\"upload_time\":%g",
		    (double)uploaded_ms / 1000);
	buf_addc(out, '}');
}

/* ---- as a stream ---- */

/* No frame for no text. */
static void
add_frame(struct buf *out, const struct capture *c, const struct buf *text)
{
	if (text->len == 0)
		return;
	pydump_addf(out, PYDUMP_ASCII,
	    "event: output\ndata: {\"stream\":\"%s\",\"data\":\"%.*s\"}\n\n",
	    c->name, (int)text->len, buf_str(text));
}

/* The bound counts bytes as they came; a character may end in a later slice. */
void
sse_add_output(struct buf *out, struct capture *c, const void *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * (len + 1));

	pyutf8_add(&c->decoder, &text, data, take(c, len));
	add_frame(out, c, &text);
}

/* The beginning of a character that did not come becomes U+FFFD. */
void
sse_add_rest(struct buf *out, struct capture *c)
{
	auto_buf struct buf text = BUF_INIT(8);

	pyutf8_end(&c->decoder, &text);
	add_frame(out, c, &text);
}

void
sse_add_result(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "event: result\ndata: {");
	add_end(out, result, PYDUMP_ASCII);
	buf_adds(out, "\n\n");
}

void
sse_add_error(struct buf *out, const char *text)
{
	pydump_addf(out, PYDUMP_ASCII,
	    "event: error\ndata: {\"message\":\"%s\"}\n\n", text);
}
