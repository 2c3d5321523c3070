/* SPDX-License-Identifier: MIT */
/* Any bytes as JSON: what is read is written, and read again is the same. */
#include "fuzz.h"

#include <string.h>

#include "base/basics.h"
#include "base/utf8.h"
#include "contract/json.h"

#define TEXT_MAX ((size_t)1 << 24)

static void
check_again(const struct jtree *doc)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_buf struct buf again = BUF_INIT(TEXT_MAX);
	struct jtree copy;
	struct jtree_error error;

	jtext_add(&text, doc->root, JSON_COMPACT);
	fuzz_holds(utf8_valid(buf_str(&text), text.len), "JSON is text");
	if (text.overflow)
		return;
	fuzz_holds(jtree_parse(&copy, buf_str(&text), text.len, &error),
	    "what we write can be read");
	jtext_add(&again, copy.root, JSON_COMPACT);
	fuzz_holds(text.len == again.len &&
		memcmp(buf_str(&text), buf_str(&again), text.len) == 0,
	    "and is the same");
	jtree_release(&copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *body = fuzz_text(data, size);
	struct jtree_error error;
	struct jtree doc;

	if (jtree_parse(&doc, body, size, &error)) {
		check_again(&doc);
		jtree_release(&doc);
	} else {
		fuzz_holds(error.text[0] != '\0', "an error has a text");
	}
	free(body);
	return 0;
}
