/* SPDX-License-Identifier: MIT */
/* Code as people paste it. */
#include "fuzz.h"

#include <string.h>

#include "sandbox/base/utf8.h"
#include "sandbox/worker/commands/blocks.h"
#include "sandbox/worker/commands/source.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char *code;
	char *content;
	struct blocks blocks;
	size_t len = 0;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	code = source_code(text, &len);
	fuzz_holds(strlen(code) == len, "code has its length");
	fuzz_holds(len <= strlen(text), "code is no longer than the text");
	fuzz_holds(strchr(code, '\r') == NULL, "line ends are \\n");
	fuzz_holds(!utf8_valid(text, strlen(text)) || utf8_valid(code, len),
	    "valid text stays valid");
	content = source_content(text, &len);
	fuzz_holds(strlen(content) == len, "content has its length");
	fuzz_holds(len <= strlen(text), "content is no longer than the text");
	blocks_find(&blocks, text);
	fuzz_holds(blocks.count <= BLOCKS_MAX, "pieces of code are bounded");
	fuzz_holds((blocks.count > 0) == (blocks.code.len > 0),
	    "a piece is not empty");
	fuzz_holds(blocks.code.len <= strlen(text) + BLOCKS_MAX,
	    "the pieces are no longer than the text");
	fuzz_holds(!utf8_valid(text, strlen(text)) ||
		utf8_valid(buf_str(&blocks.code), blocks.code.len),
	    "valid text stays valid");
	blocks_release(&blocks);
	free(code);
	free(content);
	free(text);
	return 0;
}
