#include "report.h"

#include <errno.h>
#include <inttypes.h>
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

/* The lines of the file, in their order. */
struct line {
	const char *key;
	int64_t *value;
};

#define LINES 6

static int
write_text(const char *path, const struct buf *text, struct err *err)
{
	auto_free char *folder = xstrdup(path);

	*strrchr(folder, '/') = '\0';
	if (fd_make_dirs(folder, 0750, err) != 0)
		return -1;
	return file_write(path, text->data, text->len, err);
}

int
report_write(const struct config *config, const struct report *report,
    struct err *err)
{
	auto_free char *path = config_state_path(config, NAME);
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);

	buf_addf(&text,
	    "written_ms %" PRId64 "\ndatabase %d\nqueued %" PRId64
	    "\nrunning %" PRId64 "\nuntold %" PRId64 "\noldest_ms %" PRId64
	    "\n",
	    report->written_ms, report->database ? 1 : 0, report->queued,
	    report->running, report->untold, report->oldest_ms);
	return write_text(path, &text, err);
}

/* "key number", as it was written and no other way. */
static bool
take_line(char **rest, const struct line *line)
{
	char *text = strsep(rest, "\n");
	size_t len = strlen(line->key);

	return text != NULL && strncmp(text, line->key, len) == 0 &&
	    text[len] == ' ' &&
	    text_parse_int(text + len + 1, 0, INT64_MAX, line->value);
}

int
report_read(const struct config *config, struct report *report, struct err *err)
{
	auto_free char *path = config_state_path(config, NAME);
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct report found = { 0 };
	int64_t database = 0;
	const struct line lines[LINES] = { { "written_ms", &found.written_ms },
		{ "database", &database }, { "queued", &found.queued },
		{ "running", &found.running }, { "untold", &found.untold },
		{ "oldest_ms", &found.oldest_ms } };
	auto_free char *copy = NULL;
	char *rest;

	if (access(path, F_OK) != 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: not there yet", path);
	if (file_read(path, &text, err) != 0)
		return -1;
	copy = xstrdup(buf_str(&text));
	rest = copy;
	for (size_t i = 0; i < LINES; i++)
		if (!take_line(&rest, &lines[i]))
			return err_set(err, ERR_INPUT, "%s: no %s", path,
			    lines[i].key);
	found.database = database == 1;
	*report = found;
	return 0;
}
