/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/fast_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cell/supervisor/base.h"

#include "protocol/frame.h"

#define SECOND_NS 1000000000
#define RECORD_MAX (2 + LIMIT_PATH + 4 * 8)

/* A process has one run. */
struct supervisor_fast supervisor_fast;
struct fast_file fast_file;

/* Append a text, with a NUL behind it, to words or to the environment. */
static bool
append(char *texts, uint64_t *used, const struct frame_field *field)
{
	if (field->len >= SUPERVISOR_WORDS_MAX - *used ||
	    memchr(field->data, '\0', field->len) != NULL)
		return false;
	memcpy(texts + *used, field->data, field->len);
	*used += field->len;
	texts[(*used)++] = '\0';
	return true;
}

static bool
read_variable(struct supervisor_fast *text, const struct frame_field *field)
{
	const unsigned char *equals = memchr(field->data, '=', field->len);

	return equals != NULL && equals != field->data &&
	    append(text->env, &text->env_len, field);
}

/* Is it a plain file name?  The interpreter judges any other. */
static bool
is_name(const unsigned char *name, size_t len)
{
	return len > 0 && len <= LIMIT_NAME && name[0] != '.' &&
	    memchr(name, '/', len) == NULL && memchr(name, '\0', len) == NULL;
}

/* Read the name of a person's source. */
static bool
read_source_name(struct supervisor_fast *text, const struct frame_field *field)
{
	if (!is_name(field->data, field->len))
		return false;
	memcpy(text->env, field->data, field->len);
	text->env_len = field->len;
	return true;
}

/* Read the file or an argument; the interpreter judges another order. */
static bool
read_argument(struct supervisor_fast *text, const struct frame_field *field)
{
	if (field->tag == TAG_PATH ?
		text->by_path != 0 || !is_name(field->data, field->len) :
		text->by_path == 0)
		return false;
	text->by_path = 1;
	return append(text->words, &text->words_len, field);
}

/* Read a field that is no number.  False: no fast request has it. */
static bool
read_field(struct supervisor *k, const struct frame_field *field)
{
	/* sets, as a switch would have to name all of enum frame_tag */
	static const char numbers[] = { TAG_OP, TAG_MERGE, TAG_WALL_MS,
		TAG_OUTPUT_MAX, TAG_COLLECT_FILES, TAG_COLLECT_BYTES,
		TAG_COLLECT_TOTAL };
	static const char others[] = { TAG_PLAIN, TAG_ECHO, TAG_DISPLAY,
		TAG_OUTPUT_MODE, TAG_COLLECT_HOW, TAG_COLLECT_MS,
		TAG_LIMIT_MEMORY, TAG_LIMIT_FILES, TAG_LIMIT_CPU,
		TAG_LIMIT_PROCESSES };

	if (field->tag == TAG_CWD)
		return field->len == 0;
	if (memchr(numbers, (int)field->tag, sizeof(numbers)) != NULL)
		return true;
	if (k->reads == SUPERVISOR_READS_SOURCE)
		return field->tag == TAG_NAME ?
		    read_source_name(&supervisor_fast, field) :
		    field->tag == TAG_ECHO;
	if (field->tag == TAG_FOLDER) {
		/* of an api cell's run; the interpreter judges any other */
		k->plan.folder = (uint64_t)base_find_folder(field->data,
		    field->len);
		return k->plan.folder < SUPERVISOR_SITE;
	}
	if (field->tag == TAG_ENV)
		return read_variable(&supervisor_fast, field);
	if (field->tag == TAG_PATH || field->tag == TAG_ARG)
		return read_argument(&supervisor_fast, field);
	if (field->tag == TAG_NAME) {
		fast_file.title = field->data;
		fast_file.title_len = field->len;
		return memchr(field->data, '\0', field->len) == NULL;
	}
	return memchr(others, (int)field->tag, sizeof(others)) != NULL;
}

/* Returns 0 for an absent field; a negative one is larger than any limit. */
static uint64_t
number(const struct frame_view *view, enum frame_tag tag)
{
	int64_t value = 0;

	(void)frame_get_int(view, tag, &value);
	return (uint64_t)value;
}

