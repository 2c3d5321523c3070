/* SPDX-License-Identifier: MIT */
/* Programs that call tools: requests, the state that clients keep, the calls
 * that a run leaves, answers. */
#include "tap.h"

#include <sodium.h>
#include <stdlib.h>

#include "contract/librechat/libre_program.h"
#include "contract/json.h"
#include "protocol/cell.h"

#define S "AbCdEfGhIjKlMnOpQrStU"
#define BODY(more) \
	"{\"code\":\"x\\u00e9\",\"tools\":[{\"name\":\"a-b\",\"parameters\":{" \
	"\"properties\":{\"q\":{},\"p\":1}}},{\"name\":\"c\"}]" more "}"

static const unsigned char key[LIBRE_SEAL_KEY_LEN] = { 1 };
static const unsigned char owner[LIBRE_OWNER_LEN] = { 2 };
static struct libre_asked asked = { key, owner, 1000, S };

/* A token of a program that waits for one call, call_1_0. */
static void
make_token(struct buf *token, const struct libre_asked *by)
{
	static const char calls[] = "[{\"name\":\"c\",\"input\":{\"n\":1.5}}]";
	struct api_error error;
	auto_buf struct buf text = BUF_INIT(65536);
	struct libre_program p;
	json_t *list;

	ok(libre_program_parse(&p, BODY(""), strlen(BODY("")), by, &error),
	    "a program");
	list = libre_calls_read(&p, calls, strlen(calls), &error);
	jtext_add(&text, list, JSON_COMPACT);
	is_str(buf_str(&text),
	    "[{\"id\":\"call_1_0\",\"name\":\"c\",\"input\":{\"n\":1.5}}]",
	    "as the client has them");
	ok(libre_program_seal(&p, by, list, token), "sealed");
	json_decref(list);
	libre_program_release(&p);
}

/* The refusal of a request; "" for a request that runs. */
static const char *
refusal(const char *body)
{
	static struct buf text = BUF_INIT(4096);
	struct api_error error;
	struct libre_program p;

	buf_reset(&text);
	if (libre_program_parse(&p, body, strlen(body), &asked, &error))
		libre_program_release(&p);
	else
		buf_addf(&text, "%d %s", error.status, error.text);
	return buf_str(&text);
}

static const char *
token_refusal(const char *token, const char *more)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_TOKEN_TEXT_MAX + 4096);

	buf_addf(&body, "{\"continuation_token\":\"%s\"%s}", token, more);
	return refusal(buf_str(&body));
}

static void
test_begin(void)
{
	struct api_error error;
	struct libre_program p;

	ok(libre_program_parse(&p, BODY(",\"lang\":\"bash\",\"timeout\":5"),
	       strlen(BODY(",\"lang\":\"bash\",\"timeout\":5")), &asked,
	       &error),
	    "a program in bash");
	is_str(buf_str(&p.text),
	    "{\"request\":{\"lang\":\"bash\",\"code\":\"xé\",\"timeout\":5},"
	    "\"tools\":[{\"name\":\"a-b\",\"params\":[\"q\",\"p\"]},"
	    "{\"name\":\"c\",\"params\":[]}],\"session\":\"" S
	    "\",\"round\":1,\"history\":[]}",
	    "what is known of it");
	is_str(p.exec.code.data,
	    "eval \"$(python3 /mnt/data/.!tools__/libre_helper.py "
	    "--functions \"$$\")\"; xé",
	    "what runs");
	is_int(p.exec.timeout_ms, 5, "for how long");
	is_str(p.session, S, "its session");
	libre_program_release(&p);
	is_str(refusal("["), "400 The body is not valid JSON", "no JSON");
	is_str(refusal("[]"), "400 Missing required field: code", "a list");
	is_str(refusal("{\"code\":1,\"tools\":[{\"name\":\"c\"}]}"),
	    "400 code must be a string", "a number for code");
	is_str(refusal("{\"code\":\"\",\"tools\":{}}"),
	    "400 Missing required field: tools (must be a non-empty array)",
	    "no list of tools");
	is_str(refusal("{\"code\":\"\",\"tools\":[1]}"),
	    "400 tools[].name must be a name that can be called", "no tool");
	is_str(refusal(BODY(",\"files\":[{}]")), "400 files[0].name is missing",
	    "files as of /exec");
}

static void
test_go_on(void)
{
	static const char results[] =
	    ",\"tool_results\":[{\"call_id\":\"x\",\"result\":0},{\"call_id\":"
	    "\"call_1_0\",\"result\":null,\"is_error\":true,"
	    "\"error_message\":\"no\\u0000\\ud83d\"}]";
	struct api_error error;
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	auto_buf struct buf body = BUF_INIT(65536);
	struct libre_program p;

	make_token(&token, &asked);
	buf_addf(&body, "{\"continuation_token\":\"%s\"%s}", buf_str(&token),
	    results);
	asked.session = "another";
	ok(libre_program_parse(&p, buf_str(&body), body.len, &asked, &error),
	    "it goes on");
	asked.session = S;
	is_int(p.round, 2, "in the second round");
	is_str(p.session, S, "in its session");
	ok(strstr(buf_str(&p.text),
	       "\"history\":[{\"name\":\"c\",\"input\":{\"n\":1.5},"
	       "\"is_error\":true,\"error_message\":\"no\\u0000\ufffd\","
	       "\"result\":null}]}"),
	    "with what its calls gave");
	ok(strstr(buf_str(&p.text), "owner") == NULL, "and nothing of ours");
	libre_program_release(&p);
}

