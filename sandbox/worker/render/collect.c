/* SPDX-License-Identifier: MIT */
#include "worker/render/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocol/path.h"

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
