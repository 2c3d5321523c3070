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
add_view_button(const struct render_env *env, int64_t id, enum action action,
    const char *label, int style)
{
	message_add_button(env->message, action, id, label, style, false);
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
add_run_buttons(const struct render_env *env, const struct view *view,
    const char *elsewhere, bool cut, bool input)
{
	const char *package = view->texts->package;
	bool code = view->texts->text[0] != '\0';
	bool shared = view->share != 0;
	char install[81]; /* Discord's limit */
	struct phrase run = render_way_label(WAY_RUN, elsewhere);
	const struct {
		bool wanted;
		enum action action;
		const char *label;
		int style;
	} buttons[] = {
		{ package[0] != '\0', ACTION_PY_INSTALL, install, BLUE },
		{ input, ACTION_PY_GIVE, _("Give input"), BLUE },
		{ elsewhere[0] != '\0', ACTION_PY_AGAIN, run.text, BLUE },
		{ elsewhere[0] == '\0', ACTION_PY_AGAIN, _("Re-run"), GREY },
		{ code, ACTION_PY_EDIT, _("Edit"), GREY },
		{ code && shared, ACTION_PY_TRY, _("Try it yourself"), GREY },
		{ code && !shared, ACTION_PY_SHARE, _("Share"), GREY },
		{ has_folder(view), ACTION_PY_SHOW, _("Show"), GREY },
		{ has_folder(view) && env->may_attach, ACTION_PY_ZIP,
		    is_top(view) ? _("Get all of ~ as zip") : _("Get as zip"),
		    GREY },
		{ cut, ACTION_PY_OUTPUT, _("Full output"), GREY },
		{ true, ACTION_PY_REMOVE, _("Remove"), GREY },
	};

	(void)snprintf(install, sizeof(install), _("Install %s"), package);
	for (size_t i = 0; i < sizeof(buttons) / sizeof(buttons[0]); i++)
		if (buttons[i].wanted)
			add_view_button(env, view->id, buttons[i].action,
			    buttons[i].label, buttons[i].style);
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
render_buttons(const struct render_env *env, const struct view *view,
    const char *elsewhere, bool cut, bool input)
{
	add_run_buttons(env, view, elsewhere, cut, input);
	add_version_menu(env->message, view, env->config);
	add_file_menu(env->message, view);
}

/* ---- answers of buttons ---- */

/* Attach a text.  False: that is not allowed, or there is no room for it. */
static bool
attach_text(const struct render_env *env, const char *as, const char *text)
{
	auto_buf struct buf data = BUF_INIT(strlen(text) + 1);

	if (!env->may_attach || (int64_t)strlen(text) > env->file_most)
		return false;
	buf_adds(&data, text);
	return message_attach(env->message, as, &data) != NULL;
}

void
render_long_code(const struct render_env *env, const char *code)
{
	buf_adds(&env->message->lead,
	    _("That code is longer than the 4,000 characters that an editor "
	      "takes. Edit this file, then run it with `/il py` and its option "
	      "`attachment`."));
	buf_adds(&env->message->without,
	    _("Files cannot be attached here: save the code as a file, and "
	      "upload that."));
	(void)attach_text(env, CODE_NAME, code);
}

/* Show a text above the output if it is short; otherwise attach it.  *room:
 * code points that may still be shown. */
static void
add_shared_text(const struct render_env *env, const char *text,
    const char *language, const char *as, const char *missing, size_t *room)
{
	struct buf *lead = &env->message->lead;
	auto_buf struct buf clean = BUF_INIT(3 * strlen(text) + 1);
	size_t points;

	text_add_clean(&clean, text, strlen(text));
	points = text_codepoints(buf_str(&clean), clean.len);
	if (points > *room || strstr(buf_str(&clean), "``") != NULL) {
		if (!attach_text(env, as, text))
			buf_adds(lead, missing);
		return;
	}
	*room -= points;
	while (clean.len > 0 && clean.data[clean.len - 1] == '\n')
		buf_cut(&clean, clean.len - 1);
	buf_addf(lead, "```%s\n%s\n```\n", language, buf_str(&clean));
}

void
render_shared(const struct render_env *env, const struct view *view,
    int64_t copy_id)
{
	struct message *m = env->message;
	const struct view_texts *texts = view->texts;
	size_t room = CODE_SHOWN;

	buf_addf(&m->lead, _("Shared by <@%" PRId64 ">\n"), view->user_id);
	add_shared_text(env, texts->text, "py", CODE_NAME,
	    _("(the code is too long to be shown here)\n"), &room);
	if (texts->input[0] != '\0') {
		buf_adds(&m->lead, _("Its input (stdin):\n"));
		add_shared_text(env, texts->input, "stdin", INPUT_NAME,
		    _("(the input is too long to be shown here)\n"), &room);
	}
	message_set_output(m, texts->output, strlen(texts->output),
	    MESSAGE_CUT_MIDDLE);
	if (m->block.len == 0)
		buf_adds(&m->tail, _("No output."));
	if (view->version[0] != '\0')
		buf_addf(&m->tail, "\n-# Python %s", view->version);
	add_view_button(env, copy_id, ACTION_PY_TRY, _("Try it yourself"),
	    BLUE);
	add_view_button(env, copy_id, ACTION_PY_REMOVE, _("Remove"), GREY);
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
