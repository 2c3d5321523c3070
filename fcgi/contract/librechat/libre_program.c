/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_program.h"

#include <inttypes.h>
#include <string.h>

#include <sodium.h>

#include "contract/librechat/libre_answer.h"
#include "contract/json.h"

#include "base/text.h"

#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define MORE (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)
#define NAME_SHOWN 200 /* code points of a tool's name in an error */
#define INVALID "Invalid continuation token"
#define GONE "Execution not found or expired"
#define BUILD_MAX (LIBRE_STATE_MAX + 4096)
#define OWNER_HEX (2 * LIBRE_OWNER_LEN + 1)

/* ---- the token that a client keeps for us ---- */

_Static_assert(LIBRE_SEAL_KEY_LEN == crypto_secretbox_KEYBYTES, "a key");
_Static_assert(MORE == 24 + 16, "LIBRE_SEALED_LEN");

/* Append the token. */
static void
libre_seal(struct buf *out, const char *text, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN])
{
	auto_buf struct buf sealed = BUF_INIT(len + MORE);
	unsigned char *bytes = (unsigned char *)buf_reserve(&sealed,
	    len + MORE);
	size_t size = sodium_base64_encoded_len(len + MORE, VARIANT);
	char *token = buf_reserve(out, size);

	if (token == NULL)
		return;
	randombytes_buf(bytes, crypto_secretbox_NONCEBYTES);
	(void)crypto_secretbox_easy(bytes + crypto_secretbox_NONCEBYTES,
	    (const unsigned char *)text, len, bytes, key);
	(void)sodium_bin2base64(token, size, bytes, len + MORE, VARIANT);
	buf_commit(out, size - 1); /* without its NUL */
}

/* Append the text.  False: the token was not made with this key. */
static bool
libre_unseal(struct buf *out, const char *token, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN])
{
	auto_buf struct buf sealed = BUF_INIT(len + 1);
	unsigned char *bytes = (unsigned char *)buf_reserve(&sealed, len + 1);
	const char *end = NULL;
	size_t size = 0;
	char *text;

	if (sodium_base642bin(bytes, len + 1, token, len, NULL, &size, &end,
		VARIANT) != 0 ||
	    end != token + len || size < MORE)
		return false;
	text = buf_reserve(out, size - MORE);
	if (text == NULL ||
	    crypto_secretbox_open_easy((unsigned char *)text,
		bytes + crypto_secretbox_NONCEBYTES,
		size - crypto_secretbox_NONCEBYTES, bytes, key) != 0)
		return false;
	buf_commit(out, size - MORE);
	return true;
}

/* A request that is read, and the place for its fault. */
struct reading {
	struct libre_program *p;
	const struct libre_asked *asked;
	int *status;
	struct buf *error;
};

/* Always false. */
static bool
program_refuse(struct reading *r, int status, const char *text)
{
	*r->status = status;
	buf_reset(r->error);
	buf_adds(r->error, text);
	return false;
}

/* A member to be packed, which lives on; NULL: it was not sent. */
static json_t *
member_of(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	return jtree_is_absent(value) ? NULL : value;
}

/* ---- a program begins ---- */

/* Has it a letter or a digit?  Without one it has no name in a program. */
static bool
can_be_called(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= LIBRE_TOOL_NAME_MAX &&
	    strpbrk(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_") != NULL;
}

/* The names of a tool's parameters, in their order. */
static json_t *
list_params(const json_t *tool)
{
	const json_t *all = json_object_get(tool, "parameters");
	json_t *list = json_array();
	const char *name;
	const json_t *value;

	json_object_foreach(json_object_get(all, "properties"), name, value)
		(void)json_array_append_new(list, json_string(name));
	return list;
}

static bool
program_read_tools(struct reading *r, const json_t *tools)
{
	json_t *list = json_array();
	const json_t *tool;
	size_t i;

	(void)json_object_set_new(r->p->state, "tools", list);
	if (json_array_size(tools) == 0)
		return program_refuse(r, 400,
		    "Missing required field: tools "
		    "(must be a non-empty array)");
	if (json_array_size(tools) > LIBRE_TOOLS_MAX)
		return program_refuse(r, 400,
		    "tools must have at most 100 items");
	json_array_foreach(tools, i, tool) {
		const char *name = jtree_text(json_object_get(tool, "name"));

		if (name == NULL || !can_be_called(name))
			return program_refuse(r, 400,
			    "tools[].name must be a name that can be called");
		(void)json_array_append_new(list,
		    json_pack("{s:s,s:o}", "name", name, "params",
			list_params(tool)));
	}
	return true;
}

static bool
program_begin(struct reading *r, const json_t *root)
{
	json_t *code = member_of(root, "code");
	json_t *lang = member_of(root, "lang");

	if (code == NULL)
		return program_refuse(r, 400, "Missing required field: code");
	lang = lang == NULL ? json_string("py") : json_incref(lang);
	r->p->state = json_pack("{s:{s:o,s:O,s:O*,s:O*},s:[],s:s,s:i,s:[]}",
	    "request", "lang", lang, "code", code, "files",
	    member_of(root, "files"), "timeout", member_of(root, "timeout"),
	    "tools", "session", r->asked->session, "round", 1, "history");
	return program_read_tools(r, json_object_get(root, "tools"));
}

/* ---- a program goes on ---- */

static bool
is_mine(const struct reading *r)
{
	const json_t *until = json_object_get(r->p->state, "expires");
	char hex[OWNER_HEX];

	(void)sodium_bin2hex(hex, sizeof(hex), r->asked->owner,
	    LIBRE_OWNER_LEN);
	return jtree_is(json_object_get(r->p->state, "owner"), hex) &&
	    r->asked->now_ms < json_integer_value(until);
}

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
program_go_on(struct reading *r, const json_t *root, const json_t *token)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	const json_t *results = member_of(root, "tool_results");
	const char *sealed = jtree_text(token);
	json_t *state = NULL;
	const json_t *call;
	size_t i;

	if (sealed != NULL && strlen(sealed) <= LIBRE_TOKEN_TEXT_MAX &&
	    libre_unseal(&text, sealed, strlen(sealed), r->asked->key))
		state = json_loadb(buf_str(&text), text.len, JSON_ALLOW_NUL,
		    NULL);
	if (state == NULL)
		return program_refuse(r, 400, INVALID);
	r->p->state = state;
	if (!is_mine(r))
		return program_refuse(r, 404, GONE);
	if (results != NULL && !json_is_array(results))
		return program_refuse(r, 400, "tool_results must be an array");
	json_array_foreach(json_object_get(state, "pending"), i, call) {
		const json_t *told = result_of(results, call);

		if (told != NULL)
			(void)json_array_append_new(json_object_get(state,
							"history"),
			    join_result(call, told));
	}
	(void)json_object_set_new(state, "round",
	    json_integer(1 +
		json_integer_value(json_object_get(state, "round"))));
	(void)json_object_del(state, "pending");
	(void)json_object_del(state, "expires");
	(void)json_object_del(state, "owner");
	return true;
}

