/* SPDX-License-Identifier: MIT */
/* What a cell has sent for a run, what the run needs, and the buttons below its
 * answer. */
#include "worker/render/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "protocol/path.h"
#include "store/job.h"
#include "worker/render/render_files.h"
#include "worker/render/terminal.h"

enum { BLUE = 1, GREY = 2 };

#define CODE_NAME "main.py"
#define INPUT_NAME "stdin.txt"
#define PAGE_POINTS 1800 /* of output on a page */
#define PAGE_LINES 40
#define CODE_SHOWN 750 /* code points of code and input beside the output */
#define ENDING_MOST 16 /* bytes of an ending that are kept */

/* ---- names of attachments ---- */

/* Is it a letter or a digit of ASCII? */
static bool
filename_is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9');
}

/* The ending, from the last dot on; the end of the name if there is none. */
static const char *
ending_of(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *end = name + strlen(name);
	const char *at = dot != NULL ? dot + 1 : end;

	while (filename_is_plain(*at))
		at++;
	if (dot == NULL || dot == name || at != end || end - dot < 2 ||
	    end - dot > ENDING_MOST)
		return end;
	return dot;
}

/* Join stem and ending, which are not in name; a stem that is too long is
 * cut. */
static void
join(char name[FILENAME_SIZE], const char *stem, size_t stem_len,
    const char *ending)
{
	size_t room = FILENAME_SIZE - 1 - strlen(ending);

	(void)snprintf(name, FILENAME_SIZE, "%.*s%s",
	    (int)(stem_len < room ? stem_len : room), stem, ending);
}

bool
filename_clean(char name[FILENAME_SIZE], const char *path)
{
	const char *last = path_name(path);
	const char *ending = ending_of(last);
	char stem[LIMIT_PATH + sizeof("file-")] = "file-";
	char *clean = stem + strlen("file-");
	size_t n = 0;

	/* characters that Discord would change become '_', and go at both
	 * ends */
	for (const char *p = last; p < ending && n < LIMIT_PATH; p++) {
		char c = *p;

		if (!filename_is_plain(c) && c != '.' && c != '-')
			c = '_';
		if (n > 0 || filename_is_plain(c))
			clean[n++] = c;
	}
	while (n > 0 && *ending == '\0' &&
	    (clean[n - 1] == '.' || clean[n - 1] == '_'))
		n--;
	clean[n] = '\0';
	if (n == 0) {
		join(name, stem, strlen("file"), ending);
	} else {
		join(name, clean, n, ending);
		/* Discord refuses a number */
		if (*name >= '0' && *name <= '9' &&
		    name[strspn(name, "0123456789.eE-_")] == '\0')
			join(name, stem, strlen(stem), ending);
	}
	return strcmp(name, last) != 0;
}

static bool
filename_is_taken(const char *name, const char *const *taken, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(name, taken[i]) == 0)
			return true;
	return false;
}

bool
filename_unique(char name[FILENAME_SIZE], const char *const *taken,
    size_t count)
{
	char old[FILENAME_SIZE];
	char ending[ENDING_MOST + 24];
	const char *dot;

	if (!filename_is_taken(name, taken, count))
		return false;
	memcpy(old, name, sizeof(old));
	dot = ending_of(old);
	/* count names can block at most count numbers */
	for (size_t i = 2; i <= count + 2; i++) {
		(void)snprintf(ending, sizeof(ending), "-%zu%s", i, dot);
		join(name, old, (size_t)(dot - old), ending);
		if (!filename_is_taken(name, taken, count))
			break;
	}
	return true;
}

#define IMAGE "" /* Discord shows it inline */

/* The tag of a code block for a file with this name; NULL: none fits. */
static const char *
tag_of(const char *name)
{
	static const char *const tags[][2] = { { "png", IMAGE },
		{ "jpg", IMAGE }, { "jpeg", IMAGE }, { "gif", IMAGE },
		{ "webp", IMAGE }, { "py", "py" }, { "pyi", "py" },
		{ "json", "json" }, { "md", "md" }, { "html", "html" },
		{ "htm", "html" }, { "css", "css" }, { "js", "js" },
		{ "ts", "ts" }, { "c", "c" }, { "h", "c" }, { "cpp", "cpp" },
		{ "sh", "sh" }, { "sql", "sql" }, { "xml", "xml" },
		{ "svg", "xml" }, { "yaml", "yaml" }, { "yml", "yaml" },
		{ "toml", "toml" }, { "ini", "ini" }, { "cfg", "ini" },
		{ "diff", "diff" }, { "patch", "diff" }, { "go", "go" },
		{ "java", "java" }, { "rs", "rust" } };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < sizeof(tags) / sizeof(tags[0]);
	     i++)
		if (strcasecmp(dot + 1, tags[i][0]) == 0)
			return tags[i][1];
	return NULL;
}

bool
filename_is_image(const char *name)
{
	const char *tag = tag_of(name);

	return tag != NULL && strcmp(tag, IMAGE) == 0;
}

const char *
filename_language(const char *name)
{
	const char *tag = tag_of(name);

	return tag != NULL ? tag : "";
}

