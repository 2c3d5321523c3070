/* SPDX-License-Identifier: MIT */
/* Buttons below the answer of a run, and their answers. */
#include "worker/render/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/config.h"
#include "base/text.h"
#include "store/view.h"
#include "worker/render/render_files.h"
#include "worker/render/terminal.h"

enum { BLUE = 1, GREY = 2 };

#define CODE_NAME "main.py"
#define INPUT_NAME "stdin.txt"
#define PAGE_POINTS 1800 /* of output on a page */
#define PAGE_LINES 40
#define CODE_SHOWN 750 /* code points of code and input beside the output */

/* ---- below the answer ---- */

static void
add_view_button(struct message *m, const struct view *view, enum action action,
    const char *label, int style)
{
	message_add_button(m, action, view->id, label, style, false);
}

/* Does a folder stand before its files? */
static bool
has_folder(const struct view *view)
{
	return strncmp(view->texts->files, "./", 2) == 0;
}

/* Is that folder the sandbox itself, whose zip has more than those files? */
static bool
is_top(const struct view *view)
{
	return strncmp(view->texts->files, ".//", 3) == 0;
}

/* Buttons that solve a problem come first. */
static void
add_run_buttons(struct message *m, const struct view *view,
    const char *elsewhere, bool cut, bool input, const struct render_env *env)
{
	const char *package = view->texts->package;
	bool code = view->texts->text[0] != '\0';
	char label[81]; /* Discord's limit */

	if (package[0] != '\0') {
		(void)snprintf(label, sizeof(label), _("Install %s"), package);
		add_view_button(m, view, ACTION_PY_INSTALL, label, BLUE);
	}
	if (input)
		add_view_button(m, view, ACTION_PY_GIVE, _("Give input"), BLUE);
	if (elsewhere[0] != '\0')
		add_view_button(m, view, ACTION_PY_AGAIN,
		    render_way_label(WAY_RUN, elsewhere).text, BLUE);
	else
		add_view_button(m, view, ACTION_PY_AGAIN, _("Re-run"), GREY);
	if (code)
		add_view_button(m, view, ACTION_PY_EDIT, _("Edit"), GREY);
	if (code && view->share != 0)
		add_view_button(m, view, ACTION_PY_TRY, _("Try it yourself"),
		    GREY);
	if (code && view->share == 0)
		add_view_button(m, view, ACTION_PY_SHARE, _("Share"), GREY);
	if (has_folder(view)) {
		add_view_button(m, view, ACTION_PY_SHOW, _("Show"), GREY);
		if (env->may_attach)
			add_view_button(m, view, ACTION_PY_ZIP,
			    is_top(view) ? _("Get all of ~ as zip") :
					   _("Get as zip"),
			    GREY);
	}
	if (cut)
		add_view_button(m, view, ACTION_PY_OUTPUT, _("Full output"),
		    GREY);
	add_view_button(m, view, ACTION_PY_REMOVE, _("Remove"), GREY);
}

/* Add a menu of the configured versions, if there is a choice. */
static void
add_version_menu(struct message *m, const struct view *view,
    const struct config *config)
{
	const char *images = config->chat_images;
	struct image_entry entry;
	size_t pos = 0;

	if (!images_next(images, &pos, &entry) || images[pos] == '\0')
		return;
	message_add_menu(m, ACTION_PY_VERSION, view->id,
	    _("Run it with another Python"));
	for (pos = 0; images_next(images, &pos, &entry);) {
		auto_free char *label = xprintf("Python %s", entry.name);

		message_add_option(m, label, entry.name,
		    strcmp(entry.name, view->version) == 0);
	}
}

/* Add a menu of files.  Each path ends with "//"; its value is its index. */
static void
add_file_menu(struct message *m, const struct view *view)
{
	const char *at = view->texts->files;
	const char *end;
	char value[24];
	int place = 0;

	if (has_folder(view)) {
		at = strstr(at, "//") + 2;
		place++;
	}
	if (*at == '\0')
		return;
	message_add_menu(m, ACTION_PY_FILE, view->id, _("Get another file"));
	while ((end = strstr(at, "//")) != NULL) {
		auto_free char *path = xstrndup(at, (size_t)(end - at));

		(void)snprintf(value, sizeof(value), "%d", ++place);
		message_add_option(m, path, value, false);
		at = end + 2;
	}
}

void
render_buttons(struct message *message, const struct view *view,
    const char *elsewhere, bool cut, bool input, const struct render_env *env)
{
	add_run_buttons(message, view, elsewhere, cut, input, env);
	add_version_menu(message, view, env->config);
	add_file_menu(message, view);
}

/* ---- answers of buttons ---- */

/* Attach a text.  False: that is not allowed, or there is no room for it. */
static bool
attach_text(struct message *m, const char *as, const char *text,
    const struct render_env *env)
{
	auto_buf struct buf data = BUF_INIT(strlen(text) + 1);

	if (!env->may_attach || (int64_t)strlen(text) > env->file_most)
		return false;
	buf_adds(&data, text);
	return message_attach(m, as, &data) != NULL;
}

