/* SPDX-License-Identifier: MIT */
#include "contract/code_interpreter/execute_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "contract/outcome.h"
#include "contract/stage.h"
#include "pytext/pydump.h"
#include "pytext/pyutf8.h"

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/cell.h"

/* Bounds of a refusal: its bytes, and the faults of a list.  A list ends before
 * it is longer. */
#define DETAIL_MAX ((size_t)256 << 20)
#define DETAIL_COUNT_MAX 1000
#define BAD_BODY "There was an error parsing the body"
#define TTL_MAX 86400 /* as DETAIL_ABOVE_86400 says */

/* ---- what is refused ---- */

/* A place in the body: {"files", 0, "path"}, {"code"}, or nothing. */
struct detail_place {
	const char *member; /* NULL: the body itself */
	bool indexed;
	size_t index;
	const char *inner; /* of the item; NULL: the item itself */
};

/* Faults of a body; their texts are in faults[]. */
enum detail_fault {
	DETAIL_MISSING,
	DETAIL_NO_OBJECT,
	DETAIL_NO_LIST,
	DETAIL_NO_STRING,
	DETAIL_NO_UNICODE,
	DETAIL_NO_INT,
	DETAIL_BELOW_1,
	DETAIL_ABOVE_86400,
	DETAIL_NO_BOOL,
	DETAIL_UNCLEAR_BOOL,
	DETAIL_NO_FILE,
};

/* Columns of faults[], pydantic's words; CONTEXT is NULL where there is
 * none. */
enum { TYPE, MESSAGE, CONTEXT };

static const char *const faults[][3] = {
	[DETAIL_MISSING] = { "missing", "Field required" },
	[DETAIL_NO_OBJECT] = { "model_attributes_type",
	    "Input should be a valid dictionary or object to extract fields "
	    "from" },
	[DETAIL_NO_LIST] = { "list_type", "Input should be a valid list" },
	[DETAIL_NO_STRING] = { "string_type",
	    "Input should be a valid string" },
	[DETAIL_NO_UNICODE] = { "string_unicode",
	    "Input should be a valid string, unable to parse raw data as a "
	    "unicode string" },
	[DETAIL_NO_INT] = { "int_type", "Input should be a valid integer" },
	[DETAIL_BELOW_1] = { "greater_than_equal",
	    "Input should be greater than or equal to 1", "\"ge\":1" },
	[DETAIL_ABOVE_86400] = { "less_than_equal",
	    "Input should be less than or equal to 86400", "\"le\":86400" },
	[DETAIL_NO_BOOL] = { "bool_type", "Input should be a valid boolean" },
	[DETAIL_UNCLEAR_BOOL] = { "bool_parsing",
	    "Input should be a valid boolean, unable to interpret input" },
	[DETAIL_NO_FILE] = { "value_error",
	    "Value error, Expected UploadFile, received: <class 'str'>",
	    "\"error\":{}" },
};

