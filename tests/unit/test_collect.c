/* SPDX-License-Identifier: MIT */
/* sandbox/worker/render/collect.h: what a cell has sent, and where it lies. */
#include <stdio.h>

#include "tap.h"
#include "worker/render/collect.h"

static struct collect c;

static void
tell(enum cell_event_kind kind, const char *path, bool displayed)
{
	struct cell_event event = {
		.kind = kind,
		.size = 1,
		.why = LEFT_OUT_COUNT,
		.displayed = displayed,
	};

	(void)snprintf(event.name, sizeof(event.name), "%s", path);
	collect_event(&c, &event);
}

/* The folder of these two files. */
static void
folder(const char *first, const char *second, const char *want)
{
	collect_release(&c);
	tell(CELL_FILE, first, false);
	tell(CELL_LEFT_OUT, second, false);
	is_str(c.folder, want, second);
	is_int(c.others, 2, "both are counted");
}

static bool
is_folded(const struct collect *collect, const char *path, bool displayed)
{
	char copy[16];

	(void)snprintf(copy, sizeof(copy), "%s", path);
	return collect_is_folded(collect,
	    &(struct collected){ .path = copy, .displayed = displayed });
}

/* A cell that lies about its files does not get more memory than it may. */
static void
test_bounds(void)
{
	struct collect small;
	struct cell_event event = { .kind = CELL_FILE, .size = 5, .name = "a" };

	collect_init(&small, 4, 8);
	collect_event(&small, &event);
	collect_event(&small, &event);
	is_int(small.file_count, 1, "over the total: not taken");
	is_int(small.left_count, 1, "but named");
	event.kind = CELL_BYTES;
	event.data = (const unsigned char *)"12345";
	event.len = 5;
	collect_event(&small, &event);
	is_int(small.files[0].data.len, 0, "its bytes go nowhere");
	event.kind = CELL_OUTPUT;
	collect_event(&small, &event);
	collect_event(&small, &event);
	is_str(buf_str(&small.output), "1234", "output up to its limit");
	collect_release(&small);
}

int
main(void)
{
	collect_init(&c, 0, 1000);
	folder("a", "b", "");
	folder("d/a", "d/b", "d");
	folder("d/a", "d/e/f/b", "d");
	folder("d/e/f/a", "d/b", "d");
	folder("d/e/a", "d/f/b", "d");
	folder("data/a", "data2/b", "");
	folder("data2/a", "data/b", "");
	folder("d/a", "a", "");
	folder("d/same", "d/same", "d");

	collect_release(&c);
	tell(CELL_FILE, "x.PNG", false);
	tell(CELL_LEFT_OUT, "y.gif", false);
	tell(CELL_FILE, "picture-1.png", true);
	is_int(c.images, 2, "images are counted apart");
	ok(c.folder == NULL, "they have no folder");
	for (int i = 0; i < 100; i++)
		tell(CELL_LEFT_OUT, "d/f", false);
	is_int(c.left_more, 76, "not all names are kept");
	collect_fold(&c);
	is_int(c.left_count, 1, "of many the images alone keep theirs");
	is_str(c.left[0].path, "y.gif", "this one");
	ok(is_folded(&c, "d/f", false), "a file is told with others");
	ok(!is_folded(&c, "d/f.png", false), "an image is not");
	ok(!is_folded(&c, "d/f", true), "nor is a picture");
	collect_release(&c);
	test_bounds();
	return tap_done();
}
