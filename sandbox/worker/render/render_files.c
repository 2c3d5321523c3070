/* SPDX-License-Identifier: MIT */
#include "worker/render/render_files.h"

#include <inttypes.h>
#include <string.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/text.h"
#include "base/utf8.h"
#include "store/sandbox.h"

#define LABEL_SHOWN 50 /* code points of a path in a label of 80 */
#define ENTRY_MOST 46  /* of a name in a listing, of which 20 must fit */
#define LEFT_MOST 6
#define LEFT_NAME_MOST 32
#define PROBE 8192			/* bytes in which a file must be text */
#define TIME_LAST INT64_C(253402300799) /* of the year 9999 */
#define SHOWN_MAX 16384 /* bytes of a file that can matter for a block */
#define PACKAGES_NAMED 6
#define VERSIONS_MOST 5
#define NOT_FOUND "No matching distribution found for "
#define LINES_MAX (1 << 18)
#define LIST_NAME "packages.txt"

/* ---- texts ---- */

/* Begin a small note, on the line of the result where there is one. */
static void
begin_note(struct buf *tail)
{
	const char *text = buf_str(tail);
	const char *end = strrchr(text, '\n');
	const char *last = end == NULL ? text : end + 1;

	if (strncmp(last, "-# ", 3) == 0)
		buf_adds(tail, " · ");
	else
		buf_adds(tail, tail->len == 0 ? "-# " : "\n-# ");
}

/* Limit that was reached, of so many bytes and files. */
static struct phrase
phrase_full(const struct render_env *env, int64_t bytes, int64_t files)
{
	return env->run->result.disk_full == DISK_FULL_FILES ?
	    phrase_files(files) :
	    phrase_size(bytes);
}

void
render_quota_used(const struct render_env *env)
{
	render_add(&env->message->tail, NOTE_QUOTA_USED,
	    phrase_full(env, env->config->quota, env->config->files).text,
	    NULL);
}

void
render_packages_full(const struct render_env *env)
{
	int64_t quota = env->config->pip_quota;

	render_add(&env->message->tail, NOTE_PACKAGES_FULL,
	    phrase_full(env, quota, quota / CONFIG_PACKAGE_FILE_BYTES).text,
	    NULL);
}

/* Used size, at most the quota: a volume holds a little more than that. */
static struct phrase
used_size(int64_t used, int64_t quota)
{
	return phrase_size(used < quota ? used : quota);
}

/* Say how full the packages are; -1: that is not known. */
static void
add_packages_space(const struct render_env *env, int64_t used)
{
	int64_t quota = env->config->pip_quota;

	if (used < 0)
		return;
	begin_note(&env->message->tail);
	buf_addf(&env->message->tail, _("packages: %s of %s"),
	    used_size(used, quota).text, phrase_size(quota).text);
}

void
render_space(const struct render_env *env)
{
	struct buf *tail = &env->message->tail;
	const struct cell_result *result = &env->run->result;
	const struct config *config = env->config;

	if (result->used_bytes >= 0) {
		begin_note(tail);
		buf_addf(tail, _("%s of %s used"),
		    used_size(result->used_bytes, config->quota).text,
		    phrase_size(config->quota).text);
	}
	if (result->used_bytes >= 0 && result->used_files >= 0)
		buf_addf(tail, _(", %s of %s"),
		    phrase_count(result->used_files).text,
		    phrase_files(config->files).text);
	add_packages_space(env, result->used_packages);
}

void
render_place(struct buf *tail, const char *cwd, const char *gone, bool moved)
{
	begin_note(tail);
	if (*gone != '\0')
		buf_addf(tail, _("%s is gone or closed: you are in %s now."),
		    phrase_path(gone).text, phrase_path(cwd).text);
	else
		buf_addf(tail, moved ? _("You are in %s now.") : _("in %s"),
		    phrase_path(cwd).text);
}

/* ---- buttons ---- */

