/* SPDX-License-Identifier: MIT */
/* Packages as people name them: whatever passes cannot be an option, a path or
 * a URL. */
#include "fuzz.h"

#include <string.h>
#include <strings.h>

#include "worker/render/render.h"

/* As pip decides whether it is a file: of what is before the marker, without
 * extras at the end, by the last suffix. */
static bool
is_archive(const char *word)
{
	static const char *const ends[] = { "zip", "whl", "bz2", "tbz", "gz",
		"tgz", "tar", "xz", "txz", "tlz", "lz", "lzma" };
	char text[512];
	size_t len = strcspn(word, ";");
	const char *dot;

	memcpy(text, word, len);
	while (len > 0 && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	if (len > 0 && text[len - 1] == ']' && strrchr(text, '[') != NULL)
		*strrchr(text, '[') = '\0';
	dot = strrchr(text, '.');
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (dot != NULL && strcasecmp(dot + 1, ends[i]) == 0)
			return true;
	return false;
}

static void
check(const char *word)
{
	const char *name = word + strspn(word, " ");

	fuzz_holds(strlen(word) <= 500, "short");
	fuzz_holds((*name >= 'a' && *name <= 'z') ||
		(*name >= 'A' && *name <= 'Z') ||
		(*name >= '0' && *name <= '9'),
	    "begins with a letter or digit");
	fuzz_holds(!is_archive(word), "no file");
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
