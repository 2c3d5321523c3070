/* SPDX-License-Identifier: MIT */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/host.h"
#include "broker/subprocess.h"

struct client;
struct err;

/*
 * The folders under IL_BASE_DIR: one for each sandbox, named by its id, with
 * two file system volumes in it.  Everything is done beneath one descriptor of
 * IL_BASE_DIR, with names made of checked ids alone, following no link.
 *
 *	<id>/workspace.ext4
 *	<id>/packages-3.11.ext4	for each minor version of Python
 *	.new-…	being made; .old-…  being removed: swept at start
 */
#define SANDBOX_ID_LEN 32
/* No sandbox has it, and nobody lists or counts it as one: api_packages.h. */
#define API_PACKAGES_ID "00000000000000000000000000000000"
#define WORKSPACE_VOLUME "workspace.ext4"
#define PACKAGES_VOLUME "packages" /* in class.c; its file's name is made by */
#define VOLUME_NAME_MAX 64
void workspace_packages_name(const char *interpreter,
    char name[VOLUME_NAME_MAX]);

/* Of a sandbox. */
bool workspace_id_valid(const char *id);

/* Make and open the base folder and remove what an earlier life left half made
 * or half removed.  Packages from when there was one volume for them are the
 * default interpreter's from now on.  Returns the descriptor or -1. */
int workspace_base_open(const char *path, const char *interpreter,
    struct err *err);

/* One of the volumes of a sandbox, for reading and writing.  -1 with
 * ERR_NOT_FOUND when the sandbox is not there. */
int workspace_volume_open(int base, const char *id, const char *volume,
    struct err *err);
/* The volume is there. */
bool workspace_has(int base, const char *id, const char *volume);

/* True when the file system noted an error in its own superblock. */
bool workspace_volume_damaged(int volume_fd);

/* Take the sandbox's name away, at once and durably; the files remain under
 * the name that is written, until folder_delete() removes them.  0, 1 when
 * there was none, -1. */
int workspace_retire(int base, const char *id, char name[64], struct err *err);

/* How many sandboxes there are; -1: it cannot be told. */
int64_t workspace_count(int base);
/* A list of what is in that folder of the base, "." for the base itself; NULL
 * when there cannot be one.  And from it the id of the next sandbox; NULL:
 * there are no more. */
DIR *workspace_list(int base, const char *name);
const char *workspace_next(DIR *list);

/* Likewise the volumes of one; NULL has none. */
const char *workspace_next_volume(DIR *list);

/* ---- making one ---- */

/*
 * Making a workspace: two sparse ext4 volumes in a draft folder, which gets its
 * name when both are complete.  Or, in a sandbox that is there, a volume for
 * the packages of one more version.  A crash leaves a draft at most.
 */
struct volume_size {
	int64_t bytes; /* that files may hold */
	int64_t files; /* files and folders */
};

struct creation {
	struct host *host;
	struct client *client;
	char id[33];
	char packages[VOLUME_NAME_MAX];
	bool only_packages;
	char copied[VOLUME_NAME_MAX]; /* of only_packages: made as a copy of
				       * this one; "": anew */
	uint32_t uid;		      /* whose it is */
	char draft[64];
	struct volume_size sizes[2]; /* workspace, packages */
	char script[160];	     /* of debugfs */
	int step;
	struct subprocess process;
};

/* creation_done() is called once, later or at once. */
void creation_start(struct creation *c, struct host *host,
    struct client *client);
/* failure: NULL, or why there is none; ERR_CONFLICT: somebody else has made it
 * meanwhile (space.c). */
void creation_done(struct client *client, const struct err *failure);
/* Stop it; what was begun is removed. */
void creation_cancel(struct creation *c);

/* How large the volume must be so that files can hold so much: pure. */
int64_t volume_total_bytes(const struct volume_size *size);
int64_t volume_inodes(const struct volume_size *size);

#endif
