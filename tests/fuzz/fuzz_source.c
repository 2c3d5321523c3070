/* SPDX-License-Identifier: MIT */
/* Code as people send it. */
#include "fuzz.h"

#include <string.h>

#include "base/utf8.h"
#include "worker/commands/source.h"

/* Code that was read is the same code when it is read once more, as the editor
 * and a shared answer do. */
static void
read_again(const struct source *source)
{
	struct source again;

	source_read(&again, buf_str(&source->code), SOURCE_TEXT);
	fuzz_holds(!source->settled || source->code.len == 0 ||
		strcmp(buf_str(&again.code), buf_str(&source->code)) == 0,
	    "code that is given back is the same");
	source_release(&again);
}

static void
read_as(const char *text, enum source_kind kind)
{
	size_t len = strlen(text);
	bool valid = utf8_valid(text, len);
	struct source source;
	struct source all = { .code = BUF_INIT(2 * SOURCE_TEXT_MAX) };

	source_read(&source, text, kind);
	fuzz_holds(strlen(buf_str(&source.code)) == source.code.len,
	    "code has its length");
	fuzz_holds(!source.code.overflow && !source.input.overflow,
	    "nothing is cut");
	fuzz_holds(source.code.len + source.input.len <=
		len + source.pieces + 1,
	    "code is no longer than the text");
	fuzz_holds(strchr(buf_str(&source.code), '\r') == NULL ||
		kind == SOURCE_NOTEBOOK || *text == '{',
	    "line ends are \\n");
	fuzz_holds(!valid ||
		(utf8_valid(buf_str(&source.code), source.code.len) &&
		    utf8_valid(buf_str(&source.input), source.input.len)),
	    "valid text stays valid");
	fuzz_holds(!source.certain || source.pieces > 0,
	    "nothing is not certain");
	fuzz_holds((source.pieces == 0) == (source.code.len == 0),
	    "a piece is not empty");
	fuzz_holds(source.other_count <= SOURCE_OTHERS_MAX,
	    "languages are bounded");
	fuzz_holds(source.too_many || source.pieces <= SOURCE_PIECES_MAX ||
		source.fault == SOURCE_FINE,
	    "pieces are bounded");
	fuzz_holds(source.fault == SOURCE_FINE || source.code.len == 0,
	    "a fault has no code");
	read_again(&source);
	source_append(&all, &source);
	fuzz_holds(strcmp(buf_str(&all.code), buf_str(&source.code)) == 0,
	    "one alone is all");
	source_release(&all);
	source_release(&source);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char *content;
	size_t len = 0;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	read_as(text, SOURCE_TEXT);
	read_as(text, SOURCE_NOTEBOOK);
	content = source_content(text, &len);
	fuzz_holds(strlen(content) == len, "content has its length");
	fuzz_holds(len <= strlen(text), "content is no longer than the text");
	free(content);
	free(text);
	return 0;
}
