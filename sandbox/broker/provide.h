/* SPDX-License-Identifier: MIT */
#ifndef PROVIDE_H
#define PROVIDE_H

#include <stddef.h>

#include "../base/config_images.h"
#include "subprocess.h"

struct config;
struct loop;

/*
 * At the start, once the engine answers: pull what is missing of
 * SANDBOX_IMAGES, one after the other.  (SANDBOX_IMAGE, without which nothing
 * goes, is the engine's affair: engine.h.)  What cannot be had is logged; who
 * asks for it is refused.
 */
struct provider {
	struct loop *loop;
	const struct config *config;
	struct subprocess process;
	struct image_entry entry; /* the one that is looked after */
	size_t pos;		  /* of the next one in the list */
	bool begun;
	void (*on_end)(void *arg); /* all that can be had is there */
	void *arg;
};

void provider_init(struct provider *p, struct loop *loop,
    const struct config *config, void (*on_end)(void *arg), void *arg);
/* Only the first call does something. */
void provider_begin(struct provider *p);
/* Cancels what runs. */
void provider_release(struct provider *p);

#endif
