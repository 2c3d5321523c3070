/* SPDX-License-Identifier: MIT */
/* The text of a path, and back: run_files.c. */
#include "contract/run_files.h"

#include "base/basics.h"
#include "tap.h"

static void
writes(const char *path, const char *want)
{
	auto_buf struct buf text = BUF_INIT(4096);
	auto_buf struct buf back = BUF_INIT(4096);

	path_text_write(&text, path);
	is_str(buf_str(&text), want, want);
	is_int(path_text_read(&back, buf_str(&text)), strcmp(path, want) != 0,
	    "reading says whether they differ");
	is_str(buf_str(&back), path, "the text names the path");
}

static void
test_texts(void)
{
	static const char *const own[] = { "", "a", "d/e", "100%", "a%20b", "%",
		"%2F", "%00", "\xc3\xa9", "\\xff", "a%25", "a%2525" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		writes(own[i], own[i]);
	writes("a\xff", "a%FF");
	writes("a%FF", "a%25FF");
	writes("a%ff", "a%25ff");
	writes("a%25FF", "a%2525FF");
	writes("%C3%A9", "%C3%A9");
	writes("50%25/\xff", "50%25/%FF");
	writes("50%\xff", "50%25%FF");
	writes("\xff%2F", "%FF%252F");
}

/* Each path of four letters: no two have one text. */
static void
test_all(void)
{
	static const char letters[] = "%25F\xff/";
	const size_t base = sizeof(letters) - 1;
	size_t wrong = 0;

	for (size_t number = 0; number < 6 * 6 * 6 * 6 * 6 * 6; number++) {
		auto_buf struct buf text = BUF_INIT(64);
		auto_buf struct buf back = BUF_INIT(64);
		char path[7] = "";
		size_t rest = number;

		for (size_t i = 0; i < 6; i++, rest /= base)
			path[i] = letters[rest % base];
		path_text_write(&text, path);
		(void)path_text_read(&back, buf_str(&text));
		wrong += strcmp(buf_str(&back), path) != 0;
	}
	is_int(wrong, 0, "each of 46,656 paths is found by its text");
}

static void
writes_new(const char *path, const char *want, const char *const *taken)
{
	auto_buf struct buf text = BUF_INIT(4096);
	struct run_files files = { .count = 0 };

	while (*taken != NULL)
		(void)run_files_add(&files, *taken++, 0, NULL);
	path_text_write_new(&text, path, &files);
	run_files_release(&files);
	is_str(buf_str(&text), want, want);
}

static void
test_new(void)
{
	char name[300], want[300];

	writes_new("a%FF", "a%FF", (const char *[]){ NULL });
	writes_new("a\xff", "a%FF", (const char *[]){ "b", NULL });
	writes_new("d/a\xff", "d/2-a%FF", (const char *[]){ "d/a%FF", NULL });
	writes_new("a\xff", "5-a%FF",
	    (const char *[]){ "a%FF", "3-a%FF", NULL });
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	(void)snprintf(want, sizeof(want), "2-%.253s", name);
	writes_new(name, want, (const char *[]){ name, NULL });
}

int
main(void)
{
	test_texts();
	test_all();
	test_new();
	return tap_done();
}
