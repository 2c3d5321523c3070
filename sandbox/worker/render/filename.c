/* SPDX-License-Identifier: MIT */
#include "filename.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../protocol/frame_limits.h"

#define ENDING_MOST 16 /* bytes of an ending that are kept */

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9');
}

static const char *
ending_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (dot == NULL || dot == name || strlen(dot) > ENDING_MOST)
		return name + strlen(name);
	return dot;
}

/* stem and ending within `most` bytes: the stem gives way */
static void
join(char *out, size_t most, const char *stem, size_t stem_len,
    const char *ending)
{
	size_t room = most - strlen(ending);

	if (stem_len > room)
		stem_len = room;
	memmove(out, stem, stem_len);
	memcpy(out + stem_len, ending, strlen(ending) + 1);
}

bool
filename_clean(char name[FILENAME_SIZE], const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash != NULL ? slash + 1 : path;
	char clean[LIMIT_PATH + 1];
	char ending[ENDING_MOST + 1];
	size_t n = 0;
	const char *dot;

	for (const char *p = last; *p != '\0' && n < sizeof(clean) - 1; p++) {
		char c = *p;

		if (!is_plain(c) && c != '.' && c != '-')
			c = '_';
		if (n > 0 || is_plain(c))
			clean[n++] = c;
	}
	clean[n] = '\0';
	if (n == 0)
		memcpy(clean, "file", sizeof("file"));
	dot = ending_of(clean);
	(void)snprintf(ending, sizeof(ending), "%s", dot);
	join(name, FILENAME_SIZE - 1, clean, (size_t)(dot - clean), ending);
	return strcmp(name, last) != 0;
}

static bool
is_taken(const char *name, const char *const *taken, size_t count)
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
	char stem[FILENAME_SIZE];
	char ending[ENDING_MOST + 24];
	const char *dot = ending_of(name);
	size_t stem_len = (size_t)(dot - name);

	if (!is_taken(name, taken, count))
		return false;
	memcpy(stem, name, stem_len);
	stem[stem_len] = '\0';
	(void)snprintf(stem + stem_len, sizeof(stem) - stem_len, "%s", dot);
	/* count names can block at most count numbers */
	for (size_t i = 2; i <= count + 2; i++) {
		(void)snprintf(ending, sizeof(ending), "-%zu%s", i,
		    stem + stem_len);
		join(name, FILENAME_SIZE - 1, stem, stem_len, ending);
		if (!is_taken(name, taken, count))
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
	static const struct {
		const char *ending;
		const char *language;
	} table[] = {
		{ ".py", "py" },
		{ ".pyi", "py" },
		{ ".json", "json" },
		{ ".md", "md" },
		{ ".html", "html" },
		{ ".htm", "html" },
		{ ".css", "css" },
		{ ".js", "js" },
		{ ".ts", "ts" },
		{ ".c", "c" },
		{ ".h", "c" },
		{ ".cpp", "cpp" },
		{ ".sh", "sh" },
		{ ".sql", "sql" },
		{ ".xml", "xml" },
		{ ".svg", "xml" },
		{ ".yml", "yaml" },
		{ ".yaml", "yaml" },
		{ ".toml", "toml" },
		{ ".ini", "ini" },
		{ ".cfg", "ini" },
		{ ".diff", "diff" },
		{ ".patch", "diff" },
		{ ".rs", "rust" },
		{ ".go", "go" },
		{ ".java", "java" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < sizeof(table) / sizeof(table[0]);
	     i++)
		if (strcasecmp(dot, table[i].ending) == 0)
			return table[i].language;
	return "";
}
