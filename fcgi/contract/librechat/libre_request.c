/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pytext/pyutf8.h"

#include "base/buf.h"
#include "base/text.h"

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

/* ---- what is refused ---- */

/* A request that is read, and the place for its fault. */
struct reading {
	struct libre_exec *exec;
	int *status;
	struct buf *error;
};

/* Always false. */
static bool __attribute__((format(printf, 2, 3)))
refuse(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	*r->status = 400;
	buf_reset(r->error);
	va_start(ap, fmt);
	buf_addv(r->error, fmt, ap);
	va_end(ap);
	return false;
}

/* The same with the beginning of something of the client's. */
static bool
refuse_text(struct reading *r, const char *before, const char *text,
    const char *after)
{
	(void)refuse(r, "%s", before);
	buf_add(r->error, text, text_prefix(text, strlen(text), NAME_SHOWN));
	buf_adds(r->error, after);
	return false;
}

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

/* Whose it is: kind, resource_id and version, which may be a number. */
static bool
take_resource(struct reading *r, const struct pyvalue *item, size_t i,
    struct libre_resource *resource)
{
	const struct pyvalue *kind = pyvalue_get(item, "kind");
	const struct pyvalue *id = pyvalue_get(item, "resource_id");
	const struct pyvalue *version = pyvalue_get(item, "version");
	int64_t number;

	*resource = (struct libre_resource){ .id = "", .version = "" };
	if (!pyvalue_is_absent(kind) &&
	    (pyvalue_text(kind) == NULL ||
		!libre_kind_parse(pyvalue_text(kind), &resource->kind)))
		return refuse(r,
		    "files[%zu].kind must be one of: skill, agent, user", i);
	if (!pyvalue_is_absent(id) && pyvalue_text(id) != NULL)
		resource->id = pyvalue_text(id);
	if (version != NULL && pyvalue_integer(version, &number)) {
		char *text = pyjson_tree_array(&r->exec->doc, 24, 1);

		(void)snprintf(text, 24, "%lld", (long long)number);
		resource->version = text;
	} else if (pyvalue_text(version) != NULL) {
		resource->version = pyvalue_text(version);
	}
	if (strlen(resource->id) > LIBRE_RESOURCE_MAX ||
	    strlen(resource->version) > LIBRE_RESOURCE_MAX)
		return refuse(r, "files[%zu].resource_id is too long", i);
	if (resource->kind == LIBRE_SKILL && resource->version[0] == '\0')
		return refuse(r,
		    "files[%zu].version is required for kind: 'skill'", i);
	return true;
}

/* An id of a file or a session in our form; NULL: something else. */
static const char *
id_of(const struct pyvalue *value)
{
	const char *text = pyvalue_text(value);

	return text != NULL && libre_is_id(text, strlen(text)) ? text : NULL;
}

static bool
take_file(struct reading *r, const struct pyvalue *item, size_t i,
    struct libre_file *file)
{
	const struct pyvalue *name = pyvalue_get(item, "name");
	const struct pyvalue *session = pyvalue_get(item, "storage_session_id");
	const char *fault;

	if (item->type != PYVALUE_OBJECT)
		return refuse(r, "files[%zu] must be an object", i);
	if (name == NULL || name->type != PYVALUE_STRING)
		return refuse(r, "files[%zu].name must be a string", i);
	fault = pyvalue_text(name) == NULL && name->count > 0 ?
	    "contains invalid path characters" :
	    libre_name_fault(name->u.text, name->count);
	if (fault != NULL)
		return refuse(r, "files[%zu].name %s", i, fault);
	if (!take_resource(r, item, i, &file->resource))
		return false;
	if (pyvalue_is_absent(session)) /* an older name */
		session = pyvalue_get(item, "session_id");
	file->name = name->u.text;
	file->id = id_of(pyvalue_get(item, "id"));
	file->session = id_of(session);
	if (file->id != NULL && file->session != NULL)
		return true;
	(void)refuse(r, "%s", LIBRE_UNAUTHORIZED);
	*r->status = 403;
	return false;
}

/* ---- all files ---- */

