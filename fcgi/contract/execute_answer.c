#include "execute_answer.h"

#include <inttypes.h>
#include <string.h>

#include "eval_answer.h"
#include "../pytext/pydump.h"
#include "../pytext/pyrepr.h"
#include "../pytext/pyutf8.h"

#include "../../sandbox/protocol/cell.h"

#define MARK "\n...[truncated]"
#define MARK_ROOM 32

void
capture_init(struct capture *c, size_t max)
{
	c->max = max;
	c->over = false;
	buf_init(&c->head, max);
}

void
capture_release(struct capture *c)
{
	buf_release(&c->head);
}

void
capture_add(struct capture *c, const void *data, size_t len)
{
	size_t room = c->max - c->head.len;

	if (len > room) {
		c->over = true;
		len = room;
	}
	buf_add(&c->head, data, len);
}

static void
add_capture(struct buf *out, const struct capture *c)
{
	size_t len = c->head.len;
	auto_buf struct buf text = BUF_INIT(3 * len + sizeof(MARK));
	struct pyutf8 decoder = { .count = 0 };

	if (c->over)
		len = c->max > MARK_ROOM ? c->max - MARK_ROOM : 0;
	pyutf8_add(&decoder, &text, buf_str(&c->head), len);
	if (c->over)
		pyutf8_add(&decoder, &text, MARK, strlen(MARK));
	pyutf8_end(&decoder, &text);
	pydump_add_string(out, buf_str(&text), text.len, PYDUMP_UTF8);
}

static void
add_files(struct buf *out, const struct execute_result *result, bool kept,
    enum pydump_style style)
{
	bool first = true;

	buf_addc(out, '[');
	for (size_t i = 0; result->files != NULL && i < result->file_count;
	     i++) {
		const struct execute_kept *file = &result->files[i];

		if ((file->id != NULL) != kept)
			continue;
		buf_adds(out, first ? "{\"path\":" : ",{\"path\":");
		first = false;
		pydump_add_string(out, file->path, strlen(file->path), style);
		if (kept)
			buf_addf(out, ",\"kind\":\"file\",\"file_id\":\"%s\"}",
			    file->id);
		else
			buf_addf(out,
			    ",\"size_bytes\":%" PRId64 ",\"why\":\"%s\"}",
			    file->size, file->why);
	}
	buf_addc(out, ']');
}

/* What a shell makes of an end: null when the time was up. */
static void
add_exit_code(struct buf *out, const struct cell_result *cell)
{
	switch (cell->reason) {
	case REASON_EXIT:
		buf_addf(out, "%d", cell->status);
		break;
	case REASON_SIGNAL:
		buf_addf(out, "%d", 128 + cell->signal);
		break;
	case REASON_TIME:
		buf_adds(out, "null");
		break;
	case REASON_MEMORY:
	case REASON_OUTPUT:
	case REASON_ERROR:
		buf_adds(out, "137");
		break;
	}
}

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
		add_files(out, result, true, style);
	}
	if (result->extras) {
		buf_addf(out,
		    ",\"cpu_ms\":%" PRId64 ",\"max_rss_bytes\":%" PRId64
		    ",\"reason\":\"%s\",\"left_out\":",
		    cell->cpu_us / 1000, cell->max_rss, eval_reason(cell));
		add_files(out, result, false, style);
	}
	buf_addc(out, '}');
}

void
execute_add_end(struct buf *out, const struct execute_result *result,
    bool ascii)
{
	buf_addc(out, '{');
	add_end(out, result, ascii ? PYDUMP_ASCII : PYDUMP_UTF8);
}

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

size_t
execute_answer_max(const struct execute_result *result)
{
	size_t max = 1024;

	for (size_t i = 0; i < result->file_count; i++)
		max += 6 * strlen(result->files[i].path) + 256;
	if (result->out != NULL)
		max += 6 * result->out->head.len;
	if (result->err != NULL)
		max += 6 * result->err->head.len;
	return max;
}

void
execute_add_time(struct buf *out, int64_t ms)
{
	pyrepr_add_float(out, (double)ms / 1000);
}

void
execute_add_session(struct buf *out, const char *id, int64_t expires_ms)
{
	buf_adds(out, "{\"session_id\":");
	pydump_add_string(out, id, strlen(id), PYDUMP_UTF8);
	buf_adds(out, ",\"expires_at\":");
	execute_add_time(out, expires_ms);
	buf_addc(out, '}');
}
