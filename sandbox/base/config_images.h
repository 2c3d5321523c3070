/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_IMAGES_H
#define CONFIG_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * SANDBOX_IMAGES: the interpreters on offer, "3.11=image,3.13=image".  The
 * first one is the default.  The text is walked where it is needed; what
 * config_load() has stored is valid and never empty.
 */
#define IMAGES_NAME_MAX 32
#define IMAGES_IMAGE_MAX 1024

struct image_entry {
	char name[IMAGES_NAME_MAX + 1];	  /* [A-Za-z0-9._-] */
	char image[IMAGES_IMAGE_MAX + 1]; /* as docker takes it */
};

/* Why a text is no such list, or NULL. */
const char *images_check(const char *text);
/* Walk the entries of a valid list: *pos starts at 0; false at the end. */
bool images_next(const char *text, size_t *pos, struct image_entry *entry);
/* Find one by its name; "" is the first.  False when it is not on offer. */
bool images_find(const char *text, const char *name, struct image_entry *entry);
/* Is that image in the list, under whichever name? */
bool images_have(const char *text, const char *image);
/* What the packages of an interpreter are kept under: the minor version that
 * its name begins with ("3.13-scientific": 3.13), or all of the name. */
void images_minor(const char *name, char minor[IMAGES_NAME_MAX + 1]);
/* What chat offers where nobody has said: image, by its name in the valid list
 * or else by that of images_from(), and the rest of the list behind it.  Heap,
 * caller frees. */
char *images_led_by(const char *image, const char *list);
/* The list of one entry that stands for a single image: its name is the version
 * that the image's tag begins with ("python:3.11-alpine": 3.11), or "default".
 * Heap, caller frees. */
char *images_from(const char *image);

#endif
