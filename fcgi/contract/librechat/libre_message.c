/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_message.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "contract/media.h"

#include "base/text.h"

#define PART_MAX 255
#define EXTENSION_MAX 12
#define NAME_SHOWN 200 /* code points of a client's text in an error */
#define OWN_NAME_MAX 40
/* More than standard error can have, with LIBRE_FILES_MAX inputs and as many
 * files as a cell may tell of. */
#define ERRORS_MAX ((size_t)64 << 20)

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define ALPHABET LETTERS "0123456789-_"

/* ---- ids ---- */

/* All bits of an id, or of a UUID, as one number. */
__extension__ typedef unsigned __int128 bits;

#define FILE_BITS 122

static void
write_id(char id[LIBRE_ID_LEN + 1], bits number)
{
	for (size_t i = LIBRE_ID_LEN; i > 0; i--, number >>= 6)
		id[i - 1] = ALPHABET[number & 63];
	id[LIBRE_ID_LEN] = '\0';
}

void
libre_make_id(char id[LIBRE_ID_LEN + 1])
{
	bits number;

	randombytes_buf(&number, sizeof(number));
	write_id(id, number >> 2); /* 126 of its bits */
}

bool
libre_is_id(const char *id)
{
	return strlen(id) == LIBRE_ID_LEN &&
	    strspn(id, ALPHABET) == LIBRE_ID_LEN;
}

/* Version and variant of a UUID are the same in all; the other bits are the
 * file's. */
void
libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid)
{
	uint64_t first = 0;
	uint64_t last = 0;
	unsigned a = 0;
	unsigned b = 0;
	unsigned c = 0;

	(void)sscanf(uuid, "%8" SCNx64 "-%4x-4%3x-%4x-%12" SCNx64, &first, &a,
	    &b, &c, &last);
	write_id(id,
	    (bits)first << 90 | (bits)a << 74 | (bits)b << 62 |
		(bits)(c & 0x3fff) << 48 | last);
}

bool
libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id)
{
	bits number = 0;

	if (!libre_is_id(id))
		return false;
	for (size_t i = 0; i < LIBRE_ID_LEN; i++)
		number = number << 6 |
		    (unsigned)(strchr(ALPHABET, id[i]) - ALPHABET);
	(void)snprintf(uuid, LIBRE_UUID_LEN + 1,
	    "%08" PRIx64 "-%04x-4%03x-%04x-%012" PRIx64,
	    (uint64_t)(number >> 90) & 0xffffffff,
	    (unsigned)(number >> 74) & 0xffff, (unsigned)(number >> 62) & 0xfff,
	    ((unsigned)(number >> 48) & 0x3fff) | 0x8000,
	    (uint64_t)number & 0xffffffffffff);
	return number >> FILE_BITS == 0;
}

/* ---- names ---- */

const char *
libre_name_fault(const char *name)
{
	if (name[0] == '\0')
		return "must not be empty";
	if (strlen(name) > LIBRE_NAME_MAX)
		return "is too long";
	if (name[0] == '/')
		return "must be a relative path";
	if (name[strlen(name) - 1] == '/')
		return "must be canonical and file-like";
	for (;;) {
		size_t len = strcspn(name, "/");

		if (len > PART_MAX)
			return "is too long";
		if (len <= 2 && strncmp(name, "..", len) == 0)
			return "must not contain empty, current, or parent "
			       "path segments";
		if (name[len] == '\0')
			return NULL;
		name += len + 1;
	}
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
	const char *dot = strrchr(libre_name_base(path), '.');
	size_t len = dot == NULL ? 0 : strlen(dot + 1);

	return len > 0 && len <= EXTENSION_MAX &&
		strspn(dot + 1, LETTERS "0123456789") == len ?
	    dot :
	    "";
}

static bool
is_long(const char *text)
{
	return text != NULL && strlen(text) > LIBRE_RESOURCE_MAX;
}

