/* SPDX-License-Identifier: MIT */
#include "contract/librechat/libre_program.h"

#include <inttypes.h>
#include <string.h>

#include <sodium.h>

#include "contract/librechat/libre_answer.h"
#include "pytext/pydump.h"
#include "pytext/pyjson.h"

#include "base/text.h"

#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define MORE (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)
#define NAME_SHOWN 200 /* code points of a tool's name in an error */
#define INVALID "Invalid continuation token"
#define GONE "Execution not found or expired"
#define BUILD_MAX (LIBRE_STATE_MAX + 4096)
#define OWNER_HEX (2 * LIBRE_OWNER_LEN + 1)

/* ---- what a client keeps for us ---- */

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
refuse(struct reading *r, int status, const char *text)
{
	*r->status = status;
	buf_reset(r->error);
	buf_adds(r->error, text);
	return false;
}

static const struct pyvalue *
first_of(const struct pyvalue *list)
{
	return list == NULL || list->type != PYVALUE_ARRAY ?
	    NULL :
	    list->u.parts.first;
}

/* ,"name":value, or nothing where it was not sent. */
static void
add_member(struct buf *out, const char *name, const struct pyvalue *value)
{
	if (pyvalue_is_absent(value))
		return;
	buf_addf(out, ",\"%s\":", name);
	pydump_add(out, value);
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
add_params(struct buf *out, const struct pyvalue *tool)
{
	const struct pyvalue *all = pyvalue_get(tool, "parameters");
	const struct pyvalue *one;

	all = all == NULL ? NULL : pyvalue_get(all, "properties");
	one = all == NULL || all->type != PYVALUE_OBJECT ? NULL :
							   all->u.parts.first;
	buf_adds(out, ",\"params\":[");
	for (const char *comma = ""; one != NULL; one = one->next) {
		pydump_addf(out, PYDUMP_UTF8, "%s\"%.*s\"", comma,
		    (int)one->name_len, one->name);
		comma = ",";
	}
	buf_addc(out, ']');
}

static bool
add_tools(struct reading *r, const struct pyvalue *tools)
{
	struct buf *out = &r->p->state;

	if (first_of(tools) == NULL)
		return refuse(r, 400,
		    "Missing required field: tools "
		    "(must be a non-empty array)");
	if (tools->count > LIBRE_TOOLS_MAX)
		return refuse(r, 400, "tools must have at most 100 items");
	buf_adds(out, ",\"tools\":[");
	for (const struct pyvalue *tool = first_of(tools); tool != NULL;
	     tool = tool->next) {
		const char *name = pyvalue_text(pyvalue_get(tool, "name"));

		if (name == NULL || !can_be_called(name))
			return refuse(r, 400,
			    "tools[].name must be a name that can be called");
		pydump_addf(out, PYDUMP_UTF8, "%s{\"name\":\"%s\"",
		    tool == first_of(tools) ? "" : ",", name);
		add_params(out, tool);
		buf_addc(out, '}');
	}
	buf_addc(out, ']');
	return true;
}

static bool
begin(struct reading *r, const struct pyvalue *root)
{
	const struct pyvalue *lang = pyvalue_get(root, "lang");
	const struct pyvalue *code = pyvalue_get(root, "code");
	struct buf *out = &r->p->state;

	if (pyvalue_is_absent(code))
		return refuse(r, 400, "Missing required field: code");
	buf_adds(out, "{\"request\":{\"lang\":");
	if (pyvalue_is_absent(lang))
		buf_adds(out, "\"py\"");
	else
		pydump_add(out, lang);
	add_member(out, "code", code);
	add_member(out, "files", pyvalue_get(root, "files"));
	add_member(out, "timeout", pyvalue_get(root, "timeout"));
	buf_addc(out, '}');
	if (!add_tools(r, pyvalue_get(root, "tools")))
		return false;
	buf_addf(out, ",\"session\":\"%s\",\"round\":1,\"history\":[]",
	    r->asked->session);
	return true;
}

/* ---- a program goes on ---- */

static bool
is_mine(const struct reading *r, const struct pyvalue *old)
{
	const char *owner = pyvalue_text(pyvalue_get(old, "owner"));
	char hex[OWNER_HEX];
	int64_t until;

	(void)sodium_bin2hex(hex, sizeof(hex), r->asked->owner,
	    LIBRE_OWNER_LEN);
	return owner != NULL && strcmp(owner, hex) == 0 &&
	    pyvalue_integer(pyvalue_get(old, "expires"), &until) &&
	    r->asked->now_ms < until;
}

/* What the client says of that call; NULL: nothing. */
static const struct pyvalue *
result_of(const struct pyvalue *results, const struct pyvalue *call)
{
	const char *id = pyvalue_text(pyvalue_get(call, "id"));

	for (const struct pyvalue *one = first_of(results); one != NULL;
	     one = one->next) {
		const char *of = pyvalue_text(pyvalue_get(one, "call_id"));

		if (id != NULL && of != NULL && strcmp(of, id) == 0)
			return one;
	}
	return NULL;
}

static void
add_result(struct buf *out, const struct pyvalue *call,
    const struct pyvalue *told)
{
	const struct pyvalue *failed = pyvalue_get(told, "is_error");
	const struct pyvalue *result = pyvalue_get(told, "result");
	const struct pyvalue *why = pyvalue_get(told, "error_message");

	buf_adds(out, "{\"name\":");
	pydump_add(out, pyvalue_get(call, "name"));
	buf_adds(out, ",\"input\":");
	pydump_add(out, pyvalue_get(call, "input"));
	buf_addf(out, ",\"is_error\":%s",
	    failed != NULL && failed->type == PYVALUE_BOOL && failed->u.truth ?
		"true" :
		"false");
	if (why != NULL && why->type == PYVALUE_STRING)
		add_member(out, "error_message", why);
	else
		buf_adds(out, ",\"error_message\":\"\"");
	if (pyvalue_is_absent(result))
		buf_adds(out, ",\"result\":null");
	else
		add_member(out, "result", result);
	buf_addc(out, '}');
}

static void
add_history(struct buf *out, const struct pyvalue *old,
    const struct pyvalue *results)
{
	const char *comma = "";

	buf_adds(out, ",\"history\":[");
	for (const struct pyvalue *one = first_of(pyvalue_get(old, "history"));
	     one != NULL; one = one->next) {
		buf_adds(out, comma);
		comma = ",";
		pydump_add(out, one);
	}
	for (const struct pyvalue *call = first_of(pyvalue_get(old, "pending"));
	     call != NULL; call = call->next) {
		const struct pyvalue *told = result_of(results, call);

		if (told == NULL)
			continue;
		buf_adds(out, comma);
		comma = ",";
		add_result(out, call, told);
	}
	buf_addc(out, ']');
}

static bool
take_token(struct reading *r, const struct pyvalue *root,
    const struct pyvalue *old)
{
	const struct pyvalue *results = pyvalue_get(root, "tool_results");
	struct buf *out = &r->p->state;
	int64_t round = 0;

	if (!is_mine(r, old))
		return refuse(r, 404, GONE);
	if (!pyvalue_is_absent(results) && results->type != PYVALUE_ARRAY)
		return refuse(r, 400, "tool_results must be an array");
	if (!pyvalue_integer(pyvalue_get(old, "round"), &round))
		return refuse(r, 400, INVALID);
	buf_adds(out, "{\"request\":");
	pydump_add(out, pyvalue_get(old, "request"));
	add_member(out, "tools", pyvalue_get(old, "tools"));
	add_member(out, "session", pyvalue_get(old, "session"));
	buf_addf(out, ",\"round\":%" PRId64, round + 1);
	add_history(out, old, results);
	return true;
}

static bool
go_on(struct reading *r, const struct pyvalue *root,
    const struct pyvalue *token)
{
	auto_buf struct buf text = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	const char *sealed = pyvalue_text(token);
	struct pyjson_error fault;
	struct pyjson old;
	bool good;

	if (sealed == NULL || strlen(sealed) > LIBRE_TOKEN_TEXT_MAX ||
	    !libre_unseal(&text, sealed, strlen(sealed), r->asked->key) ||
	    !pyjson_parse(&old, buf_str(&text), text.len, PYJSON_BYTES, &fault))
		return refuse(r, 400, INVALID);
	good = take_token(r, root, &old.root);
	pyjson_release(&old);
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
load(struct reading *r)
{
	auto_buf struct buf request = BUF_INIT(BUILD_MAX);
	struct libre_program *p = r->p;
	struct pyjson_error fault;
	const char *session;

	if (p->state.overflow)
		return refuse(r, 413, LIBRE_STATE_TOO_LARGE);
	buf_add(&p->whole, buf_str(&p->state), p->state.len);
	buf_addc(&p->whole, '}');
	if (!pyjson_parse(&p->doc, buf_str(&p->whole), p->whole.len,
		PYJSON_BYTES, &fault))
		return refuse(r, 400, "The body is nested too deeply");
	pydump_add(&request, pyvalue_get(&p->doc.root, "request"));
	if (!libre_exec_parse(&p->exec, buf_str(&request), request.len,
		r->status, r->error))
		return false;
	session = pyvalue_text(pyvalue_get(&p->doc.root, "session"));
	if (session == NULL || !libre_is_id(session, strlen(session)) ||
	    !pyvalue_integer(pyvalue_get(&p->doc.root, "round"), &p->round))
		return refuse(r, 400, INVALID);
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
	const struct pyvalue *token;
	struct pyjson_error fault;
	struct pyjson doc;
	bool good;

	memset(p, 0, sizeof(*p));
	buf_init(&p->state, LIBRE_STATE_MAX);
	buf_init(&p->whole, LIBRE_STATE_MAX + 1);
	if (!pyjson_parse(&doc, body, len, PYJSON_BYTES, &fault))
		return refuse(&r, 400, "The body is not valid JSON");
	token = pyvalue_get(&doc.root, "continuation_token");
	good = pyvalue_is_absent(token) ? begin(&r, &doc.root) :
					  go_on(&r, &doc.root, token);
	pyjson_release(&doc);
	if (good && load(&r))
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
	pyjson_release(&p->doc);
	pyjson_release(&p->exec.doc);
}

/* ---- the calls of a round ---- */

static bool
is_registered(const struct libre_program *p, const char *name)
{
	for (const struct pyvalue *tool =
		 first_of(pyvalue_get(&p->doc.root, "tools"));
	     tool != NULL; tool = tool->next)
		if (strcmp(pyvalue_text(pyvalue_get(tool, "name")), name) == 0)
			return true;
	return false;
}

static bool
add_call(const struct libre_program *p, const struct pyvalue *call, size_t i,
    struct buf *calls, struct buf *error)
{
	const char *name = pyvalue_text(pyvalue_get(call, "name"));
	const struct pyvalue *input = pyvalue_get(call, "input");

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
	pydump_addf(calls, PYDUMP_UTF8,
	    "%s{\"id\":\"call_%" PRId64 "_%" PRId64
	    "\",\"name\":\"%s\",\"input\":",
	    i == 0 ? "" : ",", p->round, (int64_t)i, name);
	pydump_add(calls, input);
	buf_addc(calls, '}');
	return true;
}

bool
libre_calls_read(const struct libre_program *p, const char *text, size_t len,
    struct buf *calls, struct buf *error)
{
	struct pyjson_error fault;
	struct pyjson doc = { 0 };
	bool good;
	size_t i = 0;

	buf_adds(error, LIBRE_FAILED);
	if (len > LIBRE_CALLS_BYTES ||
	    !pyjson_parse(&doc, text, len, PYJSON_STRICT, &fault))
		return false;
	good = first_of(&doc.root) != NULL && doc.root.count <= LIBRE_CALLS_MAX;
	buf_addc(calls, '[');
	for (const struct pyvalue *call = first_of(&doc.root);
	     good && call != NULL; call = call->next)
		good = add_call(p, call, i++, calls, error);
	buf_addc(calls, ']');
	pyjson_release(&doc);
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
