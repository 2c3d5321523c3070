/* SPDX-License-Identifier: MIT */
/* Any bytes as JSON: what is read is written, and read again is the same. */
#include "fuzz.h"

#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "pytext/pydump.h"
#include "pytext/pyjson.h"

#define TEXT_MAX ((size_t)1 << 24)

static void
check_error(const struct pyjson_error *error, size_t size)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);

	pyjson_explain(&text, error);
	fuzz_holds(utf8_valid(buf_str(&text), text.len), "says text");
	fuzz_holds(error->position <= size, "inside the input");
	fuzz_holds(error->column <= error->position + 1, "a column");
}

/* exact: nothing changes when it is written and read again.  Otherwise two
 * surrogates side by side, which came as bytes, become one character, as they
 * do in Python. */
static void
check_again(const struct pyjson *doc, bool exact)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	auto_buf struct buf again = BUF_INIT(TEXT_MAX);
	auto_buf struct buf repr = BUF_INIT(TEXT_MAX);
	struct pyjson copy;
	struct pyjson_error error;

	pydump_add_repr(&repr, &doc->root);
	fuzz_holds(utf8_valid(buf_str(&repr), repr.len), "repr is text");
	pydump_add(&text, &doc->root);
	fuzz_holds(utf8_valid(buf_str(&text), text.len), "JSON is text");
	if (text.overflow)
		return;
	fuzz_holds(pyjson_parse(&copy, buf_str(&text), text.len, PYJSON_DECODED,
		       &error),
	    "what we write can be read");
	pydump_add(&again, &copy.root);
	fuzz_holds(!exact ||
		(text.len == again.len &&
		    memcmp(buf_str(&text), buf_str(&again), text.len) == 0),
	    "and is the same");
	pyjson_release(&copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *body = fuzz_text(data, size);

	for (int source = 0; source < 2; source++) {
		struct pyjson doc;
		struct pyjson_error error;

		if (!pyjson_parse(&doc, body, size,
			source == 0 ? PYJSON_DECODED : PYJSON_BYTES, &error)) {
			check_error(&error, size);
			continue;
		}
		check_again(&doc, source == 0);
		pyjson_release(&doc);
	}
	free(body);
	return 0;
}
