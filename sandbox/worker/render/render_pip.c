/* SPDX-License-Identifier: MIT */
/*
 * What pip did not find.  Its own words do not tell a project that is not there
 * from one that it may not take, so the cell adds a line which says it
 * (cell/python/packages.py).  Such a line may be forged by what pip builds:
 * nothing but a hint depends on it.
 */
#include "render_pip.h"

#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/config.h"
#include "render_view.h"

#define NAME_MOST 40 /* code points of a requirement or a version */
#define VERSIONS_MOST 5
#define NOT_FOUND "No matching distribution found for "

/* The rest of the line that begins so; heap, NULL: there is none. */
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
add_versions(struct buf *out, char *line)
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
		    phrase_name(version + strspn(version, " "), NAME_MOST)
			.text);
	buf_addf(out, _("\nThere is no %s. There are: %s."),
	    phrase_name(line, NAME_MOST).text, buf_str(&versions));
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
		    phrase_name(project, NAME_MOST).text);
		add_nearest(out, project);
	} else if (version != NULL) {
		add_versions(out, version);
	} else if (found != NULL) {
		found += strlen(NOT_FOUND);
		name = xstrndup(found, strcspn(found, "\r\n"));
		buf_addf(out,
		    config->pip_allow_sdist ?
			_("\nThere is no %s for this Python.") :
			_("\nThere is no %s as a wheel for this Python: "
			  "packages that must be built are not installed "
			  "here."),
		    phrase_name(name, NAME_MOST).text);
	}
	return project != NULL || version != NULL || found != NULL;
}
