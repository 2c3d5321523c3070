#include "execute_request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../pytext/pyutf8.h"
#include "stage.h"

#define TIMEOUT_DEFAULT_MS 2000
#define BASH_TIMEOUT_DEFAULT_MS 30000
#define TTL_DEFAULT 900
#define TTL_MAX 86400

/* ---- the fields of a model ---- */

/* A member of the body, or of an item in it. */
struct field {
	const struct pyvalue *object;
	struct detail_place place;
	struct detail *d;
};

static const struct pyvalue *
field_value(const struct field *f, const char *name)
{
	return pyvalue_get(f->object, name);
}

/* `of` is f with the member's name in it. */
static void
complain(const struct field *f, const char *name, const char *type,
    const char *message, const struct pyvalue *input, const char *bound_name,
    int64_t bound)
{
	struct detail_place place = f->place;

	if (place.member == NULL)
		place.member = name;
	else
		place.inner = name;
	detail_add(f->d, type, &place, message, input, bound_name, bound);
}

static struct execute_text
take_text(const struct field *f, const char *name, bool required)
{
	const struct pyvalue *value = field_value(f, name);
	struct execute_text none = { NULL, 0 };

	if (value == NULL && required)
		complain(f, name, "missing", "Field required", f->object, NULL,
		    0);
	if (value == NULL || (value->type == PYVALUE_NULL && !required))
		return none;
	if (value->type != PYVALUE_STRING) {
		complain(f, name, "string_type",
		    "Input should be a valid string", value, NULL, 0);
		return none;
	}
	if (pyutf8_has_surrogate(value->u.text, value->count)) {
		complain(f, name, "string_unicode",
		    "Input should be a valid string, unable to parse raw data "
		    "as a unicode string",
		    value, NULL, 0);
		return none;
	}
	return (struct execute_text){ value->u.text, value->count };
}

/* max 0: none. */
static int64_t
take_int(const struct field *f, const char *name, int64_t standard, int64_t max)
{
	const struct pyvalue *value = field_value(f, name);
	int64_t number;

	if (value == NULL)
		return standard;
	if (value->type == PYVALUE_BIG)
		number = value->u.text[0] == '-' ? INT64_MIN : INT64_MAX;
	else
		number = value->u.integer;
	if (value->type != PYVALUE_INT && value->type != PYVALUE_BIG)
		complain(f, name, "int_type", "Input should be a valid integer",
		    value, NULL, 0);
	else if (number < 1)
		complain(f, name, "greater_than_equal",
		    "Input should be greater than or equal to 1", value, "ge",
		    1);
	else if (max > 0 && number > max)
		complain(f, name, "less_than_equal",
		    "Input should be less than or equal to 86400", value, "le",
		    max);
	return number;
}

static bool
parse_bool(const char *text, size_t len, bool *truth)
{
	static const char *const words[] = { "0", "1", "f", "t", "n", "y", "no",
		"yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len &&
		    strncasecmp(words[i], text, len) == 0) {
			*truth = i % 2 == 1;
			return true;
		}
	return false;
}

static bool
take_bool(const struct field *f, const char *name, bool standard)
{
	const struct pyvalue *value = field_value(f, name);
	bool truth = standard;

	if (value == NULL)
		return standard;
	if (value->type == PYVALUE_BOOL)
		return value->u.truth;
	if (value->type == PYVALUE_INT && (value->u.integer | 1) == 1)
		return value->u.integer == 1;
	if (value->type == PYVALUE_FLOAT &&
	    (value->u.real == 0 || value->u.real == 1))
		return value->u.real == 1;
	if (value->type == PYVALUE_STRING &&
	    parse_bool(value->u.text, value->count, &truth))
		return truth;
	if (value->type == PYVALUE_STRING || value->type == PYVALUE_INT)
		complain(f, name, "bool_parsing",
		    "Input should be a valid boolean, unable to interpret "
		    "input",
		    value, NULL, 0);
	else
		complain(f, name, "bool_type",
		    "Input should be a valid boolean", value, NULL, 0);
	return standard;
}

static void
take_file(const struct field *f, size_t index, const struct pyvalue *item,
    struct execute_file *file)
{
	struct field inner = { .object = item, .place = f->place, .d = f->d };

	inner.place.member = "files";
	inner.place.indexed = true;
	inner.place.index = index;
	if (item->type != PYVALUE_OBJECT) {
		detail_add(f->d, "model_attributes_type", &inner.place,
		    "Input should be a valid dictionary or object to extract "
		    "fields from",
		    item, NULL, 0);
		return;
	}
	file->path = take_text(&inner, "path", true);
	file->id = take_text(&inner, "file_id", true);
}

static void
take_files(const struct field *f, struct execute_files *files)
{
	const struct pyvalue *value = field_value(f, "files");

	if (value == NULL)
		return;
	if (value->type != PYVALUE_ARRAY) {
		complain(f, "files", "list_type",
		    "Input should be a valid list", value, NULL, 0);
		return;
	}
	files->items = xcalloc(value->count, sizeof(*files->items));
	files->count = value->count;
	for (size_t i = 0; i < value->count; i++)
		take_file(f, i, &value->u.items[i], &files->items[i]);
}

static void
files_release(struct execute_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->items[i].staged);
	free(files->items);
}

/* ---- the models ---- */

static bool
check_timeout(int64_t timeout_ms, int64_t max_ms, struct detail *d)
{
	return timeout_ms <= max_ms ||
	    detail_text(d, 422, "timeout_ms exceeds maximum of %lld ms",
		(long long)max_ms);
}

