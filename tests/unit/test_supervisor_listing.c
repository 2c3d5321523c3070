/* SPDX-License-Identifier: MIT */
/* Looks at a real folder. */
#include "cell/supervisor/fast_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/frame_limits.h"
#include "tap.h"

static char root_path[] = "/tmp/test-look-XXXXXX";
static int root;
static int notes;
static int64_t end;

static void
must(int result)
{
	if (result >= 0)
		return;
	perror("set up");
	exit(1);
}

static void
write_file(const char *path, const char *text)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(fd);
	must((int)write(fd, text, strlen(text)));
	(void)close(fd);
}

/* Note what is there; behind eight bytes of another's. */
static void
look(const char *folder)
{
	must(ftruncate(notes, 0));
	must((int)pwrite(notes, "standard", 8, 0));
	must((int)lseek(notes, 8, SEEK_SET));
	end = 8 + listing_write(root, folder, strlen(folder), notes);
}

static bool
differs(void)
{
	if (lseek(notes, 0, SEEK_END) > end)
		must(ftruncate(notes, end));
	must((int)lseek(notes, 0, SEEK_END));
	return listing_compare(root, notes, 8, end - 8) != 0;
}

static void
test_what_counts(void)
{
	static const char *const hidden[] = { ".x", ".d/x", "__pycache__/x" };

	look("");
	ok(!differs(), "nothing is there, nothing has changed");
	write_file("a", "1");
	ok(differs(), "a file more");
	look("");
	ok(!differs(), "it stays");
	write_file("a", "2");
	ok(differs(), "it is another");
	look("");
	must(fchmodat(root, "a", 0600, 0));
	ok(differs(), "it has another mode");
	must(mkdirat(root, "d", 0700));
	must(mkdirat(root, ".d", 0700));
	must(mkdirat(root, "__pycache__", 0700));
	look("");
	for (size_t i = 0; i < 3; i++)
		write_file(hidden[i], "");
	must(symlinkat("/etc/passwd", root, "link"));
	must(mkfifoat(root, "fifo", 0600));
	must(mkdirat(root, "empty", 0700));
	ok(!differs(), "what is hidden, or no file, does not count");
	write_file("d/x", "");
	ok(differs(), "a file further down");
	look("");
	must(renameat(root, "d", root, "e"));
	ok(differs(), "its folder has another name");
	must(unlinkat(root, "e/x", 0));
	look("");
	must(unlinkat(root, "a", 0));
	ok(differs(), "a file less");
}

static void
test_folder(void)
{
	must(mkdirat(root, "f", 0700));
	must(mkdirat(root, "f/g", 0700));
	write_file("f/g/x", "1");
	look("f/g");
	write_file("f/out", "");
	ok(!differs(), "what is above the folder does not count");
	write_file("f/g/y", "");
	ok(differs(), "what is in it does");
	look("f/g");
	must(renameat(root, "f/g", root, "f/h"));
	must(symlinkat("h", root, "f/g"));
	ok(differs(), "a link in its place is not followed");
	look("f/none");
	ok(end > 8 && !differs(), "a folder that is not there");
	is_int(listing_write(root, "", LIMIT_PATH + 1, notes), -1,
	    "a path that is too long");
}

static void
test_bounds(void)
{
	static const uint16_t cut = SUPERVISOR_LISTING_CUT;
	char name[16];
	uint16_t last = 0;

	must(mkdirat(root, "many", 0700));
	for (int i = 0; i < LISTING_ENTRIES; i++) {
		(void)snprintf(name, sizeof(name), "many/%d", i);
		write_file(name, "");
	}
	look("many");
	ok(pread(notes, &last, 2, end - 2) == 2 && last == 0, "all are noted");
	ok(!differs(), "and found again");
	write_file("many/one", "");
	look("many");
	ok(pread(notes, &last, 2, end - 2) == 2 && last == cut,
	    "more than one look takes in");
	ok(!differs(), "are compared all the same");
	must(ftruncate(notes, end - 1));
	ok(differs(), "notes that are cut off");
	must(ftruncate(notes, 0));
	ok(differs(), "no notes");
	is_int(listing_write(root, "", 0, -1), -1, "nowhere to note it");
}

static void
test_depth(void)
{
	static const char deep[] = "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/"
				   "18/19/20/21/22/23/24/25/26/27/28/29/30/31/"
				   "32/";
	char path[sizeof(deep) + 8];

	for (size_t i = 0; i < sizeof(deep) - 1; i++) {
		memcpy(path, deep, sizeof(deep));
		path[i] = '\0';
		if (deep[i] == '/')
			must(mkdirat(root, path, 0700));
	}
	look("");
	(void)snprintf(path, sizeof(path), "%s", deep);
	(void)snprintf(path + sizeof(deep) - 1, 8, "x");
	write_file(path, "");
	ok(!differs(), "what is too deep does not count");
	(void)snprintf(path, sizeof(path), "%.*s",
	    (int)(sizeof(deep) - sizeof("32/")), deep);
	(void)snprintf(path + strlen(path), 8, "x");
	write_file(path, "");
	ok(differs(), "what is less deep does");
}

static void
test_sweep(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/s", root_path);
	ok(listing_empty_folder(path), "a folder that is not there is empty");
	must(mkdirat(root, "s", 0700));
	write_file("s/.x", "");
	must(symlinkat("/tmp", root, "s/link"));
	ok(listing_empty_folder(path), "files and links go");
	ok(listing_empty_folder(path) && rmdir(path) == 0,
	    "and nothing is left");
	must(mkdirat(root, "s", 0700));
	must(mkdirat(root, "s/d", 0700));
	write_file("s/x", "");
	ok(!listing_empty_folder(path), "a folder stays");
	is_int(faccessat(root, "s/x", F_OK, 0), -1, "files have gone");
}

static void
test_finds(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/p", root_path);
	ok(!listing_has_name(path, "picture-"), "nothing in no folder");
	must(mkdirat(root, "p", 0700));
	write_file("p/picture", "");
	write_file("p/a-picture-1", "");
	ok(!listing_has_name(path, "picture-"), "no name that begins so");
	for (int i = 0; i < 200; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p/%d", i);
		write_file(name, "");
	}
	write_file("p/picture-1.png", "");
	ok(listing_has_name(path, "picture-"), "one among many");
}

int
main(void)
{
	char command[64];

	must(mkdtemp(root_path) == NULL ? -1 : 0);
	must(root = open(root_path, O_PATH | O_DIRECTORY));
	must(notes = memfd_create("notes", MFD_CLOEXEC));
	test_what_counts();
	test_folder();
	test_depth();
	test_bounds();
	test_sweep();
	test_finds();
	(void)snprintf(command, sizeof(command), "rm -rf %s", root_path);
	ok(system(command) == 0, "tidied");
	return tap_done();
}