/* ---- the events of a cell ---- */

void
collect_init(struct collect *collect, size_t output_max, size_t file_bytes_max)
{
	*collect = (struct collect){ .file_bytes_max = file_bytes_max };
	buf_init(&collect->output, output_max);
}

static void
collected_release(struct collected *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(list[i].path);
		buf_release(&list[i].data);
	}
}

void
collect_release(struct collect *collect)
{
	buf_release(&collect->output);
	collected_release(collect->files, collect->file_count);
	collected_release(collect->left, collect->left_count);
	collected_release(collect->entries, collect->entry_count);
	free(collect->folder);
	collect_init(collect, collect->output.max, collect->file_bytes_max);
}

/* Append a copy to a list of at most `most`.  False: that is full. */
static bool
collect_append(struct collected *list, size_t *count, size_t most,
    const struct collected *one)
{
	if (*count == most)
		return false;
	list[*count] = *one;
	list[*count].path = xstrdup(one->path);
	list[*count].data = (struct buf){ 0 };
	++*count;
	return true;
}

/* More names than a menu can offer are only counted. */
void
collect_leave_out(struct collect *collect, const struct collected *file,
    enum left_out why)
{
	if (collect_append(collect->left, &collect->left_count, COLLECT_LEFT,
		file))
		collect->left[collect->left_count - 1].why = why;
	else
		collect->left_more++;
}

/* Widen the folder of all files to one that holds this path, too. */
static void
widen_folder(struct collect *c, const char *path)
{
	size_t last = 0; /* where the folder ends */
	size_t i = 0;

	if (c->folder == NULL) {
		c->folder = xstrdup(path);
		c->folder[path_name(path) > path ? path_name(path) - path - 1 :
						   0] = '\0';
		return;
	}
	for (; path[i] != '\0' && path[i] == c->folder[i]; i++)
		if (path[i] == '/')
			last = i;
	if (c->folder[i] == '\0' && path[i] == '/')
		last = i;
	c->folder[last] = '\0';
}

static void
note_path(struct collect *c, const struct collected *file)
{
	if (file->displayed)
		return;
	if (filename_is_image(file->path)) {
		c->images++;
		return;
	}
	c->others++;
	widen_folder(c, file->path);
}

/* Accept a file that is announced, while there is room for all of its bytes. */
static void
accept_file(struct collect *c, const struct collected *file)
{
	size_t size = file->size > 0 ? (size_t)file->size : 0;

	c->taking = size <= c->file_bytes_max - c->file_bytes &&
	    collect_append(c->files, &c->file_count, COLLECT_FILES, file);
	if (!c->taking) {
		collect_leave_out(c, file,
		    c->file_count == COLLECT_FILES ? LEFT_OUT_COUNT :
						     LEFT_OUT_TOTAL);
		return;
	}
	buf_init(&c->files[c->file_count - 1].data, size);
	c->file_bytes += size;
}

void
collect_event(struct collect *c, const struct cell_event *event)
{
	size_t room = c->output.max - c->output.len;
	/* the path is borrowed */
	const struct collected named = {
		.path = (char *)(uintptr_t)event->name,
		.size = event->size,
		.displayed = event->displayed,
		.kind = event->entry_kind,
		.mtime = event->mtime,
	};

	switch (event->kind) {
	case CELL_OUTPUT:
		buf_add(&c->output, event->data,
		    event->len < room ? event->len : room);
		break;
	case CELL_FILE:
		note_path(c, &named);
		accept_file(c, &named);
		break;
	case CELL_BYTES:
		/* The bytes belong to the last file that was announced, which
		 * may not have been accepted. */
		if (c->taking)
			buf_add(&c->files[c->file_count - 1].data, event->data,
			    event->len);
		break;
	case CELL_ENTRY:
		(void)collect_append(c->entries, &c->entry_count,
		    COLLECT_ENTRIES, &named);
		break;
	case CELL_LEFT_OUT:
		note_path(c, &named);
		collect_leave_out(c, &named, event->why);
		break;
	case CELL_STARTED:
	case CELL_RESULT:
	case CELL_QUIET:
		break;
	}
}

bool
collect_is_folded(const struct collect *collect, const struct collected *file)
{
	return collect->folded && !file->displayed &&
	    !filename_is_image(file->path);
}

void
collect_fold(struct collect *c)
{
	size_t kept = 0;

	c->folded = true;
	for (size_t i = 0; i < c->left_count; i++) {
		if (collect_is_folded(c, &c->left[i]))
			free(c->left[i].path);
		else
			c->left[kept++] = c->left[i];
	}
	c->left_count = kept;
	c->left_more = 0;
}