/* An absent field is 0. */
static void
read_numbers(struct supervisor *k, const struct frame_view *view)
{
	struct supervisor_plan *plan = &k->plan;

	plan->wall_ms = number(view, TAG_WALL_MS);
	plan->output_max = number(view, TAG_OUTPUT_MAX);
	plan->drains = number(view, TAG_OUTPUT_MODE) == OUTPUT_DRAIN;
	plan->files = number(view, TAG_COLLECT_FILES);
	plan->bytes = number(view, TAG_COLLECT_BYTES);
	plan->total = number(view, TAG_COLLECT_TOTAL);
	plan->how = number(view, TAG_COLLECT_HOW);
	plan->ms = number(view, TAG_COLLECT_MS);
	k->merge = number(view, TAG_MERGE) != 0;
	supervisor_fast.echo = number(view, TAG_ECHO) != 0;
	supervisor_fast.display = number(view, TAG_DISPLAY) != 0;
	k->limits[FAST_MEMORY] = number(view, TAG_LIMIT_MEMORY);
	k->limits[FAST_FILES] = number(view, TAG_LIMIT_FILES);
	k->limits[FAST_CPU] = number(view, TAG_LIMIT_CPU);
	k->limits[FAST_PROCESSES] = number(view, TAG_LIMIT_PROCESSES);
}

/* Has it a time, a name or an environment, and no negative number? */
static bool
are_usual(const struct supervisor *k)
{
	const struct supervisor_plan *plan = &k->plan;
	uint64_t all = plan->output_max | plan->files | plan->bytes |
	    plan->total | plan->how | plan->ms;

	for (int i = 0; i < FAST_LIMITS; i++)
		all |= k->limits[i];
	return all <= INT64_MAX && plan->wall_ms > 0 &&
	    plan->wall_ms <= LIMIT_WALL_MS &&
	    plan->folder < SUPERVISOR_FOLDER_COUNT &&
	    supervisor_fast.env_len > 0;
}

bool
fast_read_head(struct supervisor *k, const void *packet, size_t len)
{
	struct frame_view view;
	struct frame_field field;
	size_t at = 0;
	bool personal = k->reads == SUPERVISOR_READS_SOURCE;

	k->plan = (struct supervisor_plan){ .folder = personal ?
		    SUPERVISOR_WORKSPACE :
		    SUPERVISOR_FOLDER_COUNT };
	supervisor_fast.words_len = supervisor_fast.env_len = 0;
	supervisor_fast.title_len = supervisor_fast.by_path = 0;
	supervisor_fast.usual = 0;
	fast_file = (struct fast_file){ 0 };
	if (!frame_parse(&view, packet, len) || view.kind != FRAME_REQUEST)
		return false;
	while (frame_next(&view, &at, &field))
		if (!read_field(k, &field))
			return false;
	read_numbers(k, &view);
	return number(&view, TAG_OP) == OP_RUN &&
	    (personal ||
		(number(&view, TAG_PLAIN) != 0) !=
		    (supervisor_fast.by_path != 0)) &&
	    are_usual(k);
}

/* Read the head of the one file that may come. */
static bool
read_file_head(const struct supervisor *k, const struct frame_view *view)
{
	const unsigned char *name;
	size_t len;
	int64_t mode = FAST_FILE_MODE;

	if (k->reads == SUPERVISOR_READS_SOURCE || fast_file.name != NULL ||
	    number(view, TAG_ALWAYS) != 0 ||
	    !frame_get_bytes(view, TAG_PATH, &name, &len) ||
	    !is_name(name, len))
		return false;
	(void)frame_get_int(view, TAG_MODE, &mode);
	/* an unreadable file is no program */
	if ((mode & S_IRUSR) == 0)
		return false;
	fast_file.dated = frame_get_int(view, TAG_MTIME, &fast_file.mtime);
	fast_file.mode = (unsigned int)mode & 0777U;
	fast_file.name = name;
	fast_file.name_len = len;
	return true;
}

bool
fast_read_piece(struct supervisor *k, const void *packet, size_t len)
{
	struct supervisor_fast *text = &supervisor_fast;
	struct frame_view view;
	const unsigned char *data = NULL;
	size_t size = 0;
	const uint64_t words = k->reads == SUPERVISOR_READS_SOURCE ?
	    PART_SOURCE :
	    PART_ARGS;
	uint64_t part;

	if (!frame_parse(&view, packet, len))
		return false;
	if (view.kind == FRAME_INPUT)
		return read_file_head(k, &view);
	if (view.kind != FRAME_BYTES ||
	    !frame_get_bytes(&view, TAG_DATA, &data, &size) || size == 0)
		return false;
	part = number(&view, TAG_PART);
	if (part == words && text->words_len == 0 &&
	    size <= sizeof(text->words)) {
		memcpy(text->words, data, size);
		text->words_len = size;
		return true;
	}
	if (part == PART_CONTENT && fast_file.name != NULL &&
	    fast_file.len == 0) {
		fast_file.data = data;
		fast_file.len = size;
		return true;
	}
	if (part == PART_STDIN && k->plan.input == 0) {
		k->input = data;
		k->plan.input = size;
		return true;
	}
	return false;
}

