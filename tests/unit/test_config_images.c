/* SPDX-License-Identifier: MIT */
/* SANDBOX_IMAGES: the list of interpreters. */
#include "base/config.h"

#include <stdlib.h>

#include "tap.h"

static void
test_walk(void)
{
	static const char text[] = "3.11=a:1,x_-.=reg:5/b";
	struct image_entry entry;
	size_t pos = 0;

	ok(images_check(text) == NULL, "a list of two");
	ok(images_next(text, &pos, &entry), "the first");
	is_str(entry.name, "3.11", "its name");
	is_str(entry.image, "a:1", "its image");
	ok(images_next(text, &pos, &entry), "the second");
	is_str(entry.name, "x_-.", "its name");
	is_str(entry.image, "reg:5/b", "its image");
	ok(!images_next(text, &pos, &entry), "no third");
	ok(images_find(text, "x_-.", &entry), "found by its name");
	ok(images_find(text, "", &entry), "found without a name");
	is_str(entry.name, "3.11", "the first is the default");
	ok(!images_find(text, "3.1", &entry), "a beginning is no name");
	ok(!images_find(text, "3.11=a:1", &entry), "nor is an entry");
}

static void
is_from(const char *image, const char *want)
{
	char *list = images_from(image);

	is_str(list, want, image);
	ok(images_check(list) == NULL, "it is a list");
	free(list);
}

static void
test_check(void)
{
	char text[4096] = "";

	for (int i = 0; i < 33; i++)
		(void)snprintf(text + strlen(text), 16, "%s%d=a",
		    i > 0 ? "," : "", i);
	ok(images_check(text) != NULL, "33 entries are too many");
	*strrchr(text, ',') = '\0';
	ok(images_check(text) == NULL, "32 are not");
	memset(text, 'n', 33);
	memcpy(text + 33, "=a", 3);
	ok(images_check(text) != NULL, "a name of 33 is too long");
	ok(images_check(text + 1) == NULL, "one of 32 is not");
}

static void
is_minor(const char *name, const char *want)
{
	char minor[IMAGES_NAME_MAX + 1];

	images_minor(name, minor);
	is_str(minor, want, name);
}

static void
is_led_by(const char *image, const char *list, const char *want)
{
	char *all = images_led_by(image, list);

	is_str(all, want, image);
	ok(images_check(all) == NULL, "it is a list");
	free(all);
}

int
main(void)
{
	is_minor("3.11", "3.11");
	is_minor("3.13.2-alpine", "3.13");
	is_minor("3", "3");
	is_minor("3.", "3.");
	is_minor("default", "default");
	is_led_by("py:3.11", "3.11=py:3.11,3.13=b", "3.11=py:3.11,3.13=b");
	is_led_by("py:3.13", "3.11=a,new=py:3.13", "new=py:3.13,3.11=a");
	is_led_by("py:3.11", "3.11=other,3.13=b", "3.11=py:3.11,3.13=b");
	ok(images_have("a=b:1,c=d", "d"), "an image that is in a list");
	ok(!images_have("a=b:1,c=d", "b"), "and one that is not");
	test_walk();
	test_check();
	is_from("python:3.11-alpine", "3.11=python:3.11-alpine");
	is_from("reg.example:5000/py", "default=reg.example:5000/py");
	is_from("reg.example:5000/py:3.13", "3.13=reg.example:5000/py:3.13");
	is_from("py:latest", "default=py:latest");
	is_from("py:3.", "3=py:3.");
	is_from("py@sha256:00", "default=py@sha256:00");
	is_from("py:3.12@sha256:00", "3.12=py:3.12@sha256:00");
	return tap_done();
}
