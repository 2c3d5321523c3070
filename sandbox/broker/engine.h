/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config_images.h"
#include "broker/host.h"
#include "broker/subprocess.h"

/*
 * What is known of the Docker engine and the image, and what keeps it known: a
 * probe (one `docker image inspect`, which tells of both), at the start, when
 * somebody asks, when a call failed, and every 30 s.
 * After the engine was found, and before the first container is started, all
 * containers and volumes of an earlier life of this broker are swept; at the
 * end what is left of ours.
 */
enum engine_state {
	ENGINE_READY, /* containers can be started */
	ENGINE_WAIT,  /* being found out or swept */
	ENGINE_DOWN,  /* the engine does not answer */
	ENGINE_NO_IMAGE,
};

struct engine {
	struct host *host;
	bool up;
	bool image;
	bool swept;
	bool sweeping;
	bool clean; /* the last sweep left nothing */
	int sweep_rounds;
	int64_t probed_ms; /* when up and image were found out; -1: not yet */
	struct subprocess probe;
	struct subprocess sweep;
	struct loop_timer *recheck;
	struct loop_timer *again; /* next round of the sweep */
	char trouble[160];	  /* what the last failed call said */
};

/* Cancels what runs. */
void engine_release(struct engine *e);

/* How long docker may take to remove something. */
int engine_remove_ms(const struct config *config);

/* Can a container be started now?  Begins a probe when what is known is old
 * and bad. */
enum engine_state engine_state(struct engine *e);
/* Probe, unless what is known is younger than max_age_ms; true when there will
 * be news. */
bool engine_refresh(struct engine *e, int64_t max_age_ms);
/* What is so now, as the probe says or a call that failed: ENGINE_READY (both
 * are there), ENGINE_NO_IMAGE or ENGINE_DOWN. */
void engine_report(struct engine *e, enum engine_state state,
    const char *trouble);
/* At the end (PHASE_SWEEPING): remove every container of ours, while
 * `sweeping`. */
void engine_sweep_last(struct engine *e);

/* ---- the images ---- */

/*
 * The images that cells start from.  At the start, once the engine answers,
 * what is missing of SANDBOX_IMAGES and IL_CHAT_IMAGES is pulled, one after the
 * other.  (SANDBOX_IMAGE, without which nothing goes, is pulled again and
 * again.)  What cannot be had is logged; who asks for it is refused.
 *
 * An image that was pulled often has no byte code, and a cell's root is
 * read-only: each start would compile its library again.  So an image with byte
 * code is derived from it once, in a container without network, and kept as
 * "inline-derived:RECIPE-ID", after the recipe and the id of the image that it
 * comes from; older ones of this broker's are removed.  Ours (label
 * inline.recipe) have byte code.  Until it is there, and where it cannot be
 * made, cells start from the image as it is.  The mounter's image is made
 * elsewhere (prepare.c); its older ones are removed here.
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
	int64_t pulled_ms; /* when a pull was last begun; -1: never */
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
	struct image *pulling;	   /* NULL: none */
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
/* Is it SANDBOX_IMAGE, without which nothing goes? */
bool images_is_needed(const struct images *d, const struct image *image);
/* The derived image has gone: back to the other, and derive it anew. */
void images_forget(struct images *d, const char *image);

#endif
