/* SPDX-License-Identifier: MIT */
#ifndef MOUNTER_IMAGE_H
#define MOUNTER_IMAGE_H

#include <stddef.h>

/*
 * The image of the container that mounts: a tar archive of one program
 * (../mounter/), which il-sandboxd has in itself.  The id is the archive's
 * SHA-256, in hex, so another program has another name.
 */
extern const char mounter_image[];
extern const size_t mounter_image_len;
extern const char mounter_image_id[];

#endif
