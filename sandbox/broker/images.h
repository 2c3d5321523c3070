/* SPDX-License-Identifier: MIT */
#ifndef IMAGES_H
#define IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/config_images.h"
#include "host.h"
#include "subprocess.h"

/*
 * The images that cells start from.  At the start, once the engine answers,
 * what is missing of SANDBOX_IMAGES and IL_CHAT_IMAGES is pulled, one after the
 * other.
 * (SANDBOX_IMAGE, without which nothing goes, is the engine's affair:
 * engine.h.)  What cannot be had is logged; who asks for it is refused.
 *
 * An image that was pulled often has no byte code, and a cell's root is
 * read-only: each start would compile its library again.  So an image with byte
 * code is derived from it once, in a container without network, and kept as
 * "inline-derived:RECIPE-ID", after the recipe and the id of the image that it
 * comes from; older ones of this broker's are removed.  Ours (label
 * inline.recipe) have byte code.  Until it is there, and where it cannot be
 * made, cells start from the image as it is.  Of the mounter's image only the
 * older ones are removed here.
 */
enum image_state {
	IMAGE_UNKNOWN,
	IMAGE_MISSING, /* for certain; looked for again, like UNKNOWN */
	IMAGE_BARE,    /* what would be derived from it is to be made */
	IMAGE_READY,   /* that is there */
	IMAGE_SETTLED, /* nothing is left to do for it */
};

struct image {
	struct image_entry of; /* of the lists; or SANDBOX_IMAGE */
	char name[128];	       /* of what is derived from it */
	enum image_state state;
	int64_t looked_ms; /* for which news of the engine */
	bool pulled;	   /* or was tried; or is not to be */
};

struct images {
	struct host *host;
	char container[64]; /* in which one is made */
	char mounter[96];   /* the image that mounts: prepare.c makes it */
	struct image *all;
	size_t count;
	bool looked;		   /* all have been looked for once */
	bool cleaned;		   /* older derived ones have been removed */
	int64_t news_ms;	   /* the engine's that were heeded last */
	struct image *at;	   /* whose turn it is */
	struct subprocess process; /* what is done for it */
	struct image *pulling;
	struct subprocess pull;
};

void images_init(struct images *d, struct host *host);
/* Cancels what runs; the sweep finds its container. */
void images_release(struct images *d);
/* When there is news of an engine that is ready: look for all that is not
 * settled, pull it, make it. */
void images_look(struct images *d);
/* False until the first look is over: what nobody waits for may wait. */
bool images_are_known(const struct images *d);
/* The name by which docker shall start a cell of this image. */
const char *images_name(const struct images *d, const char *image);
/* The derived image has gone: back to the other, and derive it anew. */
void images_forget(struct images *d, const char *image);

#endif
