/* SPDX-License-Identifier: MIT */
#include "execute_answer.h"

#include <inttypes.h>

#include "../../pytext/pydump.h"

#include "../../../sandbox/protocol/cell.h"

#define MARK "\n...[truncated]"
#define MARK_ROOM 32

/* What is over the bound is dropped, but known.  How much is not. */
static size_t
take(struct capture *c, size_t len)
{
	c->over = c->over || len > c->left;
	len = len < c->left ? len : c->left;
	c->left -= len;
	return len;
}

void
capture_add(struct capture *c, const void *data, size_t len)
{
	buf_add(&c->head, data, take(c, len));
}

/* A stream with U+FFFD for what is no UTF-8, and with the mark of a cut. */
static void
add_capture(struct buf *out, const struct capture *c)
{
	size_t len = c->head.len;
	auto_buf struct buf text = BUF_INIT(3 * len + sizeof(MARK));

	if (c->over)
		len = len > MARK_ROOM ? len - MARK_ROOM : 0;
	pyutf8_add_whole(&text, buf_str(&c->head), len);
	if (c->over)
		buf_adds(&text, MARK);
	pydump_add_string(out, buf_str(&text), text.len, PYDUMP_UTF8);
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

/* What a shell makes of an end: null when the time was up. */
static void
add_exit_code(struct buf *out, const struct cell_result *cell)
{
	if (cell->reason == REASON_TIME)
		buf_adds(out, "null");
	else if (cell->reason == REASON_EXIT || cell->reason == REASON_SIGNAL)
		buf_addf(out, "%d", outcome_returncode(cell));
	else
		buf_adds(out, "137");
}

/* All members from exit_code on, and the brace. */
static void
add_end(struct buf *out, const struct execute_result *result,
    enum pydump_style style)
{
	const struct cell_result *cell = result->cell;

	buf_adds(out, "\"exit_code\":");
	add_exit_code(out, cell);
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
void
execute_answer(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "{\"stdout\":");
	add_capture(out, result->out);
	buf_adds(out, ",\"stderr\":");
	add_capture(out, result->err);
	buf_addc(out, ',');
	add_end(out, result, PYDUMP_UTF8);
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
	buf_addf(out,
	    "event: output\ndata: {\"stream\":\"%s\",\"data\":", c->name);
	pydump_add_string(out, buf_str(text), text->len, PYDUMP_ASCII);
	buf_adds(out, "}\n\n");
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