static void
test_tokens(void)
{
	static const unsigned char other[LIBRE_OWNER_LEN] = { 3 };
	struct libre_asked by = asked;
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	static char longer[LIBRE_TOKEN_TEXT_MAX + 2];

	make_token(&token, &asked);
	is_str(token_refusal(buf_str(&token), ""), "", "a token");
	is_str(token_refusal(buf_str(&token), ",\"tool_results\":1"),
	    "400 tool_results must be an array", "results that are none");
	asked.now_ms += LIBRE_STATE_MS - 1;
	is_str(token_refusal(buf_str(&token), ""), "", "in time");
	asked.now_ms++;
	is_str(token_refusal(buf_str(&token), ""),
	    "404 Execution not found or expired", "too late");
	asked.now_ms = 1000;
	buf_reset(&token);
	by.owner = other;
	make_token(&token, &by);
	is_str(token_refusal(buf_str(&token), ""),
	    "404 Execution not found or expired", "another one's");
	buf_reset(&token);
	by = asked;
	by.key = other;
	make_token(&token, &by);
	is_str(token_refusal(buf_str(&token), ""),
	    "400 Invalid continuation token", "of another key");
	memset(longer, 'A', sizeof(longer) - 1);
	is_str(token_refusal(longer, ""), "400 Invalid continuation token",
	    "a long one");
	is_str(token_refusal("", ""), "400 Invalid continuation token",
	    "an empty one");
	is_str(refusal("{\"continuation_token\":1}"),
	    "400 Invalid continuation token", "a number");
}

/* One bit of a token is another one. */
static void
test_forged(void)
{
	const int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	unsigned char bytes[1024];
	char forged[2048];
	size_t taken = 0;
	size_t len = 0;

	make_token(&token, &asked);
	ok(sodium_base642bin(bytes, sizeof(bytes), buf_str(&token), token.len,
	       NULL, &len, NULL, variant) == 0,
	    "the bytes of a token");
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 1;
		(void)sodium_bin2base64(forged, sizeof(forged), bytes, len,
		    variant);
		bytes[i] ^= 1;
		taken += strcmp(token_refusal(forged, ""),
			     "400 Invalid continuation token") != 0;
	}
	is_int(taken, 0, "none of them is ours");
}

/* The error of a list of calls; "" for one that is taken. */
static const char *
calls_error(const char *text)
{
	static struct api_error error;
	struct libre_program p;
	json_t *list;

	ok(libre_program_parse(&p, BODY(""), strlen(BODY("")), &asked, &error),
	    "a program");
	list = libre_calls_read(&p, text, strlen(text), &error);
	if (list != NULL)
		error.text[0] = '\0';
	json_decref(list);
	libre_program_release(&p);
	return error.text;
}

static void
test_calls(void)
{
	is_str(calls_error("[{\"name\":\"a-b\",\"input\":null}]"), "",
	    "any input");
	is_str(calls_error("[{\"name\":\"a_b\",\"input\":{}}]"),
	    "Sandbox requested an unregistered tool: a_b", "another tool");
	is_str(calls_error("[{\"name\":\"c\"}]"), LIBRE_FAILED, "no input");
	is_str(calls_error("[{\"name\":\"c\",\"input\":NaN}]"), LIBRE_FAILED,
	    "no JSON");
	is_str(calls_error("[]"), LIBRE_FAILED, "none");
	is_str(calls_error(""), LIBRE_FAILED, "nothing");
}

/* A value's text, until the next one; the value is released. */
static const char *
text_of(json_t *value)
{
	static struct buf text = BUF_INIT(1 << 20);

	buf_reset(&text);
	jtext_add(&text, value, JSON_COMPACT);
	json_decref(value);
	return buf_str(&text);
}

static void
test_answers(void)
{
	struct cell_result cell = { .reason = REASON_EXIT };
	const struct run_files files = { .count = 0 };
	struct libre_outcome o = { .session = S,
		.out = BUF_INIT(4),
		.err = BUF_INIT(4),
		.cell = &cell,
		.files = &files };
	json_auto_t *calls = json_array();

	ok(libre_find_error(&o) == NULL, "it has ended well");
	is_str(text_of(libre_pack_end(&o, NULL)),
	    "{\"status\":\"completed\",\"session_id\":\"" S
	    "\",\"stdout\":\"\",\"stderr\":\"\",\"files\":[]}",
	    "as the client is told");
	is_str(text_of(libre_pack_calls(&o, calls, "T")),
	    "{\"status\":\"tool_call_required\",\"session_id\":\"" S
	    "\",\"continuation_token\":\"T\",\"tool_calls\":[]}",
	    "without output");
	libre_stream_add(&o.out, "o", 1);
	libre_stream_add(&o.err, "e", 1);
	ok(strstr(text_of(libre_pack_calls(&o, calls, "T")),
	       ",\"partial_stdout\":\"o\",\"partial_stderr\":\"e\"}"),
	    "with it");
	cell.status = 3;
	o.note = "N";
	is_str(text_of(libre_pack_end(&o, libre_find_error(&o))),
	    "{\"status\":\"error\",\"error\":\"Sandbox exited with code 3\","
	    "\"session_id\":\"" S
	    "\",\"stdout\":\"o\",\"stderr\":\"e\\n[sandbox] N\\n\"}",
	    "it says that it has not, by its status");
	libre_stream_add(&o.err, "12345", 5);
	is_str(text_of(libre_find_error(&o)), "\"stderr length exceeded\"",
	    "too much of that");
	buf_release(&o.out);
	buf_release(&o.err);
}

int
main(void)
{
	test_begin();
	test_go_on();
	test_tokens();
	test_forged();
	test_calls();
	test_answers();
	return tap_done();
}
