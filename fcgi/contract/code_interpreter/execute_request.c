/* SPDX-License-Identifier: MIT */
#include "execute_request.h"

#include <string.h>

#include "../../pytext/pyutf8.h"
#include "../outcome.h"
#include "../stage.h"

#include "../../../sandbox/base/text.h"
#include "../../../sandbox/protocol/cell.h"

#define TTL_MAX 86400 /* as DETAIL_ABOVE_86400 says */

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

/* In the order in which faults are told. */
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

/* Whatever pydantic takes for one. */
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

/* What the model cannot say. */
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
	bool up = false;
	size_t n = stage_resolve(path->text, path->len, out, 0, &up);

	input->path = out;
	if (path->len > 0 && path->text[0] == '/')
		return "File paths must be relative.";
	if (up)
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