const struct outcome_kind *
outcome_kind(const struct run_outcome *outcome)
{
	/* the first is that of a command without a request, which is done, or
	 * has said why not */
	static const struct outcome_kind of_reason[] = {
		[0] = { "done", JOB_END_DONE, 0 },
		[REASON_EXIT] = { "exit", JOB_END_FAILED, KEPT_EXITED },
		[REASON_SIGNAL] = { "signal", JOB_END_FAILED, KEPT_SIGNAL },
		[REASON_TIME] = { "time limit", JOB_END_LIMIT, KEPT_TIME },
		[REASON_MEMORY] = { "memory limit", JOB_END_LIMIT,
		    KEPT_MEMORY },
		[REASON_OUTPUT] = { "output limit", JOB_END_LIMIT,
		    KEPT_OUTPUT },
		[REASON_ERROR] = { "error", JOB_END_FAILED, KEPT_EXITED },
	};
	static const struct outcome_kind of_end[] = {
		[RUN_BROKEN] = { "broken", JOB_END_ERROR, KEPT_BROKEN_OFF },
		[RUN_OVERDUE] = { "overdue", JOB_END_ERROR, KEPT_BROKEN_OFF },
		[RUN_STOPPED] = { "stopped", JOB_END_CANCELLED,
		    KEPT_BROKEN_OFF },
		[RUN_REFUSED] = { "refused", JOB_END_REFUSED, KEPT_BROKEN_OFF },
		[RUN_TOO_LATE] = { "too late", JOB_END_TOO_LATE,
		    KEPT_BROKEN_OFF },
		[RUN_TAKEN] = { "taken", JOB_END_ERROR, KEPT_BROKEN_OFF },
		[RUN_CANCELLED] = { "cancelled", JOB_END_CANCELLED,
		    KEPT_BROKEN_OFF },
	};

	return outcome->end == RUN_RESULT ? &of_reason[outcome->result.reason] :
					    &of_end[outcome->end];
}

bool
outcome_succeeded(const struct run_outcome *outcome)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_EXIT &&
	    outcome->result.status == 0;
}

bool
outcome_began(const struct run_outcome *outcome)
{
	return outcome->end == RUN_RESULT ?
	    outcome->result.reason != REASON_ERROR :
	    outcome->end < RUN_REFUSED;
}

bool
outcome_failed_with(const struct run_outcome *outcome, enum cell_error error)
{
	return outcome->end == RUN_RESULT &&
	    outcome->result.reason == REASON_ERROR &&
	    outcome->result.error == error;
}

/* ---- needs of a run ---- */

char *
render_last_line(const struct buf *output)
{
	const char *text = buf_str(output);
	size_t len = output->len;
	const char *end;

	while (len > 0 && text[len - 1] == '\n')
		len--;
	end = memrchr(text, '\n', len);
	return end == NULL ? xstrndup(text, len) :
			     xstrndup(end + 1, (size_t)(text + len - end - 1));
}

void
render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output)
{
	auto_free char *line = render_last_line(output);
	char module[PACKAGE_SIZE];
	char end[2];

	*need = (struct render_need){ .input = false };
	if (outcome->end != RUN_RESULT ||
	    outcome->result.reason != REASON_EXIT || outcome_succeeded(outcome))
		return;
	need->input = strcmp(line, RENDER_NO_INPUT) == 0;
	/* ModuleNotFoundError: No module named 'yaml.nodes' */
	if (sscanf(line,
		"ModuleNotFoundError: No module named "
		"'%64[A-Za-z0-9_]%1['.]",
		module, end) == 2)
		(void)snprintf(need->package, PACKAGE_SIZE, "%s",
		    requirement_of_module(module));
}

void
render_part_prompt(const struct run_outcome *outcome, struct buf *output)
{
	static const char head[] = "Traceback (most recent call last):\n";
	struct render_need need;
	const char *begin = buf_str(output);
	const char *at = begin;
	size_t before;

	/* code may have printed others, at the begin of a line */
	while ((at = memmem(at, output->len - (size_t)(at - begin), head,
		    strlen(head))) != NULL &&
	    (at == begin || at[-1] == '\n'))
		at += strlen(head);
	if (at == NULL)
		return;
	before = (size_t)(at - begin);
	render_need(&need, outcome, output);
	if (!need.input || buf_reserve(output, 1) == NULL)
		return;
	at = output->data + before; /* the data may have been moved */
	memmove(output->data + before + 1, at, output->len - before);
	output->data[before] = '\n';
	buf_commit(output, 1);
}

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

/* Buttons that solve a problem come first. */
static void
add_run_buttons(const struct render_env *env, const struct view *view,
    const char *elsewhere, bool cut, bool input)
{
	const char *package = view->texts->package;
	bool code = view->texts->text[0] != '\0';
	bool shared = view->share != 0;
	char install[81]; /* Discord's limit */
	struct phrase run = { "" };
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
		    /* the sandbox itself has more than those files */
		    strncmp(view->texts->files, ".//", 3) == 0 ?
			_("Get all of ~ as zip") :
			_("Get as zip"),
		    GREY },
		{ cut, ACTION_PY_OUTPUT, _("Full output"), GREY },
		{ true, ACTION_PY_REMOVE, _("Remove"), GREY },
	};

	if (elsewhere[0] != '\0')
		run = render_way_label(WAY_RUN, elsewhere);
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
	render_add(&env->message->lead, NOTE_LONG_CODE, NULL);
	render_add(&env->message->without, NOTE_NO_CODE_FILE, NULL);
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