/* Is the first word the file that has come? */
static bool
is_file(const struct supervisor_fast *text)
{
	return fast_file.name != NULL && text->words_len > fast_file.name_len &&
	    memcmp(text->words, fast_file.name, fast_file.name_len) == 0 &&
	    text->words[fast_file.name_len] == '\0';
}

/* Is it `python FILE …`?  The mark shows whether the run has changed FILE. */
static bool
is_script(const struct supervisor *k)
{
	return is_file(&supervisor_fast) && supervisor_fast.words[0] != '-' &&
	    (k->plan.files == 0 || (k->plan.how & COLLECT_BYTES) == 0);
}

/* Is its environment the prepared one of a form? */
static bool
has_usual_env(const struct supervisor *k, int form)
{
	return supervisor_fast.env_len == k->usual_len[form] &&
	    memcmp(supervisor_fast.env, k->usual[form], k->usual_len[form]) ==
	    0;
}

/* Append the source to the name of a program without arguments in the usual
 * folder and environment. */
static void
append_source(const struct supervisor *k, struct supervisor_fast *text)
{
	static const char name[] = SUPERVISOR_MAIN;

	if (k->plan.folder != SUPERVISOR_WORKSPACE ||
	    text->words_len != sizeof(name) ||
	    memcmp(text->words, name, sizeof(name)) != 0 ||
	    fast_file.len > sizeof(text->words) - sizeof(name) ||
	    !has_usual_env(k, SUPERVISOR_PROGRAM))
		return;
	if (fast_file.len > 0)
		memcpy(text->words + sizeof(name), fast_file.data,
		    fast_file.len);
	text->words_len += fast_file.len;
	text->usual = SUPERVISOR_PROGRAM;
}

static bool
read_program(const struct supervisor *k, struct supervisor_fast *text)
{
	if (!is_file(text) ||
	    fast_file.title_len > sizeof(text->env) - text->env_len)
		return false;
	if (fast_file.title_len > 0)
		memcpy(text->env + text->env_len, fast_file.title,
		    fast_file.title_len);
	text->title_len = fast_file.title_len;
	fast_file.hidden = true;
	append_source(k, text);
	return true;
}

bool
fast_is_whole(const struct supervisor *k)
{
	static const char option[] = "-c"; /* and the end of the word */
	struct supervisor_fast *text = &supervisor_fast;

	if (k->reads == SUPERVISOR_READS_SOURCE)
		return text->words_len > 0;
	if (text->words_len == 0 || text->words[text->words_len - 1] != '\0')
		return false;
	if (text->by_path != 0)
		return read_program(k, text);
	if (fast_file.name != NULL)
		return is_script(k);
	if (text->words_len <= sizeof(option) ||
	    memcmp(text->words, option, sizeof(option)) != 0)
		return false;
	if (has_usual_env(k, SUPERVISOR_COMMAND) &&
	    sizeof(option) + strlen(text->words + sizeof(option)) + 1 ==
		text->words_len)
		text->usual = SUPERVISOR_COMMAND;
	return true;
}

/* ---- folders ---- */

bool
listing_empty_folder(const char *path)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LISTING_FOLDER) };
	const char *name;
	bool empty = true;

	if (names.folder < 0)
		return errno == ENOENT;
	while ((name = base_next_name(&names)) != NULL)
		empty = unlinkat(names.folder, name, 0) == 0 && empty;
	(void)close(names.folder);
	return empty && !names.failed;
}

bool
listing_has_name(const char *path, const char *beginning)
{
	struct base_names names = { .folder = openat(AT_FDCWD, path,
					LISTING_FOLDER) };
	const char *name;
	size_t len = strlen(beginning);

	if (names.folder < 0)
		return false;
	/* a name has its NUL within the record, which is longer than that */
	do
		name = base_next_name(&names);
	while (name != NULL && strncmp(name, beginning, len) != 0);
	(void)close(names.folder);
	return name != NULL;
}

/* ---- a listing ---- */

