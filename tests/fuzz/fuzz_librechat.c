/* SPDX-License-Identifier: MIT */
/* Any bytes as a request of LibreChat's, as a token, a query, an id, a file of
 * keys, and as what a run leaves: what is taken keeps the promises of the
 * headers, every answer is JSON. */
#include "fuzz.h"

#include "base/utf8.h"
#include "contract/json.h"
#include "contract/librechat/libre_program.h"
#include "contract/librechat/libre_token.h"

static void
check_text(const char *text, size_t len)
{
	struct jtree doc;
	struct jtree_error error;

	fuzz_holds(jtree_parse(&doc, text, len, &error), "an answer is JSON");
	jtree_release(&doc);
}

/* Releases the value. */
static void
check_json(json_t *value)
{
	auto_buf struct buf text = BUF_INIT(1 << 24);

	fuzz_holds(value != NULL, "an answer");
	jtext_add(&text, value, JSON_COMPACT);
	json_decref(value);
	fuzz_holds(!text.overflow, "a bounded answer");
	check_text(buf_str(&text), text.len);
}

static void
check_files(const struct libre_exec *exec)
{
	for (size_t i = 0; i < exec->file_count; i++) {
		const struct libre_file *file = &exec->files[i];

		fuzz_holds(libre_is_id(file->id) && libre_is_id(file->session),
		    "ids");
		fuzz_holds(libre_name_fault(file->name) == NULL, "a name");
		fuzz_holds(strcmp(file->name, exec->entry) != 0,
		    "the code has a name of its own");
		fuzz_holds(strncmp(file->name, exec->place,
			       strlen(exec->place)) != 0 ||
			(file->name[strlen(exec->place)] != '\0' &&
			    file->name[strlen(exec->place)] != '/'),
		    "a folder of our own");
	}
}

static void
check_request(const char *body, size_t len)
{
	struct api_error error;
	struct libre_exec exec;

	if (libre_exec_parse(&exec, body, len, &error)) {
		fuzz_holds(exec.code.data[exec.code.len] == '\0' &&
			utf8_valid(exec.code.data, exec.code.len),
		    "code is text");
		fuzz_holds(exec.timeout_ms > 0 &&
			exec.timeout_ms <= LIBRE_TIMEOUT_MAX_MS,
		    "a time");
		check_files(&exec);
		jtree_release(&exec.doc);
	} else {
		fuzz_holds(error.status == 400 || error.status == 403,
		    "a status");
		check_json(libre_pack_error(error.text, NULL));
	}
}

/* The key is the first 32 bytes: nobody signs with what it says. */
static void
check_token(const char *text, size_t len)
{
	struct libre_keys keys = { .count = 1 };
	struct libre_claims claims;
	struct err err;
	struct api_error error;

	memcpy(keys.items[0].key, text, len < 32 ? len : 32);
	fuzz_holds(!libre_token_check(&claims, &keys, 1000, text, &error),
	    "no token");
	(void)libre_keys_parse(&keys, text, &err);
	fuzz_holds(keys.count <= LIBRE_KEYS_MAX, "so many keys");
}

static void
check_id(const char *text)
{
	char uuid[LIBRE_UUID_LEN + 1];
	char id[LIBRE_ID_LEN + 1];
	char value[LIBRE_RESOURCE_MAX + 1];

	if (libre_id_to_file(uuid, text)) {
		libre_id_of_file(id, uuid);
		fuzz_holds(memcmp(id, text, LIBRE_ID_LEN) == 0, "the same id");
	}
	if (libre_query_get(text, "id", value))
		fuzz_holds(strlen(value) <= LIBRE_RESOURCE_MAX, "short");
}

#define UUID "01234567-89ab-4cde-bf01-23456789abcd"