/* A text is the whole answer: {"detail":"…"}. */
bool
detail_bytes(struct detail *d, int status, const char *text, size_t len)
{
	d->status = status;
	buf_init(&d->body, DETAIL_MAX);
	pydump_addf(&d->body, PYDUMP_UTF8, "{\"detail\":\"%.*s\"}", (int)len,
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

/* Begin a list of faults, {"detail":[{…},{…}]}, with the status 422. */
static void
detail_begin(struct detail *d)
{
	d->status = 422;
	d->count = 0;
	buf_init(&d->body, DETAIL_MAX);
	buf_adds(&d->body, "{\"detail\":[");
}

/* Append the place of a fault: ,"loc":["body","files",0,"path"]. */
static void
add_place(struct buf *out, const struct detail_place *place)
{
	buf_adds(out, ",\"loc\":[\"body\"");
	if (place->member != NULL)
		buf_addf(out, ",\"%s\"", place->member);
	if (place->indexed)
		buf_addf(out, ",%zu", place->index);
	if (place->inner != NULL)
		buf_addf(out, ",\"%s\"", place->inner);
	buf_addc(out, ']');
}

/* Append a fault, with its place, its message and what was sent; input NULL:
 * null. */
static void
detail_add(struct detail *d, enum detail_fault fault,
    const struct detail_place *place, const struct pyvalue *input)
{
	static const struct pyvalue null = { .type = PYVALUE_NULL };
	size_t before = d->body.len;

	if (d->count == DETAIL_COUNT_MAX)
		return;
	buf_addf(&d->body, "%s{\"type\":\"%s\"", d->count > 0 ? "," : "",
	    faults[fault][TYPE]);
	add_place(&d->body, place);
	buf_addf(&d->body,
	    ",\"msg\":\"%s\",\"input\":", faults[fault][MESSAGE]);
	pydump_add(&d->body, input == NULL ? &null : input);
	if (faults[fault][CONTEXT] != NULL)
		buf_addf(&d->body, ",\"ctx\":{%s}", faults[fault][CONTEXT]);
	buf_addc(&d->body, '}');
	/* A fault that does not fit is left out. */
	if (d->body.overflow) {
		d->body.overflow = false;
		buf_cut(&d->body, before);
	} else {
		d->count++;
	}
}

/* End the list.  True: it has no faults, and is released.  False: the answer is
 * made. */
static bool
detail_end(struct detail *d)
{
	if (d->count == 0) {
		buf_release(&d->body);
		return true;
	}
	buf_adds(&d->body, "]}");
	return false;
}

/* ---- the body of a request ---- */

/* Refuse the body as a whole, with one fault. */
static bool
refuse_body(struct detail *d, enum detail_fault fault,
    const struct pyvalue *input)
{
	detail_begin(d);
	detail_add(d, fault, &(struct detail_place){ .member = NULL }, input);
	return detail_end(d);
}

/* Refuse a body that is no JSON: the only fault with texts of its own. */
static bool
refuse_syntax(struct detail *d, const struct pyjson_error *error)
{
	detail_begin(d);
	pydump_addf(&d->body, PYDUMP_UTF8,
	    "{\"type\":\"json_invalid\",\"loc\":[\"body\",%" PRId64 "],"
	    "\"msg\":\"JSON decode error\",\"input\":{},"
	    "\"ctx\":{\"error\":\"%s\"}}",
	    (int64_t)error->position, error->text);
	d->count = 1;
	return detail_end(d);
}

/* Is it application/json or application/…+json, in any case, with any
 * parameters? */
static bool
is_json(const char *type)
{
	static const char prefix[] = "application/";
	size_t len;

	type += strspn(type, " \t");
	if (strncasecmp(type, prefix, strlen(prefix)) != 0)
		return false;
	type += strlen(prefix);
	len = strcspn(type, ";");
	while (len > 0 && (type[len - 1] == ' ' || type[len - 1] == '\t'))
		len--;
	return memchr(type, '/', len) == NULL &&
	    (text_is(type, len, "json") ||
		(len >= 5 && text_is(type + len - 5, 5, "+json")));
}

/* Parse a body, which a NUL follows.  content_type NULL: none was sent.  False:
 * the answer is made.  A body that is empty, of another type, no JSON or no
 * object has a refusal of its own. */
static bool
detail_parse(struct pyjson *doc, const char *content_type, const char *body,
    size_t len, struct detail *d)
{
	struct pyjson_error error;

	if (len == 0)
		return refuse_body(d, DETAIL_MISSING, NULL);
	/* A body of another type is quoted as a text. */
	if (content_type == NULL || !is_json(content_type)) {
		const struct pyvalue text = { .type = PYVALUE_STRING,
			.count = len,
			.u.text = (char *)(uintptr_t)body };

		return utf8_valid(body, len) ?
		    refuse_body(d, DETAIL_NO_OBJECT, &text) :
		    detail_text(d, 400, BAD_BODY);
	}
	if (!pyjson_parse(doc, body, len, PYJSON_BYTES, &error))
		return error.fault == PYJSON_SYNTAX ?
		    refuse_syntax(d, &error) :
		    detail_text(d, 400, BAD_BODY);
	if (doc->root.type == PYVALUE_OBJECT)
		return true;
	(void)refuse_body(d,
	    doc->root.type == PYVALUE_NULL ? DETAIL_MISSING : DETAIL_NO_OBJECT,
	    &doc->root);
	pyjson_release(doc);
	return false;
}

/* ---- the models ---- */

enum kind { KIND_TEXT, KIND_INT, KIND_BOOL, KIND_FILES };

/* A member of a model, and where its value goes.  Only a text may be null. */
struct rule {
	const char *name; /* NULL: the end */
	enum kind kind;
	size_t offset;
	bool required;
	int64_t standard; /* of what is not there */
	int64_t max;	  /* 0: none */
};

#define AT(member) offsetof(struct execute_request, member)

/* Rows stand in the order in which faults are told. */
static const struct rule models[][6] = {
	[EXECUTE_CODE] = {
		{ "code", KIND_TEXT, AT(code), true, 0, 0 },
		{ "stdin", KIND_TEXT, AT(input), false, 0, 0 },
		{ "timeout_ms", KIND_INT, AT(timeout_ms), false, 2000, 0 },
		{ "last_line_interactive", KIND_BOOL, AT(echo), false, 1, 0 },
		{ "files", KIND_FILES, 0, false, 0, 0 },
	},
	[EXECUTE_SESSION] = {
		{ "files", KIND_FILES, 0, false, 0, 0 },
		{ "ttl_seconds", KIND_INT, AT(ttl_seconds), false, 900,
		    TTL_MAX },
	},
	[EXECUTE_BASH] = {
		{ "cmd", KIND_TEXT, AT(code), true, 0, 0 },
		{ "timeout_ms", KIND_INT, AT(timeout_ms), false, 30000, 0 },
	},
};

static const struct rule file_model[] = {
	{ "path", KIND_TEXT, offsetof(struct execute_file, path), true, 0, 0 },
	{ "file_id", KIND_TEXT, offsetof(struct execute_file, id), true, 0, 0 },
	{ .name = NULL },
};

/* ---- their members ---- */

static void
take_text(struct detail *d, const struct detail_place *place,
    const struct pyvalue *value, struct execute_text *text)
{
	if (value->type != PYVALUE_STRING)
		detail_add(d, DETAIL_NO_STRING, place, value);
	else if (pyutf8_has_surrogate(value->u.text, value->count))
		detail_add(d, DETAIL_NO_UNICODE, place, value);
	else
		*text = (struct execute_text){ value->u.text, value->count };
}

static void
take_int(struct detail *d, const struct detail_place *place,
    const struct pyvalue *value, int64_t max, int64_t *number)
{
	if (!pyvalue_integer(value, number)) {
		detail_add(d, DETAIL_NO_INT, place, value);
		return;
	}
	if (*number < 1)
		detail_add(d, DETAIL_BELOW_1, place, value);
	else if (max > 0 && *number > max)
		detail_add(d, DETAIL_ABOVE_86400, place, value);
}

/* Take a boolean in any of the forms that pydantic takes. */
static void
take_bool(struct detail *d, const struct detail_place *place,
    const struct pyvalue *value, bool *truth)
{
	static const char *const words[] = { "0", "1", "f", "t", "n", "y", "no",
		"yes", "off", "on", "false", "true" };
	bool is_text = value->type == PYVALUE_STRING;
	bool is_int = value->type == PYVALUE_INT;
	double number = value->type == PYVALUE_BOOL ? value->u.truth :
	    is_int				    ? (double)value->u.integer :
	    value->type == PYVALUE_FLOAT	    ? value->u.real :
						      -1;

	for (size_t i = 0; is_text && i < sizeof(words) / sizeof(words[0]); i++)
		if (text_is(value->u.text, value->count, words[i]))
			number = i % 2 == 1 ? 1 : 0;
	*truth = number == 1;
	if (number != 0 && number != 1)
		detail_add(d,
		    is_text || is_int ? DETAIL_UNCLEAR_BOOL : DETAIL_NO_BOOL,
		    place, value);
}

static void take_members(struct detail *d, const struct rule *rules,
    struct detail_place place, const struct pyvalue *object, void *into);

/* Each item is a model of its own. */
static void
take_files(struct detail *d, struct detail_place place,
    const struct pyvalue *value, struct execute_request *req)
{
	if (value->type != PYVALUE_ARRAY) {
		detail_add(d, DETAIL_NO_LIST, &place, value);
		return;
	}
	req->files = pyjson_tree_array(&req->doc, value->count,
	    sizeof(*req->files));
	place.indexed = true;
	for (const struct pyvalue *item = value->u.parts.first; item != NULL;
	     item = item->next) {
		place.index = req->file_count++;
		if (item->type == PYVALUE_OBJECT)
			take_members(d, file_model, place, item,
			    &req->files[place.index]);
		else
			detail_add(d, DETAIL_NO_OBJECT, &place, item);
	}
}

/* Fill in what a model has of an object, and tell all that is wrong. */
static void
take_members(struct detail *d, const struct rule *rule,
    struct detail_place place, const struct pyvalue *object, void *into)
{
	const char **last = place.indexed ? &place.inner : &place.member;

	for (; rule->name != NULL; rule++) {
		const struct pyvalue *value = pyvalue_get(object, rule->name);
		void *field = (char *)into + rule->offset;

		*last = rule->name;
		if (value == NULL && rule->required)
			detail_add(d, DETAIL_MISSING, &place, object);
		if (rule->kind == KIND_INT)
			*(int64_t *)field = rule->standard;
		if (rule->kind == KIND_BOOL)
			*(bool *)field = rule->standard != 0;
		if (value == NULL)
			continue;
		switch (rule->kind) {
		case KIND_TEXT:
			if (value->type != PYVALUE_NULL || rule->required)
				take_text(d, &place, value, field);
			break;
		case KIND_INT:
			take_int(d, &place, value, rule->max, field);
			break;
		case KIND_BOOL:
			take_bool(d, &place, value, field);
			break;
		case KIND_FILES:
			take_files(d, place, value, into);
			break;
		}
	}
}

/* Rules that the model cannot state. */
static bool
check_rest(const struct execute_request *req, enum execute_route route,
    struct detail *d)
{
	if (req->timeout_ms > OUTCOME_TIMEOUT_MAX_MS)
		return detail_text(d, 422,
		    "timeout_ms exceeds maximum of %d ms",
		    OUTCOME_TIMEOUT_MAX_MS);
	if (route == EXECUTE_BASH && strlen(req->code.text) != req->code.len)
		return detail_text(d, 422,
		    "cmd must not contain a NUL character.");
	return true;
}

bool
execute_parse(struct execute_request *req, enum execute_route route,
    const char *content_type, const char *body, size_t len, struct detail *d)
{
	memset(req, 0, sizeof(*req));
	if (!detail_parse(&req->doc, content_type, body, len, d))
		return false;
	detail_begin(d);
	take_members(d, models[route], (struct detail_place){ .member = NULL },
	    &req->doc.root, req);
	if (detail_end(d) && check_rest(req, route, d))
		return true;
	pyjson_release(&req->doc);
	return false;
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

/* Make the path to write to.  NULL, or why it may not be. */
static const char *
stage_file(struct stage *stage, struct execute_request *req,
    const struct execute_text *path, struct cell_input *input)
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
	char *out = pyjson_tree_array(&req->doc, path->len + 2, 1);
	enum stage_up up;
	size_t n = stage_resolve(path->text, path->len, out, 0, &up);

	input->path = out;
	if (path->len > 0 && path->text[0] == '/')
		return "File paths must be relative.";
	if (up != STAGE_DOWN)
		return "File paths must not contain '..'.";
	if (strlen(out) != n)
		return "File paths must not contain a NUL character.";
	if (req->code.text != NULL && strcmp(out, "__main__.py") == 0)
		return "File path '__main__.py' is reserved for the execution "
		       "entrypoint.";
	return messages[stage_add(stage, out)];
}

const char *
execute_stage(struct execute_request *req, struct cell_input *inputs)
{
	auto_stage struct stage stage = { .count = 0 };
	const char *message = NULL;

	for (size_t i = 0; i < req->file_count && message == NULL; i++)
		message = stage_file(&stage, req, &req->files[i].path,
		    &inputs[i]);
	return message;
}

/* ---- a file that is uploaded ---- */

/* Begin a part.  Any part called "file" takes the place of an earlier one.
 * True: it is a file. */
static bool
begin(struct upload *up)
{
	up->into = strcmp(buf_str(&up->form.name), "file") == 0;
	if (!up->into)
		return false;
	up->have = up->form.is_file;
	up->have_text = !up->have;
	up->size = 0;
	buf_reset(&up->name);
	buf_reset(&up->text);
	buf_adds(&up->name,
	    up->form.filename.len > 0 ? buf_str(&up->form.filename) :
					"unnamed");
	return up->have;
}

/* Take a slice.  True: it is the file's.  Bytes past the bound are read and
 * dropped. */
static bool
take(struct upload *up)
{
	if (up->into && up->have_text)
		buf_add(&up->text, up->form.data, up->form.data_len);
	if (!up->into || up->have_text)
		return false;
	up->size += (int64_t)up->form.data_len;
	return up->size <= up->max;
}

bool
upload_open(struct upload *up, const char *content_type, int64_t max,
    struct detail *d)
{
	*up = (struct upload){ .max = max,
		.name = BUF_INIT(2 * MULTIPART_HEAD_MAX),
		.text = BUF_INIT(MULTIPART_FIELD_MAX) };
	return multipart_open(&up->form, content_type) ||
	    detail_text(d, 400, MULTIPART_MISSING_BOUNDARY);
}

void
upload_release(struct upload *up)
{
	multipart_release(&up->form);
	buf_release(&up->name);
	buf_release(&up->text);
}

enum multipart_event
upload_next(struct upload *up)
{
	enum multipart_event event;
	bool told;

	do {
		event = multipart_next(&up->form);
		told = event == MULTIPART_PART ? begin(up) :
		    event == MULTIPART_SLICE   ? take(up) :
						 true;
	} while (!told);
	return event;
}

/* Refuse a form whose field `file` is missing, or is a text. */
static bool
refuse_field(struct detail *d, const struct buf *text)
{
	const struct detail_place place = { .member = "file" };
	auto_buf struct buf clean = BUF_INIT(3 * MULTIPART_FIELD_MAX);
	struct pyvalue input = { .type = PYVALUE_STRING };

	detail_begin(d);
	if (text == NULL) {
		detail_add(d, DETAIL_MISSING, &place, NULL);
	} else {
		pyutf8_add_whole(&clean, buf_str(text), text->len);
		input.u.text = clean.data;
		input.count = clean.len;
		detail_add(d, DETAIL_NO_FILE, &place, &input);
	}
	return detail_end(d);
}

/* The order of the checks is the contract's. */
bool
upload_end(struct upload *up, struct detail *d)
{
	const char *error = multipart_end(&up->form);

	if (error != NULL)
		return detail_text(d, 400, "%s", error);
	if (!up->have)
		return refuse_field(d, up->have_text ? &up->text : NULL);
	if (up->size > up->max)
		return detail_text(d, 413,
		    "File size exceeds maximum of %lld MB",
		    (long long)(up->max >> 20));
	return true;
}