const char *
libre_resource_fault(const struct libre_resource *resource)
{
	const char *kind = resource->kind;
	const char *version = resource->version;
	bool skill = kind != NULL && strcmp(kind, "skill") == 0;

	if (!skill && kind != NULL && strcmp(kind, "user") != 0 &&
	    strcmp(kind, "agent") != 0)
		return "kind must be one of: skill, agent, user";
	if (is_long(resource->id) || is_long(version))
		return "resource_id is too long";
	return skill && (version == NULL || version[0] == '\0') ?
	    "version is required for kind: 'skill'" :
	    NULL;
}

bool
libre_query_get(const char *query, const char *name,
    char out[LIBRE_RESOURCE_MAX + 1])
{
	size_t name_len = strlen(name);
	size_t n = 0;

	while (strncmp(query, name, name_len) != 0 || query[name_len] != '=') {
		query = strchr(query, '&');
		if (query == NULL)
			return false;
		query++;
	}
	for (query += name_len + 1; *query != '\0' && *query != '&'; query++) {
		unsigned char c = (unsigned char)*query;

		if (n == LIBRE_RESOURCE_MAX)
			return false;
		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			if (strlen(query) < 3 ||
			    !text_parse_hex(query + 1, 2, &c, 1) || c == '\0')
				return false;
			query += 2;
		}
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return true;
}

/* ---- the tables of a request ---- */

#define OF_FILE(name, kind, member) \
	{ \
		name, kind, offsetof(struct libre_file, member), \
		    .nullable = true, .max = LIBRE_RESOURCE_MAX \
	}

static const struct field file_rows[] = {
	{ "name", FIELD_STRING, offsetof(struct libre_file, name),
	    .required = true },
	OF_FILE("kind", FIELD_STRING, resource.kind),
	OF_FILE("id", FIELD_STRING, id),
	OF_FILE("storage_session_id", FIELD_STRING, session),
	OF_FILE("session_id", FIELD_STRING, old_session),
	OF_FILE("resource_id", FIELD_ANY, resource_id),
	OF_FILE("version", FIELD_ANY, version),
	{ .name = NULL },
};

struct libre_body {
	struct cell_bytes lang;
	struct field_list files;
	const char **args;
	const json_t *timeout;
	struct cell_bytes code;
	struct cell_bytes hint;
};

#define AT(member) offsetof(struct libre_body, member)

static const struct field body_rows[] = {
	{ "lang", FIELD_WORD, AT(lang), .required = true, .nullable = true },
	{ "code", FIELD_TEXT, AT(code), .required = true, .nullable = true },
	{ "runtime_session_hint", FIELD_TEXT, AT(hint), .nullable = true,
	    .max = LIBRE_HINT_MAX },
	{ "args", FIELD_STRINGS, AT(args), .nullable = true,
	    .max = LIBRE_ARGS_MAX },
	{ "files", FIELD_LIST, AT(files), .nullable = true,
	    .max = LIBRE_FILES_MAX, .items = file_rows,
	    .size = sizeof(struct libre_file) },
	{ "timeout", FIELD_ANY, AT(timeout), .nullable = true },
	{ .name = NULL },
};

/* ---- the files of a request ---- */

/* Check a file.  Its version may be a number; other things than texts are
 * ignored. */
static bool
read_file(struct jtree *doc, struct libre_file *file, size_t i,
    struct api_error *error)
{
	const char *fault = libre_name_fault(file->name);

	if (fault != NULL)
		return api_error_set(error, 400, "files[%zu].name %s", i,
		    fault);
	file->resource.id = jtree_text(file->resource_id);
	file->resource.version = jtree_text(file->version);
	if (json_is_integer(file->version)) {
		char *number = jtree_array(doc, 24, 1);

		(void)snprintf(number, 24, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(file->version));
		file->resource.version = number;
	}
	fault = libre_resource_fault(&file->resource);
	if (fault != NULL)
		return api_error_set(error, 400, "files[%zu].%s", i, fault);
	if (file->session == NULL)
		file->session = file->old_session;
	return (file->id != NULL && libre_is_id(file->id) &&
		   file->session != NULL && libre_is_id(file->session)) ||
	    api_error_set(error, 403, "Unauthorized file reference");
}