static void
check_answer(const char *text, size_t len)
{
	char name[256] = "";
	struct run_file made = { .path = name, .why = "x" };
	const struct run_files files = { &made, 1 };
	const struct cell_result cell = { .reason = REASON_EXIT };
	struct libre_outcome outcome = { .session = "S",
		.out = BUF_INIT(100),
		.err = BUF_INIT(100),
		.cell = &cell,
		.files = &files };

	memcpy(name, text, len < 255 ? len : 255);
	libre_stream_add(&outcome.out, text, len);
	libre_stream_add(&outcome.err, text, len);
	check_json(libre_pack_outcome(&outcome));
	check_json(libre_pack_end(&outcome, libre_find_error(&outcome)));
	check_json(libre_pack_stored("S", UUID, name, 1, 1, false, LIBRE_FULL));
	check_json(libre_pack_stored("S", UUID, name, 1, 1, false,
	    LIBRE_OBJECT));
	buf_release(&outcome.out);
	buf_release(&outcome.err);
}

static const unsigned char seal[LIBRE_SEAL_KEY_LEN];
static const unsigned char owner[LIBRE_OWNER_LEN];
static const struct libre_asked asked = { seal, owner, 1,
	"SSSSSSSSSSSSSSSSSSSSS" };

static void
check_program(const char *body, size_t len)
{
	struct api_error error;
	struct libre_program p;

	if (libre_program_parse(&p, body, len, &asked, &error)) {
		check_text(buf_str(&p.text), p.text.len);
		check_files(&p.exec);
		fuzz_holds(p.round == 1 && p.text.len <= LIBRE_STATE_MAX,
		    "a first round");
		libre_program_release(&p);
	} else {
		fuzz_holds(error.status == 400 || error.status == 403 ||
			error.status == 413,
		    "a status");
		check_json(libre_pack_error(error.text, NULL));
	}
}

/* The calls that a run leaves open come back with their results. */
static void
check_calls(const char *text, size_t len)
{
	static const char body[] =
	    "{\"code\":\"\",\"tools\":[{\"name\":\"c\"}]}";
	struct api_error error;
	json_t *calls;
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	auto_buf struct buf next = BUF_INIT(LIBRE_TOKEN_TEXT_MAX + 100);
	struct libre_program p;

	fuzz_holds(libre_program_parse(&p, body, strlen(body), &asked, &error),
	    "a program");
	calls = libre_calls_read(&p, text, len, &error);
	if (calls != NULL && libre_program_seal(&p, &asked, calls, &token)) {
		libre_program_release(&p);
		buf_addf(&next, "{\"continuation_token\":\"%s\"}",
		    buf_str(&token));
		/* Nested so deeply that it is over a bound of JSON, or good. */
		json_decref(calls);
		if (!libre_program_parse(&p, buf_str(&next), next.len, &asked,
			&error)) {
			fuzz_holds(error.status == 400, "a status");
			return;
		}
		fuzz_holds(p.round == 2, "the next round");
	} else {
		json_decref(calls);
	}
	libre_program_release(&p);
}

/* The program goes on, with any result of a call. */
static void
check_results(const char *text, size_t len)
{
	static const char body[] =
	    "{\"code\":\"\",\"tools\":[{\"name\":\"c\"}]}";
	static struct buf token = BUF_INIT(4096);
	struct api_error error;
	auto_buf struct buf next = BUF_INIT(len + 8192);
	struct libre_program p;
	json_t *calls;

	if (token.len == 0) {
		fuzz_holds(libre_program_parse(&p, body, strlen(body), &asked,
			       &error),
		    "a program");
		calls = json_pack("[{s:s,s:s,s:{}}]", "id", "c", "name", "c",
		    "input");
		fuzz_holds(libre_program_seal(&p, &asked, calls, &token),
		    "a token");
		json_decref(calls);
		libre_program_release(&p);
	}
	buf_addf(&next, "{\"continuation_token\":\"%s\",\"tool_results\":",
	    buf_str(&token));
	buf_add(&next, text, len);
	buf_addc(&next, '}');
	if (!libre_program_parse(&p, buf_str(&next), next.len, &asked,
		&error)) {
		fuzz_holds(error.status == 400 || error.status == 403 ||
			error.status == 413,
		    "a status");
		return;
	}
	check_text(buf_str(&p.text), p.text.len);
	libre_program_release(&p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check_request(text, size);
	check_token(text, size);
	check_id(text);
	check_answer(text, size);
	check_program(text, size);
	check_calls(text, size);
	check_results(text, size);
	free(text);
	return 0;
}
