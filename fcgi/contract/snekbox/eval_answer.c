/* SPDX-License-Identifier: MIT */
#include "contract/snekbox/eval_answer.h"

#include <inttypes.h>
#include <string.h>

#include "contract/jtext.h"

#include "base/utf8.h"
#include "protocol/cell.h"

#define PIECE 10000
#define RUN 128 /* bytes that are taken at one time, at most */
#define SIZE_MAX_COUNTED 1000000

/* ---- output ---- */

/* A piece is full, or the output has ended.  Its size is that of a str by
 * sys.getsizeof(). */
static void
end_piece(struct eval_output *out)
{
	static const size_t heads[] = { 49, 49, 73, 74, 76 };
	static const size_t widths[] = { 1, 1, 1, 2, 4 };

	out->total += heads[out->widest] +
	    widths[out->widest] * out->characters;
	out->characters = 0;
	out->widest = 0;
	if (out->total > SIZE_MAX_COUNTED && out->state == EVAL_OUTPUT_OPEN)
		out->state = EVAL_OUTPUT_FULL;
}

/* One character. */
static void
put_character(struct eval_output *out, const char *s, size_t step)
{
	unsigned width = (unsigned)step;
	bool joined = out->after_return && *s == '\n';

	out->after_return = *s == '\r';
	if (joined)
		return;
	jtext_add_text(&out->text, *s == '\r' ? "\n" : s, step, JTEXT_UTF8);
	if (step == 2 && (unsigned char)s[0] > 0xc3)
		width = 3; /* above U+00FF */
	if (width > out->widest)
		out->widest = width;
	if (++out->characters == PIECE)
		end_piece(out);
}

/* Add characters of one byte that stay as they came, up to the end of the
 * piece.  Returns their number. */
static size_t
put_plain(struct eval_output *out, const char *s, size_t len)
{
	size_t most = PIECE - out->characters;
	const char *end;

	if (out->after_return)
		return 0;
	/* Bytes may be searched more than once, so never many. */
	most = most < RUN ? most : RUN;
	len = utf8_ascii(s, len < most ? len : most);
	end = len == 0 ? NULL : memchr(s, '\r', len);
	len = end == NULL ? len : (size_t)(end - s);
	if (len == 0)
		return 0;
	jtext_add_text(&out->text, s, len, JTEXT_UTF8);
	out->characters += len;
	if (out->characters == PIECE)
		end_piece(out);
	return len;
}

/* Goes on with what the last slice left; ends at what is no UTF-8. */
bool
eval_output_add(struct eval_output *out, const void *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(sizeof(out->decoder.pending) + len);
	size_t step;

	utf8_decoder_add(&out->decoder, &text, data, len);
	for (size_t i = 0; i < text.len && out->state == EVAL_OUTPUT_OPEN;
	     i += step) {
		const char *s = text.data + i;

		step = put_plain(out, s, text.len - i);
		if (step > 0)
			continue;
		step = (*s & 0x80) == 0 ? 1 : utf8_step(s, text.len - i);
		put_character(out, s, step);
	}
	if (out->decoder.failed && out->state == EVAL_OUTPUT_OPEN)
		out->state = EVAL_OUTPUT_INVALID;
	return out->state == EVAL_OUTPUT_OPEN;
}

void
eval_output_end(struct eval_output *out)
{
	if (out->state != EVAL_OUTPUT_OPEN)
		return;
	if (out->decoder.count > 0)
		out->state = EVAL_OUTPUT_INVALID;
	else
		end_piece(out);
}

/* ---- files ---- */

bool
eval_wants(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name == NULL ? path : name + 1;
	return path[0] != '.' && strstr(path, "/.") == NULL && name[0] != '_' &&
	    name[0] != '\0';
}

/* ---- the result ---- */

static void
add_extras(struct buf *out, const struct eval_result *result)
{
	const struct run_files *left_out = result->left_out;
	const struct cell_result *cell = result->cell;

	if (cell != NULL)
		buf_addf(out,
		    ", \"duration_ms\": %" PRId64 ", \"cpu_ms\": %" PRId64
		    ", \"max_rss_bytes\": %" PRId64 ", \"reason\": \"%s\"",
		    cell->wall_us / 1000, cell->cpu_us / 1000, cell->max_rss,
		    outcome_reason(cell));
	buf_adds(out, ", \"left_out\": [");
	for (size_t i = 0; left_out != NULL && i < left_out->count; i++) {
		const struct run_file *file = &left_out->items[i];

		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"why\": \"%s\"}",
		    i > 0 ? ", " : "", file->path, file->size, file->why);
	}
	buf_addf(out, "], \"more_left_out\": %s",
	    cell != NULL && cell->cut ? "true" : "false");
}

/* Output, exit status, files and, if wanted, the extras. */
size_t
eval_answer(struct buf *out, struct eval_result *result)
{
	const struct run_files *files = result->files;
	const char *text = result->null_text;
	size_t elsewhere = 0;

	buf_adds(out, "{\"stdout\": ");
	if (text != NULL) {
		jtext_add_string(out, text, strlen(text), JTEXT_UTF8);
		buf_adds(out, ", \"returncode\": null");
	} else {
		buf_addc(out, '"');
		result->text_at = out->len;
		elsewhere += result->text->len;
		buf_addf(out, "\", \"returncode\": %d",
		    outcome_returncode(result->cell));
	}
	buf_adds(out, ", \"files\": [");
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		struct run_file *file = &files->items[i];

		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"content\": \"",
		    i > 0 ? ", " : "", file->path, file->size);
		file->at = out->len;
		elsewhere += (file->content.len + 2) / 3 * 4;
		buf_adds(out, "\"}");
	}
	buf_addc(out, ']');
	if (result->extras)
		add_extras(out, result);
	buf_addc(out, '}');
	return out->len + elsewhere;
}

void
eval_add_versions(struct buf *out, const char *const *interpreters)
{
	buf_addf(out, "{\"default\":\"%s\",\"versions\":[",
	    interpreters[0] == NULL ? "" : interpreters[0]);
	for (size_t i = 0; interpreters[i] != NULL; i++)
		buf_addf(out,
		    "%s{\"name\":\"%s\",\"executable_path\":"
		    "\"/snekbin/python/%s/bin/python\"}",
		    i > 0 ? "," : "", interpreters[i], interpreters[i]);
	buf_adds(out, "]}");
}
