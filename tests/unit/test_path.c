/* SPDX-License-Identifier: MIT */
/* Paths that people type: path.c and render_view.c. */
#include "protocol/path.h"

#include "tap.h"
#include "worker/render/collect.h"

static void
resolves(const char *cwd, const char *path, const char *want)
{
	char resolved[PATH_SIZE];
	char name[128];

	(void)snprintf(name, sizeof(name), "\"%s\" in \"%s\"", path, cwd);
	is_int(path_resolve(cwd, path, resolved), PATH_OK, name);
	is_str(resolved, want, name);
}

static void
refuses(const char *cwd, const char *path, enum path_result why)
{
	char resolved[PATH_SIZE] = "x";
	char name[64];

	(void)snprintf(name, sizeof(name), "refused: %.30s", path);
	is_int(path_resolve(cwd, path, resolved), why, name);
	is_str(resolved, "", "nothing is left of it");
}

static void
test_packages(void)
{
	is_str(path_in_packages(".site-packages"), "", "the packages");
	is_str(path_in_packages(".site-packages/a/b"), "a/b", "one of them");
	ok(path_in_packages(".site-packages2") == NULL, "a name like theirs");
	ok(path_in_packages("a/.site-packages") == NULL, "not at the top");
	ok(path_in_packages("") == NULL, "the workspace itself");
}

static void
test_resolve(void)
{
	test_packages();
	resolves("", "", "");
	resolves("", ".", "");
	resolves("", "a", "a");
	resolves("a/b", "", "a/b");
	resolves("a/b", "c", "a/b/c");
	resolves("a/b", "..", "a");
	resolves("a/b", "../..", "");
	resolves("a/b", "../../c/./d//", "c/d");
	resolves("a", "~", "");
	resolves("a", "~/b", "b");
	resolves("a", "~b", "a/~b");
	resolves("a", "b/~", "a/b/~");
	resolves("", "...", "...");
	resolves("", "a/..", "");
	resolves("", "with space/\xc3\xa9", "with space/\xc3\xa9");
	resolves("", "a\\b", "a\\b");
	refuses("", "..", PATH_OUTSIDE);
	refuses("a", "../..", PATH_OUTSIDE);
	refuses("a", "../../a", PATH_OUTSIDE);
	refuses("", "~/..", PATH_OUTSIDE);
	refuses("", "/", PATH_OUTSIDE);
	refuses("", "/workspace/a", PATH_OUTSIDE);
	refuses("", "//a", PATH_OUTSIDE);
}

static void
test_lengths(void)
{
	char name[300];
	char path[2000] = "";
	char resolved[PATH_SIZE];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	resolves("", name, name);
	name[255] = 'n';
	name[256] = '\0';
	refuses("", name, PATH_TOO_LONG);

	for (size_t i = 0; i < 512; i++)
		memcpy(path + 2 * i, "a/", 3);
	path[1023] = '\0'; /* 512 names, 511 slashes */
	is_int(path_resolve("", path, resolved), PATH_OK, "1,023 bytes");
	is_int(path_resolve("", "b", resolved), PATH_OK, "a short one");
	is_int(path_resolve(path, "bc", resolved), PATH_TOO_LONG,
	    "1,026 bytes with its directory");
	is_int(path_resolve(path, "~/b", resolved), PATH_OK,
	    "the directory does not count from the top");
}

static void
test_parts(void)
{
	ok(path_means_folder("a/"), "a/ is a folder");
	ok(path_means_folder(""), "nothing is the current one");
	ok(path_means_folder("."), ". is a folder");
	ok(path_means_folder("a/.."), "a/.. is a folder");
	ok(path_means_folder("~"), "~ is a folder");
	ok(!path_means_folder("a"), "a may be a file");
	ok(!path_means_folder("a/b.txt"), "a/b.txt may be a file");
	is_str(path_name("a/b"), "b", "last name");
	is_str(path_name("a"), "a", "only name");
	is_str(path_name(""), "", "the top has none");
}

static void
cleans(const char *path, const char *want, bool changed)
{
	char name[FILENAME_SIZE];

	is_int(filename_clean(name, path), changed, path);
	is_str(name, want, path);
}

static void
test_filename(void)
{
	char name[FILENAME_SIZE];
	char longer[400];
	const char *taken[] = { "a.txt", "A-2.txt", "b" };

	cleans("plot.png", "plot.png", false);
	cleans("dir/plot.png", "plot.png", false);
	cleans("pl\xc3\xb6t.png", "pl__t.png", true);
	cleans("a b.txt", "a_b.txt", true);
	cleans(".bashrc", "bashrc", true);
	cleans("_-.x", "file.x", true);
	cleans("\xd0\xb3\xd1\x80.png", "file.png", true);
	cleans("\xf0\x9f\x98\x80.tar.gz", "tar.gz", true);
	cleans("a.\xd0\xb3", "a", true);
	cleans("a_", "a", true);
	cleans("1e1000", "file-1e1000", true);
	cleans("2024.csv", "2024.csv", false);
	cleans("\xff\xfe", "file", true);
	cleans("..", "file", true);
	cleans("a\nb`c", "a_b_c", true);
	cleans("dir/", "file", true);

	memset(longer, 'l', sizeof(longer));
	memcpy(longer + 300, ".tar.gz", 8);
	ok(filename_clean(name, longer), "a long name is cut");
	is_int(strlen(name), 100, "to 100 bytes");
	is_str(name + 97, ".gz", "and keeps its ending");

	(void)strcpy(name, "a.txt");
	ok(filename_unique(name, taken, 3), "a taken name is changed");
	is_str(name, "a-3.txt", "to the next free one");
	(void)strcpy(name, "B");
	ok(filename_unique(name, taken, 3), "letter case is no difference");
	is_str(name, "B-2", "without an ending");
	(void)strcpy(name, "c");
	ok(!filename_unique(name, taken, 3), "a free name stays");

	ok(filename_is_image("x/Plot.PNG"), "an image");
	ok(!filename_is_image("png"), "not an image");
	is_str(filename_language("a.py"), "py", "Python");
	is_str(filename_language("py"), "", "no ending, no language");
}

int
main(void)
{
	test_resolve();
	test_lengths();
	test_parts();
	test_filename();
	return tap_done();
}
