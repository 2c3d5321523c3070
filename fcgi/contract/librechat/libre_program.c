/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_program.h"

#include <inttypes.h>
#include <string.h>

#include <sodium.h>

#include "contract/librechat/libre_answer.h"
#include "contract/jtext.h"
#include "contract/jtree.h"

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

/* ,"name":value, or nothing where it was not sent. */
static void
add_member(struct buf *out, const char *name, const json_t *value)
{
	if (jtree_is_absent(value))
		return;
	buf_addf(out, ",\"%s\":", name);
	jtext_add(out, value, JSON_COMPACT);
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

/* The names of its parameters, in their order. */
static void
add_params(struct buf *out, const json_t *tool)
{
	const json_t *all = json_object_get(tool, "parameters");
	json_t *properties = json_object_get(all, "properties");
	const char *comma = "";
	const char *name;
	const json_t *value;

	buf_adds(out, ",\"params\":[");
	json_object_foreach(properties, name, value) {
		jtext_addf(out, JTEXT_UTF8, "%s\"%s\"", comma, name);
		comma = ",";
	}
	buf_addc(out, ']');
}

static bool
add_tools(struct reading *r, const json_t *tools)
{
	struct buf *out = &r->p->state;
	const json_t *tool;
	size_t i;

	if (json_array_size(tools) == 0)
		return program_refuse(r, 400,
		    "Missing required field: tools "
		    "(must be a non-empty array)");
	if (json_array_size(tools) > LIBRE_TOOLS_MAX)
		return program_refuse(r, 400,
		    "tools must have at most 100 items");
	buf_adds(out, ",\"tools\":[");
	json_array_foreach(tools, i, tool) {
		const char *name = jtree_text(json_object_get(tool, "name"));

		if (name == NULL || !can_be_called(name))
			return program_refuse(r, 400,
			    "tools[].name must be a name that can be called");
		jtext_addf(out, JTEXT_UTF8, "%s{\"name\":\"%s\"",
		    i == 0 ? "" : ",", name);
		add_params(out, tool);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
	return true;
}

static bool
program_begin(struct reading *r, const json_t *root)
{
	const json_t *lang = json_object_get(root, "lang");
	const json_t *code = json_object_get(root, "code");
	struct buf *out = &r->p->state;

	if (jtree_is_absent(code))
		return program_refuse(r, 400, "Missing required field: code");
	buf_adds(out, "{\"request\":{\"lang\":");
	if (jtree_is_absent(lang))
		buf_adds(out, "\"py\"");
	else
		jtext_add(out, lang, JSON_COMPACT);
	add_member(out, "code", code);
	add_member(out, "files", json_object_get(root, "files"));
	add_member(out, "timeout", json_object_get(root, "timeout"));
	buf_addc(out, '}');
	if (!add_tools(r, json_object_get(root, "tools")))
		return false;
	buf_addf(out, ",\"session\":\"%s\",\"round\":1,\"history\":[]",
	    r->asked->session);
	return true;
}

/* ---- a program goes on ---- */

static bool
is_mine(const struct reading *r, const json_t *old)
{
	const char *owner = jtree_text(json_object_get(old, "owner"));
	char hex[OWNER_HEX];
	const json_t *until = json_object_get(old, "expires");

	(void)sodium_bin2hex(hex, sizeof(hex), r->asked->owner,
	    LIBRE_OWNER_LEN);
	return owner != NULL && strcmp(owner, hex) == 0 &&
	    r->asked->now_ms < json_integer_value(until);
}

/* The result that the client sent for a call; NULL: none. */
static const json_t *
result_of(const json_t *results, const json_t *call)
{
	const char *id = jtree_text(json_object_get(call, "id"));

	const json_t *one;
	size_t i;

	json_array_foreach(results, i, one) {
		const char *of = jtree_text(json_object_get(one, "call_id"));

		if (id != NULL && of != NULL && strcmp(of, id) == 0)
			return one;
	}
	return NULL;
}

static void
program_add_result(struct buf *out, const json_t *call, const json_t *told)
{
	const json_t *result = json_object_get(told, "result");
	const json_t *why = json_object_get(told, "error_message");

	buf_adds(out, "{\"name\":");
	jtext_add(out, json_object_get(call, "name"), JSON_COMPACT);
	buf_adds(out, ",\"input\":");
	jtext_add(out, json_object_get(call, "input"), JSON_COMPACT);
	buf_addf(out, ",\"is_error\":%s",
	    json_is_true(json_object_get(told, "is_error")) ? "true" : "false");
	if (json_is_string(why))
		add_member(out, "error_message", why);
	else
		buf_adds(out, ",\"error_message\":\"\"");
	if (jtree_is_absent(result))
		buf_adds(out, ",\"result\":null");
	else
		add_member(out, "result", result);
	buf_addc(out, '}');
}

static void
add_history(struct buf *out, const json_t *old, const json_t *results)
{
	const char *comma = "";
	const json_t *one;
	const json_t *call;
	size_t i;

	buf_adds(out, ",\"history\":[");
	json_array_foreach(json_object_get(old, "history"), i, one) {
		buf_adds(out, comma);
		comma = ",";
		jtext_add(out, one, JSON_COMPACT);
	}
	json_array_foreach(json_object_get(old, "pending"), i, call) {
		const json_t *told = result_of(results, call);

		if (told == NULL)
			continue;
		buf_adds(out, comma);
		comma = ",";
		program_add_result(out, call, told);
	}
	buf_addc(out, ']');
}

static bool
program_read_token(struct reading *r, const json_t *root, const json_t *old)
{
	const json_t *results = json_object_get(root, "tool_results");
	struct buf *out = &r->p->state;
	const json_t *round = json_object_get(old, "round");

	if (!is_mine(r, old))
		return program_refuse(r, 404, GONE);
	if (!jtree_is_absent(results) && !json_is_array(results))
		return program_refuse(r, 400, "tool_results must be an array");
	if (!json_is_integer(round))
		return program_refuse(r, 400, INVALID);
	buf_adds(out, "{\"request\":");
	jtext_add(out, json_object_get(old, "request"), JSON_COMPACT);
	add_member(out, "tools", json_object_get(old, "tools"));
	add_member(out, "session", json_object_get(old, "session"));
	buf_addf(out, ",\"round\":%" PRId64,
	    (int64_t)json_integer_value(round) + 1);
	add_history(out, old, results);
	return true;
}

static bool
program_go_on(struct reading *r, const json_t *root, const json_t *token)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	const char *sealed = jtree_text(token);
	struct jtree_error fault;
	struct jtree old;
	bool good;

	if (sealed == NULL || strlen(sealed) > LIBRE_TOKEN_TEXT_MAX ||
	    !libre_unseal(&text, sealed, strlen(sealed), r->asked->key) ||
	    !jtree_parse(&old, buf_str(&text), text.len, &fault))
		return program_refuse(r, 400, INVALID);
	good = program_read_token(r, root, old.root);
	jtree_release(&old);
	return good;
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

/* The state is written: what it says is what runs. */
static bool
program_load(struct reading *r)
{
	auto_buf struct buf request = BUF_INIT(BUILD_MAX);
	struct libre_program *p = r->p;
	struct jtree_error fault;
	const char *session;

	if (p->state.overflow)
		return program_refuse(r, 413, LIBRE_STATE_TOO_LARGE);
	buf_add(&p->whole, buf_str(&p->state), p->state.len);
	buf_addc(&p->whole, '}');
	if (!jtree_parse(&p->doc, buf_str(&p->whole), p->whole.len, &fault))
		return program_refuse(r, 400, "The body is nested too deeply");
	jtext_add(&request, json_object_get(p->doc.root, "request"),
	    JSON_COMPACT);
	if (!libre_exec_parse(&p->exec, buf_str(&request), request.len,
		r->status, r->error))
		return false;
	session = jtree_text(json_object_get(p->doc.root, "session"));
	p->round = json_integer_value(json_object_get(p->doc.root, "round"));
	if (session == NULL || !libre_is_id(session, strlen(session)))
		return program_refuse(r, 400, INVALID);
	memcpy(p->session, session, sizeof(p->session));
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

	memset(p, 0, sizeof(*p));
	buf_init(&p->state, LIBRE_STATE_MAX);
	buf_init(&p->whole, LIBRE_STATE_MAX + 1);
	if (!jtree_parse(&doc, body, len, &fault))
		return program_refuse(&r, 400, "The body is not valid JSON");
	token = json_object_get(doc.root, "continuation_token");
	good = jtree_is_absent(token) ? program_begin(&r, doc.root) :
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
	buf_release(&p->state);
	buf_release(&p->whole);
	buf_release(&p->shell);
	jtree_release(&p->doc);
	jtree_release(&p->exec.doc);
}

/* ---- the calls of a round ---- */

static bool
is_registered(const struct libre_program *p, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(json_object_get(p->doc.root, "tools"), i, tool)
		if (jtree_is(json_object_get(tool, "name"), name))
			return true;
	return false;
}

static bool
add_call(const struct libre_program *p, const json_t *call, size_t i,
    struct buf *calls, struct buf *error)
{
	const char *name = jtree_text(json_object_get(call, "name"));
	const json_t *input = json_object_get(call, "input");

	buf_reset(error);
	buf_adds(error, LIBRE_FAILED);
	if (name == NULL || strlen(name) > LIBRE_TOOL_NAME_MAX || input == NULL)
		return false;
	if (!is_registered(p, name)) {
		buf_reset(error);
		buf_adds(error, "Sandbox requested an unregistered tool: ");
		buf_add(error, name,
		    text_prefix(name, strlen(name), NAME_SHOWN));
		return false;
	}
	jtext_addf(calls, JTEXT_UTF8,
	    "%s{\"id\":\"call_%" PRId64 "_%" PRId64
	    "\",\"name\":\"%s\",\"input\":",
	    i == 0 ? "" : ",", p->round, (int64_t)i, name);
	jtext_add(calls, input, JSON_COMPACT);
	buf_addc(calls, '}');
	return true;
}

bool
libre_calls_read(const struct libre_program *p, const char *text, size_t len,
    struct buf *calls, struct buf *error)
{
	struct jtree_error fault;
	struct jtree doc;
	const json_t *call;
	bool good;
	size_t i;

	buf_adds(error, LIBRE_FAILED);
	if (len > LIBRE_CALLS_BYTES || !jtree_parse(&doc, text, len, &fault))
		return false;
	good = json_array_size(doc.root) > 0 &&
	    json_array_size(doc.root) <= LIBRE_CALLS_MAX;
	buf_addc(calls, '[');
	json_array_foreach(doc.root, i, call)
		good = good && add_call(p, call, i, calls, error);
	buf_addc(calls, ']');
	jtree_release(&doc);
	return good && !calls->overflow;
}

bool
libre_program_seal(const struct libre_program *p,
    const struct libre_asked *asked, const struct buf *calls, struct buf *token)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_STATE_MAX);
	char hex[OWNER_HEX];

	(void)sodium_bin2hex(hex, sizeof(hex), asked->owner, LIBRE_OWNER_LEN);
	buf_add(&text, buf_str(&p->state), p->state.len);
	buf_adds(&text, ",\"pending\":");
	buf_add(&text, buf_str(calls), calls->len);
	buf_addf(&text, ",\"expires\":%" PRId64 ",\"owner\":\"%s\"}",
	    asked->now_ms + LIBRE_STATE_MS, hex);
	if (text.overflow)
		return false;
	libre_seal(token, buf_str(&text), text.len, asked->key);
	return !token->overflow;
}
