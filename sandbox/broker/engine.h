/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "broker/host.h"

struct container;

/*
 * State of the Docker engine and of SANDBOX_IMAGE.  A probe (one `docker image
 * inspect`, which reports on both) keeps it fresh: at the start, when a client
 * asks, when a call failed, and every 30 s.  After the engine has answered, and
 * before the first container is started, all containers and volumes of an
 * earlier life of this broker are swept.  At the end the remaining ones are.
 */
enum engine_state {
	ENGINE_READY, /* containers can be started */
	ENGINE_WAIT,  /* a probe or a sweep is running */
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
	int64_t probed_ms; /* time of `up` and `image`; -1: not yet */
	struct subprocess probe;
	struct subprocess sweep;
	struct loop_timer *recheck;
	struct loop_timer *again; /* next round of the sweep */
	char trouble[160];	  /* text of the last failed call */
};

/* Cancel the probe and the sweep. */
void engine_release(struct engine *e);

/* Can a container be started now?  Begins a probe when the state is bad and
 * old. */
enum engine_state engine_state(struct engine *e);
/* Probe, unless the state is younger than max_age_ms.  True: a probe is
 * running. */
bool engine_refresh(struct engine *e, int64_t max_age_ms);
/* Set the state, after a probe or a failed call: ENGINE_READY (engine and image
 * are there), ENGINE_NO_IMAGE or ENGINE_DOWN. */
void engine_report(struct engine *e, enum engine_state state,
    const char *trouble);
/* At the end (PHASE_SWEEPING): remove every container of this broker;
 * `sweeping` until that is done. */
void engine_sweep_last(struct engine *e);

/* ---- the images ---- */

/*
 * Images that cells start from.  Once the engine answers, the missing ones of
 * SANDBOX_IMAGES and IL_CHAT_IMAGES are pulled, one after the other.  (The pull
 * of SANDBOX_IMAGE, which everything needs, is retried for ever.) A failed pull
 * is logged, and requests for the image are refused.
 *
 * A pulled image often has no byte code, and a cell's root is read-only: each
 * start would compile its library again.  So an image with byte code is derived
 * from it once, in a container without network.  Its name is
 * "inline-derived:RECIPE-ID", after the recipe and the id of the original; this
 * broker's older ones are removed.  Images of the project (label inline.recipe)
 * have byte code.  Until the derived image is there, and where it cannot be
 * made, cells start from the original. prepare.c imports the mounter's image;
 * its older ones are removed here.
 */
enum image_state {
	IMAGE_UNKNOWN,
	IMAGE_MISSING, /* docker said so; inspected again, as UNKNOWN is */
	IMAGE_BARE,    /* its derived image is to be made */
	IMAGE_READY,   /* its derived image is there */
	IMAGE_SETTLED, /* nothing is left to do for it */
};

struct image {
	struct image_entry of; /* entry of a list, or SANDBOX_IMAGE */
	char name[128];	       /* of the derived image */
	enum image_state state;
	int64_t inspected_ms; /* news_ms of the last inspection */
	int64_t pulled_ms;    /* begin of the last pull; -1: never */
};

struct images {
	struct host *host;
	char container[64]; /* for the recipe */
	char mounter[96];   /* the mounter's image: prepare.c imports it */
	struct image *all;
	size_t count;
	bool inspected;	  /* all, once: warm cells wait for that */
	bool cleaned;	  /* older derived ones have been removed */
	int64_t news_ms;  /* probed_ms of the engine when it was last heeded */
	struct image *at; /* current image */
	struct subprocess process; /* current step for it */
	struct subprocess pull;	   /* runs in parallel */
	struct image *pulling;	   /* its image; NULL: none */
};

void images_init(struct images *d, struct host *host);
/* Cancel the current step and the pull; the sweep finds the container. */
void images_release(struct images *d);
/* After a new probe of a ready engine: inspect, pull and derive all images that
 * are not settled. */
void images_update(struct images *d);
/* Name of the image that docker shall start a cell from: the derived one where
 * it is there. */
const char *images_name(const struct images *d, const char *image);
/* Is it SANDBOX_IMAGE, which everything needs? */
bool images_is_needed(const struct images *d, const struct image *image);
/* The derived image has gone: use the original, and derive it again. */
void images_forget(struct images *d, const char *image);

/* The image of the container that mounts: a tar archive of one program
 * (../mounter/), which il-sandboxd has in itself.  The id is the archive's
 * SHA-256, in hex, so another program has another name. */
extern const char mounter_image[];
extern const size_t mounter_image_len;
extern const char mounter_image_id[];

/* ---- docker.c ---- */

/* Command lines of the Docker CLI, and the meaning of its answers.  All
 * functions but docker_start…() are pure. */

/* Begin a new argv: run a recipe, Python, as root in a container of this image
 * and this name.  The container stays when it has ended: its files become an
 * image. */
void docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe);

/* Begin a new argv: make an image of this name from the files in an archive. */
void docker_argv_import(struct argv *argv, const char *binary,
    const char *instance, const char *archive, const char *image);

/* Begin a new argv: docker run for this container, its folder and its devices.
 * apparmor: a profile; "": the engine's own. */
void docker_run_argv(struct argv *argv, const struct container *c,
    const char *image, const char *apparmor);

/* The other calls, and the subject of each. */
enum docker_call {
	DOCKER_REMOVE,	/* a container: kill it, and its volumes go, too */
	DOCKER_WAIT,	/* a container: returns when it has ended */
	DOCKER_PROBE,	/* an image: prints its id; tells of the engine, too */
	DOCKER_LABELS,	/* an image: prints "ID {labels as JSON}" */
	DOCKER_PULL,	/* an image */
	DOCKER_COMMIT,	/* a container; the new image's name is added */
	DOCKER_CELLS,	/* an instance: the ids of its containers */
	DOCKER_VOLUMES, /* an instance: the names of its volumes */
	DOCKER_DERIVED, /* an instance: the names of its derived images */
	DOCKER_REMOVE_DERIVING, /* the container of a recipe */
	DOCKER_REMOVE_VOLUMES,	/* several */
	DOCKER_REMOVE_IMAGES,	/* several: those that no container uses */
};

/* Begin a new argv. subject: NULL where the caller adds several. */
void docker_argv(struct argv *argv, const char *binary, enum docker_call call,
    const char *subject);
/* Run such a call: see subprocess_start(). */
void docker_start(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *subject, subprocess_fn done, void *arg);
/* Run such a call, to whose words the caller has added its own. */
void docker_start_argv(struct subprocess *process, const struct host *host,
    enum docker_call call, const struct argv *argv, subprocess_fn done,
    void *arg);
/* Run such a call with the first ids of an answer, or names of derived images,
 * but those for which stays(arg, name) is true; NULL: none.  Returns their
 * number; with 0 nothing runs. */
size_t docker_start_listed(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *list,
    bool (*stays)(const void *arg, const char *name), subprocess_fn done,
    void *arg);

/* Cause of a failed call. */
enum docker_failure {
	DOCKER_ENGINE, /* the engine does not answer, or not in time */
	DOCKER_IMAGE,  /* the image is missing */
	DOCKER_MOUNT,  /* a file system could not be mounted */
	DOCKER_ABSENT, /* there is no such container: it is gone */
	DOCKER_OTHER,
};

enum docker_failure docker_classify(const struct process_result *result);

/* Walk the lines of an answer, which must be ids (12-64 of [0-9a-f]) or names
 * of derived images.  Copies the next one; false at the end or at the first
 * other line. *pos: 0 before the first call. */
bool docker_next(const char *text, size_t *pos, bool derived, char line[128]);

#endif
