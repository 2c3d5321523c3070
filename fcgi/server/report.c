/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/file.h"
#include "../../sandbox/base/text.h"

#define NAME "front/jobs"
#define TEXT_MAX 8192

/* The file is a "key number" for each line of this, in this order. */
static const struct {
	const char *key;
	size_t offset;
} lines[] = {
	{ "written_ms", offsetof(struct report, written_ms) },
	{ "database", offsetof(struct report, database) },
	{ "queued", offsetof(struct report, queued) },
	{ "running", offsetof(struct report, running) },
	{ "untold", offsetof(struct report, untold) },
	{ "oldest_ms", offsetof(struct report, oldest_ms) },
};

#define LINES (sizeof(lines) / sizeof(lines[0]))

/* The number that a line stands for. */
static int64_t *
value_of(struct report *report, size_t line)
{
	return (int64_t *)(void *)((char *)report + lines[line].offset);
}

int
report_write(const struct config *config, const struct report *report,
    struct err *err)
{
	auto_free char *path = config_state_path(config, NAME);
	auto_free char *folder = xstrdup(path);
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct report values = *report;

	for (size_t i = 0; i < LINES; i++)
		buf_addf(&text, "%s %" PRId64 "\n", lines[i].key,
		    *value_of(&values, i));
	*strrchr(folder, '/') = '\0';
	if (fd_make_dirs(folder, 0750, err) != 0)
		return -1;
	return file_write(path, text.data, text.len, err);
}

int
report_read(const struct config *config, struct report *report, struct err *err)
{
	auto_free char *path = config_state_path(config, NAME);
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct report found = { 0 };
	char *rest;

	if (access(path, F_OK) != 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: not there yet", path);
	if (file_read(path, &text, err) != 0)
		return -1;
	rest = text.data;
	for (size_t i = 0; i < LINES; i++) {
		const char *line = strsep(&rest, "\n");
		size_t len = strlen(lines[i].key);

		if (line == NULL || strncmp(line, lines[i].key, len) != 0 ||
		    line[len] != ' ' ||
		    !text_parse_int(line + len + 1, 0, INT64_MAX,
			value_of(&found, i)))
			return err_set(err, ERR_INPUT, "%s: no %s", path,
			    lines[i].key);
	}
	*report = found;
	return 0;
}