struct phrase
render_way_label(enum way way, const char *path)
{
	static const enum say labels[] = { [WAY_BACK] = NOTE_WAY_BACK,
		[WAY_LOOK] = NOTE_WAY_LOOK,
		[WAY_GET] = NOTE_WAY_GET,
		[WAY_RUN] = NOTE_WAY_RUN };
	auto_free char *whole = phrase_tilde(path);
	auto_buf struct buf shown = BUF_INIT(sizeof(struct phrase) - 1);
	auto_buf struct buf label = BUF_INIT(sizeof(struct phrase) - 1);

	message_add_word(&shown, whole, LABEL_SHOWN);
	render_add(&label, labels[way], buf_str(&shown), NULL);
	return phrase_words("%s", buf_str(&label));
}

void
render_way(struct message *message, enum way way, int64_t view_id,
    const char *path)
{
	message_add_button(message,
	    way == WAY_GET ? ACTION_GET_GO : ACTION_LOOK_GO, view_id,
	    render_way_label(way, path).text, 2, false);
}

void
render_pages(struct message *message, enum action previous, enum action next,
    int64_t view_id, int64_t page, int64_t pages)
{
	message_add_button(message, previous, view_id, _("Previous"), 2,
	    page <= 1);
	message_add_button(message, next, view_id, _("Next"), 2, page >= pages);
}

/* ---- listings ---- */

/* Size of an entry; only that of a file has a meaning. */
static struct phrase
entry_size(const struct collected *entry)
{
	if (entry->kind == ENTRY_FILE)
		return phrase_size(entry->size);
	return phrase_words("%s",
	    entry->kind == ENTRY_DIRECTORY ? _("dir") :
		entry->kind == ENTRY_LINK  ? _("link") :
					     _("other"));
}

/* Set the block to a line for each entry. */
static void
set_entries(struct message *m, const struct collect *c)
{
	auto_buf struct buf lines = BUF_INIT(65536);
	struct phrase sizes[COLLECT_ENTRIES];
	int points[COLLECT_ENTRIES];
	int width = 0;

	/* no wider than it must be: on a telephone a line has some 37
	 * columns */
	for (size_t i = 0; i < c->entry_count; i++) {
		sizes[i] = entry_size(&c->entries[i]);
		points[i] = (int)text_codepoints(sizes[i].text,
		    strlen(sizes[i].text));
		width = points[i] > width ? points[i] : width;
	}
	for (size_t i = 0; i < c->entry_count; i++) {
		const struct collected *entry = &c->entries[i];

		/* an impossible time is as wide as any other */
		buf_addf(&lines, "%*s%s  %s  ", width - points[i], "",
		    sizes[i].text,
		    entry->mtime < 0 || entry->mtime > TIME_LAST ?
			"       ?        " :
			text_time(entry->mtime).text);
		message_add_word(&lines, entry->path, ENTRY_MOST);
		buf_adds(&lines, entry->kind == ENTRY_DIRECTORY ? "/\n" : "\n");
	}
	message_set_block(m, buf_str(&lines), lines.len, "", MESSAGE_CUT_END);
}

void
render_listing(const struct render_env *env, const struct render_listing *l)
{
	struct message *m = env->message;
	struct phrase path = phrase_path(env->path);
	int64_t total = env->run->result.total;

	if (l->moved && l->back_id != 0)
		buf_addf(&m->lead, _("You are in %s now.\n"), path.text);
	if (total == 0)
		buf_addf(&m->lead, _("%s is empty."), path.text);
	else
		buf_addf(&m->lead, Q_("%s: %s entry", "%s: %s entries", total),
		    path.text, phrase_count(total).text);
	if (l->pages > 1)
		buf_addf(&m->lead, _(", page %" PRId64 " of %" PRId64), l->page,
		    l->pages);
	if (l->asked > l->page) {
		buf_adds(&m->lead, total == 0 ? " " : ". ");
		buf_addf(&m->lead, _("There is no page %" PRId64 "."),
		    l->asked);
	}
	set_entries(m, env->collect);
	render_space(env);
	if (l->back_id != 0)
		render_way(m, WAY_BACK, l->back_id, l->back);
	if (l->view_id != 0)
		render_pages(m, ACTION_LOOK_PREVIOUS, ACTION_LOOK_NEXT,
		    l->view_id, l->page, l->pages);
}

/* ---- one file ---- */

/* Is the beginning of a file text: valid UTF-8 without a NUL? */
static bool
is_text(const struct buf *data)
{
	size_t len = data->len < PROBE ? data->len : PROBE;

	if (memchr(buf_str(data), '\0', len) != NULL)
		return false;
	/* the probe may end within a character */
	for (size_t cut = 0; cut < 4 && cut <= len; cut++)
		if (utf8_valid(buf_str(data), len - cut))
			return true;
	return false;
}

