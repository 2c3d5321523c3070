/* SPDX-License-Identifier: MIT */
#include "mcp_media.h"

#include <string.h>
#include <strings.h>

#include "mcp_picture.h"

#include "../../../sandbox/base/buf.h"
#include "../../../sandbox/base/text.h"
#include "../../../sandbox/base/utf8.h"

#define PREFIX "inline://files/"

/* By the end of the name.  What is missing here is told by its bytes. */
static const struct {
	const char *ending;
	const char *type;
} endings[] = {
	{ "csv", "text/csv" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "html", "text/html" },
	{ "css", "text/css" },
	{ "js", "text/javascript" },
	{ "py", "text/x-python" },
	{ "json", "application/json" },
	{ "jsonl", "application/jsonl" },
	{ "xml", "application/xml" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
	{ "svg", "image/svg+xml" },
	{ "pdf", "application/pdf" },
	{ "zip", "application/zip" },
	{ "gz", "application/gzip" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "xlsx",
	    "application/vnd.openxmlformats-officedocument.spreadsheetml."
	    "sheet" },
	{ "docx",
	    "application/vnd.openxmlformats-officedocument.wordprocessingml."
	    "document" },
	{ "wav", "audio/wav" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
};

static bool
begins(const char *data, size_t len, const char *magic, size_t magic_len)
{
	return len >= magic_len && memcmp(data, magic, magic_len) == 0;
}

const char *
mcp_media_type(const char *name, const void *data, size_t len)
{
	const char *type = mcp_picture_type(data, len);
	const char *dot = strrchr(name, '.');
	size_t n = sizeof(endings) / sizeof(endings[0]);

	if (type != NULL)
		return type;
	for (size_t i = 0; dot != NULL && i < n; i++)
		if (strcasecmp(dot + 1, endings[i].ending) == 0)
			return endings[i].type;
	/* The last character may be cut. */
	if ((len == 0 || memchr(data, '\0', len) == NULL) &&
	    utf8_span(data, len, false) + 3 >= len)
		return "text/plain";
	return "application/octet-stream";
}

const char *
mcp_media_of_name(const char *name)
{
	static const char *const pictures[][2] = { { ".png", "image/png" },
		{ ".jpg", "image/jpeg" }, { ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" }, { ".webp", "image/webp" } };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < 5; i++)
		if (strcasecmp(dot, pictures[i][0]) == 0)
			return pictures[i][1];
	return mcp_media_type(name, "\0", 1);
}

bool
mcp_media_is_picture(const char *type)
{
	return strcmp(type, "image/png") == 0 ||
	    strcmp(type, "image/jpeg") == 0 || strcmp(type, "image/gif") == 0 ||
	    strcmp(type, "image/webp") == 0;
}

bool
mcp_media_is_text(const char *type)
{
	return strncmp(type, "text/", 5) == 0 ||
	    strcmp(type, "application/json") == 0 ||
	    strcmp(type, "application/jsonl") == 0 ||
	    strcmp(type, "application/xml") == 0 ||
	    strcmp(type, "application/yaml") == 0 ||
	    strcmp(type, "image/svg+xml") == 0;
}

void
mcp_add_uri(struct buf *out, const char *id, const char *name)
{
	buf_addf(out, PREFIX "%s/", id);
	text_add_escaped(out, name, strlen(name), "-._~");
}

size_t
mcp_uri_id(const char *uri, size_t len, const char **id)
{
	const size_t prefix = strlen(PREFIX);
	const char *slash;

	if (!begins(uri, len, PREFIX, prefix))
		return 0;
	*id = uri + prefix;
	slash = memchr(*id, '/', len - prefix);
	return slash == NULL ? 0 : (size_t)(slash - *id);
}