/* Can only one of these paths be a file?  They are one, or one is the other's
 * folder. */
static bool
collide(const char *a, const char *b)
{
	size_t m = strlen(a);
	size_t n = strlen(b);

	return memcmp(a, b, m < n ? m : n) == 0 &&
	    (m == n || (m < n ? b[m] : a[n]) == '/');
}

/* Check the files, and mark those that a later one replaces, as both cannot be
 * there.  A refusal instead would make a client's list fail for good. */
static bool
read_files(struct libre_exec *exec, struct api_error *error)
{
	for (size_t i = 0; i < exec->file_count; i++) {
		struct libre_file *file = &exec->files[i];

		if (!read_file(&exec->doc, file, i, error))
			return false;
		for (size_t j = 0; j < i; j++)
			if (collide(exec->files[j].name, file->name))
				exec->files[j].replaced = true;
	}
	return true;
}

/* A name that no file has, nor is a folder of one. */
static const char *
choose_name(struct libre_exec *exec, const char *begin, const char *end)
{
	char *name = jtree_array(&exec->doc, OWN_NAME_MAX, 1);
	size_t number = 0;

	(void)snprintf(name, OWN_NAME_MAX, "%s__%s", begin, end);
	for (size_t i = 0; i < exec->file_count; i++) {
		if (!collide(exec->files[i].name, name))
			continue;
		(void)snprintf(name, OWN_NAME_MAX, "%s_%zu__%s", begin,
		    ++number, end);
		i = (size_t)-1; /* once more from the first */
	}
	return name;
}

/* ---- the rest of a request ---- */

static bool
read_code(struct libre_exec *exec, const struct libre_body *body,
    struct api_error *error)
{
	const struct cell_bytes *lang = &body->lang;

	exec->is_bash = strcmp(lang->data, "bash") == 0;
	exec->code = body->code;
	if (!exec->is_bash && strcmp(lang->data, "py") != 0)
		return api_error_set(error, 400, "Unsupported language: %.*s",
		    (int)text_prefix(lang->data, lang->len, NAME_SHOWN),
		    lang->data);
	return !exec->is_bash || strlen(exec->code.data) == exec->code.len ||
	    api_error_set(error, 400, "code must not contain a NUL character");
}

/* An empty hint is none. */
static bool
read_hint(struct libre_exec *exec, const struct cell_bytes *hint,
    struct api_error *error)
{
	exec->hint = hint->len > 0 ? hint->data : NULL;
	return hint->len == 0 ||
	    strspn(hint->data, ALPHABET ".:") == hint->len ||
	    api_error_set(error, 400,
		"runtime_session_hint may only contain letters, digits, "
		"\".\", \"_\", \":\", and \"-\"");
}

static bool
read_args(struct libre_exec *exec, const char *const *args,
    struct api_error *error)
{
	size_t bytes = 0;

	exec->args = args;
	for (; args != NULL && *args != NULL; args++)
		bytes += strlen(*args) + 1;
	return bytes <= LIBRE_ARGS_BYTES ||
	    api_error_set(error, 400,
		"args must have at most %d bytes together", LIBRE_ARGS_BYTES);
}

/* Anything is taken for a time that we have: other fields than ours may be
 * anything, and this one is no client's of today. */
static int64_t
timeout_of(const json_t *value)
{
	int64_t ms = json_integer_value(value);

	if (ms < 1)
		return LIBRE_TIMEOUT_MS;
	return ms < LIBRE_TIMEOUT_MAX_MS ? ms : LIBRE_TIMEOUT_MAX_MS;
}