/* Attach the file that the cell has sent, or say why that is not possible.
 * total: its real size. */
static void
attach(const struct render_env *env, int64_t total)
{
	struct message *m = env->message;
	struct collected *file = &env->collect->files[0];
	bool whole = total <= (int64_t)file->data.len;

	if (!env->may_attach)
		render_add(&m->tail, NOTE_NO_PERMISSION, NULL);
	else if (!whole || message_attach(m, file->path, &file->data) == NULL)
		render_add(&m->tail, NOTE_FILE_TOO_LARGE,
		    phrase_size(whole ? MESSAGE_BYTES_MAX : env->file_most)
			.text,
		    NULL);
	else
		buf_adds(&m->without, _("It could not be attached."));
}

/* A text that fits is shown; any other file is attached, and the beginning of a
 * longer text shown. */
void
render_file(const struct render_env *env)
{
	struct message *m = env->message;
	const struct collected *file = &env->collect->files[0];
	bool text = is_text(&file->data);
	size_t shown = file->data.len < SHOWN_MAX ? file->data.len : SHOWN_MAX;
	/* a file that is too large was cut */
	int64_t total = env->run->result.total > file->size ?
	    env->run->result.total :
	    file->size;

	buf_addf(&m->lead, "%s: %s%s", phrase_path(file->path).text,
	    phrase_size(total).text, total == 0 ? _(", it is empty.") : "");
	if (total == 0)
		return;
	if (text)
		message_set_block(m, buf_str(&file->data), shown,
		    filename_language(file->path), MESSAGE_CUT_END);
	if (!text || m->block.len == 0 || !message_fits(m) ||
	    total != (int64_t)shown)
		attach(env, total);
}

void
render_get(const struct render_env *env)
{
	struct message *m = env->message;
	const struct collected *file = &env->collect->files[0];

	buf_addf(&m->lead, "%s: %s", phrase_path(file->path).text,
	    phrase_size(file->size).text);
	if (file->size == 0)
		buf_adds(&m->tail, _("It is empty."));
	else
		attach(env, file->size);
}

/* Name the first few entries that are not in the zip. */
static void
name_not_archived(const struct render_env *env)
{
	struct buf *out = &env->message->tail;
	const struct collect *c = env->collect;
	size_t shown = c->left_count < LEFT_MOST ? c->left_count : LEFT_MOST;

	for (size_t i = 0; i < shown; i++) {
		if (i > 0)
			buf_adds(out, ", ");
		else
			render_add(out, NOTE_NOT_ARCHIVED, NULL);
		message_add_name(out, c->left[i].path, LEFT_NAME_MOST);
	}
	if (shown > 0 && env->run->result.total > (int64_t)shown)
		buf_addf(out, _(" and %zu more"),
		    (size_t)env->run->result.total - shown);
}

void
render_archive(const struct render_env *env)
{
	struct buf *lead = &env->message->lead;
	struct phrase path = phrase_path(env->path);
	int64_t size = env->collect->files[0].size;

	if (env->collect->file_count == 0) {
		buf_addf(lead, _("%s is empty."), path.text);
	} else {
		buf_addf(lead, _("%s as a zip: %s"), path.text,
		    phrase_size(size).text);
		attach(env, size);
	}
	name_not_archived(env);
}

void
render_written(const struct render_env *env, size_t size)
{
	const struct cell_result *result = &env->run->result;

	buf_addf(&env->message->lead, _("Saved %s: %s."),
	    phrase_path(env->path).text, phrase_size((int64_t)size).text);
	/* a sandbox that is nearly full is mentioned */
	if (result->used_bytes / 3 >= env->config->quota / 4 ||
	    result->used_files / 3 >= env->config->files / 4)
		render_space(env);
}

/* ---- packages ---- */

/* Installed package, as the cell lists it (frame.h, OP_PACKAGES). */
struct package {
	const char *name; /* borrowed, as version; NULL: not listed */
	const char *version;
	int64_t size; /* -1: not listed */
};

