#ifndef DOCKER_H
#define DOCKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "argv.h"
#include "class.h"

struct process_result;

/*
 * The words of every call of the Docker CLI, and what its answers mean.  All of
 * it is pure: nothing is run here.
 */

/* A file system that the engine mounts from a block device. */
struct docker_mount {
	const char *device; /* "/dev/loop3" */
	const char *target; /* "/workspace" */
	bool read_only;
};

/* One `docker run`.  All strings are borrowed for the call. */
struct docker_run {
	const char *binary;
	const char *runtime; /* "" the engine's default */
	const char *image;
	const char *name;
	const char *instance;
	const char *class;
	const char *sandbox;
	const char *network;
	const char *folder;    /* absolute; the container's own: folder.h */
	const char *seccomp;   /* absolute path of the profile */
	const char *apparmor;  /* a profile; "" the engine's own */
	const char *ca_bundle; /* "" none; absolute; at /run/ca.pem */
	const char *argument;  /* after the socket; NULL: none */
	const char *preload;   /* IL_CELL_PRELOAD; "": not set */
	const char *isolation; /* IL_CELL_ISOLATION; NULL: not set */
	const char *sysctl;    /* "KEY=VALUE"; NULL: none */
	struct docker_mount mounts[2];
	size_t mount_count;
	int64_t disk_rate; /* bytes/s read, and written, of each; 0: any */
	int64_t disk_ops;  /* requests likewise */
	struct class_folder folders[CLASS_FOLDERS]; /* /tmp, /dev/shm, … */
	size_t folder_count;
	uint32_t uid;	/* who code runs as, and the number of its group */
	bool code;	/* /code is needed */
	int64_t memory; /* bytes */
	int64_t pids;
	int64_t file_max; /* bytes that one file may have */
	double cpus;
};

void docker_argv_run(struct argv *argv, const struct docker_run *run);
/* Kill it if it runs, remove it and its anonymous volumes. */
void docker_argv_remove(struct argv *argv, const char *binary,
    const char *name);
/* Returns when the container has ended. */
void docker_argv_wait(struct argv *argv, const char *binary, const char *name);
/* Prints the image's id: tells at once of the engine and of the image. */
void docker_argv_probe(struct argv *argv, const char *binary,
    const char *image);
void docker_argv_pull(struct argv *argv, const char *binary, const char *image);
/* "ID {labels as JSON}" of an image. */
void docker_argv_labels(struct argv *argv, const char *binary,
    const char *image);
/* Run a recipe, Python, as root in a container of this image and this name,
 * which stays when it has ended: what it wrote becomes an image. */
void docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe);
void docker_argv_commit(struct argv *argv, const char *binary, const char *name,
    const char *image);
/* The names of those that this instance has derived, a line each. */
void docker_argv_list_derived(struct argv *argv, const char *binary,
    const char *instance);
/* Only those that no container uses. */
void docker_argv_remove_images(struct argv *argv, const char *binary);
/* The ids of all containers of an instance, a line each. */
void docker_argv_list(struct argv *argv, const char *binary,
    const char *instance);
/* The names of the volumes that containers of an instance left. */
void docker_argv_list_volumes(struct argv *argv, const char *binary,
    const char *instance);
void docker_argv_remove_volumes(struct argv *argv, const char *binary);

/* What a failed call says. */
enum docker_failure {
	DOCKER_ENGINE, /* the engine does not answer, or not in time */
	DOCKER_IMAGE,  /* the image is missing */
	DOCKER_MOUNT,  /* a file system could not be mounted */
	DOCKER_ABSENT, /* there is no such container: it is gone */
	DOCKER_OTHER,
};

enum docker_failure docker_classify(const struct process_result *result);

/* Walk the lines of an answer that must be ids (12-64 of [0-9a-f]): copies the
 * next one, false at the end or at the first line that is none.  *pos: 0. */
bool docker_next_id(const char *text, size_t *pos, char id[65]);
/* The same for names of derived images. */
bool docker_next_derived(const char *text, size_t *pos, char name[128]);

#endif
