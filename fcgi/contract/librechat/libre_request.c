/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contract/json.h"

#include "base/basics.h"
#include "base/text.h"
#include "protocol/cell.h"

#define PART_MAX 255
#define EXTENSION_MAX 12
#define NAME_SHOWN 200 /* code points of a client's text in an error */

/* ---- ids ---- */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* All bits of an id, or of a UUID, as one number. */
__extension__ typedef unsigned __int128 bits;

/* Places in a UUID of its version and of its variant, which takes two bits of a
 * digit.  Both are the same in all; the other bits are the file's. */
#define VERSION_AT 14
#define VARIANT_AT 19
#define FILE_BITS 122

static void
write_id(char id[LIBRE_ID_LEN + 1], bits number)
{
	for (size_t i = LIBRE_ID_LEN; i > 0; i--, number >>= 6)
		id[i - 1] = alphabet[number & 63];
	id[LIBRE_ID_LEN] = '\0';
}

void
libre_id_of_bytes(char id[LIBRE_ID_LEN + 1],
    const unsigned char bytes[LIBRE_ID_BYTES])
{
	bits number = 0;

	for (size_t i = 0; i < LIBRE_ID_BYTES; i++)
		number = number << 8 | bytes[i];
	write_id(id, number >> 2); /* 126 of its bits */
}

