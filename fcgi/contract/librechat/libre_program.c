/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "base/basics.h"
#include "base/text.h"

#define TOOLS_MAX 100
#define TOOL_NAME_MAX 256 /* bytes */
#define CALLS_MAX 256	  /* of one round */
#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define NONCE crypto_secretbox_NONCEBYTES
#define MORE (NONCE + crypto_secretbox_MACBYTES)
#define NAME_SHOWN 200 /* code points of a tool's name in an error */
#define INVALID "Invalid continuation token"
#define SHELL_MAX (LIBRE_STATE_MAX + 4096)

/* ---- the token that a client keeps for us ---- */

_Static_assert(LIBRE_SEAL_KEY_LEN == crypto_secretbox_KEYBYTES, "a key");
_Static_assert(MORE == 24 + 16, "LIBRE_TOKEN_TEXT_MAX");

/* Append the token. */
static void
libre_seal(struct buf *out, const char *text, size_t len,
    const unsigned char *key)
{
	auto_free unsigned char *bytes = xmalloc(len + MORE);
	size_t size = sodium_base64_encoded_len(len + MORE, VARIANT);
	char *token = buf_reserve(out, size);

	if (token == NULL)
		return;
	randombytes_buf(bytes, NONCE);
	(void)crypto_secretbox_easy(bytes + NONCE, (const unsigned char *)text,
	    len, bytes, key);
	(void)sodium_bin2base64(token, size, bytes, len + MORE, VARIANT);
	buf_commit(out, size - 1); /* without its NUL */
}

/* The state in a token.  NULL: it was not made with this key. */
static json_t *
libre_unseal(const char *token, const unsigned char *key)
{
	size_t len = token == NULL ? 0 : strlen(token);
	auto_free unsigned char *bytes = NULL;
	size_t size = 0;

	if (len == 0 || len > LIBRE_TOKEN_TEXT_MAX)
		return NULL;
	bytes = xmalloc(len);
	if (sodium_base642bin(bytes, len, token, len, NULL, &size, NULL,
		VARIANT) != 0 ||
	    size < MORE ||
	    crypto_secretbox_open_easy(bytes + NONCE, bytes + NONCE,
		size - NONCE, bytes, key) != 0)
		return NULL;
	return json_loadb((const char *)bytes + NONCE, size - MORE,
	    JSON_ALLOW_NUL, NULL);
}

/* The owner of a state, as text. */
static json_t *
pack_owner(const struct libre_asked *asked)
{
	char hex[2 * LIBRE_OWNER_LEN + 1];

	(void)sodium_bin2hex(hex, sizeof(hex), asked->owner, LIBRE_OWNER_LEN);
	return json_string(hex);
}

/* A member to be packed, which lives on; NULL: it was not sent. */
static json_t *
member_of(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	return jtree_is_absent(value) ? NULL : value;
}

/* ---- a program begins ---- */

/* Add a tool to the list: its name, which has a letter or a digit to be called
 * by, and the names of its parameters, in their order. */
