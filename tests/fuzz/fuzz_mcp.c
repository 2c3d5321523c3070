/* SPDX-License-Identifier: MIT */
/* Any bytes as a message of the Model Context Protocol, with headers, as the
 * arguments of a tool and as what a run prints: each answer is JSON in ASCII on
 * one line, and what is taken keeps the promises of its headers. */
#include "fuzz.h"

#include "base/basics.h"
#include "base/utf8.h"
#include "contract/media.h"
#include "contract/mcp/mcp_message.h"
#include "contract/mcp/mcp_result.h"
#include "contract/mcp/mcp_tools.h"
#include "contract/json.h"

static const char *const interpreters[] = { "3.11", NULL };
static json_t *list;
static const char *const versions[] = { NULL, "2025-11-25", "2026-07-28",
	"2030-01-01" };
static const char *const methods[] = { "tools/call", "tools/list",
	"resources/read", NULL };

static void
check_json(const struct buf *json)
{
	struct jtree doc;
	struct jtree_error error;

	fuzz_holds(!json->overflow, "short enough");
	for (size_t i = 0; i < json->len; i++)
		fuzz_holds((unsigned char)json->data[i] >= 0x20 &&
			(unsigned char)json->data[i] < 0x80,
		    "ASCII on one line");
	fuzz_holds(jtree_parse(&doc, buf_str(json), json->len, &error), "JSON");
	jtree_release(&doc);
}

static void
check_bytes(const struct cell_bytes *bytes)
{
	if (bytes->data == NULL)
		return;
	fuzz_holds(bytes->data[bytes->len] == '\0', "it ends");
}

static void
check_call(struct mcp_message *m)
{
	auto_buf struct buf why = BUF_INIT(65536);
	auto_buf struct buf out = BUF_INIT(MCP_ANSWER_MAX);
	struct mcp_call call;

	if (!mcp_call_parse(&call, m, list, &why)) {
		fuzz_holds(why.len > 0 || m->error != NULL, "a reason");
		mcp_add_answer(&out, m,
		    why.len > 0 ? mcp_trouble("%s", buf_str(&why)) : NULL);
		check_json(&out);
	} else {
		check_bytes(&call.code);
		check_bytes(&call.input);
		check_bytes(&call.file.path);
		fuzz_holds(call.file.path.data[0] != '/' &&
			strstr(call.file.path.data, "..") !=
			    call.file.path.data,
		    "a path");
		for (size_t i = 0; i < call.files.count; i++) {
			const struct mcp_file *files = call.files.items;

			check_bytes(&files[i].path);
			check_bytes(&files[i].content);
			fuzz_holds(files[i].path.len > 0, "a name");
		}
	}
}

/* Progress of a run, as the client gets it. */
static void
check_progress(const struct mcp_message *m, const struct mcp_output *o)
{
	auto_buf struct buf line = BUF_INIT(800);
	auto_buf struct buf out = BUF_INIT(65536);

	mcp_output_last_line(&line, o, 200);
	fuzz_holds(!line.overflow && utf8_valid(buf_str(&line), line.len),
	    "a line is text");
	if (m->progress == NULL)
		return;
	mcp_add_progress(&out, m, 1, 2, &line);
	check_json(&out);
}

/* The same bytes as all that a run can leave; times: how often it prints
 * them. */
static void
check_results(const struct mcp_message *m, char *data, size_t len, size_t times)
{
	struct mcp_output o = MCP_OUTPUT_INIT;
	struct cell_result cell = { .reason = REASON_EXIT };
	auto_buf struct buf out = BUF_INIT(MCP_ANSWER_MAX);
	char id[] = "id";
	struct run_file left = { .path = data,
		.id = id,
		.type = media_type(data, data, len),
		.content = BUF_INIT(len) };
	struct run_files files = { &left, 1 };
	const struct mcp_run run = {
		.out = &o, .err = &o, .cell = &cell, .files = &files
	};
	const char *at = NULL;

	for (size_t i = 0; i < times; i++) {
		mcp_output_add(&o, data, len / 2);
		mcp_output_add(&o, data + len / 2, len - len / 2);
	}
	check_progress(m, &o);
	buf_add(&left.content, data, len);
	mcp_add_answer(&out, m, mcp_pack_run(&run));
	check_json(&out);
	buf_reset(&out);
	mcp_add_answer(&out, m,
	    mcp_pack_read(data, data, len, 0, (int64_t)len + 1));
	check_json(&out);
	buf_reset(&out);
	mcp_add_answer(&out, m, mcp_pack_contents(m->id, data, data, len));
	check_json(&out);
	fuzz_holds(mcp_uri_id(data, len, &at) <= len, "an id");
	buf_release(&left.content);
	buf_release(&o.kept);
}

/* Of a picture no more is read than there is. */
static void
check_picture(const char *data, size_t len)
{
	const char *type = media_type("", data, len);

	if (media_is_picture(type) &&
	    media_picture_fault(&type, data, len) == NULL)
		fuzz_holds(media_is_picture(type), "a picture");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_head head = { .content_type = "application/json" };
	auto_buf struct buf out = BUF_INIT(MCP_ANSWER_MAX);
	struct mcp_message m;
	char *body;

	if (list == NULL)
		list = mcp_list_read(interpreters);
	if (size == 0)
		return 0;
	head.version = versions[data[0] & 3];
	head.method = methods[data[0] >> 2 & 3];
	head.name = data[0] & 16 ? "=?base64?cnVuX3B5dGhvbg==?=" : "run_python";
	body = fuzz_text(data + 1, size - 1);
	check_picture(body, size - 1);
	if (!mcp_message_parse(&m, &head, body, size - 1)) {
		fuzz_holds(m.status == 200 || m.status == 400 ||
			m.status == 404,
		    "a status");
		mcp_add_answer(&out, &m, NULL);
		check_json(&out);
	} else if (m.kind == MCP_REQUEST) {
		if (m.method == MCP_TOOLS_CALL)
			check_call(&m);
		check_results(&m, body, size - 1,
		    data[0] & 64 ? 2 * MCP_HEAD_BYTES / size + 1 : 1);
	}
	mcp_message_release(&m);
	free(body);
	return 0;
}