/* A field of the body itself. */
static struct field
field_of(const struct pyjson *doc, struct detail *d)
{
	return (struct field){ .object = &doc->root, .d = d };
}

bool
execute_parse(struct execute_request *req, int64_t timeout_max_ms,
    const char *content_type, const char *body, size_t len, struct detail *d)
{
	struct field f;

	memset(req, 0, sizeof(*req));
	if (!detail_parse(&req->doc, content_type, body, len, d))
		return false;
	f = field_of(&req->doc, d);
	detail_begin(d);
	req->code = take_text(&f, "code", true);
	req->input = take_text(&f, "stdin", false);
	req->timeout_ms = take_int(&f, "timeout_ms", TIMEOUT_DEFAULT_MS, 0);
	req->echo = take_bool(&f, "last_line_interactive", true);
	take_files(&f, &req->files);
	if (detail_end(d) && check_timeout(req->timeout_ms, timeout_max_ms, d))
		return true;
	execute_release(req);
	return false;
}

void
execute_release(struct execute_request *req)
{
	files_release(&req->files);
	pyjson_release(&req->doc);
	memset(req, 0, sizeof(*req));
}

bool
session_parse(struct session_request *req, const char *content_type,
    const char *body, size_t len, struct detail *d)
{
	struct field f;

	memset(req, 0, sizeof(*req));
	if (!detail_parse(&req->doc, content_type, body, len, d))
		return false;
	f = field_of(&req->doc, d);
	detail_begin(d);
	take_files(&f, &req->files);
	req->ttl_seconds = take_int(&f, "ttl_seconds", TTL_DEFAULT, TTL_MAX);
	if (detail_end(d))
		return true;
	session_release(req);
	return false;
}

void
session_release(struct session_request *req)
{
	files_release(&req->files);
	pyjson_release(&req->doc);
	memset(req, 0, sizeof(*req));
}

bool
bash_parse(struct bash_request *req, int64_t timeout_max_ms,
    const char *content_type, const char *body, size_t len, struct detail *d)
{
	struct field f;

	memset(req, 0, sizeof(*req));
	if (!detail_parse(&req->doc, content_type, body, len, d))
		return false;
	f = field_of(&req->doc, d);
	detail_begin(d);
	req->command = take_text(&f, "cmd", true);
	req->timeout_ms = take_int(&f, "timeout_ms", BASH_TIMEOUT_DEFAULT_MS,
	    0);
	if (detail_end(d) &&
	    check_timeout(req->timeout_ms, timeout_max_ms, d)) {
		if (req->command.text != NULL &&
		    strlen(req->command.text) == req->command.len)
			return true;
		(void)detail_text(d, 422,
		    "cmd must not contain a NUL character.");
	}
	bash_release(req);
	return false;
}

void
bash_release(struct bash_request *req)
{
	pyjson_release(&req->doc);
	memset(req, 0, sizeof(*req));
}

/* ---- files ---- */

bool
execute_refuse_file(const struct execute_file *file, struct detail *d)
{
	auto_buf struct buf text = BUF_INIT(DETAIL_MAX);

	buf_adds(&text, "File with ID '");
	buf_add(&text, file->id.text, file->id.len);
	buf_adds(&text, "' not found for path '");
	buf_add(&text, file->path.text, file->path.len);
	buf_adds(&text, "'.");
	return detail_bytes(d, 404, buf_str(&text), text.len);
}

/* The path without empty and "." parts; NULL, and why, when it may not be. */
static char *
normalise(const struct execute_text *path, const char **message)
{
	const char *s = path->text;
	char *out = xmalloc(path->len + 1);
	size_t n = 0;

	*message = path->len > 0 && s[0] == '/' ?
	    "File paths must be relative." :
	    NULL;
	for (size_t i = 0; i < path->len && *message == NULL;) {
		const char *slash = memchr(s + i, '/', path->len - i);
		size_t part = (slash == NULL ? path->len :
					       (size_t)(slash - s)) -
		    i;

		if (part == 2 && memcmp(s + i, "..", 2) == 0)
			*message = "File paths must not contain '..'.";
		if (part > 1 || (part == 1 && s[i] != '.')) {
			if (n > 0)
				out[n++] = '/';
			memcpy(out + n, s + i, part);
			n += part;
		}
		i += part + 1;
	}
	out[n] = '\0';
	if (*message == NULL && strlen(out) != n)
		*message = "File paths must not contain a NUL character.";
	if (*message == NULL)
		return out;
	free(out);
	return NULL;
}

bool
execute_stage(struct execute_files *files, bool main, const char **message)
{
	static const char *const messages[] = {
		[STAGE_FINE] = NULL,
		[STAGE_EMPTY] = "File path must not be empty.",
		[STAGE_LONG] = "File path is too long.",
		[STAGE_FULL] = "There are too many files.",
		[STAGE_IS_FOLDER] = "File path is the folder of another file.",
		[STAGE_PARENT_IS_FILE] = "File path lies below another file.",
		[STAGE_ABOVE_IS_FILE] = "File path lies below another file.",
	};
	struct stage stage;

	*message = NULL;
	stage_init(&stage);
	for (size_t i = 0; i < files->count && *message == NULL; i++) {
		struct execute_file *file = &files->items[i];

		free(file->staged);
		file->staged = normalise(&file->path, message);
		if (file->staged == NULL)
			break;
		if (main && strcmp(file->staged, "__main__.py") == 0)
			*message = "File path '__main__.py' is reserved for "
				   "the execution entrypoint.";
		else
			*message = messages[stage_add(&stage, file->staged)];
	}
	stage_release(&stage);
	return *message == NULL;
}