bool
libre_exec_read(struct libre_exec *exec, json_t *root, struct api_error *error)
{
	struct libre_body body = { .timeout = NULL };

	*exec = (struct libre_exec){ .doc = { .root = root } };
	if (fields_accept(&exec->doc, body_rows, &body, error) &&
	    read_code(exec, &body, error) &&
	    read_hint(exec, &body.hint, error) &&
	    read_args(exec, body.args, error)) {
		exec->files = body.files.items;
		exec->file_count = body.files.count;
		exec->timeout_ms = timeout_of(body.timeout);
		exec->entry = choose_name(exec, "__main", ".py");
		/* Files are reported by name, and so many of them: these come
		 * before a program's own, which do not hide them. */
		exec->place = choose_name(exec, ".!tools", "");
		if (read_files(exec, error))
			return true;
	}
	jtree_release(&exec->doc);
	return false;
}

bool
libre_exec_parse(struct libre_exec *exec, const char *body, size_t len,
    struct api_error *error)
{
	struct jtree_error fault;
	struct jtree doc;

	return jtree_parse(&doc, body, len, &fault) ?
	    libre_exec_read(exec, doc.root, error) :
	    api_error_set(error, 400, "The body is not valid JSON");
}

/* ---- answers ---- */

static json_t *
pack_text(const char *text)
{
	return text == NULL ? NULL : jtext_pack(text, strlen(text));
}

json_t *
libre_pack_error(const char *error, const char *details)
{
	return json_pack("{s:o,s:o*}", "error", pack_text(error), "details",
	    pack_text(details));
}

void
libre_stream_add(struct buf *stream, const void *data, size_t len)
{
	size_t left = stream->max - stream->len;

	buf_add(stream, data, len < left ? len : left);
	stream->overflow = stream->overflow || len > left;
}

/* A line of ours after what the program has written. */
static void __attribute__((format(printf, 2, 3)))
libre_add_line(struct buf *text, const char *fmt, ...)
{
	va_list ap;

	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_addc(text, '\n');
	buf_adds(text, "[sandbox] ");
	va_start(ap, fmt);
	buf_addv(text, fmt, ap);
	va_end(ap);
	buf_addc(text, '\n');
}

static bool
is_why(const struct run_file *file, const char *why)
{
	return file->why != NULL && strcmp(file->why, why) == 0;
}

/* Add a line for each file that does not come back; one that the run has
 * removed is no such file. */
static void
libre_add_left_out(struct buf *text, const struct run_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct run_file *file = &files->items[i];

		if (is_why(file, LIBRE_MISSING))
			libre_add_line(text,
			    "This input is not kept any more: %s", file->path);
		else if (file->why != NULL && !is_why(file, RUN_FILE_REMOVED))
			libre_add_line(text,
			    "This file does not come back, %s: %s", file->why,
			    file->path);
	}
}

/* "SIGSEGV" */
static json_t *
pack_signal(int64_t number)
{
	const char *name = sigabbrev_np((int)number);

	return json_sprintf("SIG%s", name == NULL ? "?" : name);
}

/* Standard error, and below it the lines of ours. */
static json_t *
pack_errors(const struct libre_outcome *o)
{
	auto_buf struct buf text = BUF_INIT(ERRORS_MAX);
	const struct cell_result *cell = o->cell;

	buf_add(&text, buf_str(&o->err), o->err.len);
	if (o->err.overflow)
		libre_add_line(&text,
		    "stderr length exceeded: cut after %zu bytes", o->err.max);
	if (o->out.overflow)
		libre_add_line(&text,
		    "stdout length exceeded: cut after %zu bytes", o->out.max);
	if (cell->reason == REASON_TIME)
		libre_add_line(&text, "Time limit exceeded: ended after %.3g s",
		    (double)o->timeout_ms / 1000);
	if (cell->reason == REASON_MEMORY)
		libre_add_line(&text, "Out of memory: the program was ended");
	if (cell->reason == REASON_SIGNAL) {
		json_auto_t *name = pack_signal(cell->signal);

		libre_add_line(&text, "The program was ended by %s",
		    json_string_value(name));
	}
	libre_add_left_out(&text, o->files);
	if (cell->cut)
		libre_add_line(&text, "There are more files than these");
	if (o->note != NULL)
		libre_add_line(&text, "%s", o->note);
	return jtext_pack(buf_str(&text), text.len);
}