/* Read the next package of a list that ends with a NUL; false at the end. */
static bool
next_package(const char **at, const char *end, struct package *package)
{
	*package = (struct package){ .size = -1 };
	for (; *at < end; *at += strlen(*at) + 1) {
		if (**at == 'p' && package->name != NULL)
			return true;
		if (**at == 'p')
			package->name = *at + 1;
		else if (**at == 'n')
			package->version = *at + 1;
		else if (**at == 's' &&
		    !text_parse_int(*at + 1, 0, INT64_MAX, &package->size))
			package->size = -1;
	}
	return package->name != NULL;
}

/* Append a line for each package: its size, its name, its version. */
static size_t
add_package_lines(struct buf *lines, const struct buf *list)
{
	const char *at = buf_str(list);
	const char *end = at + list->len;
	struct package package;
	size_t count = 0;

	for (; next_package(&at, end, &package); count++) {
		buf_addf(lines, "%9s  ",
		    package.size >= 0 ? phrase_size(package.size).text : "");
		message_add_word(lines, package.name, PACKAGE_SHOWN);
		if (package.version != NULL) {
			buf_addc(lines, ' ');
			message_add_word(lines, package.version, PACKAGE_SHOWN);
		}
		buf_addc(lines, '\n');
	}
	return count;
}

void
render_packages(const struct render_env *env)
{
	struct message *m = env->message;
	auto_buf struct buf lines = BUF_INIT(LINES_MAX);
	int64_t count = (int64_t)add_package_lines(&lines,
	    &env->collect->output);

	render_space(env);
	if (count == 0) {
		buf_adds(&m->lead,
		    _("No packages are installed. `/il pip` installs some."));
		return;
	}
	buf_addf(&m->lead, Q_("%s package:", "%s packages:", count),
	    phrase_count(count).text);
	message_set_block(m, buf_str(&lines), lines.len, "", MESSAGE_CUT_END);
	if (!message_fits(m) && env->may_attach &&
	    (int64_t)lines.len <= env->file_most)
		(void)message_attach(m, LIST_NAME, &lines);
}

/* The names of the first few packages that the cell has listed; heap. */
static char *
list_names(const struct render_env *env)
{
	auto_buf struct buf names = BUF_INIT(MESSAGE_PART_MAX);
	const char *at = buf_str(&env->collect->output);
	const char *end = at + env->collect->output.len;
	struct package package;
	size_t count = 0;

	for (; next_package(&at, end, &package); count++)
		if (count < PACKAGES_NAMED)
			buf_addf(&names, "%s%s", count > 0 ? ", " : "",
			    phrase_name(package.name, PACKAGE_SHOWN).text);
	if (count > PACKAGES_NAMED)
		buf_addf(&names, _(" and %zu more"), count - PACKAGES_NAMED);
	return buf_steal(&names, NULL);
}

/* A cell that mounts the packages alone reports their space as its only
 * usage. */
void
render_uninstalled(const struct render_env *env, const char *name,
    int64_t view_id)
{
	struct message *m = env->message;
	auto_free char *names = list_names(env);

	add_packages_space(env, env->run->result.used_bytes);
	if (name != NULL)
		buf_addf(&m->lead, _("Removed the package %s."),
		    phrase_name(name, PACKAGE_SHOWN).text);
	else if (*names == '\0')
		render_add(&m->lead, NOTE_ALL_NEEDED, NULL);
	else
		buf_addf(&m->lead, _("Removed %s."), names);
	if (view_id == 0)
		return;
	buf_addf(&m->lead, _(" Nothing needs these any more: %s."), names);
	message_add_button(m, ACTION_PACKAGES_REST, view_id,
	    _("Remove these, too"), 2, false);
}

/* ---- packages that pip did not find ---- */

/*
 * pip's own texts are the same for a missing project and for one that it may
 * not install.  So the cell adds a line with the difference
 * (cell/python/packages.py).  A package that pip builds may forge such a line,
 * on which only a hint depends.
 */

/* Rest of the line that begins with this text; heap, NULL: there is none. */
static char *
find_line(const struct buf *log, const char *begin)
{
	size_t len = strlen(begin);

	for (const char *at = buf_str(log); (at = strstr(at, begin)) != NULL;
	     at += len)
		if (at == buf_str(log) || at[-1] == '\n')
			return xstrndup(at + len, strcspn(at + len, "\r\n"));
	return NULL;
}

