/* Packages as people name them: whatever passes cannot be an option, a path or
 * a URL. */
#include "fuzz.h"

#include <string.h>

#include "sandbox/worker/requirement.h"

static void
check(const char *word)
{
	const char *name = word + strspn(word, " ");

	fuzz_holds(strlen(word) <= 500, "short");
	fuzz_holds((*name >= 'a' && *name <= 'z') ||
		(*name >= 'A' && *name <= 'Z') ||
		(*name >= '0' && *name <= '9'),
	    "begins with a letter or digit");
	fuzz_holds(strpbrk(word, "/:@\\#%$&|`\n\t") == NULL,
	    "no path, no URL, no reference");
	for (; *word != '\0'; word++)
		fuzz_holds(*word >= ' ' && *word <= '~', "plain ASCII");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct requirements words;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (requirements_parse(&words, text) == REQUIREMENTS_OK)
		for (size_t i = 0; i < words.count; i++)
			check(words.words[i]);
	fuzz_holds(words.count <= REQUIREMENTS_MAX &&
		words.words[words.count] == NULL,
	    "at most so many, NULL at the end");
	requirements_release(&words);
	free(text);
	return 0;
}
