/* SPDX-License-Identifier: MIT */
#include "base/config_images.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define NAME_CHARS \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"
#define IMAGE_CHARS NAME_CHARS "/:@"
#define ENTRIES_MAX 32

bool
images_next(const char *text, size_t *pos, struct image_entry *entry)
{
	int len = 0;

	if (sscanf(text + *pos, "%32[^=]=%1024[^,]%n", entry->name,
		entry->image, &len) != 2)
		return false;
	*pos += (size_t)len;
	if (text[*pos] == ',')
		(*pos)++;
	return true;
}

/* Is a name there twice? */
static bool
is_repeated(const char *text)
{
	struct image_entry entry;
	struct image_entry other;

	for (size_t pos = 0; images_next(text, &pos, &entry);) {
		size_t rest = pos;

		while (images_next(text, &rest, &other))
			if (strcmp(entry.name, other.name) == 0)
				return true;
	}
	return false;
}

const char *
images_check(const char *text)
{
	size_t entries = 0;

	for (const char *at = text;; at++) {
		size_t name = strspn(at, NAME_CHARS);
		size_t image;

		if (name == 0 || at[name] != '=')
			return "must be NAME=IMAGE,NAME=IMAGE,…";
		at += name + 1;
		image = strspn(at, IMAGE_CHARS);
		if (image == 0)
			return "a name without an image";
		if (at[image] != ',' && at[image] != '\0')
			return "a character that is not allowed";
		if (*at == '-')
			return "an image must not start with '-'";
		if (name > IMAGES_NAME_MAX || image > IMAGES_IMAGE_MAX)
			return "a name or an image is too long";
		if (++entries > ENTRIES_MAX)
			return "too many entries";
		at += image;
		if (*at == '\0')
			return is_repeated(text) ? "a name twice" : NULL;
	}
}

bool
images_find(const char *text, const char *name, struct image_entry *entry)
{
	size_t pos = 0;

	while (images_next(text, &pos, entry)) {
		if (*name == '\0' || strcmp(entry->name, name) == 0)
			return true;
	}
	return false;
}

bool
images_have(const char *text, const char *image)
{
	struct image_entry entry;

	for (size_t pos = 0; images_next(text, &pos, &entry);) {
		if (strcmp(entry.image, image) == 0)
			return true;
	}
	return false;
}

char *
images_from(const char *image)
{
	const char *slash = strrchr(image, '/');
	const char *tag = strpbrk(slash != NULL ? slash : image, ":@");
	size_t len = tag != NULL && *tag == ':' ?
	    strspn(tag + 1, "0123456789.") :
	    0;

	while (len > 0 && tag[len] == '.')
		len--;
	if (len == 0 || len > IMAGES_NAME_MAX)
		return xprintf("default=%s", image);
	return xprintf("%.*s=%s", (int)len, tag + 1, image);
}

void
images_minor(const char *name, char minor[IMAGES_NAME_MAX + 1])
{
	size_t major = strspn(name, "0123456789");
	size_t rest = major > 0 && name[major] == '.' ?
	    strspn(name + major + 1, "0123456789") :
	    0;
	size_t len = rest > 0 ? major + 1 + rest : strlen(name);

	(void)snprintf(minor, IMAGES_NAME_MAX + 1, "%.*s", (int)len, name);
}

char *
images_led_by(const char *image, const char *list)
{
	auto_free char *lone = images_from(image);
	auto_buf struct buf all = BUF_INIT(8192);
	struct image_entry first = { .name = "" };
	struct image_entry entry;
	size_t pos = 0;

	(void)images_next(lone, &pos, &first);
	for (pos = 0; images_next(list, &pos, &entry);) {
		if (strcmp(entry.image, image) == 0) {
			first = entry;
			break;
		}
	}
	buf_addf(&all, "%s=%s", first.name, first.image);
	for (pos = 0; images_next(list, &pos, &entry);) {
		if (strcmp(entry.name, first.name) != 0)
			buf_addf(&all, ",%s=%s", entry.name, entry.image);
	}
	return buf_steal(&all, NULL);
}
