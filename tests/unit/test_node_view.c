/* SPDX-License-Identifier: MIT */
/* A run's view, as another node asks for it. */
#include "protocol/node_ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "tap.h"

static char code[] = "print(\"\xc3\xbc\")\n\t# \x01\x7f";
static char input[] = "5\n";
static char version[] = "3.13";

static void
test_both_ways(void)
{
	const struct node_view given = { code, input, version, true };
	struct node_view view = { .text = NULL };
	auto_free char *json = node_view_write(&given);
	struct err err;

	ok(strchr(json, '\n') == NULL, "one line");
	is_int(node_view_read(&view, json, strlen(json), &err), 0,
	    "what is written is read");
	is_str(view.text, code, "its code");
	is_str(view.input, input, "its input");
	is_str(view.version, version, "its version");
	ok(view.timeit, "and how it was run");
	node_view_release(&view);
	ok(view.text == NULL, "it is released");
}

static void
wrong(const char *json, size_t len, const char *name)
{
	struct node_view view = { .text = NULL };
	struct err err = { 0 };

	ok(node_view_read(&view, json, len, &err) == -1 &&
		err.code == ERR_PROTOCOL && view.text == NULL,
	    name);
}

static void
test_wrong(void)
{
	static const char *const lines[] = {
		"",
		"{",
		"[]",
		"null",
		"{}",
		"{\"text\":\"\",\"input\":\"\",\"version\":\"\","
		"\"timeit\":true}",
		"{\"text\":\"x\",\"version\":\"\",\"timeit\":true}",
		"{\"text\":\"x\",\"input\":1,\"version\":\"\",\"timeit\":true}",
		"{\"text\":\"x\",\"input\":\"\",\"version\":\"\",\"timeit\":1}",
		"{\"text\":\"\\u0000\",\"input\":\"\",\"version\":\"\","
		"\"timeit\":true}",
		"{\"text\":\"x\",\"input\":\"\",\"version\":\"\",\"timeit\":"
		"true} x",
		"{\"text\":\"\xff\",\"input\":\"\",\"version\":\"\","
		"\"timeit\":true}",
	};
	const char *more = "{\"text\":\"x\",\"input\":\"\",\"version\":\"\","
			   "\"timeit\":false,\"later\":[1]}";
	auto_node_view struct node_view view = { .text = NULL };
	struct err err;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		wrong(lines[i], strlen(lines[i]), lines[i]);
	is_int(node_view_read(&view, more, strlen(more), &err), 0,
	    "what is not known is passed over");
	ok(!view.timeit, "as it was run");
}

/* A view with the longest code, of the characters that take the most room. */
static void
test_long(void)
{
	auto_free char *most = xcalloc(NODE_VIEW_TEXT_MAX + 2, 1);
	const struct node_view given = { most, most, version, true };
	struct node_view view = { .text = NULL };
	auto_free char *json = NULL;
	auto_free char *more = NULL;
	struct err err;

	memset(most, '\1', NODE_VIEW_TEXT_MAX);
	json = node_view_write(&given);
	ok(strlen(json) <= NODE_VIEW_MAX, "it has room");
	is_int(node_view_read(&view, json, strlen(json), &err), 0,
	    "and is read");
	ok(strcmp(view.input, most) == 0, "whole");
	node_view_release(&view);
	most[NODE_VIEW_TEXT_MAX] = '\1';
	more = node_view_write(&given);
	wrong(more, strlen(more), "and no more than that");
}

int
main(void)
{
	test_both_ways();
	test_long();
	test_wrong();
	return tap_done();
}
