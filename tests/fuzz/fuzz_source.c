/* SPDX-License-Identifier: MIT */
/* Code as people paste it. */
#include "fuzz.h"

#include <string.h>

#include "sandbox/base/utf8.h"
#include "sandbox/worker/commands/source.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char *code;
	char *content;
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
	free(code);
	free(content);
	free(text);
	return 0;
}