static json_t *
pack_stream(const struct buf *text)
{
	return jtext_pack(buf_str(text), text->len);
}

static json_t *
pack_file(const struct libre_outcome *o, const struct run_file *file)
{
	const struct libre_file *was = file->was;
	char id[LIBRE_ID_LEN + 1] = "";

	if (file->unchanged)
		return json_pack("{s:s,s:o,s:s,s:b}", "id", was->id, "name",
		    pack_text(file->path), "storage_session_id", was->session,
		    "inherited", 1);
	if (file->id != NULL)
		libre_id_of_file(id, file->id);
	return json_pack("{s:s,s:o,s:s,s:o*}", "id", id, "name",
	    pack_text(file->path), "storage_session_id", o->session,
	    "modified_from",
	    was == NULL ? NULL :
			  json_pack("{s:s,s:s}", "id", was->id,
			      "storage_session_id", was->session));
}

/* Inputs come first: the client keeps the order, in which the last one
 * counts. */
static json_t *
pack_files(const struct libre_outcome *o)
{
	json_t *files = json_array();

	for (int inherited = 1; inherited >= 0; inherited--)
		for (size_t i = 0; i < o->files->count; i++) {
			const struct run_file *file = &o->files->items[i];

			if (file->why == NULL &&
			    file->unchanged == (inherited == 1))
				(void)json_array_append_new(files,
				    pack_file(o, file));
		}
	return files;
}

/* The names of inputs that the run has removed; NULL: none. */
static json_t *
pack_deleted(const struct run_files *files)
{
	json_t *deleted = NULL;

	for (size_t i = 0; i < files->count; i++) {
		if (!is_why(&files->items[i], RUN_FILE_REMOVED))
			continue;
		if (deleted == NULL)
			deleted = json_array();
		(void)json_array_append_new(deleted,
		    pack_text(files->items[i].path));
	}
	return deleted;
}

/* The count of files that the store did not take; NULL: none. */
static json_t *
pack_delivery(const struct run_files *files)
{
	json_int_t kept = 0;
	json_int_t failed = 0;

	for (size_t i = 0; i < files->count; i++) {
		failed += files->items[i].refused;
		kept += files->items[i].why == NULL &&
		    !files->items[i].unchanged;
	}
	return failed == 0 ?
	    NULL :
	    json_pack("{s:s,s:s,s:I,s:I,s:I}", "code",
		"artifact_delivery_failed", "status",
		kept > 0 ? "partial" : "failed", "attempted", kept + failed,
		"delivered", kept, "failed", failed);
}

json_t *
libre_pack_outcome(const struct libre_outcome *o)
{
	static const char *const messages[] = {
		[REASON_TIME] = "Time limit exceeded",
		[REASON_MEMORY] = "Out of memory",
		[REASON_ERROR] = NULL,
	};
	const struct cell_result *cell = o->cell;
	bool exited = cell->reason == REASON_EXIT;
	const char *status = cell->reason == REASON_TIME ? "TO" : "SG";

	return json_pack("{s:s,s:o,s:o,s:o,s:o*,s:o*,s:s*,s:s*,s:o,s:o,s:s?,"
			 "s:s?,s:I}",
	    "session_id", o->session, "stdout", pack_stream(&o->out), "stderr",
	    pack_errors(o), "files", pack_files(o), "artifact_delivery",
	    pack_delivery(o->files), "deleted_files", pack_deleted(o->files),
	    "runtime_session_id", o->runtime, "runtime_status",
	    o->runtime == NULL ? NULL :
		o->runtime_new ? "new" :
				 "reused",
	    "code", exited ? json_integer(cell->status) : json_null(), "signal",
	    exited ? json_null() :
		     pack_signal(cell->reason == REASON_SIGNAL ? cell->signal :
								 SIGKILL),
	    "message", messages[cell->reason], "status",
	    exited || cell->reason == REASON_ERROR ? NULL : status, "wall_time",
	    (json_int_t)o->wall_ms);
}