static void
add_nearest(struct buf *out, const char *name)
{
	struct nearest near = render_need_nearest(name);

	for (size_t i = 0; i < near.count; i++)
		buf_addf(out, "%s `%s`", i > 0 ? "," : _(" Nearest to that:"),
		    near.of[i].name);
}

/* "demo==9: 2.0, 1.0" */
static void
add_known_versions(struct buf *out, char *line)
{
	auto_buf struct buf versions = BUF_INIT(4096);
	char *next = strstr(line, ": ");
	char *version;
	int count = 0;

	if (next != NULL) {
		*next = '\0';
		next += 2;
	}
	while ((version = strsep(&next, ",")) != NULL &&
	    count++ < VERSIONS_MOST)
		buf_addf(&versions, "%s%s", count > 1 ? ", " : "",
		    phrase_name(version + strspn(version, " "), PACKAGE_SHOWN)
			.text);
	buf_addf(out, _("\nThere is no %s. There are: %s."),
	    phrase_name(line, PACKAGE_SHOWN).text, buf_str(&versions));
}

bool
render_pip_missing(const struct render_env *env)
{
	struct buf *out = &env->message->tail;
	const struct buf *log = &env->collect->output;
	auto_free char *project = find_line(log, "Inline: no project ");
	auto_free char *version = find_line(log, "Inline: no version ");
	const char *found = strstr(buf_str(log), NOT_FOUND);
	auto_free char *name = NULL;

	if (project != NULL) {
		buf_addf(out, _("\nThere is no project %s."),
		    phrase_name(project, PACKAGE_SHOWN).text);
		add_nearest(out, project);
	} else if (version != NULL) {
		add_known_versions(out, version);
	} else if (found != NULL) {
		found += strlen(NOT_FOUND);
		name = xstrndup(found, strcspn(found, "\r\n"));
		render_add(out,
		    env->config->pip_allow_sdist ? NOTE_NOT_FOR_THIS :
						   NOTE_NO_WHEEL,
		    phrase_name(name, PACKAGE_SHOWN).text, NULL);
	}
	return project != NULL || version != NULL || found != NULL;
}

/* ---- sandboxes ---- */

void
render_created(const struct render_env *env, const struct sandbox *sandbox,
    bool created)
{
	struct buf *lead = &env->message->lead;
	const struct config *config = env->config;

	buf_adds(lead,
	    created ? _("Your sandbox is ready. ") :
		      _("You have a sandbox already. "));
	render_add(lead, NOTE_HOLDS, phrase_size(config->quota).text,
	    phrase_files(config->files).text,
	    phrase_size(config->pip_quota).text,
	    phrase_thousandths(config->timeout_ms).text,
	    phrase_size(config->memory).text,
	    phrase_thousandths(config->milli_cpus).text,
	    config->milli_cpus > 1000 ? _("CPUs") : _("CPU"), NULL);
	if (sandbox->pinned)
		buf_adds(lead, _("\nIt does not expire."));
	else
		render_add(lead, NOTE_EXPIRES,
		    phrase_number(sandbox->expires_at).text,
		    phrase_span(config->retention_seconds).text, NULL);
}

void
render_made(struct message *message, int64_t lost_at)
{
	render_add(&message->tail, lost_at != 0 ? NOTE_WAS_LOST : NOTE_WAS_MADE,
	    phrase_number(lost_at).text, NULL);
}

/* ---- sessions ---- */

void
render_session_status(struct message *message, const struct session *session,
    int64_t until)
{
	if (session->started_at == 0 && until == 0) {
		render_add(&message->lead, SAY_NO_SESSION, NULL);
		return;
	}
	if (session->started_at != 0)
		buf_addf(&message->lead,
		    _("Your session has been on since <t:%" PRId64 ":f>.\n"),
		    session->started_at);
	if (until == 0) {
		buf_adds(&message->lead, _("Nothing is in memory now."));
		return;
	}
	buf_addf(&message->lead,
	    Q_("%s variable", "%s variables", session->names),
	    phrase_count(session->names).text);
	render_add(&message->lead, NOTE_KEPT_UNTIL,
	    phrase_size(session->bytes).text, phrase_number(until).text, NULL);
}
