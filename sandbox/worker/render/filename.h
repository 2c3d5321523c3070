/* SPDX-License-Identifier: MIT */
#ifndef FILENAME_H
#define FILENAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Names of attachments.  Discord changes some names, so only names that it
 * leaves alone are sent: letters, digits, '.', '-' and '_', beginning with a
 * letter or digit, not ending in '.' or '_', no number, at most 100 bytes.  The
 * file's real name is sent as the attachment's title (message.h).
 */
#define FILENAME_SIZE 101

/* Make such a name of the last part of a path (any bytes), with the same
 * ending.  A stem without a letter becomes "file".  Returns true when the name
 * had to be changed. */
bool filename_clean(char name[FILENAME_SIZE], const char *path);

/* Change name so that it is none of the count taken ones (letter case does not
 * tell two names apart).  Returns true when it had to be changed. */
bool filename_unique(char name[FILENAME_SIZE], const char *const *taken,
    size_t count);

/* Does the name end in one of Discord's inline image formats? */
bool filename_is_image(const char *name);
/* The tag of a code block for this file, "" when none fits. */
const char *filename_language(const char *name);

#endif
