/* SPDX-License-Identifier: MIT */
#include "libre_name.h"

#include <string.h>

#include "../../../sandbox/base/text.h"

#define PART_MAX 255
#define EXTENSION_MAX 12

/* One part between two slashes. */
static bool
is_part(const char *part, size_t len)
{
	return len > 0 && len <= PART_MAX && !(len == 1 && part[0] == '.') &&
	    !(len == 2 && part[0] == '.' && part[1] == '.');
}

const char *
libre_name_fault(const char *name, size_t len)
{
	if (len == 0)
		return "must not be empty";
	if (len > LIBRE_NAME_MAX)
		return "is too long";
	if (memchr(name, '\0', len) != NULL)
		return "contains invalid path characters";
	if (name[0] == '/')
		return "must be a relative path";
	if (name[len - 1] == '/')
		return "must be canonical and file-like";
	for (size_t at = 0; at < len;) {
		const char *slash = memchr(name + at, '/', len - at);
		size_t end = slash == NULL ? len : (size_t)(slash - name);

		if (end - at > PART_MAX)
			return "is too long";
		if (!is_part(name + at, end - at))
			return "must not contain empty, current, or parent "
			       "path segments";
		at = end + 1;
	}
	return NULL;
}

const char *
libre_name_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

const char *
libre_name_extension(const char *path)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const char *dot = strrchr(libre_name_base(path), '.');
	size_t len = dot == NULL ? 0 : strlen(dot + 1);

	return len > 0 && len <= EXTENSION_MAX && strspn(dot + 1, set) == len ?
	    dot :
	    "";
}

const char *
libre_name_type(const char *path)
{
	static const char *const types[][2] = {
		{ ".csv", "text/csv" },
		{ ".gif", "image/gif" },
		{ ".html", "text/html" },
		{ ".jpeg", "image/jpeg" },
		{ ".jpg", "image/jpeg" },
		{ ".json", "application/json" },
		{ ".md", "text/markdown" },
		{ ".pdf", "application/pdf" },
		{ ".png", "image/png" },
		{ ".py", "text/x-python" },
		{ ".svg", "image/svg+xml" },
		{ ".txt", "text/plain" },
		{ ".webp", "image/webp" },
		{ ".xlsx",
		    "application/vnd.openxmlformats-officedocument."
		    "spreadsheetml.sheet" },
		{ ".xml", "application/xml" },
		{ ".zip", "application/zip" },
	};
	const char *extension = libre_name_extension(path);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (text_is(extension, strlen(extension), types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}
