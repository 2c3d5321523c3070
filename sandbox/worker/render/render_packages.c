/* SPDX-License-Identifier: MIT */
#include "worker/render/render_packages.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/config.h"
#include "base/text.h"
#include "worker/render/render_view.h"
#include "worker/render/render_where.h"

#define NAMES_MOST 6
#define VERSIONS_MOST 5
#define NOT_FOUND "No matching distribution found for "
#define LINES_MAX (1 << 18)
#define LIST_NAME "packages.txt"

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
		    package.size >= 0 ? text_size(package.size).text : "");
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
render_packages(struct message *message, const struct buf *list,
    const struct cell_result *result, const struct render_env *env)
{
	auto_buf struct buf lines = BUF_INIT(LINES_MAX);
	int64_t count = (int64_t)add_package_lines(&lines, list);

	render_space(&message->tail, result, env->config);
	if (count == 0) {
		buf_adds(&message->lead,
		    _("No packages are installed. `/il pip` installs some."));
		return;
	}
	buf_addf(&message->lead, Q_("%s package:", "%s packages:", count),
	    phrase_count(count).text);
	message_set_block(message, buf_str(&lines), lines.len, "",
	    MESSAGE_CUT_END);
	if (!message_fits(message) && env->may_attach &&
	    (int64_t)lines.len <= env->file_most)
		(void)message_attach(message, LIST_NAME, &lines);
}

/* Name the first few packages of a list. */
static void
add_names(struct buf *out, const struct buf *list)
{
	const char *at = buf_str(list);
	const char *end = at + list->len;
	struct package package;
	size_t count = 0;

	for (; next_package(&at, end, &package); count++)
		if (count < NAMES_MOST)
			buf_addf(out, "%s%s", count > 0 ? ", " : "",
			    phrase_name(package.name, PACKAGE_SHOWN).text);
	if (count > NAMES_MOST)
		buf_addf(out, _(" and %zu more"), count - NAMES_MOST);
}

/* Add the space of the packages, which a cell that mounts them alone reports as
 * its only usage. */
static void
add_space(struct buf *tail, const struct cell_result *result,
    const struct config *config)
{
	struct cell_result packages = { .used_bytes = -1,
		.used_packages = result->used_bytes };

	render_space(tail, &packages, config);
}

void
render_uninstalled(struct message *message, const char *name,
    const struct buf *rest, int64_t view_id, const struct cell_result *result,
    const struct config *config)
{
	auto_buf struct buf names = BUF_INIT(MESSAGE_PART_MAX);

	buf_addf(&message->lead, _("Removed the package %s."),
	    phrase_name(name, PACKAGE_SHOWN).text);
	add_space(&message->tail, result, config);
	if (view_id == 0)
		return;
	add_names(&names, rest);
	buf_addf(&message->lead, _(" Nothing needs these any more: %s."),
	    buf_str(&names));
	message_add_button(message, ACTION_PACKAGES_REST, view_id,
	    _("Remove these, too"), 2, false);
}

void
render_rest_removed(struct message *message, const struct buf *rest,
    const struct cell_result *result, const struct config *config)
{
	auto_buf struct buf names = BUF_INIT(MESSAGE_PART_MAX);

	add_names(&names, rest);
	if (names.len == 0)
		buf_adds(&message->lead,
		    _("Nothing was removed: all that is installed is needed."));
	else
		buf_addf(&message->lead, _("Removed %s."), buf_str(&names));
	add_space(&message->tail, result, config);
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

	if (near.count == 0)
		return;
	buf_adds(out, _(" Nearest to that:"));
	for (size_t i = 0; i < near.count; i++)
		buf_addf(out, "%s `%s`", i > 0 ? "," : "", near.of[i].name);
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
render_pip_missing(struct buf *out, const struct buf *log,
    const struct config *config)
{
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
		buf_addf(out,
		    config->pip_allow_sdist ?
			_("\nThere is no %s for this Python.") :
			_("\nThere is no %s as a wheel for this Python: "
			  "packages that must be built are not installed "
			  "here."),
		    phrase_name(name, PACKAGE_SHOWN).text);
	}
	return project != NULL || version != NULL || found != NULL;
}
