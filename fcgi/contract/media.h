/* SPDX-License-Identifier: MIT */
#ifndef MEDIA_H
#define MEDIA_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Media types of files.  All of them are static texts.
 */
#define MEDIA_ANY "application/octet-stream"

/* The type by the end of a name alone; MEDIA_ANY: it is unknown. */
const char *media_of_name(const char *name);
/* The type by the first bytes of a file, and by its name.  Pictures are known
 * by their bytes alone, so that nothing else is shown as one. */
const char *media_type(const char *name, const void *data, size_t len);
/* Is it a type of pictures that models see: PNG, JPEG, GIF, WebP? */
bool media_is_picture(const char *type);
/* Is a file of that type text, if it is UTF-8? */
bool media_is_text(const char *type);

/*
 * Pictures that may be put before a model.  A picture stays in the
 * conversation: one that the model's API refuses makes every later request of
 * that conversation fail.  So a picture is sent only if it is whole.
 *
 * The check reads the structure of a file, not its pixels: lengths of chunks,
 * checksums of PNG, marks of the end.
 */
#define MEDIA_PICTURE_SIDE 2000	   /* pixels of width and of height */
#define MEDIA_PICTURE_BYTES 700000 /* 1 MiB as base64, with what is around it */
#define MEDIA_PICTURE_TOO_LONG "it has over 700,000 bytes"

/* Why a file of that type must not be shown, in ASCII; NULL: it may be.  The
 * type of a file that is no whole picture becomes MEDIA_ANY. */
const char *media_picture_fault(const char **type, const void *data,
    size_t len);

#endif