static bool
add_tool(json_t *list, const json_t *tool)
{
	const char *name = jtree_text(json_object_get(tool, "name"));
	const json_t *all = json_object_get(tool, "parameters");
	json_t *params;
	const char *param;
	const json_t *value;

	if (name == NULL || strlen(name) > TOOL_NAME_MAX ||
	    strpbrk(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_") == NULL)
		return false;
	params = json_array();
	json_object_foreach(json_object_get(all, "properties"), param, value)
		(void)json_array_append_new(params, json_string(param));
	return json_array_append_new(list,
		   json_pack("{s:s,s:o}", "name", name, "params", params)) == 0;
}

static bool
program_begin(struct libre_program *p, const json_t *root,
    const struct libre_asked *asked, struct api_error *error)
{
	const json_t *tools = json_object_get(root, "tools");
	json_t *code = member_of(root, "code");
	json_t *lang = member_of(root, "lang");
	json_t *list = json_array();
	const json_t *tool;
	size_t i;

	p->state = json_pack("{s:{s:o,s:O*,s:O*,s:O*},s:o,s:s,s:i,s:[]}",
	    "request", "lang",
	    lang == NULL ? json_string("py") : json_incref(lang), "code", code,
	    "files", member_of(root, "files"), "timeout",
	    member_of(root, "timeout"), "tools", list, "session",
	    asked->session, "round", 1, "history");
	if (code == NULL)
		return api_error_set(error, 400,
		    "Missing required field: code");
	if (json_array_size(tools) == 0)
		return api_error_set(error, 400,
		    "Missing required field: tools (must be a non-empty "
		    "array)");
	if (json_array_size(tools) > TOOLS_MAX)
		return api_error_set(error, 400,
		    "tools must have at most %d items", TOOLS_MAX);
	json_array_foreach(tools, i, tool)
		if (!add_tool(list, tool))
			return api_error_set(error, 400,
			    "tools[].name must be a name that can be called");
	return true;
}

/* ---- a program goes on ---- */

/* The result that the client sent for a call; NULL: none. */
static const json_t *
result_of(const json_t *results, const json_t *call)
{
	const char *id = jtree_text(json_object_get(call, "id"));
	const json_t *one;
	size_t i;

	json_array_foreach(results, i, one)
		if (id != NULL && jtree_is(json_object_get(one, "call_id"), id))
			return one;
	return NULL;
}

/* A call and its result, as the run reads them. */
static json_t *
join_result(const json_t *call, const json_t *told)
{
	json_t *result = member_of(told, "result");
	json_t *why = json_object_get(told, "error_message");

	return json_pack("{s:O,s:O,s:b,s:o,s:o}", "name",
	    json_object_get(call, "name"), "input",
	    json_object_get(call, "input"), "is_error",
	    json_is_true(json_object_get(told, "is_error")), "error_message",
	    json_is_string(why) ? json_incref(why) : json_string(""), "result",
	    result == NULL ? json_null() : json_incref(result));
}

/* The state is what the last round sealed; what was pending is known now. */
static bool
program_go_on(struct libre_program *p, const json_t *root,
    const struct libre_asked *asked, struct api_error *error)
{
	const json_t *token = json_object_get(root, "continuation_token");
	const json_t *results = member_of(root, "tool_results");
	json_auto_t *owner = pack_owner(asked);
	const json_t *call;
	size_t i;

	p->state = libre_unseal(jtree_text(token), asked->key);
	if (p->state == NULL)
		return api_error_set(error, 400, INVALID);
	if (!json_equal(json_object_get(p->state, "owner"), owner) ||
	    asked->now_ms >=
		json_integer_value(json_object_get(p->state, "expires")))
		return api_error_set(error, 404,
		    "Execution not found or expired");
	if (results != NULL && !json_is_array(results))
		return api_error_set(error, 400,
		    "tool_results must be an array");
	json_array_foreach(json_object_get(p->state, "pending"), i, call) {
		const json_t *told = result_of(results, call);

		if (told != NULL)
			(void)json_array_append_new(json_object_get(p->state,
							"history"),
			    join_result(call, told));
	}
	(void)json_object_set_new(p->state, "round",
	    json_integer(1 +
		json_integer_value(json_object_get(p->state, "round"))));
	(void)json_object_del(p->state, "pending");
	(void)json_object_del(p->state, "expires");
	(void)json_object_del(p->state, "owner");
	return true;
}

/* ---- both ---- */

/* A path in the folder that no file of the request is in. */
static const char *
path_of(struct libre_exec *exec, const char *name)
{
	size_t size = strlen(exec->place) + strlen(name) + 2;
	char *path = jtree_array(&exec->doc, size, 1);

	(void)snprintf(path, size, "%s/%s", exec->place, name);
	return path;
}

/* Read what runs from the state.  In bash its functions come first, in the same
 * line. */
static bool
program_load(struct libre_program *p, struct api_error *error)
{
	json_t *request = json_object_get(p->state, "request");
	const char *session = jtree_text(json_object_get(p->state, "session"));

	if (request == NULL || session == NULL || !libre_is_id(session))
		return api_error_set(error, 400, INVALID);
	jtext_add(&p->text, p->state, JSON_COMPACT);
	if (p->text.overflow)
		return api_error_set(error, 413, LIBRE_STATE_TOO_LARGE);
	if (!libre_exec_read(&p->exec, json_incref(request), error))
		return false;
	memcpy(p->session, session, sizeof(p->session));
	p->round = json_integer_value(json_object_get(p->state, "round"));
	p->helper_path = path_of(&p->exec, "libre_helper.py");
	p->state_path = path_of(&p->exec, "state.json");
	p->calls_path = path_of(&p->exec, "calls.json");
	if (!p->exec.is_bash)
		return true;
	buf_addf(&p->shell,
	    "eval \"$(python3 /mnt/data/%s --functions \"$$\")\"; ",
	    p->helper_path);
	buf_add(&p->shell, p->exec.code.data, p->exec.code.len);
	p->exec.code = (struct cell_bytes){ buf_str(&p->shell), p->shell.len };
	return true;
}

bool
libre_program_parse(struct libre_program *p, const char *body, size_t len,
    const struct libre_asked *asked, struct api_error *error)
{
	struct jtree_error fault;
	struct jtree doc;
	bool good;

	*p = (struct libre_program){ .text = BUF_INIT(LIBRE_STATE_MAX),
		.shell = BUF_INIT(SHELL_MAX) };
	if (!jtree_parse(&doc, body, len, &fault))
		return api_error_set(error, 400, "The body is not valid JSON");
	good = member_of(doc.root, "continuation_token") == NULL ?
	    program_begin(p, doc.root, asked, error) :
	    program_go_on(p, doc.root, asked, error);
	jtree_release(&doc);
	if (good && program_load(p, error))
		return true;
	libre_program_release(p);
	return false;
}

void
libre_program_release(struct libre_program *p)
{
	json_decref(p->state);
	buf_release(&p->text);
	buf_release(&p->shell);
	jtree_release(&p->exec.doc);
}

/* ---- the calls of a round ---- */

static bool
is_registered(const struct libre_program *p, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(json_object_get(p->state, "tools"), i, tool)
		if (jtree_is(json_object_get(tool, "name"), name))
			return true;
	return false;
}

static bool
add_call(const struct libre_program *p, const json_t *call, json_t *calls,
    struct api_error *error)
{
	const char *name = jtree_text(json_object_get(call, "name"));
	json_t *input = json_object_get(call, "input");

	if (name == NULL || strlen(name) > TOOL_NAME_MAX || input == NULL)
		return false;
	if (!is_registered(p, name))
		return api_error_set(error, 200,
		    "Sandbox requested an unregistered tool: %.*s",
		    (int)text_prefix(name, strlen(name), NAME_SHOWN), name);
	return json_array_append_new(calls,
		   json_pack("{s:o,s:s,s:O}", "id",
		       json_sprintf("call_%" PRId64 "_%zu", p->round,
			   json_array_size(calls)),
		       "name", name, "input", input)) == 0;
}

json_t *
libre_calls_read(const struct libre_program *p, const char *text, size_t len,
    struct api_error *error)
{
	json_auto_t *calls = json_array();
	struct jtree_error fault;
	struct jtree doc;
	const json_t *call;
	bool good;
	size_t i;

	(void)api_error_set(error, 200, LIBRE_FAILED);
	if (len > LIBRE_CALLS_BYTES || !jtree_parse(&doc, text, len, &fault))
		return NULL;
	good = json_array_size(doc.root) > 0 &&
	    json_array_size(doc.root) <= CALLS_MAX;
	json_array_foreach(doc.root, i, call)
		good = good && add_call(p, call, calls, error);
	jtree_release(&doc);
	return good ? json_incref(calls) : NULL;
}

bool
libre_program_seal(const struct libre_program *p,
    const struct libre_asked *asked, json_t *calls, struct buf *token)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_STATE_MAX);
	json_auto_t *state = json_copy(p->state);

	(void)json_object_set(state, "pending", calls);
	(void)json_object_set_new(state, "expires",
	    json_integer(asked->now_ms + LIBRE_STATE_MS));
	(void)json_object_set_new(state, "owner", pack_owner(asked));
	jtext_add(&text, state, JSON_COMPACT);
	if (text.overflow)
		return false;
	libre_seal(token, buf_str(&text), text.len, asked->key);
	return !token->overflow;
}