/* ---- a program that calls tools ---- */

json_t *
libre_find_error(const struct libre_outcome *o)
{
	const struct cell_result *cell = o->cell;

	if (o->out.overflow)
		return json_string("stdout length exceeded");
	if (o->err.overflow)
		return json_string("stderr length exceeded");
	if (cell->reason == REASON_TIME)
		return json_string("Time limit exceeded");
	if (cell->reason == REASON_MEMORY)
		return json_string("Out of memory");
	if (cell->reason != REASON_EXIT)
		return json_string(LIBRE_FAILED);
	return cell->status == 0 ?
	    NULL :
	    json_sprintf("Sandbox exited with code %" PRId64, cell->status);
}

json_t *
libre_pack_end(const struct libre_outcome *o, json_t *error)
{
	bool good = error == NULL;

	return json_pack("{s:s,s:o*,s:s,s:o,s:o,s:o*,s:o*,s:o*}", "status",
	    good ? "completed" : "error", "error", error, "session_id",
	    o->session, "stdout", pack_stream(&o->out), "stderr",
	    pack_errors(o), "files", good ? pack_files(o) : NULL,
	    "artifact_delivery", good ? pack_delivery(o->files) : NULL,
	    "deleted_files", good ? pack_deleted(o->files) : NULL);
}

json_t *
libre_pack_calls(const struct libre_outcome *o, json_t *calls,
    const char *token)
{
	return json_pack("{s:s,s:s,s:s,s:O,s:o*,s:o*}", "status",
	    "tool_call_required", "session_id", o->session,
	    "continuation_token", token, "tool_calls", calls, "partial_stdout",
	    o->out.len == 0 ? NULL : pack_stream(&o->out), "partial_stderr",
	    o->err.len == 0 ? NULL : pack_stream(&o->err));
}

/* ---- files ---- */

/* "2026-08-07T12:00:00.000Z" */
static json_t *
pack_time(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm = { 0 };
	char text[40] = "";

	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%03dZ", text, (int)(ms % 1000));
}

/* Its name is "S/F.csv": clients take the id from before the first dot. */
json_t *
libre_pack_stored(const char *session, const char *uuid, const char *name,
    int64_t size, int64_t uploaded_ms, bool read_only, enum libre_detail detail)
{
	const char *type = media_of_name(name);
	bool full = detail == LIBRE_FULL;
	bool object = detail == LIBRE_OBJECT;
	char id[LIBRE_ID_LEN + 1];
	json_t *path;

	libre_id_of_file(id, uuid);
	path = json_sprintf("%s/%s%s", session, id, libre_name_extension(name));
	if (detail == LIBRE_SIMPLE)
		return path;
	return json_pack("{s:o,s:o*,s:I,s:o,s:s,s:o*,s:s*,s:o*}", "name", path,
	    "originalFilename", object ? pack_text(name) : NULL, "size",
	    (json_int_t)size, "lastModified", pack_time(uploaded_ms), "etag",
	    id, "metadata",
	    full ? json_pack("{s:s,s:o}", "content-type", type,
		       "original-filename", pack_text(name)) :
		   NULL,
	    "contentType", full || object ? type : NULL, "readOnly",
	    object ? json_boolean(read_only) : NULL);
}