static const struct libre_file *
find_name(const struct libre_exec *exec, const char *name)
{
	for (size_t i = 0; i < exec->file_count; i++)
		if (strcmp(exec->files[i].name, name) == 0)
			return &exec->files[i];
	return NULL;
}

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
take_files(struct reading *r, const struct pyvalue *list)
{
	struct libre_exec *exec = r->exec;

	if (pyvalue_is_absent(list))
		return true;
	if (list->type != PYVALUE_ARRAY)
		return refuse(r, "files must be an array");
	if (list->count > LIBRE_FILES_MAX)
		return refuse(r, "files must have at most %d items",
		    LIBRE_FILES_MAX);
	exec->files = pyjson_tree_array(&exec->doc, list->count,
	    sizeof(*exec->files));
	for (const struct pyvalue *item = list->u.parts.first; item != NULL;
	     item = item->next) {
		if (!take_file(r, item, exec->file_count,
			&exec->files[exec->file_count]))
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
	char *name = pyjson_tree_array(&exec->doc, 40, 1);

	(void)snprintf(name, 40, "%s__%s", begin, end);
	for (size_t i = 1; i <= exec->file_count; i++) {
		struct libre_file self = { .name = name };
		bool taken = find_name(exec, name) != NULL;

		for (size_t j = 0; j < exec->file_count && !taken; j++)
			taken = is_above(&self, &exec->files[j]);
		if (!taken)
			break;
		(void)snprintf(name, 40, "%s_%zu__%s", begin, i, end);
	}
	return name;
}

/* ---- the rest ---- */

static bool
take_args(struct reading *r, const struct pyvalue *list)
{
	struct libre_exec *exec = r->exec;
	size_t bytes = 0;
	size_t count = 0;

	exec->args = pyjson_tree_array(&exec->doc,
	    pyvalue_is_absent(list) || list->type != PYVALUE_ARRAY ?
		1 :
		list->count + 1,
	    sizeof(*exec->args));
	if (pyvalue_is_absent(list))
		return true;
	if (list->type != PYVALUE_ARRAY)
		return refuse(r, "args must be an array of strings");
	for (const struct pyvalue *item = list->u.parts.first; item != NULL;
	     item = item->next) {
		const char *text = pyvalue_text(item);

		if (text == NULL)
			return refuse(r, "args must be an array of strings");
		bytes += strlen(text) + 1;
		exec->args[count++] = text;
	}
	return (count <= LIBRE_ARGS_MAX && bytes <= LIBRE_ARGS_BYTES) ||
	    refuse(r, "args are too long");
}

static bool
take_lang(struct reading *r, const struct pyvalue *value)
{
	const char *lang = pyvalue_text(value);

	if (pyvalue_is_absent(value))
		return refuse(r, "Missing required field: lang");
	if (lang == NULL)
		return refuse(r, "lang must be a string");
	if (strcmp(lang, "py") == 0)
		r->exec->lang = LIBRE_PYTHON;
	else if (strcmp(lang, "bash") == 0)
		r->exec->lang = LIBRE_BASH;
	else
		return refuse_text(r, "Unsupported language: ", lang, "");
	return true;
}

static bool
take_code(struct reading *r, const struct pyvalue *value)
{
	struct libre_exec *exec = r->exec;

	if (pyvalue_is_absent(value))
		return refuse(r, "Missing required field: code");
	if (value->type != PYVALUE_STRING ||
	    pyutf8_has_surrogate(value->u.text, value->count))
		return refuse(r, "code must be a string");
	if (exec->lang == LIBRE_BASH && strlen(value->u.text) != value->count)
		return refuse(r, "code must not contain a NUL character");
	exec->code = value->u.text;
	exec->code_len = value->count;
	return true;
}

/* Whatever it is, it is a time that we have: other fields than ours may be
 * anything, and this one is no client's of today. */
static int64_t
timeout_of(const struct pyvalue *value)
{
	int64_t ms;

	if (value == NULL || !pyvalue_integer(value, &ms) || ms < 1)
		return LIBRE_TIMEOUT_MS;
	return ms < LIBRE_TIMEOUT_MAX_MS ? ms : LIBRE_TIMEOUT_MAX_MS;
}

/* An empty one is none. */
static bool
take_hint(struct reading *r, const struct pyvalue *value)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
	const char *text = pyvalue_text(value);

	if (pyvalue_is_absent(value))
		return true;
	if (value->type != PYVALUE_STRING)
		return refuse(r, "runtime_session_hint must be a string");
	if (value->count > LIBRE_HINT_MAX)
		return refuse(r,
		    "runtime_session_hint must be at most %d characters",
		    LIBRE_HINT_MAX);
	if (value->count > 0 &&
	    (text == NULL || text[strspn(text, set)] != '\0'))
		return refuse(r,
		    "runtime_session_hint may only contain letters, digits, "
		    "\".\", \"_\", \":\", and \"-\"");
	r->exec->hint = value->count > 0 ? text : NULL;
	return true;
}

bool
libre_exec_parse(struct libre_exec *exec, const char *body, size_t len,
    int *status, struct buf *error)
{
	struct reading r = { exec, status, error };
	const struct pyvalue *root;
	struct pyjson_error fault;

	memset(exec, 0, sizeof(*exec));
	if (!pyjson_parse(&exec->doc, body, len, PYJSON_BYTES, &fault))
		return refuse(&r, "The body is not valid JSON");
	root = &exec->doc.root;
	exec->timeout_ms = timeout_of(pyvalue_get(root, "timeout"));
	if ((root->type == PYVALUE_OBJECT ||
		refuse(&r, "The body must be a JSON object")) &&
	    take_lang(&r, pyvalue_get(root, "lang")) &&
	    take_code(&r, pyvalue_get(root, "code")) &&
	    take_hint(&r, pyvalue_get(root, "runtime_session_hint")) &&
	    take_args(&r, pyvalue_get(root, "args")) &&
	    take_files(&r, pyvalue_get(root, "files"))) {
		exec->entry = choose_name(exec, "__main", ".py");
		/* Files are told by name, and so many of them: these come
		 * before a program's own, which do not hide them. */
		exec->place = choose_name(exec, ".!tools", "");
		return true;
	}
	pyjson_release(&exec->doc);
	return false;
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