void
render_long_code(struct message *message, const char *code,
    const struct render_env *env)
{
	buf_adds(&message->lead,
	    _("That code is longer than the 4,000 characters that an editor "
	      "takes. Edit this file, then run it with `/il py` and its option "
	      "`attachment`."));
	buf_adds(&message->without,
	    _("Files cannot be attached here: save the code as a file, and "
	      "upload that."));
	(void)attach_text(message, CODE_NAME, code, env);
}

/* Code points of a text as a block of the lead; more than CODE_SHOWN: it cannot
 * be one. */
static size_t
block_points(const char *text)
{
	auto_buf struct buf clean = BUF_INIT(3 * strlen(text) + 1);

	text_add_clean(&clean, text, strlen(text));
	return strstr(buf_str(&clean), "``") != NULL ?
	    CODE_SHOWN + 1 :
	    text_codepoints(buf_str(&clean), clean.len);
}

static void
add_shown_block(struct message *m, const char *text, const char *language)
{
	auto_buf struct buf clean = BUF_INIT(3 * strlen(text) + 1);

	text_add_clean(&clean, text, strlen(text));
	while (clean.len > 0 && clean.data[clean.len - 1] == '\n')
		buf_cut(&clean, clean.len - 1);
	buf_addf(&m->lead, "```%s\n%s\n```\n", language, buf_str(&clean));
}

/* Show code and input above the output if they are short; otherwise attach
 * them. */
static void
add_shared_code(struct message *m, const struct view_texts *texts,
    const struct render_env *env)
{
	size_t code = block_points(texts->text);
	size_t input = block_points(texts->input);

	if (code <= CODE_SHOWN)
		add_shown_block(m, texts->text, "py");
	else if (!attach_text(m, CODE_NAME, texts->text, env))
		buf_adds(&m->lead,
		    _("(the code is too long to be shown here)\n"));
	if (input == 0)
		return;
	buf_adds(&m->lead, _("Its input (stdin):\n"));
	if (input + (code <= CODE_SHOWN ? code : 0) <= CODE_SHOWN)
		add_shown_block(m, texts->input, "stdin");
	else if (!attach_text(m, INPUT_NAME, texts->input, env))
		buf_adds(&m->lead,
		    _("(the input is too long to be shown here)\n"));
}

void
render_shared(struct message *message, const struct view *view, int64_t copy_id,
    const struct render_env *env)
{
	const char *output = view->texts->output;
	struct view copy = { .id = copy_id };

	buf_addf(&message->lead, _("Shared by <@%" PRId64 ">\n"),
	    view->user_id);
	add_shared_code(message, view->texts, env);
	message_set_output(message, output, strlen(output), MESSAGE_CUT_MIDDLE);
	if (message->block.len == 0)
		buf_adds(&message->tail, _("No output."));
	if (view->version[0] != '\0')
		buf_addf(&message->tail, "\n-# Python %s", view->version);
	add_view_button(message, &copy, ACTION_PY_TRY, _("Try it yourself"),
	    BLUE);
	add_view_button(message, &copy, ACTION_PY_REMOVE, _("Remove"), GREY);
}

/* End of the page that begins here: at a line's end, if there is one. */
static const char *
page_end(const char *at)
{
	size_t most = text_prefix(at, strlen(at), PAGE_POINTS);
	const char *end = at;

	for (int lines = 0; lines < PAGE_LINES; lines++) {
		const char *next = strchr(end, '\n');
		size_t len = next == NULL ? strlen(at) :
					    (size_t)(next + 1 - at);

		if (len > most)
			break;
		end = at + len;
		if (*end == '\0')
			break;
	}
	return end > at ? end : at + most;
}

void
render_output(struct message *message, const struct view *view, int64_t *page)
{
	const char *output = view->texts->output;
	auto_buf struct buf plain =
	    BUF_INIT(TERMINAL_SHOWN_MAX(strlen(output)));
	const char *at;
	const char *end;
	const char *from = "";
	size_t len = 0;
	int64_t pages = 0;

	(void)terminal_show(&plain, output, strlen(output), TERMINAL_PLAIN);
	for (at = buf_str(&plain); *at != '\0'; at = end) {
		end = page_end(at);
		if (++pages <= *page) {
			from = at;
			len = (size_t)(end - at);
		}
	}
	if (*page > pages)
		*page = pages > 0 ? pages : 1;
	buf_addf(&message->lead, _("Output, page %" PRId64 " of %" PRId64),
	    *page, pages > 0 ? pages : 1);
	message_set_block(message, from, len, "", MESSAGE_CUT_END);
	if (pages > 1)
		render_pages(message, ACTION_PY_OUTPUT_PREVIOUS,
		    ACTION_PY_OUTPUT_NEXT, view->id, *page, pages);
}