bool
libre_is_id(const char *id, size_t len)
{
	if (len != LIBRE_ID_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (id[i] == '\0' || strchr(alphabet, id[i]) == NULL)
			return false;
	return true;
}

void
libre_id_of_file(char id[LIBRE_ID_LEN + 1], const char *uuid)
{
	static const char hex[] = "0123456789abcdef";
	bits number = 0;

	for (size_t i = 0; i < LIBRE_UUID_LEN && uuid[i] != '\0'; i++) {
		const char *digit = strchr(hex, uuid[i]);

		if (digit == NULL || i == VERSION_AT)
			continue;
		number = i == VARIANT_AT ?
		    number << 2 | ((unsigned)(digit - hex) & 3) :
		    number << 4 | (unsigned)(digit - hex);
	}
	write_id(id, number);
}

bool
libre_id_to_file(char uuid[LIBRE_UUID_LEN + 1], const char *id, size_t len)
{
	bits number = 0;

	if (!libre_is_id(id, len))
		return false;
	for (size_t i = 0; i < LIBRE_ID_LEN; i++)
		number = number << 6 |
		    (unsigned)(strchr(alphabet, id[i]) - alphabet);
	(void)snprintf(uuid, LIBRE_UUID_LEN + 1,
	    "%08" PRIx64 "-%04x-4%03x-%04x-%012" PRIx64,
	    (uint64_t)(number >> 90) & 0xffffffff,
	    (unsigned)(number >> 74) & 0xffff, (unsigned)(number >> 62) & 0xfff,
	    ((unsigned)(number >> 48) & 0x3fff) | 0x8000,
	    (uint64_t)number & 0xffffffffffff);
	return number >> FILE_BITS == 0;
}

/* ---- names ---- */

/* Is it a name that may stand between two slashes? */
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

/* ---- errors ---- */

/* A request that is read, and the place for its fault. */
struct reading {
	struct libre_exec *exec;
	int *status;
	struct buf *error;
};

/* Always false. */
static bool __attribute__((format(printf, 2, 3)))
libre_refuse(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	*r->status = 400;
	buf_reset(r->error);
	va_start(ap, fmt);
	buf_addv(r->error, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- the tables ---- */

struct libre_item {
	struct cell_bytes name;
	struct cell_bytes kind;
	const json_t *id;
	const json_t *session;
	const json_t *old_session;
	const json_t *resource_id;
	const json_t *version;
};

#define ITEM(name, kind, member) \
	{ \
		name, kind, offsetof(struct libre_item, member), \
		    .nullable = true \
	}

static const struct field item_rows[] = {
	{ "name", FIELD_TEXT, offsetof(struct libre_item, name),
	    .required = true },
	ITEM("kind", FIELD_WORD, kind),
	ITEM("id", FIELD_ANY, id),
	ITEM("storage_session_id", FIELD_ANY, session),
	ITEM("session_id", FIELD_ANY, old_session),
	ITEM("resource_id", FIELD_ANY, resource_id),
	ITEM("version", FIELD_ANY, version),
	{ .name = NULL },
};

struct libre_body {
	struct cell_bytes lang;
	struct cell_bytes code;
	struct cell_bytes hint;
	struct field_list args;
	struct field_list files;
	const json_t *timeout;
};

#define AT(member) offsetof(struct libre_body, member)

static const struct field body_rows[] = {
	{ "lang", FIELD_WORD, AT(lang), .required = true, .nullable = true },
	{ "code", FIELD_TEXT, AT(code), .required = true, .nullable = true },
	{ "runtime_session_hint", FIELD_TEXT, AT(hint), .nullable = true,
	    .max = LIBRE_HINT_MAX },
	{ "args", FIELD_LIST, AT(args), .nullable = true,
	    .max = LIBRE_ARGS_MAX },
	{ "files", FIELD_LIST, AT(files), .nullable = true,
	    .max = LIBRE_FILES_MAX, .items = item_rows,
	    .size = sizeof(struct libre_item) },
	{ "timeout", FIELD_ANY, AT(timeout), .nullable = true },
	{ .name = NULL },
};

/* ---- one file ---- */

bool
libre_kind_parse(const char *text, enum libre_kind *kind)
{
	static const char *const kinds[] = {
		[LIBRE_USER] = "user",
		[LIBRE_AGENT] = "agent",
		[LIBRE_SKILL] = "skill",
	};

	*kind = LIBRE_USER;
	for (enum libre_kind i = LIBRE_USER; text != NULL && i <= LIBRE_SKILL;
	     i++) {
		if (strcmp(text, kinds[i]) == 0) {
			*kind = i;
			return true;
		}
	}
	return text == NULL;
}

/* Read whose a file is: kind, resource_id and version, which may be a
 * number. */
static bool
read_resource(struct reading *r, const struct libre_item *item, size_t i,
    struct libre_resource *resource)
{
	const char *id = jtree_text(item->resource_id);
	const char *version = jtree_text(item->version);

	if (json_is_integer(item->version)) {
		char *number = jtree_array(&r->exec->doc, 24, 1);

		(void)snprintf(number, 24, "%" JSON_INTEGER_FORMAT,
		    json_integer_value(item->version));
		version = number;
	}
	*resource = (struct libre_resource){ .id = id == NULL ? "" : id,
		.version = version == NULL ? "" : version };
	if (!libre_kind_parse(item->kind.data, &resource->kind))
		return libre_refuse(r,
		    "files[%zu].kind must be one of: skill, agent, user", i);
	if (strlen(resource->id) > LIBRE_RESOURCE_MAX ||
	    strlen(resource->version) > LIBRE_RESOURCE_MAX)
		return libre_refuse(r, "files[%zu].resource_id is too long", i);
	if (resource->kind == LIBRE_SKILL && resource->version[0] == '\0')
		return libre_refuse(r,
		    "files[%zu].version is required for kind: 'skill'", i);
	return true;
}

/* An id of a file or a session in our form; NULL: something else. */
static const char *
id_of(const json_t *value)
{
	const char *text = jtree_text(value);

	return text != NULL && libre_is_id(text, strlen(text)) ? text : NULL;
}

static bool
read_item(struct reading *r, const struct libre_item *item, size_t i,
    struct libre_file *file)
{
	const char *fault = libre_name_fault(item->name.data, item->name.len);

	if (fault != NULL)
		return libre_refuse(r, "files[%zu].name %s", i, fault);
	if (!read_resource(r, item, i, &file->resource))
		return false;
	file->name = item->name.data;
	file->id = id_of(item->id);
	/* The second name is an older one. */
	file->session = id_of(item->session != NULL ? item->session :
						      item->old_session);
	if (file->id != NULL && file->session != NULL)
		return true;
	(void)libre_refuse(r, "%s", LIBRE_UNAUTHORIZED);
	*r->status = 403;
	return false;
}

/* ---- all files ---- */

/* Is that the folder of another one's? */
static bool
is_above(const struct libre_file *folder, const struct libre_file *file)
{
	size_t len = strlen(folder->name);

	return strncmp(folder->name, file->name, len) == 0 &&
	    file->name[len] == '/';
}

/* Mark files that a later one replaces, as both cannot be there.  A refusal
 * instead would make a client's list fail for good. */
static void
replace_files(struct libre_exec *exec)
{
	for (size_t i = 0; i < exec->file_count; i++) {
		struct libre_file *file = &exec->files[i];

		for (size_t j = i + 1; j < exec->file_count; j++) {
			const struct libre_file *later = &exec->files[j];

			if (strcmp(file->name, later->name) == 0 ||
			    is_above(file, later) || is_above(later, file))
				file->replaced = true;
		}
	}
}

static bool
libre_read_files(struct reading *r, const struct field_list *list)
{
	struct libre_exec *exec = r->exec;
	const struct libre_item *items = list->items;

	exec->files = jtree_array(&exec->doc, list->count + 1,
	    sizeof(*exec->files));
	for (size_t i = 0; i < list->count; i++) {
		if (!read_item(r, &items[i], i, &exec->files[i]))
			return false;
		exec->file_count++;
	}
	replace_files(exec);
	return true;
}

/* A name that no file has, nor is a folder of one. */
static const char *
choose_name(struct libre_exec *exec, const char *begin, const char *end)
{
	char *name = jtree_array(&exec->doc, 40, 1);

	(void)snprintf(name, 40, "%s__%s", begin, end);
	for (size_t i = 1; i <= exec->file_count; i++) {
		struct libre_file self = { .name = name };
		bool taken = false;

		for (size_t j = 0; j < exec->file_count && !taken; j++)
			taken = strcmp(exec->files[j].name, name) == 0 ||
			    is_above(&self, &exec->files[j]);
		if (!taken)
			break;
		(void)snprintf(name, 40, "%s_%zu__%s", begin, i, end);
	}
	return name;
}

/* ---- the rest ---- */

static bool
libre_read_args(struct reading *r, const struct field_list *list)
{
	struct libre_exec *exec = r->exec;
	const struct cell_bytes *args = list->items;
	size_t bytes = 0;

	exec->args = jtree_array(&exec->doc, list->count + 1,
	    sizeof(*exec->args));
	for (size_t i = 0; i < list->count; i++) {
		if (strlen(args[i].data) != args[i].len)
			return libre_refuse(r,
			    "args[%zu] must be a text without NUL characters",
			    i);
		bytes += args[i].len + 1;
		exec->args[i] = args[i].data;
	}
	return bytes <= LIBRE_ARGS_BYTES ||
	    libre_refuse(r, "args must have at most %d bytes together",
		LIBRE_ARGS_BYTES);
}

static bool
read_lang(struct reading *r, const struct cell_bytes *lang)
{
	if (strcmp(lang->data, "py") == 0)
		r->exec->lang = LIBRE_PYTHON;
	else if (strcmp(lang->data, "bash") == 0)
		r->exec->lang = LIBRE_BASH;
	else
		return libre_refuse(r, "Unsupported language: %.*s",
		    (int)text_prefix(lang->data, lang->len, NAME_SHOWN),
		    lang->data);
	return true;
}

static bool
libre_read_code(struct reading *r, const struct cell_bytes *code)
{
	r->exec->code = code->data;
	r->exec->code_len = code->len;
	return r->exec->lang != LIBRE_BASH || strlen(code->data) == code->len ||
	    libre_refuse(r, "code must not contain a NUL character");
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

/* An empty hint is none. */
static bool
read_hint(struct reading *r, const struct cell_bytes *hint)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

	r->exec->hint = hint->len > 0 ? hint->data : NULL;
	return hint->len == 0 || strspn(hint->data, set) == hint->len ||
	    libre_refuse(r,
		"runtime_session_hint may only contain letters, digits, "
		"\".\", \"_\", \":\", and \"-\"");
}

bool
libre_exec_read(struct libre_exec *exec, json_t *root, int *status,
    struct buf *error)
{
	struct reading r = { exec, status, error };
	struct libre_body body = { .timeout = NULL };
	struct field_error wrong;

	*exec = (struct libre_exec){ .doc = { .root = root } };
	if (!fields_read(&exec->doc, body_rows, exec->doc.root, &body,
		&wrong)) {
		(void)libre_refuse(&r, "%s", "");
		field_error_add(error, &wrong);
	} else if (read_lang(&r, &body.lang) &&
	    libre_read_code(&r, &body.code) && read_hint(&r, &body.hint) &&
	    libre_read_args(&r, &body.args) &&
	    libre_read_files(&r, &body.files)) {
		exec->timeout_ms = timeout_of(body.timeout);
		exec->entry = choose_name(exec, "__main", ".py");
		/* Files are reported by name, and so many of them: these come
		 * before a program's own, which do not hide them. */
		exec->place = choose_name(exec, ".!tools", "");
		return true;
	}
	jtree_release(&exec->doc);
	return false;
}

bool
libre_exec_parse(struct libre_exec *exec, const char *text, size_t len,
    int *status, struct buf *error)
{
	struct reading r = { exec, status, error };
	struct jtree_error fault;
	struct jtree doc;

	return jtree_parse(&doc, text, len, &fault) ?
	    libre_exec_read(exec, doc.root, status, error) :
	    libre_refuse(&r, "The body is not valid JSON");
}

/* ---- a query ---- */

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
