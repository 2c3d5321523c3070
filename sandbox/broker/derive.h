/* SPDX-License-Identifier: MIT */
#ifndef DERIVE_H
#define DERIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "../base/config_images.h"
#include "subprocess.h"

struct config;
struct loop;

/*
 * Images that cells start sooner from.  One that was pulled often has no byte
 * code, and a cell's root is read-only: each start would compile its library
 * again.  So an image with byte code is derived from it once, in a container
 * without network, and kept as "inline-derived:RECIPE-ID", after the recipe and
 * the id of the image that it comes from; older ones of this broker's are
 * removed.  Ours (label inline.recipe) have byte code.  Until it is there, and
 * where it cannot be made, cells start from the image as it is.
 */
struct derived {
	char image[1025]; /* as SANDBOX_IMAGE or SANDBOX_IMAGES name it */
	char name[128];	  /* of what is derived from it; "": not known yet */
	bool ready;	  /* it is there */
	bool settled;	  /* nothing is left to do for it */
};

struct derive {
	struct loop *loop;
	const struct config *config;
	const char *instance; /* borrowed */
	char container[64];   /* in which one is made */
	struct derived *images;
	size_t count;
	size_t at;    /* whose turn it is */
	bool making;  /* all are looked for, the missing are made */
	bool looked;  /* all have been looked for once */
	bool running; /* between derive_look() and its end */
	bool again;   /* asked for while it was */
	bool ended;
	struct subprocess process;
	/* An image has become ready; or the first look is over. */
	void (*on_change)(void *arg);
	void *arg;
};

void derive_init(struct derive *d, struct loop *loop,
    const struct config *config, const char *instance,
    void (*on_change)(void *arg), void *arg);
/* Cancels what runs; the sweep finds its container. */
void derive_release(struct derive *d);
/* Look for all that is not settled, and make it; when the engine is ready or an
 * image was pulled.  While it is at it: once more then. */
void derive_look(struct derive *d);
/* False until the first look is over: what nobody waits for may wait. */
bool derive_is_known(const struct derive *d);
/* The name by which docker shall start a cell of this image. */
const char *derive_name(const struct derive *d, const char *image);
/* The derived image has gone: back to the other, and derive it anew. */
void derive_forget(struct derive *d, const char *image);

#endif
