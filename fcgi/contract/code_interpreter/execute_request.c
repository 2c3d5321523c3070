/* SPDX-License-Identifier: MIT */
#include "contract/code_interpreter/execute_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "contract/outcome.h"
#include "contract/stage.h"
#include "contract/jtext.h"

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/cell.h"

#define DETAIL_MAX ((size_t)1 << 20) /* bytes of a refusal */
#define INPUT_MAX 65536	 /* bytes of a value that a refusal repeats */
#define TEXT_SHOWN 16000 /* code points of a path or an id */
#define BAD_BODY "There was an error parsing the body"
#define TTL_MAX 86400

/* ---- errors ---- */

bool
detail_bytes(struct detail *d, int status, const char *text, size_t len)
{
	d->status = status;
	buf_init(&d->body, DETAIL_MAX);
	jtext_addf(&d->body, JTEXT_UTF8, "{\"detail\":\"%.*s\"}", (int)len,
	    text);
	return false;
}

/* Refuse with a text.  Always false. */
static bool __attribute__((format(printf, 3, 4)))
detail_text(struct detail *d, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(65536);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	return detail_bytes(d, status, buf_str(&text), text.len);
}

/* Refuse a body with 422 and a list of one error: its type, its place, what is
 * wrong, and what was sent; input NULL, or too long to be repeated: null. */
static bool
detail_error(struct detail *d, const char *type,
    const struct field_place *place, const char *text, const json_t *input)
{
	auto_buf struct buf message = BUF_INIT(1024);
	auto_buf struct buf sent = BUF_INIT(INPUT_MAX);
	json_t *loc = json_pack("[s,s*]", "body", place->member);
	json_auto_t *answer = NULL;

	if (place->indexed)
		(void)json_array_append_new(loc,
		    json_integer((json_int_t)place->index));
	if (place->inner != NULL)
		(void)json_array_append_new(loc, json_string(place->inner));
	field_place_add(&message, place);
	buf_addf(&message, " %s", text);
	if (input != NULL)
		jtext_add(&sent, input, JSON_COMPACT);
	answer = json_pack("{s:[{s:s,s:o,s:o,s:o?}]}", "detail", "type", type,
	    "loc", loc, "msg", jtext_pack(buf_str(&message), message.len),
	    "input", sent.overflow ? NULL : json_deep_copy(input));
	d->status = 422;
	buf_init(&d->body, DETAIL_MAX);
	jtext_add(&d->body, answer, JSON_COMPACT);
	return false;
}

static bool
detail_field(struct detail *d, const struct field_error *error)
{
	static const char *const types[] = {
		[FIELD_ANY] = "any_type",
		[FIELD_TEXT] = "string_type",
		[FIELD_WORD] = "string_type",
		[FIELD_INT] = "int_type",
		[FIELD_WHOLE] = "int_type",
		[FIELD_NUMBER] = "float_type",
		[FIELD_BOOL] = "bool_type",
		[FIELD_LIST] = "list_type",
		[FIELD_OBJECT] = "model_attributes_type",
	};

	return detail_error(d,
	    error->fault == FIELD_MISSING   ? "missing" :
		error->fault == FIELD_VALUE ? "value_error" :
					      types[error->kind],
	    &error->place, error->text, error->value);
}

/* ---- the body of a request ---- */

/* Parse a body.  A body that is empty, of another type or no JSON has a refusal
 * of its own. */
static bool
execute_parse_json(struct jtree *doc, const char *content_type,
    const char *body, size_t len, struct detail *d)
{
	static const struct field_place whole = { .member = NULL };
	auto_buf struct buf why = BUF_INIT(1024);
	struct jtree_error error;

	if (len == 0)
		return detail_error(d, "missing", &whole, "is empty", NULL);
	if (!fields_is_json(content_type))
		return utf8_valid(body, len) ?
		    detail_error(d, "model_attributes_type", &whole,
			"must be JSON, with the Content-Type application/json",
			NULL) :
		    detail_text(d, 400, BAD_BODY);
	if (jtree_parse(doc, body, len, &error))
		return true;
	buf_addf(&why, "is no JSON: %s", error.text);
	return error.is_syntax ?
	    detail_error(d, "json_invalid", &whole, buf_str(&why), NULL) :
	    detail_text(d, 400, BAD_BODY ": %s", error.text);
}

/* ---- the models ---- */

static const struct field file_rows[] = {
	{ "path", FIELD_TEXT, offsetof(struct execute_file, path),
	    .required = true },
	{ "file_id", FIELD_TEXT, offsetof(struct execute_file, id),
	    .required = true },
	{ .name = NULL },
};

#define AT(member) offsetof(struct execute_request, member)
#define TIMEOUT(ms) \
	{ \
		"timeout_ms", FIELD_INT, AT(timeout_ms), .standard = (ms), \
							 .min = 1 \
	}
#define FILES \
	{ \
		"files", FIELD_LIST, AT(files), \
		    .items = file_rows, .size = sizeof(struct execute_file) \
	}

