/* SPDX-License-Identifier: MIT */
#ifndef DOCKER_H
#define DOCKER_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/host.h"
#include "broker/subprocess.h"

struct container;

/*
 * Command lines of the Docker CLI, and the meaning of its answers.  All
 * functions but docker_start() are pure.
 */

/* Begin a new argv: run a recipe, Python, as root in a container of this image
 * and this name.  The container stays when it has ended: its files become an
 * image. */
void docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe);

/* Begin a new argv: make an image of this name from the files in an archive. */
void docker_argv_import(struct argv *argv, const char *binary,
    const char *instance, const char *archive, const char *image);

/* ---- docker_run.c ---- */

/* Begin a new argv: docker run for this container, its folder and its devices.
 * apparmor: a profile; "": the engine's own. */
void docker_run_argv(struct argv *argv, const struct container *c,
    const char *image, const char *apparmor);

/* ---- docker.c ---- */

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
	DOCKER_REMOVE_VOLUMES, /* several */
	DOCKER_REMOVE_IMAGES,  /* several: those that no container uses */
};

/* Begin a new argv. subject: NULL where the caller adds several. */
void docker_argv(struct argv *argv, const char *binary, enum docker_call call,
    const char *subject);
/* Run such a call: see subprocess_start(). */
void docker_start(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *subject, int timeout_ms,
    subprocess_fn done, void *arg);

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
