/* SPDX-License-Identifier: MIT */
#include "worker/render/render_view.h"
#include "worker/render/render_where.h"

#include <string.h>

#include "base/config.h"
#include "base/text.h"

#define TEXT_TABS \
	N_("\nTabs and spaces are mixed where lines begin: use one of them " \
	   "throughout.")
#define TEXT_LESS_MEMORY \
	N_("\nHold less at a time: read a file line by line, use a generator " \
	   "in place of a list, `del` what is done with.")

struct render_line
render_last_line(const struct buf *output)
{
	struct render_line line = { .text = buf_str(output),
		.len = output->len };
	const char *end;

	while (line.len > 0 && line.text[line.len - 1] == '\n')
		line.len--;
	end = memrchr(line.text, '\n', line.len);
	if (end != NULL) {
		line.len -= (size_t)(end + 1 - line.text);
		line.text = end + 1;
	}
	return line;
}

static bool
line_has(const struct render_line *line, const char *text)
{
	return memmem(line->text, line->len, text, strlen(text)) != NULL;
}

static bool
line_begins(const struct render_line *line, const char *text)
{
	return line->len >= strlen(text) &&
	    memcmp(line->text, text, strlen(text)) == 0;
}

/* ---- code that Python does not understand ---- */

/* Explain a syntax error by the likely mistake in the code. */
static void
explain_slip(struct buf *out, const struct render_line *line,
    const struct slip *slip)
{
	bool syntax = line_begins(line, "SyntaxError") ||
	    line_begins(line, "IndentationError") ||
	    line_begins(line, "TabError");
	bool name = line_begins(line, "NameError");

	if (syntax && slip->kind == SLIP_ODD)
		buf_addf(out,
		    _("\nLine %d has a character that looks like a blank or "
		      "like nothing (U+%04X): type a plain blank in its "
		      "place, or delete it."),
		    slip->line, (unsigned)slip->point);
	else if (syntax && slip->kind == SLIP_FENCE)
		buf_adds(out,
		    _("\nA back-tick is left over in the code: three go before "
		      "it and three after it, or none."));
	else if ((syntax || name) && slip->kind == SLIP_LANGUAGE)
		buf_addf(out,
		    _("\nThe code is marked `%s`, and only Python runs here."),
		    slip->word);
	else if (syntax && slip->kind == SLIP_QUOTES)
		buf_adds(out,
		    _("\nThe code has curly quotes, as telephones and text "
		      "editors make them: Python needs straight ones, `\"` or "
		      "`'`."));
	/* a TabError can come from a file, too */
	if ((syntax && slip->kind == SLIP_TABS) ||
	    line_begins(line, "TabError"))
		buf_adds(out, _(TEXT_TABS));
}

/* ---- limits of the sandbox ---- */

/* Is the error about the network?  It is known by its number, as C libraries
 * differ in their texts. */
static bool
is_about_network(const struct render_line *line)
{
	static const char *const words[] = { "[Errno -2]", "[Errno -3]",
		"[Errno -5]", "[Errno 101]", "NameResolutionError",
		"Temporary failure in name resolution",
		"Name or service not known" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (line_has(line, words[i]))
			return true;
	return false;
}

static void
explain_error(struct buf *out, const struct render_line *line,
    const struct cell_result *result, const struct render_env *env)
{
	if (is_about_network(line))
		buf_adds(out,
		    _("\nCode has no network here: `/il pip` installs "
		      "packages, `/il put` brings in files."));
	else if (render_lacks_input(line))
		buf_adds(out,
		    env->has_input ?
			_("\nThe code asks for more input than it was "
			  "given.") :
			_("\nThe code asks for input, and there was none."));
	else if (line_begins(line, "MemoryError"))
		buf_adds(out, _(TEXT_LESS_MEMORY));
	else if (line_has(line, "[Errno 28]") && result->disk_full == 0 &&
	    result->used_bytes / 3 >= env->config->quota / 4)
		/* there may be room, but not for the last write */
		render_quota_used(out, result, env->config);
	else if (line_has(line, "[Errno 28]") && result->disk_full == 0)
		buf_addf(out,
		    _("\n`/tmp` holds %s: there is room for %s in the sandbox "
		      "itself."),
		    text_size(env->config->tmp_size).text,
		    text_size(env->config->quota).text);
}

void
render_hint(struct buf *out, const struct cell_result *result,
    const struct buf *output, const struct render_env *env)
{
	const struct render_line line = render_last_line(output);

	/* code in quotes is a string, which is no error */
	if (env->slip.kind == SLIP_STRING && result->reason == REASON_EXIT)
		buf_adds(out,
		    _("\nThe code is between quotes, so it is a text for "
		      "Python and does nothing. Put it between three "
		      "back-ticks instead: \\`\\`\\`"));
	switch (result->reason) {
	case REASON_EXIT:
		if (result->status == 0)
			break;
		explain_slip(out, &line, &env->slip);
		explain_error(out, &line, result, env);
		break;
	case REASON_TIME:
		/* on a busy host any run waits, but not most of its time */
		buf_adds(out,
		    result->cpu_us >= result->wall_us / 10 ?
			_("\nDo less in one run, and keep what is done in a "
			  "file for the next.") :
			_("\nIt waited most of the time: leave out what sleeps "
			  "or waits for somebody."));
		break;
	case REASON_MEMORY:
		buf_adds(out, _(TEXT_LESS_MEMORY));
		break;
	case REASON_OUTPUT:
		buf_adds(out,
		    _("\nPrint less, or write it to a file: `/il get` sends "
		      "that."));
		break;
	case REASON_SIGNAL:
	case REASON_ERROR:
		break;
	}
}
