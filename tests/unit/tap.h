/* SPDX-License-Identifier: MIT */
#ifndef TAP_H
#define TAP_H

/*
 * The Test Anything Protocol for C unit tests, read by prove(1).  Each macro is
 * one test point and evaluates its arguments once; a failure prints what was
 * there and what was wanted.  End main with `return tap_done();`: the plan is
 * printed there, so that a test that dies early has none and is red.
 */
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int tap_count;
static int tap_failed;

static inline bool
tap_point(bool good, const char *name, const char *file, int line)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, name);
	if (!good) {
		tap_failed++;
		printf("# at %s line %d\n", file, line);
	}
	(void)fflush(stdout);
	return good;
}

static inline void
tap_int(int64_t got, int64_t want, const char *name, const char *file, int line)
{
	if (!tap_point(got == want, name, file, line))
		printf("# got %" PRId64 ", want %" PRId64 "\n", got, want);
}

static inline void
tap_str(const char *got, const char *want, const char *name, const char *file,
    int line)
{
	bool same = got != NULL && want != NULL ? strcmp(got, want) == 0 :
						  got == want;

	if (!tap_point(same, name, file, line))
		printf("# got \"%s\"\n# want \"%s\"\n",
		    got != NULL ? got : "(null)",
		    want != NULL ? want : "(null)");
}

static inline int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed == 0 ? 0 : 1;
}

static char tap_folder_path[] = "/tmp/inline-test-XXXXXX";
static pid_t tap_folder_owner;

static inline int
tap_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
tap_folder_remove(void)
{
	if (getpid() == tap_folder_owner)
		(void)nftw(tap_folder_path, tap_remove, 16,
		    FTW_DEPTH | FTW_PHYS);
}

/* A new folder that is removed when the test exits.  Call it once. */
static inline const char *
tap_folder(void)
{
	if (mkdtemp(tap_folder_path) == NULL) {
		perror("mkdtemp");
		exit(1);
	}
	tap_folder_owner = getpid();
	(void)atexit(tap_folder_remove);
	return tap_folder_path;
}

#define ok(good, name) (void)tap_point((good), (name), __FILE__, __LINE__)
#define is_int(got, want, name) \
	tap_int((int64_t)(got), (int64_t)(want), (name), __FILE__, __LINE__)
#define is_str(got, want, name) \
	tap_str((got), (want), (name), __FILE__, __LINE__)
#define is_mem(got, got_len, want, want_len, name) \
	ok((got_len) == (want_len) && memcmp((got), (want), (want_len)) == 0, \
	    (name))
#define note(...) (void)(printf("# " __VA_ARGS__), printf("\n"))
/* The rest of the file cannot run here: prove shows the reason, and passes. */
#define skip_all(why) (printf("1..0 # SKIP %s\n", (why)), exit(0))

#endif