/* ---- both ---- */

/* bash: its functions come first, in the same line. */
static void
write_shell(struct libre_program *p)
{
	buf_init(&p->shell, BUILD_MAX);
	buf_addf(&p->shell,
	    "eval \"$(python3 /mnt/data/%s/" LIBRE_HELPER_FILE
	    " --functions \"$$\")\"; ",
	    p->exec.place);
	buf_add(&p->shell, p->exec.code, p->exec.code_len);
	p->exec.code = buf_str(&p->shell);
	p->exec.code_len = p->shell.len;
}

/* Read what runs from the state. */
static bool
program_load(struct reading *r)
{
	struct libre_program *p = r->p;
	json_t *request = json_object_get(p->state, "request");
	const char *session = jtree_text(json_object_get(p->state, "session"));

	if (request == NULL || session == NULL ||
	    !libre_is_id(session, strlen(session)))
		return program_refuse(r, 400, INVALID);
	jtext_add(&p->text, p->state, JSON_COMPACT);
	if (p->text.overflow)
		return program_refuse(r, 413, LIBRE_STATE_TOO_LARGE);
	if (!libre_exec_read(&p->exec, json_incref(request), r->status,
		r->error))
		return false;
	memcpy(p->session, session, sizeof(p->session));
	p->round = json_integer_value(json_object_get(p->state, "round"));
	if (p->exec.lang == LIBRE_BASH)
		write_shell(p);
	return true;
}

bool
libre_program_parse(struct libre_program *p, const char *body, size_t len,
    const struct libre_asked *asked, int *status, struct buf *error)
{
	struct reading r = { p, asked, status, error };
	const json_t *token;
	struct jtree_error fault;
	struct jtree doc;
	bool good;

	*p = (struct libre_program){ .text = BUF_INIT(LIBRE_STATE_MAX) };
	if (!jtree_parse(&doc, body, len, &fault))
		return program_refuse(&r, 400, "The body is not valid JSON");
	token = member_of(doc.root, "continuation_token");
	good = token == NULL ? program_begin(&r, doc.root) :
			       program_go_on(&r, doc.root, token);
	jtree_release(&doc);
	if (good && program_load(&r))
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
    struct buf *error)
{
	const char *name = jtree_text(json_object_get(call, "name"));
	json_t *input = json_object_get(call, "input");

	if (name == NULL || strlen(name) > LIBRE_TOOL_NAME_MAX || input == NULL)
		return false;
	if (!is_registered(p, name)) {
		buf_reset(error);
		buf_adds(error, "Sandbox requested an unregistered tool: ");
		buf_add(error, name,
		    text_prefix(name, strlen(name), NAME_SHOWN));
		return false;
	}
	return json_array_append_new(calls,
		   json_pack("{s:o,s:s,s:O}", "id",
		       json_sprintf("call_%" PRId64 "_%zu", p->round,
			   json_array_size(calls)),
		       "name", name, "input", input)) == 0;
}

json_t *
libre_calls_read(const struct libre_program *p, const char *text, size_t len,
    struct buf *error)
{
	json_auto_t *calls = json_array();
	struct jtree_error fault;
	struct jtree doc;
	const json_t *call;
	bool good;
	size_t i;

	buf_adds(error, LIBRE_FAILED);
	if (len > LIBRE_CALLS_BYTES || !jtree_parse(&doc, text, len, &fault))
		return NULL;
	good = json_array_size(doc.root) > 0 &&
	    json_array_size(doc.root) <= LIBRE_CALLS_MAX;
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
	char hex[OWNER_HEX];

	(void)sodium_bin2hex(hex, sizeof(hex), asked->owner, LIBRE_OWNER_LEN);
	(void)json_object_set(state, "pending", calls);
	(void)json_object_set_new(state, "expires",
	    json_integer(asked->now_ms + LIBRE_STATE_MS));
	(void)json_object_set_new(state, "owner", json_string(hex));
	jtext_add(&text, state, JSON_COMPACT);
	if (text.overflow)
		return false;
	libre_seal(token, buf_str(&text), text.len, asked->key);
	return !token->overflow;
}