struct listing {
	int file; /* the notes */
	int64_t len;
	bool failed; /* to write them */
	bool cut;
	int room; /* for entries */
	size_t path_len;
	char path[LIMIT_PATH];
	size_t used;
	char out[4 * RECORD_MAX];
};

/* Write the notes that are collected. */
static void
flush_notes(struct listing *list)
{
	list->failed |= write(list->file, list->out, list->used) !=
	    (ssize_t)list->used;
	list->len += (int64_t)list->used;
	list->used = 0;
}

/* There must be room. */
static void
put_note(struct listing *list, const void *data, size_t len)
{
	memcpy(list->out + list->used, data, len);
	list->used += len;
}

/* Any year is possible, as the owner can set the time. */
static uint64_t
stamp_of(const struct statx_timestamp *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

static void
listing_mark(const struct statx *status, uint64_t mark[LISTING_MARKS])
{
	mark[0] = status->stx_ino;
	mark[1] = status->stx_size;
	mark[2] = stamp_of(&status->stx_mtime);
	mark[3] = stamp_of(&status->stx_ctime);
}

/* Write one record, as fast_path.h has it. */
static void
note_file(struct listing *list, const struct statx *status)
{
	uint16_t len = (uint16_t)list->path_len;
	uint64_t mark[LISTING_MARKS];

	if (list->used + RECORD_MAX > sizeof(list->out))
		flush_notes(list);
	listing_mark(status, mark);
	put_note(list, &len, sizeof(len));
	put_note(list, list->path, len);
	put_note(list, mark, sizeof(mark));
}

/* Add a name to the path.  False: it has no room. */
static bool
go_down(struct listing *list, const char *name)
{
	size_t len = strlen(name);
	size_t slash = list->path_len > 0 ? 1 : 0;

	if (list->path_len + slash + len > sizeof(list->path))
		return false;
	list->path[list->path_len] = '/';
	memcpy(list->path + list->path_len + slash, name, len);
	list->path_len += slash + len;
	return true;
}

/* List a folder with all below it, and close it.  depth: names in the path. */
static void
list_folder(struct listing *list, int folder, int depth)
{
	struct base_names names = { .folder = folder };
	size_t path_len = list->path_len;
	struct statx status;
	const char *name;

	while (!list->cut && (name = base_next_name(&names)) != NULL) {
		list->cut = list->room-- == 0;
		if (list->cut || name[0] == '.' || !go_down(list, name))
			continue;
		status.stx_mode = 0;
		(void)syscall(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW,
		    STATX_BASIC_STATS, &status);
		if (S_ISREG(status.stx_mode)) {
			note_file(list, &status);
		} else if (S_ISDIR(status.stx_mode) &&
		    depth + 1 < LISTING_DEPTH &&
		    strcmp(name, "__pycache__") != 0) {
			int below = openat(folder, name, LISTING_FOLDER);

			if (below >= 0)
				list_folder(list, below, depth + 1);
		}
		list->path_len = path_len;
	}
	list->cut |= names.failed;
	(void)close(folder);
}

/* List the folder that list->path names; no link on the way is followed. */
static void
list_path(struct listing *list, int root)
{
	char name[LIMIT_PATH + 1];
	int folder = openat(root, ".", LISTING_FOLDER);
	uint16_t end;
	size_t len;
	int depth = 0;

	for (size_t at = 0; at < list->path_len && folder >= 0; at += len + 1) {
		const char *slash = memchr(list->path + at, '/',
		    list->path_len - at);
		int above = folder;

		len = slash == NULL ? list->path_len - at :
				      (size_t)(slash - list->path) - at;
		memcpy(name, list->path + at, len);
		name[len] = '\0';
		folder = openat(above, name, LISTING_FOLDER);
		(void)close(above);
		depth++;
	}
	if (folder >= 0)
		list_folder(list, folder, depth);
	end = list->cut ? SUPERVISOR_LISTING_CUT : 0;
	if (list->used + sizeof(end) > sizeof(list->out))
		flush_notes(list);
	put_note(list, &end, sizeof(end));
	flush_notes(list);
}

int64_t
listing_write(int root, const char *folder, size_t len, int file)
{
	struct listing list = { .file = file, .room = LISTING_ENTRIES };
	uint16_t size = (uint16_t)len;
	struct timespec now;
	int64_t began;

	if (len > sizeof(list.path) ||
	    clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
		return -1;
	began = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
	put_note(&list, &began, sizeof(began));
	put_note(&list, &size, sizeof(size));
	put_note(&list, folder, len);
	memcpy(list.path, folder, len);
	list.path_len = len;
	list_path(&list, root);
	return list.failed ? -1 : list.len;
}

/* Are two stretches of a file the same bytes? */
static bool
are_same(int file, int64_t one, int64_t other, int64_t len)
{
	char ours[4096];
	char theirs[sizeof(ours)];

	for (int64_t at = 0; at < len; at += (int64_t)sizeof(ours)) {
		size_t size = len - at < (int64_t)sizeof(ours) ?
		    (size_t)(len - at) :
		    sizeof(ours);

		if (pread(file, ours, size, one + at) != (ssize_t)size ||
		    pread(file, theirs, size, other + at) != (ssize_t)size ||
		    memcmp(ours, theirs, size) != 0)
			return false;
	}
	return true;
}

int64_t
listing_compare(int root, int file, int64_t at, int64_t len)
{
	const int64_t clock = sizeof(int64_t);
	char folder[LIMIT_PATH];
	uint16_t size = 0;
	int64_t more;

	if (pread(file, &size, sizeof(size), at + clock) != sizeof(size) ||
	    size > sizeof(folder) ||
	    pread(file, folder, size, at + clock + (int64_t)sizeof(size)) !=
		size)
		return -1;
	more = listing_write(root, folder, size, file);
	return more == len &&
		are_same(file, at + clock, at + len + clock, len - clock) ?
	    0 :
	    more;
}

/* ---- its one file ---- */

/* The system call is made by its number, as C libraries differ in its name. */
static bool
find_mark(int at, const char *name, int flags, uint64_t mark[LISTING_MARKS])
{
	struct statx status;

	if (syscall(SYS_statx, at, name, AT_SYMLINK_NOFOLLOW | flags,
		STATX_BASIC_STATS, &status) != 0)
		return false;
	listing_mark(&status, mark);
	return true;
}

/* Write content, mode and time of the request's file. */
static bool
write_content(int fd, uint64_t mark[LISTING_MARKS])
{
	const struct timespec times[2] = {
		{ .tv_sec = (time_t)fast_file.mtime },
		{ .tv_sec = (time_t)fast_file.mtime },
	};

	return (fast_file.len == 0 ||
		   write(fd, fast_file.data, fast_file.len) ==
		       (ssize_t)fast_file.len) &&
	    fchmod(fd, fast_file.mode) == 0 &&
	    (!fast_file.dated || futimens(fd, times) == 0) &&
	    find_mark(fd, "", AT_EMPTY_PATH, mark);
}

/* Write the notes, as fast_path.h has them. */
static bool
note_mark(struct supervisor *k, const uint64_t mark[LISTING_MARKS])
{
	const size_t size = LISTING_MARKS * sizeof(*mark);
	char record[1 + LISTING_MARKS * sizeof(*mark) + LIMIT_NAME];
	size_t len = 1 + size + fast_file.name_len;

	record[0] = fast_file.hidden ? 'H' : 'S';
	memcpy(record + 1, mark, size);
	memcpy(record + 1 + size, fast_file.name, fast_file.name_len);
	k->plan.notes = len;
	k->plan.inode = mark[0];
	k->plan.ctime = mark[3];
	return write(k->file, record, len) == (ssize_t)len;
}

bool
fast_file_stage(struct supervisor *k)
{
	char name[LIMIT_NAME + 1] = "";
	uint64_t mark[LISTING_MARKS];
	int folder = openat(AT_FDCWD, base_folders[k->plan.folder],
	    LISTING_FOLDER);
	bool staged;
	int fd;

	memcpy(name, fast_file.name, fast_file.name_len);
	fd = folder < 0 ?
	    -1 :
	    openat(folder, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	staged = fd >= 0 && write_content(fd, mark) && note_mark(k, mark);
	if (fd >= 0 && !staged)
		(void)unlinkat(folder, name, 0);
	base_close(&fd);
	base_close(&folder);
	return staged;
}

bool
fast_file_alone(int folder, const struct supervisor_plan *plan)
{
	struct base_names names = { .folder = openat(folder, ".",
					LISTING_FOLDER) };
	const char *name;
	uint64_t mark[LISTING_MARKS];
	bool alone;

	if (names.folder < 0)
		return false;
	name = base_next_name(&names);
	alone = name != NULL && find_mark(names.folder, name, 0, mark) &&
	    mark[0] == plan->inode && mark[3] == plan->ctime &&
	    base_next_name(&names) == NULL && !names.failed;
	(void)close(names.folder);
	return alone;
}
