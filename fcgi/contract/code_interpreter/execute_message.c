/* SPDX-License-Identifier: MIT */
#include "contract/code_interpreter/execute_message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

#define DETAIL_MAX ((size_t)1 << 20) /* bytes of a refusal */
#define INPUT_MAX 65536	 /* bytes of a value that a refusal repeats */
#define TEXT_SHOWN 16000 /* code points of a path or an id */
#define BAD_BODY "There was an error parsing the body"
#define TTL_MAX 86400
#define MARK "\\n...[truncated]" /* in a JSON string */
#define CAPTURE_LAST 32		 /* bytes that it takes the place of */
/* A text as it was sent, up to a NUL, for "%.*s". */
#define SHOWN(text) \
	(int)text_prefix((text)->data, (text)->len, TEXT_SHOWN), (text)->data

/* ---- errors ---- */

bool
detail_refuse(struct detail *d, int status, const char *fmt, ...)
{
	auto_buf struct buf text = BUF_INIT(DETAIL_MAX);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&text, fmt, ap);
	va_end(ap);
	d->status = status;
	buf_init(&d->body, 2 * DETAIL_MAX);
	jtext_addf(&d->body, JTEXT_UTF8, "{\"detail\":\"%s\"}", buf_str(&text));
	return false;
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
		[JSON_STRING] = "string_type",
		[JSON_INTEGER] = "int_type",
		[JSON_TRUE] = "bool_type",
		[JSON_ARRAY] = "list_type",
		[JSON_OBJECT] = "model_attributes_type",
	};

	return detail_error(d,
	    error->fault == FIELD_MISSING   ? "missing" :
		error->fault == FIELD_VALUE ? "value_error" :
					      types[error->type],
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
		    detail_refuse(d, 400, BAD_BODY);
	if (jtree_parse(doc, body, len, &error))
		return true;
	buf_addf(&why, "is no JSON: %s", error.text);
	return error.is_syntax ?
	    detail_error(d, "json_invalid", &whole, buf_str(&why), NULL) :
	    detail_refuse(d, 400, BAD_BODY ": %s", error.text);
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
		return detail_refuse(d, 422,
		    "timeout_ms exceeds maximum of %d ms",
		    OUTCOME_TIMEOUT_MAX_MS);
	if (route == EXECUTE_BASH && strlen(req->code.data) != req->code.len)
		return detail_refuse(d, 422,
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
	return detail_refuse(d, 404,
	    "File with ID '%.*s' not found for path '%.*s'.", SHOWN(&file->id),
	    SHOWN(&file->path));
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
	    detail_refuse(d, 400, MULTIPART_MISSING_BOUNDARY);
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
		return detail_refuse(d, 400, "%s", error);
	if (!up->have)
		return detail_error(d, "missing", &place,
		    "is missing: send a form with a file of that name", NULL);
	if (up->size > up->max)
		return detail_refuse(d, 413,
		    "File size exceeds maximum of %lld MB",
		    (long long)(up->max >> 20));
	return true;
}

/* ---- answers ---- */

/* Count bytes against the bound; how many may stay.  More of them are dropped,
 * and `over` says so. */
static size_t
capture_count(struct capture *c, size_t len)
{
	c->over = c->over || len > c->left;
	len = len < c->left ? len : c->left;
	c->left -= len;
	return len;
}

void
capture_add(struct capture *c, const void *data, size_t len)
{
	buf_add(&c->text, data, capture_count(c, len));
}

/* Append a text, cut where there was more. */
static void
execute_add_capture(struct buf *out, const struct capture *c)
{
	size_t len = c->text.len;

	if (c->over)
		len -= len < CAPTURE_LAST ? len : CAPTURE_LAST;
	jtext_addf(out, JTEXT_UTF8, "\"%.*s%s\"", (int)len, buf_str(&c->text),
	    c->over ? MARK : "");
}

/* The files that were kept, or those that were left out. */
static json_t *
execute_pack_files(const struct run_files *files, bool kept)
{
	json_t *list = json_array();

	for (size_t i = 0; files != NULL && i < files->count; i++) {
		const struct run_file *file = &files->items[i];
		json_t *path = jtext_pack(file->path, strlen(file->path));

		if ((file->id != NULL) != kept)
			json_decref(path);
		else if (kept)
			(void)json_array_append_new(list,
			    json_pack("{s:o,s:s,s:s}", "path", path, "kind",
				"file", "file_id", file->id));
		else
			(void)json_array_append_new(list,
			    json_pack("{s:o,s:I,s:s}", "path", path,
				"size_bytes", (json_int_t)file->size, "why",
				file->why));
	}
	return list;
}

/* Append all members from exit_code on; flags: as of jtext_add(). */
static void
execute_add_end(struct buf *out, const struct execute_result *result,
    size_t flags)
{
	const struct cell_result *cell = result->cell;
	json_auto_t *extras = !result->extras ?
	    NULL :
	    json_pack("{s:I,s:I,s:s,s:o}", "cpu_ms",
		(json_int_t)(cell->cpu_us / 1000), "max_rss_bytes",
		(json_int_t)cell->max_rss, "reason", outcome_reason(cell),
		"left_out", execute_pack_files(result->files, false));
	json_auto_t *end = json_pack("{s:o,s:b,s:I,s:o*}", "exit_code",
	    outcome_pack_exit_code(cell), "timed_out",
	    cell->reason == REASON_TIME, "duration_ms",
	    (json_int_t)result->duration_ms, "files",
	    result->files == NULL ? NULL :
				    execute_pack_files(result->files, true));

	if (extras != NULL)
		(void)json_object_update(end, extras);
	jtext_add(out, end, JSON_COMPACT | flags);
}

void
execute_answer(struct buf *out, const struct execute_result *result)
{
	size_t brace;

	buf_adds(out, "{\"stdout\":");
	execute_add_capture(out, result->out);
	buf_adds(out, ",\"stderr\":");
	execute_add_capture(out, result->err);
	/* The brace of the others becomes a comma. */
	brace = out->len;
	execute_add_end(out, result, 0);
	if (out->len > brace)
		out->data[brace] = ',';
}

/* Append a time as seconds. */
static void
execute_add_seconds(struct buf *out, int64_t ms)
{
	buf_addf(out, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
}

void
execute_add_session(struct buf *out, const char *id, int64_t expires_ms)
{
	buf_addf(out, "{\"session_id\":\"%s\",\"expires_at\":", id);
	execute_add_seconds(out, expires_ms);
	buf_addc(out, '}');
}

void
execute_add_file(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms)
{
	jtext_addf(out, JTEXT_UTF8,
	    "{\"file_id\":\"%s\",\"filename\":\"%s\",\"size_bytes\":%" PRId64,
	    id, name, size);
	if (uploaded_ms >= 0) {
		buf_adds(out, ",\"upload_time\":");
		execute_add_seconds(out, uploaded_ms);
	}
	buf_addc(out, '}');
}

/* The bound counts bytes as they came.  A character may end in a later slice;
 * one that has no end becomes U+FFFD. */
void
sse_add_output(struct buf *out, struct capture *c, const void *data, size_t len)
{
	auto_buf struct buf text = BUF_INIT(3 * len + 8);

	if (data != NULL)
		utf8_decoder_add(&c->decoder, &text, data,
		    capture_count(c, len));
	else
		utf8_decoder_end(&c->decoder, &text);
	if (text.len > 0)
		jtext_addf(out, JTEXT_ASCII,
		    "event: output\n"
		    "data: {\"stream\":\"%s\",\"data\":\"%.*s\"}\n\n",
		    c->name, (int)text.len, buf_str(&text));
}

void
sse_add_result(struct buf *out, const struct execute_result *result)
{
	buf_adds(out, "event: result\ndata: ");
	execute_add_end(out, result, JSON_ENSURE_ASCII);
	buf_adds(out, "\n\n");
}

void
sse_add_error(struct buf *out, const char *text)
{
	jtext_addf(out, JTEXT_ASCII,
	    "event: error\ndata: {\"message\":\"%s\"}\n\n", text);
}
