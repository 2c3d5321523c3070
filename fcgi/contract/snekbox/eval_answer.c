/* SPDX-License-Identifier: MIT */
#include "contract/snekbox/eval_answer.h"

#include <inttypes.h>
#include <string.h>

#include "contract/jtext.h"

#include "base/utf8.h"
#include "protocol/cell.h"

/* ---- output ---- */

bool
eval_output_add(struct eval_output *out, const void *data, size_t len)
{
	size_t left = out->text.max - out->text.len;
	enum utf8_fault fault = UTF8_FINE;

	buf_add(&out->text, data, len < left ? len : left);
	out->valid += utf8_span(buf_str(&out->text) + out->valid,
	    out->text.len - out->valid);
	if (out->valid < out->text.len)
		(void)utf8_look(out->text.data + out->valid,
		    out->text.len - out->valid, &fault);
	if (fault == UTF8_WRONG)
		out->state = EVAL_OUTPUT_INVALID;
	else if (len >= left)
		out->state = EVAL_OUTPUT_FULL;
	return out->state == EVAL_OUTPUT_OPEN;
}

/* Write every newline as "\n", in place. */
static void
unite_newlines(struct buf *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++) {
		char c = text->data[i];

		if (c == '\n' && i > 0 && text->data[i - 1] == '\r')
			continue;
		text->data[n++] = c;
	}
	text->len = n;
	for (size_t i = 0; i < n; i++)
		if (text->data[i] == '\r')
			text->data[i] = '\n';
}

void
eval_output_end(struct eval_output *out)
{
	struct buf raw = out->text;

	/* The bound may cut the last character. */
	if (out->valid < raw.len && out->state == EVAL_OUTPUT_OPEN)
		out->state = EVAL_OUTPUT_INVALID;
	raw.len = out->valid;
	unite_newlines(&raw);
	buf_init(&out->text, EVAL_TEXT_MAX);
	jtext_add_text(&out->text, buf_str(&raw), raw.len, JTEXT_UTF8);
	buf_release(&raw);
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
	const struct run_files *files = result->files;
	const struct cell_result *cell = result->cell;
	const char *comma = "";

	if (cell != NULL)
		buf_addf(out,
		    ", \"duration_ms\": %" PRId64 ", \"cpu_ms\": %" PRId64
		    ", \"max_rss_bytes\": %" PRId64 ", \"reason\": \"%s\"",
		    cell->wall_us / 1000, cell->cpu_us / 1000, cell->max_rss,
		    outcome_reason(cell));
	buf_adds(out, ", \"left_out\": [");
	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if (file->why == NULL)
			continue;
		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"why\": \"%s\"}",
		    comma, file->path, file->size, file->why);
		comma = ", ";
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
	const char *comma = "";
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

		if (text != NULL || file->why != NULL)
			continue;
		jtext_addf(out, JTEXT_UTF8,
		    "%s{\"path\": \"%s\", \"size\": %" PRId64
		    ", \"content\": \"",
		    comma, file->path, file->size);
		comma = ", ";
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
