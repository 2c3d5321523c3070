/* SPDX-License-Identifier: MIT */
/*
 * Run a fuzz target on known inputs, as a regression test that needs no fuzzer.
 *
 *	fuzz_frame FILE...	these files
 *	fuzz_frame		tests/fuzz/corpus/frame/, from the root
 *
 * Prints TAP.  An input that breaks the target kills this program before it has
 * printed the plan, which prove takes for a failure; the last comment names the
 * input.
 */
#include "fuzz.h"

#include <glob.h>
#include <string.h>

#define INPUT_MAX (1024 * 1024)

/* The exact size is allocated, so that a sanitizer sees a read beyond it. */
static int
replay(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *big = malloc(INPUT_MAX);
	uint8_t *data = NULL;
	size_t len = 0;

	if (file != NULL && big != NULL)
		len = fread(big, 1, INPUT_MAX, file);
	if (big != NULL)
		data = malloc(len > 0 ? len : 1);
	if (file == NULL || data == NULL)
		perror(path);
	if (data != NULL && big != NULL)
		memcpy(data, big, len);
	if (file != NULL)
		(void)fclose(file);
	free(big);
	if (file == NULL || data == NULL) {
		free(data);
		return -1;
	}
	(void)LLVMFuzzerTestOneInput(data, len);
	free(data);
	return 0;
}

static int
replay_all(char **paths, size_t count)
{
	size_t failed = 0;

	for (size_t i = 0; i < count; i++) {
		int rc;

		printf("# %s\n", paths[i]);
		(void)fflush(stdout);
		rc = replay(paths[i]);
		printf("%sok %zu - %s\n", rc == 0 ? "" : "not ", i + 1,
		    paths[i]);
		if (rc != 0)
			failed++;
	}
	printf("1..%zu\n", count);
	return failed == 0 && count > 0 ? 0 : 1;
}

/* The corpus of "…/fuzz_NAME" is tests/fuzz/corpus/NAME. */
static int
replay_corpus(const char *self)
{
	const char *name = strstr(self, "fuzz_");
	char pattern[256];
	glob_t found = { 0 };
	int rc = 1;

	for (const char *at = name; at != NULL; at = strstr(at + 1, "fuzz_"))
		name = at;
	if (name == NULL)
		return 1;
	(void)snprintf(pattern, sizeof(pattern), "tests/fuzz/corpus/%s/*",
	    name + strlen("fuzz_"));
	if (glob(pattern, 0, NULL, &found) == 0)
		rc = replay_all(found.gl_pathv, found.gl_pathc);
	else
		(void)fprintf(stderr, "nothing in %s\n", pattern);
	globfree(&found);
	return rc;
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return replay_all(argv + 1, (size_t)argc - 1);
	return replay_corpus(argv[0]);
}
