/* SPDX-License-Identifier: MIT */
#include "worker/render/filename.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/path.h"

#define ENDING_MOST 16 /* bytes of an ending that are kept */

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

/* Discord refuses a name that is a number. */
static bool
is_number(const char *name)
{
	return *name >= '0' && *name <= '9' &&
	    name[strspn(name, "0123456789.eE-_")] == '\0';
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
		if (is_number(name))
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

bool
filename_is_image(const char *name)
{
	static const char *const endings[] = { ".png", ".jpg", ".jpeg", ".gif",
		".webp" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0;
	     dot != NULL && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	return false;
}

const char *
filename_language(const char *name)
{
	/* endings that are their own tags, and pairs of those that are not */
	static const char *const tags[] = { "py", "json", "md", "html", "css",
		"js", "ts", "c", "cpp", "sh", "sql", "xml", "yaml", "toml",
		"ini", "diff", "go", "java" };
	static const char *const others[][2] = { { "pyi", "py" },
		{ "htm", "html" }, { "h", "c" }, { "svg", "xml" },
		{ "yml", "yaml" }, { "cfg", "ini" }, { "patch", "diff" },
		{ "rs", "rust" } };
	const char *dot = strrchr(name, '.');

	if (dot == NULL)
		return "";
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (strcasecmp(dot + 1, tags[i]) == 0)
			return tags[i];
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcasecmp(dot + 1, others[i][0]) == 0)
			return others[i][1];
	return "";
}
