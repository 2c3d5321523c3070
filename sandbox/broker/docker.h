/* SPDX-License-Identifier: MIT */
#ifndef DOCKER_H
#define DOCKER_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/host.h"
#include "broker/subprocess.h"

struct container;

/*
 * The words of the calls of the Docker CLI, and what its answers mean.  All of
 * it but docker_start() is pure.
 */

/* Begins a new argv: run a recipe, Python, as root in a container of this image
 * and this name, which stays when it has ended: what it wrote becomes an
 * image. */
void docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe);

/* Begins a new argv: make an image of this name of the files in an archive. */
void docker_argv_import(struct argv *argv, const char *binary,
    const char *instance, const char *archive, const char *image);

/* ---- docker_run.c ---- */

/* Begins a new argv: docker run for this container, its folder and its devices.
 * apparmor: a profile; "" the engine's own. */
void docker_run_argv(struct argv *argv, const struct container *c,
    const char *image, const char *apparmor);

/* ---- docker.c ---- */

/* The other calls, and what each is about. */
enum docker_call {
	DOCKER_REMOVE,	/* a container: kill it, and its volumes go, too */
	DOCKER_WAIT,	/* a container: returns when it has ended */
	DOCKER_PROBE,	/* an image: prints its id; tells of the engine, too */
	DOCKER_LABELS,	/* an image: prints "ID {labels as JSON}" */
	DOCKER_PULL,	/* an image */
	DOCKER_COMMIT,	/* a container; the new image's name is added */
	DOCKER_CELLS,	/* an instance: the ids of its containers */
	DOCKER_VOLUMES, /* an instance: the names of what they left */
	DOCKER_DERIVED, /* an instance: the names of what it has derived */
	DOCKER_REMOVE_VOLUMES, /* several */
	DOCKER_REMOVE_IMAGES,  /* several: those that no container uses */
};

/* Begins a new argv.  subject: NULL where the caller adds several. */
void docker_argv(struct argv *argv, const char *binary, enum docker_call call,
    const char *subject);
/* The same, run at once: see subprocess_start(). */
void docker_start(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *subject, int timeout_ms,
    subprocess_fn done, void *arg);

/* What a failed call says. */
enum docker_failure {
	DOCKER_ENGINE, /* the engine does not answer, or not in time */
	DOCKER_IMAGE,  /* the image is missing */
	DOCKER_MOUNT,  /* a file system could not be mounted */
	DOCKER_ABSENT, /* there is no such container: it is gone */
	DOCKER_OTHER,
};

enum docker_failure docker_classify(const struct process_result *result);

/* Walk the lines of an answer that must be ids (12-64 of [0-9a-f]) or names of
 * derived images: copies the next one, false at the end or at the first line
 * that is none.  *pos: 0. */
bool docker_next(const char *text, size_t *pos, bool derived, char line[128]);

#endif