static const struct field models[][6] = {
	[EXECUTE_CODE] = {
		{ "code", FIELD_TEXT, AT(code), .required = true },
		{ "stdin", FIELD_TEXT, AT(input), .nullable = true },
		TIMEOUT(2000),
		{ "last_line_interactive", FIELD_BOOL, AT(echo),
		    .standard = 1 },
		FILES,
	},
	[EXECUTE_SESSION] = {
		FILES,
		{ "ttl_seconds", FIELD_INT, AT(ttl_seconds), .standard = 900,
		    .min = 1, .max = TTL_MAX },
	},
	[EXECUTE_BASH] = {
		{ "cmd", FIELD_TEXT, AT(code), .required = true },
		TIMEOUT(30000),
	},
};

/* Check what the tables cannot. */
static bool
execute_check_rest(const struct execute_request *req, enum execute_route route,
    struct detail *d)
{
	if (req->timeout_ms > OUTCOME_TIMEOUT_MAX_MS)
		return detail_text(d, 422,
		    "timeout_ms exceeds maximum of %d ms",
		    OUTCOME_TIMEOUT_MAX_MS);
	if (route == EXECUTE_BASH && strlen(req->code.data) != req->code.len)
		return detail_text(d, 422,
		    "cmd must not contain a NUL character.");
	return true;
}

bool
execute_parse(struct execute_request *req, enum execute_route route,
    const char *content_type, const char *body, size_t len, struct detail *d)
{
	struct field_error error;

	memset(req, 0, sizeof(*req));
	if (!execute_parse_json(&req->doc, content_type, body, len, d))
		return false;
	if (fields_read(&req->doc, models[route], req->doc.root, req, &error) ?
		execute_check_rest(req, route, d) :
		detail_field(d, &error))
		return true;
	jtree_release(&req->doc);
	return false;
}

/* ---- files ---- */

bool
execute_refuse_file(const struct execute_file *file, struct detail *d)
{
	const struct cell_bytes *id = &file->id;
	const struct cell_bytes *path = &file->path;
	auto_buf struct buf text = BUF_INIT(DETAIL_MAX);

	buf_adds(&text, "File with ID '");
	buf_add(&text, id->data, text_prefix(id->data, id->len, TEXT_SHOWN));
	buf_adds(&text, "' not found for path '");
	buf_add(&text, path->data,
	    text_prefix(path->data, path->len, TEXT_SHOWN));
	buf_adds(&text, "'.");
	return detail_bytes(d, 404, buf_str(&text), text.len);
}

/* Make the path to write to.  NULL, or why it may not be. */
static const char *
execute_stage_file(struct stage *stage, struct execute_request *req,
    const struct cell_bytes *path, struct cell_input *input)
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
	char *out = jtree_array(&req->doc, path->len + 2, 1);
	enum stage_up up;
	size_t n = stage_resolve(path->data, path->len, out, 0, &up);

	input->path = out;
	if (path->len > 0 && path->data[0] == '/')
		return "File paths must be relative.";
	if (up != STAGE_DOWN)
		return "File paths must not contain '..'.";
	if (strlen(out) != n)
		return "File paths must not contain a NUL character.";
	if (req->code.data != NULL && strcmp(out, "__main__.py") == 0)
		return "File path '__main__.py' is reserved for the execution "
		       "entrypoint.";
	return messages[stage_add(stage, out)];
}

const char *
execute_stage(struct execute_request *req, struct cell_input *inputs)
{
	auto_stage struct stage stage = { .count = 0 };
	const struct execute_file *files = req->files.items;
	const char *message = NULL;

	for (size_t i = 0; i < req->files.count && message == NULL; i++)
		message = execute_stage_file(&stage, req, &files[i].path,
		    &inputs[i]);
	return message;
}

/* ---- a file that is uploaded ---- */

bool
upload_begin(struct upload *up)
{
	up->into = strcmp(buf_str(&up->form.name), "file") == 0;
	if (!up->into)
		return false;
	up->have = up->form.is_file;
	up->size = 0;
	buf_reset(&up->name);
	buf_adds(&up->name,
	    up->form.filename.len > 0 ? buf_str(&up->form.filename) :
					"unnamed");
	return up->have;
}

bool
upload_count(struct upload *up)
{
	if (!up->into || !up->have)
		return false;
	up->size += (int64_t)up->form.data_len;
	return up->size <= up->max;
}

bool
upload_open(struct upload *up, const char *content_type, int64_t max,
    struct detail *d)
{
	*up = (struct upload){ .max = max,
		.name = BUF_INIT(2 * MULTIPART_HEAD_MAX) };
	return multipart_open(&up->form, content_type) ||
	    detail_text(d, 400, MULTIPART_MISSING_BOUNDARY);
}

void
upload_release(struct upload *up)
{
	multipart_release(&up->form);
	buf_release(&up->name);
}

bool
upload_end(struct upload *up, struct detail *d)
{
	static const struct field_place place = { .member = "file" };
	const char *error = multipart_end(&up->form);

	if (error != NULL)
		return detail_text(d, 400, "%s", error);
	if (!up->have)
		return detail_error(d, "missing", &place,
		    "is missing: send a form with a file of that name", NULL);
	if (up->size > up->max)
		return detail_text(d, 413,
		    "File size exceeds maximum of %lld MB",
		    (long long)(up->max >> 20));
	return true;
}
